// TLS for all three programs: OpenSSL under a send and a recv that behave like the kernel's on a
// non-blocking socket.
#ifndef HTTPMARK_NATIVE_SHARED_TLS_HPP_
#define HTTPMARK_NATIVE_SHARED_TLS_HPP_

#include <sys/types.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <string>

struct ssl_st;
struct ssl_ctx_st;

namespace httpmark {

struct TlsClientOptions {
    std::string version;  // "1.2" or "1.3", only that one; empty = what both ends like best
    std::string ciphers;  // OpenSSL's list for 1.2, or names of suites for 1.3; empty = its default
    std::string ca_file;  // verify the server against it; empty = do not verify
    std::string host;     // what the certificate has to be for, an address or a name
    bool tell_cut = false;  // an end without close_notify is an error (EPROTO), not an end
};

// A client's or a server's settings; safe to share between threads.
class TlsContext {
  public:
    // Nothing, and a complaint of one line, when OpenSSL will not have the options.
    static std::optional<TlsContext> client(const TlsClientOptions& options,
                                            std::string* complaint);
    static std::optional<TlsContext> server(const std::string& certificate_file,
                                            const std::string& key_file, std::string* complaint);

  private:
    friend class TlsStream;
    explicit TlsContext(ssl_ctx_st* context);

    std::shared_ptr<ssl_ctx_st> context_;
    std::string host_;
};

// One connection. Owns the session, not the descriptor.
class TlsStream {
  public:
    TlsStream() = default;
    ~TlsStream();
    TlsStream(TlsStream&& other) noexcept;
    TlsStream& operator=(TlsStream&& other) noexcept;

    bool is_open() const { return ssl_ != nullptr; }
    // The handshake of a client on a blocking socket. False: `complaint` says why.
    bool connect(const TlsContext& context, int fd, std::string* complaint);
    // A client's handshake within send() and receive(), for a non-blocking socket.
    bool begin(const TlsContext& context, int fd);
    enum class Progress : unsigned char { kDone, kAgain, kFailed };
    // As much of a handshake begun as is possible now. kFailed: `complaint` says why.
    Progress handshake(std::string* complaint);
    // After kAgain: it is room to send that is missing, and not bytes.
    bool wants_to_send() const;
    // Whether the handshake is over; no longer true once the session has failed.
    bool is_established() const;
    // Sends close_notify, as far as the socket takes it.
    void shut_down();
    // A server's handshake happens within receive().
    bool accept(const TlsContext& context, int fd);
    void reset();

    // As send and recv: -1 with errno, EAGAIN among them; 0 from receive is the end. After EAGAIN a
    // send has to be tried again with the same bytes.
    ssize_t send(const char* data, std::size_t size);
    ssize_t receive(char* data, std::size_t size);
    // Bytes that were read from the socket and not yet given out: epoll will not tell.
    bool has_pending() const;

    std::string version() const;
    std::string cipher() const;

  private:
    ssize_t explain(int result);

    enum class Held : unsigned char { kNothing, kEnd, kError };

    ssl_st* ssl_ = nullptr;
    Held held_ = Held::kNothing;  // how it ended after the bytes that receive() gave out last
    int held_errno_ = 0;
};

}  // namespace httpmark

#endif  // HTTPMARK_NATIVE_SHARED_TLS_HPP_
