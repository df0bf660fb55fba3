// The calibration server: every head whose end it can find gets the same reply, nothing is
// validated, and a batch of pipelined requests costs one recv and one send. What it costs is the
// floor under every server the harness measures.
#ifndef HTTPMARK_NATIVE_NULL_SERVER_HPP_
#define HTTPMARK_NATIVE_NULL_SERVER_HPP_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "null/scan.hpp"
#include "shared/endpoint.hpp"
#include "shared/http_date.hpp"
#include "shared/tls.hpp"

namespace httpmark {

inline constexpr std::size_t kNullReceiveBytes = 64 * 1024;
// Replies laid out one after the other, so that a batch of pipelined requests is one send.
inline constexpr std::size_t kNullReplyCopies = 1024;
inline constexpr int kNullBacklog = 4096;
inline constexpr int kNullAcceptsPerWake = 64;

// "HTTP/1.1 200 OK" with the Date of now, kNullReplyCopies times.
class NullReplies {
  public:
    NullReplies();

    // Rewrites the dates when the second has changed.
    void refresh(std::int64_t now_seconds);
    const char* data() const { return octets_.data(); }
    static std::size_t size();

  private:
    std::vector<char> octets_;
    std::int64_t date_seconds_ = -1;
};

class NullWorker {
  public:
    // Takes over `listener`; ends when `stop_fd` becomes readable. `tls`: absent for plain.
    NullWorker(int listener, int stop_fd, const TlsContext* tls);
    ~NullWorker();
    NullWorker(const NullWorker&) = delete;
    NullWorker& operator=(const NullWorker&) = delete;

    void run();

  private:
    // Nothing here grows with what a client sends or does not read: replies still to be sent are a
    // number, since they are all the same; only the reply that went out by halves keeps its bytes.
    struct Connection {
        int fd = -1;
        TlsStream tls;
        // TLS only: what a blocked send has to be tried again with.
        std::string retry;
        HeadState head = 0;
        bool blocked = false;
        std::uint8_t rest_size = 0;
        std::uint64_t owed = 0;
        char rest[128];
    };

    void accept_some();
    void read_some(Connection* connection);
    // One read: false when there is nothing more to read now, or no connection any more.
    bool read_once(Connection* connection);
    static ssize_t transmit(Connection* connection, const char* data, std::size_t size);
    // False when the connection is gone.
    bool flush(Connection* connection);
    void close_connection(Connection* connection);
    void watch(Connection* connection, std::uint32_t events);

    int listener_;
    int stop_fd_;
    const TlsContext* tls_;
    int epoll_fd_;
    int reserve_fd_;
    NullReplies replies_;
    std::vector<char> receive_;
    std::vector<std::unique_ptr<Connection>> connections_;  // by descriptor
};

}  // namespace httpmark

#endif  // HTTPMARK_NATIVE_NULL_SERVER_HPP_
