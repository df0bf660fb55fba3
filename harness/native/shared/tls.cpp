#include "shared/tls.hpp"

#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <cerrno>
#include <climits>
#include <utility>

namespace httpmark {
namespace {

std::string last_error(const std::string& what) {
    const unsigned long code = ERR_get_error();
    ERR_clear_error();
    if (code == 0) return what;
    char text[256];
    ERR_error_string_n(code, text, sizeof text);
    return what + ": " + text;
}

void set_common_options(SSL_CTX* context) {
    // A peer that ends the connection without close_notify has ended it.
    SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_IGNORE_UNEXPECTED_EOF);
    SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                  SSL_MODE_RELEASE_BUFFERS);
    // Else each record costs two reads, one for its five bytes of header.
    SSL_CTX_set_read_ahead(context, 1);
}

int clamp_int(std::size_t size) {
    return size > INT_MAX ? INT_MAX : static_cast<int>(size);
}

bool is_address(const std::string& host) {
    unsigned char octets[16];
    return inet_pton(AF_INET, host.c_str(), octets) == 1 ||
           inet_pton(AF_INET6, host.c_str(), octets) == 1;
}

}  // namespace

TlsContext::TlsContext(ssl_ctx_st* context) : context_(context, SSL_CTX_free) {}

std::optional<TlsContext> TlsContext::client(const TlsClientOptions& options,
                                             std::string* complaint) {
    TlsContext made(SSL_CTX_new(TLS_client_method()));
    SSL_CTX* context = made.context_.get();
    if (context == nullptr) {
        *complaint = last_error("TLS");
        return std::nullopt;
    }
    set_common_options(context);
    if (options.tell_cut) SSL_CTX_clear_options(context, SSL_OP_IGNORE_UNEXPECTED_EOF);
    // Handshakes are to be measured, not resumptions.
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
    if (!options.version.empty()) {
        const int version = options.version == "1.2" ? TLS1_2_VERSION : TLS1_3_VERSION;
        SSL_CTX_set_min_proto_version(context, version);
        SSL_CTX_set_max_proto_version(context, version);
    }
    if (!options.ciphers.empty()) {
        const bool is_13 = options.version == "1.3" || options.ciphers.rfind("TLS_", 0) == 0;
        const int done = is_13 ? SSL_CTX_set_ciphersuites(context, options.ciphers.c_str())
                               : SSL_CTX_set_cipher_list(context, options.ciphers.c_str());
        if (done != 1) {
            *complaint = last_error("no such TLS cipher '" + options.ciphers + "'");
            return std::nullopt;
        }
    }
    if (!options.ca_file.empty()) {
        if (SSL_CTX_load_verify_locations(context, options.ca_file.c_str(), nullptr) != 1) {
            *complaint = last_error("cannot use '" + options.ca_file + "'");
            return std::nullopt;
        }
        SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nullptr);
    }
    made.host_ = options.host;
    return made;
}

std::optional<TlsContext> TlsContext::server(const std::string& certificate_file,
                                             const std::string& key_file, std::string* complaint) {
    TlsContext made(SSL_CTX_new(TLS_server_method()));
    SSL_CTX* context = made.context_.get();
    if (context == nullptr) {
        *complaint = last_error("TLS");
        return std::nullopt;
    }
    set_common_options(context);
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_num_tickets(context, 0);
    SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
    if (SSL_CTX_use_certificate_chain_file(context, certificate_file.c_str()) != 1) {
        *complaint = last_error("cannot use the certificate '" + certificate_file + "'");
        return std::nullopt;
    }
    if (SSL_CTX_use_PrivateKey_file(context, key_file.c_str(), SSL_FILETYPE_PEM) != 1 ||
        SSL_CTX_check_private_key(context) != 1) {
        *complaint = last_error("cannot use the key '" + key_file + "'");
        return std::nullopt;
    }
    return made;
}

TlsStream::~TlsStream() {
    reset();
}

TlsStream::TlsStream(TlsStream&& other) noexcept
    : ssl_(std::exchange(other.ssl_, nullptr)),
      held_(std::exchange(other.held_, Held::kNothing)),
      held_errno_(other.held_errno_) {}

TlsStream& TlsStream::operator=(TlsStream&& other) noexcept {
    std::swap(ssl_, other.ssl_);
    std::swap(held_, other.held_);
    std::swap(held_errno_, other.held_errno_);
    return *this;
}

void TlsStream::reset() {
    if (ssl_ != nullptr) SSL_free(ssl_);
    ssl_ = nullptr;
    held_ = Held::kNothing;
}

bool TlsStream::begin(const TlsContext& context, int fd) {
    reset();
    ERR_clear_error();
    ssl_ = SSL_new(context.context_.get());
    if (ssl_ == nullptr || SSL_set_fd(ssl_, fd) != 1) {
        reset();
        return false;
    }
    if (is_address(context.host_)) {
        X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl_), context.host_.c_str());
    } else if (!context.host_.empty()) {
        SSL_set_tlsext_host_name(ssl_, context.host_.c_str());
        SSL_set1_host(ssl_, context.host_.c_str());
    }
    // RFC 7301: say that HTTP/1.1 is what will be spoken.
    static constexpr unsigned char kHttp11[] = "\x08http/1.1";
    SSL_set_alpn_protos(ssl_, kHttp11, sizeof kHttp11 - 1);
    SSL_set_connect_state(ssl_);
    return true;
}

bool TlsStream::connect(const TlsContext& context, int fd, std::string* complaint) {
    if (!begin(context, fd)) {
        *complaint = last_error("TLS");
        return false;
    }
    if (SSL_connect(ssl_) != 1) {
        *complaint = last_error("TLS handshake");
        reset();
        return false;
    }
    return true;
}

TlsStream::Progress TlsStream::handshake(std::string* complaint) {
    ERR_clear_error();
    const int done = SSL_do_handshake(ssl_);
    if (done == 1) return Progress::kDone;
    const int error = SSL_get_error(ssl_, done);
    if (error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE) return Progress::kAgain;
    *complaint = last_error("TLS handshake");
    return Progress::kFailed;
}

bool TlsStream::wants_to_send() const {
    return SSL_want_write(ssl_) == 1;
}

bool TlsStream::is_established() const {
    return ssl_ != nullptr && SSL_is_init_finished(ssl_) == 1;
}

void TlsStream::shut_down() {
    if (!is_established()) return;
    ERR_clear_error();
    SSL_shutdown(ssl_);
    ERR_clear_error();
}

bool TlsStream::accept(const TlsContext& context, int fd) {
    reset();
    ssl_ = SSL_new(context.context_.get());
    if (ssl_ == nullptr || SSL_set_fd(ssl_, fd) != 1) {
        reset();
        return false;
    }
    SSL_set_accept_state(ssl_);
    return true;
}

ssize_t TlsStream::explain(int result) {
    const int saved = errno;
    switch (SSL_get_error(ssl_, result)) {
        case SSL_ERROR_WANT_READ:
        case SSL_ERROR_WANT_WRITE:
            errno = EAGAIN;
            return -1;
        case SSL_ERROR_ZERO_RETURN:
            return 0;
        case SSL_ERROR_SYSCALL:
            errno = saved != 0 ? saved : EPROTO;
            return -1;
        default:
            ERR_clear_error();
            errno = EPROTO;
            return -1;
    }
}

ssize_t TlsStream::send(const char* data, std::size_t size) {
    ERR_clear_error();
    const int sent = SSL_write(ssl_, data, clamp_int(size));
    if (sent > 0) return sent;
    const ssize_t result = explain(sent);
    if (result == 0) {
        errno = EPIPE;
        return -1;
    }
    return result;
}

ssize_t TlsStream::receive(char* data, std::size_t size) {
    if (held_ != Held::kNothing) {
        errno = held_errno_;
        return std::exchange(held_, Held::kNothing) == Held::kEnd ? 0 : -1;
    }
    std::size_t got = 0;
    while (got < size) {
        ERR_clear_error();
        errno = 0;
        const int part = SSL_read(ssl_, data + got, clamp_int(size - got));
        if (part <= 0) {
            const ssize_t result = explain(part);
            if (got == 0) return result;
            // OpenSSL does not tell an end a second time as what it was.
            if (result == 0) held_ = Held::kEnd;
            if (result < 0 && errno != EAGAIN) held_ = Held::kError;
            held_errno_ = errno;
            break;
        }
        got += static_cast<std::size_t>(part);
    }
    return static_cast<ssize_t>(got);
}

bool TlsStream::has_pending() const {
    return SSL_has_pending(ssl_) == 1;
}

std::string TlsStream::version() const {
    return SSL_get_version(ssl_);
}

std::string TlsStream::cipher() const {
    const char* name = SSL_get_cipher_name(ssl_);
    return name != nullptr ? name : "";
}

}  // namespace httpmark
