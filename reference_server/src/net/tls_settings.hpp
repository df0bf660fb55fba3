// What a server does on its TLS ports.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace httpmark {

enum class ClientVerify : std::uint8_t { kOff, kOptional, kRequired };

struct TlsSettings {
    struct Pair {
        std::string certificate = {};
        std::string key = {};
    };
    std::vector<Pair> pairs = {};  // the first is for clients that name no host we know
    std::string key_password_file = {};
    std::string client_ca = {};
    ClientVerify client_verify = ClientVerify::kOff;
    unsigned client_depth = 100;  // certificates between a client's and its authority's
    int version_min = 0x0303;
    int version_max = 0x0304;
    // TLS 1.2: those with forward secrecy and authenticated encryption (RFC 9325 4.2), so no CBC.
    std::string ciphers = "ECDHE+AESGCM:ECDHE+CHACHA20";
    std::string ciphersuites = {};  // TLS 1.3
    std::string groups = "X25519:P-256:P-384:P-521";
    unsigned tickets = 0;
};

}  // namespace httpmark
