#include "null/server.hpp"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <string_view>

namespace httpmark {
namespace {

constexpr std::string_view kReply =
    "HTTP/1.1 200 OK\r\n"
    "Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n"
    "Content-Type: text/plain\r\n"
    "Content-Length: 12\r\n"
    "\r\n"
    "Hello World!";
constexpr std::size_t kDateAt = kReply.find("Date: ") + 6;
constexpr int kEventsPerWait = 256;
constexpr std::size_t kTlsRecordBytes = 16 * 1024;

std::int64_t now_seconds() {
    timespec now = {};
    clock_gettime(CLOCK_REALTIME_COARSE, &now);
    return now.tv_sec;
}

}  // namespace

NullReplies::NullReplies() {
    octets_.resize(kReply.size() * kNullReplyCopies);
    for (std::size_t i = 0; i < kNullReplyCopies; ++i) {
        std::memcpy(octets_.data() + i * kReply.size(), kReply.data(), kReply.size());
    }
}

std::size_t NullReplies::size() {
    return kReply.size();
}

void NullReplies::refresh(std::int64_t seconds) {
    if (seconds == date_seconds_) return;
    date_seconds_ = seconds;
    char date[kImfFixdateSize];
    format_imf_fixdate(seconds, date);
    for (std::size_t i = 0; i < kNullReplyCopies; ++i) {
        std::memcpy(octets_.data() + i * kReply.size() + kDateAt, date, sizeof date);
    }
}

NullWorker::NullWorker(int listener, int stop_fd, const TlsContext* tls)
    : listener_(listener),
      stop_fd_(stop_fd),
      tls_(tls),
      epoll_fd_(epoll_create1(EPOLL_CLOEXEC)),
      reserve_fd_(open("/dev/null", O_RDONLY | O_CLOEXEC)),
      receive_(kNullReceiveBytes) {
    static_assert(sizeof(Connection::rest) >= kReply.size());
    epoll_event event = {};
    event.events = EPOLLIN;
    event.data.fd = listener_;
    epoll_ctl(epoll_fd_, EPOLL_CTL_ADD, listener_, &event);
    event.data.fd = stop_fd_;
    epoll_ctl(epoll_fd_, EPOLL_CTL_ADD, stop_fd_, &event);
}

NullWorker::~NullWorker() {
    for (auto& connection : connections_) {
        if (connection) close(connection->fd);
    }
    if (reserve_fd_ >= 0) close(reserve_fd_);
    close(epoll_fd_);
    close(listener_);
}

void NullWorker::run() {
    epoll_event events[kEventsPerWait];
    for (;;) {
        const int ready = epoll_wait(epoll_fd_, events, kEventsPerWait, -1);
        if (ready < 0 && errno != EINTR) return;
        replies_.refresh(now_seconds());
        for (int i = 0; i < ready; ++i) {
            const int fd = events[i].data.fd;
            if (fd == stop_fd_) return;
            if (fd == listener_) {
                accept_some();
                continue;
            }
            Connection* connection = connections_[static_cast<std::size_t>(fd)].get();
            if (connection == nullptr) continue;
            if (connection->blocked) {
                if (!flush(connection)) continue;
                if (connection->blocked) continue;
                watch(connection, EPOLLIN);
                if (tls_ != nullptr)
                    read_some(connection);  // TLS may hold bytes epoll does not know of
            } else {
                read_some(connection);
            }
        }
    }
}

void NullWorker::accept_some() {
    for (int i = 0; i < kNullAcceptsPerWake; ++i) {
        const int fd = accept4(listener_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0) {
            if (errno == ECONNABORTED || errno == EINTR) continue;
            if ((errno == EMFILE || errno == ENFILE) && reserve_fd_ >= 0) {
                // Out of descriptors: turn the client away instead of spinning on a readable
                // listener.
                close(reserve_fd_);
                const int extra = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
                if (extra >= 0) close(extra);
                reserve_fd_ = open("/dev/null", O_RDONLY | O_CLOEXEC);
                continue;
            }
            return;
        }
        const auto slot = static_cast<std::size_t>(fd);
        if (slot >= connections_.size()) connections_.resize(slot + 1);
        auto connection = std::make_unique<Connection>();
        connection->fd = fd;
        if (tls_ != nullptr && !connection->tls.accept(*tls_, fd)) {
            close(fd);
            continue;
        }
        epoll_event event = {};
        event.events = EPOLLIN;
        event.data.fd = fd;
        if (epoll_ctl(epoll_fd_, EPOLL_CTL_ADD, fd, &event) != 0) {
            close(fd);
            continue;
        }
        connections_[slot] = std::move(connection);
    }
}

void NullWorker::read_some(Connection* connection) {
    if (tls_ == nullptr) {
        read_once(connection);
        return;
    }
    while (read_once(connection)) {
    }
}

ssize_t NullWorker::transmit(Connection* connection, const char* data, std::size_t size) {
    if (!connection->tls.is_open()) return send(connection->fd, data, size, MSG_NOSIGNAL);
    std::string& retry = connection->retry;
    if (!retry.empty()) {
        data = retry.data();
        size = retry.size();
    }
    const ssize_t sent = connection->tls.send(data, size);
    if (sent < 0 && errno == EAGAIN) {
        if (retry.empty()) retry.assign(data, size);
    } else {
        retry.clear();
    }
    return sent;
}

bool NullWorker::read_once(Connection* connection) {
    const ssize_t got = connection->tls.is_open()
                            ? connection->tls.receive(receive_.data(), receive_.size())
                            : recv(connection->fd, receive_.data(), receive_.size(), 0);
    if (got > 0) {
        const std::size_t heads =
            count_head_ends(&connection->head, receive_.data(), static_cast<std::size_t>(got));
        if (heads == 0) return true;
        connection->owed += heads;
        if (!flush(connection)) return false;
        if (connection->blocked) watch(connection, EPOLLOUT);
        return !connection->blocked;
    }
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return false;
    // All that was read has been answered, or the connection would be blocked and not read.
    close_connection(connection);
    return false;
}

bool NullWorker::flush(Connection* connection) {
    const std::size_t reply = kReply.size();
    for (;;) {
        const char* data = replies_.data();
        std::size_t size = 0;
        const bool is_rest = connection->rest_size != 0;
        if (is_rest) {
            data = connection->rest;
            size = connection->rest_size;
        } else {
            size = static_cast<std::size_t>(
                       std::min<std::uint64_t>(connection->owed, kNullReplyCopies)) *
                   reply;
        }
        // Whole replies that fit into one TLS record, which goes out whole or not at all.
        if (tls_ != nullptr) size = std::min(size, kTlsRecordBytes / reply * reply);
        if (size == 0) {
            connection->blocked = false;
            return true;
        }
        const ssize_t sent = transmit(connection, data, size);
        if (sent < 0) {
            if (errno == EINTR) continue;
            if (errno == EAGAIN) {
                connection->blocked = true;
                return true;
            }
            close_connection(connection);
            return false;
        }
        const auto done = static_cast<std::size_t>(sent);
        if (is_rest) {
            std::memmove(connection->rest, connection->rest + done, size - done);
            connection->rest_size = static_cast<std::uint8_t>(size - done);
        } else {
            connection->owed -= done / reply;
            const std::size_t into = done % reply;
            if (into != 0) {
                // The Date may change before the rest of this reply goes out: keep the bytes it
                // began with.
                std::memcpy(connection->rest, data + done, reply - into);
                connection->rest_size = static_cast<std::uint8_t>(reply - into);
                --connection->owed;
            }
        }
        if (done < size && tls_ == nullptr) {
            connection->blocked = true;
            return true;
        }
    }
}

void NullWorker::close_connection(Connection* connection) {
    const int fd = connection->fd;
    connections_[static_cast<std::size_t>(fd)].reset();
    close(fd);
}

void NullWorker::watch(Connection* connection, std::uint32_t interest) {
    epoll_event event = {};
    event.events = interest;
    event.data.fd = connection->fd;
    epoll_ctl(epoll_fd_, EPOLL_CTL_MOD, connection->fd, &event);
}

}  // namespace httpmark
