// TLS 1.2 and 1.3 by OpenSSL, over memory only: ciphertext in, plaintext out, and the other way
// round. One BIO pair per worker stands for the wire of whichever session is being served, so a
// session costs no buffers of its own while idle.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "app/request.hpp"
#include "net/tls_settings.hpp"

struct ssl_st;
struct ssl_ctx_st;
struct bio_st;
struct bio_method_st;

namespace httpmark {

class TlsContext {
  public:
    // nullptr with `error` in one line when a file or a list is not usable.
    static std::shared_ptr<const TlsContext> load(const TlsSettings& settings, std::string& error);
    ~TlsContext();
    TlsContext(const TlsContext&) = delete;
    TlsContext& operator=(const TlsContext&) = delete;

    ssl_ctx_st* context() const { return contexts_.front(); }
    // The context whose certificate is for that name, else the first.
    ssl_ctx_st* context_for(const char* server_name) const;

  private:
    TlsContext() = default;
    bool add(const TlsSettings& settings, const TlsSettings::Pair& pair, std::string& error);

    std::vector<ssl_ctx_st*> contexts_;
};

class TlsPipe;

class TlsSession {
  public:
    // nullptr when memory is short.
    static TlsSession* make(std::shared_ptr<const TlsContext> context, TlsPipe& pipe);
    ~TlsSession();
    TlsSession(const TlsSession&) = delete;
    TlsSession& operator=(const TlsSession&) = delete;

    enum class Status : std::uint8_t { kOpen, kEnded, kFailed };

    // Decrypts `input` into the pipe's plaintext buffer. Handshake bytes, alerts and whatever else
    // is to be sent stand in the pipe's ciphertext buffer afterwards, also on kFailed.
    Status receive(TlsPipe& pipe, const char* input, std::size_t size, std::string_view& plaintext);
    // Appends to the pipe's ciphertext buffer, in records as large as they may be.
    bool send(TlsPipe& pipe, const char* data, std::size_t size);
    // close_notify (RFC 9112 9.8).
    void shut(TlsPipe& pipe);
    bool established() const;
    // Once it is established.
    TlsFacts facts() const;

  private:
    TlsSession(ssl_st* ssl, std::shared_ptr<const TlsContext> context)
        : ssl_(ssl), context_(std::move(context)) {}

    ssl_st* ssl_;
    std::shared_ptr<const TlsContext> context_;
};

// The worker's buffers, and the BIO pair over them.
class TlsPipe {
  public:
    TlsPipe();
    ~TlsPipe();
    TlsPipe(const TlsPipe&) = delete;
    TlsPipe& operator=(const TlsPipe&) = delete;

    std::string_view ciphertext() const { return {cipher_, cipher_size_}; }
    void clear() { cipher_size_ = 0; }

  private:
    friend class TlsSession;
    static int read(bio_st* bio, char* out, int size);
    static int write(bio_st* bio, const char* data, int size);
    static long control(bio_st* bio, int command, long number, void* pointer);

    bio_method_st* method_;
    bio_st* bio_;
    const char* input_ = nullptr;
    std::size_t input_size_ = 0;
    char* plain_;
    char* cipher_;
    std::size_t cipher_size_ = 0;
};

}  // namespace httpmark
