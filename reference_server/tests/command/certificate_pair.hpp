// A certificate for tests of the command.
#pragma once

#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <unistd.h>

#include <cstdio>
#include <string>
#include <vector>

#include "check.hpp"
#include "laws.hpp"

namespace httpmark {

// A certificate and its key, in a file each.
struct CertificatePair {
    std::string certificate = testing::TempDir() + "httpmark-main-" + std::to_string(getpid());
    std::string key = certificate + ".key";

    CertificatePair() {
        EVP_PKEY* const pair = EVP_EC_gen("P-256");
        X509* const x509 = X509_new();
        X509_set_version(x509, 2);
        ASN1_INTEGER_set(X509_get_serialNumber(x509), 1);
        X509_gmtime_adj(X509_getm_notBefore(x509), -3600);
        X509_gmtime_adj(X509_getm_notAfter(x509), 86400);
        X509_set_pubkey(x509, pair);
        CHECK(X509_sign(x509, pair, EVP_sha256()) != 0);
        std::FILE* file = std::fopen(certificate.c_str(), "w");
        CHECK(file != nullptr && PEM_write_X509(file, x509) == 1);
        std::fclose(file);
        file = std::fopen(key.c_str(), "w");
        CHECK(file != nullptr &&
              PEM_write_PrivateKey(file, pair, nullptr, nullptr, 0, nullptr, nullptr) == 1);
        std::fclose(file);
        X509_free(x509);
        EVP_PKEY_free(pair);
    }
    ~CertificatePair() {
        unlink(certificate.c_str());
        unlink(key.c_str());
    }
    std::vector<std::string> words() const { return {"--tls-cert", certificate, "--tls-key", key}; }
};

}  // namespace httpmark
