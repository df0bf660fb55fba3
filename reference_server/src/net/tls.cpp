#include "net/tls.hpp"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <climits>
#include <cstdio>
#include <cstring>
#include <new>

#include "check.hpp"
#include "http/syntax.hpp"
#include "limits.hpp"

namespace httpmark {

namespace {

constexpr std::string_view kAlpn = "\x08http/1.1";

char* map(std::size_t size) {
    void* block = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (block == MAP_FAILED) throw std::bad_alloc();
    return static_cast<char*>(block);
}

std::string openssl_reason() {
    const unsigned long code = ERR_peek_last_error();
    ERR_clear_error();
    const char* reason = code == 0 ? nullptr : ERR_reason_error_string(code);
    return reason == nullptr ? "unknown fault" : reason;
}

// RFC 7301 3.2: a client that offers protocols and not this one is refused; one that offers none
// is served.
int choose_protocol(SSL*, const unsigned char** out, unsigned char* out_size,
                    const unsigned char* offered, unsigned offered_size, void*) {
    unsigned char* chosen = nullptr;
    if (SSL_select_next_proto(
            &chosen, out_size, reinterpret_cast<const unsigned char*>(kAlpn.data()),
            static_cast<unsigned>(kAlpn.size()), offered, offered_size) != OPENSSL_NPN_NEGOTIATED) {
        return SSL_TLSEXT_ERR_ALERT_FATAL;
    }
    *out = chosen;
    return SSL_TLSEXT_ERR_OK;
}

int choose_context(SSL* ssl, int*, void* argument) {
    const char* const name = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name);
    if (name != nullptr) {
        SSL_set_SSL_CTX(ssl, static_cast<const TlsContext*>(argument)->context_for(name));
    }
    return SSL_TLSEXT_ERR_OK;
}

// A FIFO would be waited for, perhaps for ever.
bool is_a_fifo(const std::string& path) {
    struct stat found {};
    return stat(path.c_str(), &found) == 0 && S_ISFIFO(found.st_mode);
}

// Without one of ours OpenSSL would ask at the terminal.
struct KeyPassword {
    const std::string& file;  // empty when none was named
    bool was_asked_for = false;
};

int read_password(char* buffer, int size, int, void* argument) {
    auto& password = *static_cast<KeyPassword*>(argument);
    password.was_asked_for = true;
    if (password.file.empty() || is_a_fifo(password.file)) return -1;
    std::FILE* const file = std::fopen(password.file.c_str(), "re");
    if (file == nullptr) return -1;
    const bool got = std::fgets(buffer, size, file) != nullptr;
    std::fclose(file);
    if (!got) return -1;
    return static_cast<int>(std::strcspn(buffer, "\r\n"));
}

}  // namespace

std::shared_ptr<const TlsContext> TlsContext::load(const TlsSettings& settings,
                                                   std::string& error) {
    std::shared_ptr<TlsContext> context(new TlsContext());
    for (const TlsSettings::Pair& pair : settings.pairs) {
        if (!context->add(settings, pair, error)) return nullptr;
    }
    if (context->contexts_.empty()) {
        error = "no certificate is given";
        return nullptr;
    }
    return context;
}

namespace {

bool fail(std::string& error, const std::string& what) {
    error = what + ": " + openssl_reason();
    return false;
}

bool set_protocol(SSL_CTX* context, const TlsSettings& settings, std::string& error) {
    SSL_CTX_set_options(
        context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_CIPHER_SERVER_PREFERENCE);
    SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
    if (settings.tickets == 0) SSL_CTX_set_options(context, SSL_OP_NO_TICKET);
    SSL_CTX_set_num_tickets(context, settings.tickets);
    if (SSL_CTX_set_min_proto_version(context, settings.version_min) != 1 ||
        SSL_CTX_set_max_proto_version(context, settings.version_max) != 1) {
        return fail(error, "TLS versions");
    }
    if (!settings.ciphers.empty() &&
        SSL_CTX_set_cipher_list(context, settings.ciphers.c_str()) != 1) {
        return fail(error, "--tls-ciphers");
    }
    if (!settings.ciphersuites.empty() &&
        SSL_CTX_set_ciphersuites(context, settings.ciphersuites.c_str()) != 1) {
        return fail(error, "--tls-ciphersuites");
    }
    if (SSL_CTX_set1_groups_list(context, settings.groups.c_str()) != 1) {
        return fail(error, "--tls-groups");
    }
    return true;
}

bool load_pair(SSL_CTX* context, const TlsSettings& settings, const TlsSettings::Pair& pair,
               std::string& error) {
    for (const std::string& path : {pair.certificate, pair.key, settings.client_ca}) {
        if (is_a_fifo(path)) {
            error = path + " is a FIFO, which could keep the server for ever: name a file";
            return false;
        }
    }
    KeyPassword password{settings.key_password_file};
    SSL_CTX_set_default_passwd_cb(context, read_password);
    SSL_CTX_set_default_passwd_cb_userdata(context, &password);
    if (SSL_CTX_use_certificate_chain_file(context, pair.certificate.c_str()) != 1) {
        return fail(error, "certificate " + pair.certificate);
    }
    if (SSL_CTX_use_PrivateKey_file(context, pair.key.c_str(), SSL_FILETYPE_PEM) != 1 ||
        SSL_CTX_check_private_key(context) != 1) {
        if (!password.was_asked_for) return fail(error, "key " + pair.key);
        ERR_clear_error();
        error = "key " + pair.key + " is encrypted, and " +
                (password.file.empty() ? "no --tls-key-password-file is given"
                                       : password.file + " does not open it");
        return false;
    }
    SSL_CTX_set_default_passwd_cb_userdata(context, nullptr);
    SSL_CTX_set_default_passwd_cb(context, nullptr);
    return true;
}

bool set_client_verify(SSL_CTX* context, const TlsSettings& settings, std::string& error) {
    if (settings.client_verify == ClientVerify::kOff) return true;
    if (SSL_CTX_load_verify_file(context, settings.client_ca.c_str()) != 1) {
        return fail(error, "client certificate authority " + settings.client_ca);
    }
    SSL_CTX_set_client_CA_list(context, SSL_load_client_CA_file(settings.client_ca.c_str()));
    const bool required = settings.client_verify == ClientVerify::kRequired;
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER | (required ? SSL_VERIFY_FAIL_IF_NO_PEER_CERT : 0),
                       nullptr);
    SSL_CTX_set_verify_depth(context, static_cast<int>(settings.client_depth));
    constexpr unsigned char kSession[] = "httpmark";
    SSL_CTX_set_session_id_context(context, kSession, sizeof kSession);
    return true;
}

}  // namespace

bool TlsContext::add(const TlsSettings& settings, const TlsSettings::Pair& pair,
                     std::string& error) {
    SSL_CTX* const context = SSL_CTX_new(TLS_server_method());
    if (context == nullptr) return fail(error, "TLS");
    contexts_.push_back(context);
    if (!set_protocol(context, settings, error) || !load_pair(context, settings, pair, error) ||
        !set_client_verify(context, settings, error)) {
        return false;
    }
    SSL_CTX_set_alpn_select_cb(context, choose_protocol, nullptr);
    SSL_CTX_set_tlsext_servername_callback(context, choose_context);
    SSL_CTX_set_tlsext_servername_arg(context, this);
    return true;
}

TlsContext::~TlsContext() {
    for (SSL_CTX* const context : contexts_) SSL_CTX_free(context);
}

ssl_ctx_st* TlsContext::context_for(const char* server_name) const {
    for (SSL_CTX* const context : contexts_) {
        X509* const certificate = SSL_CTX_get0_certificate(context);
        if (certificate != nullptr &&
            X509_check_host(certificate, server_name, 0, 0, nullptr) == 1) {
            return context;
        }
    }
    return contexts_.front();
}

// ---------------------------------------------------------------- the pipe

TlsPipe::TlsPipe()
    : method_(BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "httpmark wire")),
      bio_(nullptr),
      plain_(map(kPlainBufferSize)),
      cipher_(map(kCipherBufferSize)) {
    CHECK(method_ != nullptr);
    BIO_meth_set_read(method_, read);
    BIO_meth_set_write(method_, write);
    BIO_meth_set_ctrl(method_, control);
    bio_ = BIO_new(method_);
    CHECK(bio_ != nullptr);
    BIO_set_data(bio_, this);
    BIO_set_init(bio_, 1);
}

TlsPipe::~TlsPipe() {
    BIO_free(bio_);
    BIO_meth_free(method_);
    munmap(plain_, kPlainBufferSize);
    munmap(cipher_, kCipherBufferSize);
}

int TlsPipe::read(bio_st* bio, char* out, int size) {
    TlsPipe& pipe = *static_cast<TlsPipe*>(BIO_get_data(bio));
    BIO_clear_retry_flags(bio);
    if (pipe.input_size_ == 0) {
        BIO_set_retry_read(bio);
        return -1;
    }
    const std::size_t taken = std::min(static_cast<std::size_t>(size), pipe.input_size_);
    std::memcpy(out, pipe.input_, taken);
    pipe.input_ += taken;
    pipe.input_size_ -= taken;
    return static_cast<int>(taken);
}

int TlsPipe::write(bio_st* bio, const char* data, int size) {
    TlsPipe& pipe = *static_cast<TlsPipe*>(BIO_get_data(bio));
    BIO_clear_retry_flags(bio);
    const auto count = static_cast<std::size_t>(size);
    if (kCipherBufferSize - pipe.cipher_size_ < count) return -1;  // a session out of all bounds
    std::memcpy(pipe.cipher_ + pipe.cipher_size_, data, count);
    pipe.cipher_size_ += count;
    return size;
}

long TlsPipe::control(bio_st*, int command, long, void*) {
    return command == BIO_CTRL_FLUSH ? 1 : 0;
}

// ---------------------------------------------------------------- sessions

TlsSession* TlsSession::make(std::shared_ptr<const TlsContext> context, TlsPipe& pipe) {
    SSL* const ssl = SSL_new(context->context());
    if (ssl == nullptr) {
        ERR_clear_error();
        return nullptr;
    }
    BIO_up_ref(pipe.bio_);
    SSL_set0_rbio(ssl, pipe.bio_);
    BIO_up_ref(pipe.bio_);
    SSL_set0_wbio(ssl, pipe.bio_);
    SSL_set_accept_state(ssl);
    auto* const session = new (std::nothrow) TlsSession(ssl, std::move(context));
    if (session == nullptr) SSL_free(ssl);
    return session;
}

TlsSession::~TlsSession() {
    SSL_free(ssl_);
}

bool TlsSession::established() const {
    return SSL_is_init_finished(ssl_) != 0;
}

namespace {

// What a client sends here is not looked at by OpenSSL: nothing else is handed on, so that it can
// stand in a log or a field.
std::string host_name_of(const SSL* ssl) {
    const char* const name = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name);
    if (name == nullptr) return {};
    const std::string_view text(name);
    const bool is_name = std::all_of(text.begin(), text.end(), [](char c) {
        return is_alpha(octet(c)) || is_digit(octet(c)) || c == '-' || c == '_' || c == '.';
    });
    return is_name ? std::string(text) : std::string();
}

std::string subject_of(const X509* certificate) {
    BIO* const out = BIO_new(BIO_s_mem());
    if (out == nullptr) return {};
    const char* text = nullptr;
    long size = 0;
    if (X509_NAME_print_ex(out, X509_get_subject_name(certificate), 0, XN_FLAG_RFC2253) >= 0) {
        size = BIO_get_mem_data(out, &text);
    }
    std::string subject(text == nullptr ? "" : text, static_cast<std::size_t>(size));
    BIO_free(out);
    return subject;
}

}  // namespace

TlsFacts TlsSession::facts() const {
    TlsFacts facts;
    facts.version = SSL_get_version(ssl_);
    facts.cipher = SSL_get_cipher_name(ssl_);
    facts.server_name = host_name_of(ssl_);
    const unsigned char* protocol = nullptr;
    unsigned size = 0;
    SSL_get0_alpn_selected(ssl_, &protocol, &size);
    if (size != 0) facts.protocol.assign(reinterpret_cast<const char*>(protocol), size);
    const X509* const certificate = SSL_get0_peer_certificate(ssl_);
    if (certificate != nullptr && SSL_get_verify_result(ssl_) == X509_V_OK) {
        facts.client_subject = subject_of(certificate);
    }
    ERR_clear_error();
    return facts;
}

TlsSession::Status TlsSession::receive(TlsPipe& pipe, const char* input, std::size_t size,
                                       std::string_view& plaintext) {
    pipe.input_ = input;
    pipe.input_size_ = size;
    std::size_t filled = 0;
    Status status = Status::kOpen;
    CHECK(size <= kReceiveBufferSize);
    while (true) {
        CHECK(filled < kPlainBufferSize);
        ERR_clear_error();
        const int got =
            SSL_read(ssl_, pipe.plain_ + filled, static_cast<int>(kPlainBufferSize - filled));
        if (got > 0) {
            filled += static_cast<std::size_t>(got);
            continue;
        }
        const int fault = SSL_get_error(ssl_, got);
        if (fault == SSL_ERROR_ZERO_RETURN) {
            status = Status::kEnded;
        } else if (fault != SSL_ERROR_WANT_READ) {
            status = Status::kFailed;
            ERR_clear_error();
        }
        break;
    }
    pipe.input_ = nullptr;
    pipe.input_size_ = 0;
    plaintext = {pipe.plain_, filled};
    return status;
}

bool TlsSession::send(TlsPipe& pipe, const char* data, std::size_t size) {
    CHECK(pipe.input_size_ == 0);
    while (size != 0) {
        const std::size_t slice = std::min(size, kTlsRecordMax);
        ERR_clear_error();
        if (SSL_write(ssl_, data, static_cast<int>(slice)) != static_cast<int>(slice)) {
            ERR_clear_error();
            return false;
        }
        data += slice;
        size -= slice;
    }
    return true;
}

void TlsSession::shut(TlsPipe& pipe) {
    CHECK(pipe.input_size_ == 0);
    if (!established()) return;
    SSL_shutdown(ssl_);
    ERR_clear_error();
}

}  // namespace httpmark
