// The opening handshake as a server sees it, RFC 6455 4.2: a request head is judged, and the answer
// that switches protocols is written.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "http/parser.hpp"
#include "http/response.hpp"
#include "websocket/deflate.hpp"

namespace httpmark::websocket {

// Why a request does not open a WebSocket connection.
enum class Refusal : std::uint8_t {
    kNone,
    kNotHttp11,
    kUpgradeMissing,
    kUpgradeOther,
    kMethod,
    kConnection,
    kContent,
    kVersionMissing,
    kVersionRepeated,
    kVersionOther,
    kKeyMissing,
    kKeyRepeated,
    kKeySyntax,
    kSubprotocolSyntax,
    kSubprotocolRepeated,
    kExtensionSyntax,
    kOriginRepeated,
    kCount,
};

struct RefusalRow {
    Refusal refusal;
    const char* name;
    std::uint16_t status;
    const char* clause;
    // The request does not offer WebSocket at all. What has another answer may give it, as if there
    // were no Upgrade (RFC 9110 7.8).
    bool is_no_offer;
};

const RefusalRow& refusal_row(Refusal refusal);

// What the answer to a refusal holds besides: with 426, the protocol and the version that the
// server speaks (RFC 9110 15.5.22, RFC 6455 4.4). Whoever writes Connection has to add the option
// "upgrade" there (RFC 9110 7.8).
std::span<const Field> refusal_fields(Refusal refusal);

struct HandshakeSettings {
    std::span<const std::string> subprotocols;  // those that the application speaks
    DeflateSettings deflate;
};

struct Handshake {
    Refusal refusal = Refusal::kNone;
    std::array<char, 28> accept{};  // Sec-WebSocket-Accept
    // Views of the request's fields.
    std::string_view subprotocol;  // the client's first one that the application speaks
    std::string_view origin;       // for the application to judge; empty when none was sent
    std::optional<DeflateParameters> deflate;
    std::string extensions;  // the answer's Sec-WebSocket-Extensions
};

// `fields` is the section of field lines of an accepted head, CRLF CRLF included.
Handshake judge_handshake(const RequestHead& head, std::string_view fields,
                          const HandshakeSettings& settings);

// The fields of the 101 besides Upgrade and Connection; views into `handshake`.
std::vector<Field> handshake_fields(const Handshake& handshake);

// base64(SHA-1(key + the GUID of RFC 6455 1.3)).
std::array<char, 28> accept_of(std::string_view key);

}  // namespace httpmark::websocket
