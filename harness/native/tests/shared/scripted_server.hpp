// A server on a free loopback port that does with each connection what a test tells it.
#ifndef HTTPMARK_NATIVE_TESTS_SHARED_SCRIPTED_SERVER_HPP_
#define HTTPMARK_NATIVE_TESTS_SHARED_SCRIPTED_SERVER_HPP_

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "shared/endpoint.hpp"

namespace httpmark {

class ScriptedServer {
  public:
    // Called on a thread of its own; the descriptor is closed when it returns.
    using Play = std::function<void(int fd)>;

    explicit ScriptedServer(Play play) : play_(std::move(play)) {
        listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        const Endpoint any = *parse_endpoint("127.0.0.1", 0);
        if (bind(listener_, any.sockaddr_ptr(), any.length) != 0 || listen(listener_, 1024) != 0) {
            std::abort();
        }
        endpoint_ = *bound_endpoint(listener_);
        acceptor_ = std::thread([this] { accept_all(); });
    }
    ~ScriptedServer() {
        stopping_ = true;
        acceptor_.join();
        for (std::thread& thread : threads_) thread.join();
        close(listener_);
    }
    const Endpoint& endpoint() const { return endpoint_; }
    int accepted() const { return accepted_; }

  private:
    void accept_all() {
        while (!stopping_) {
            pollfd waiting = {listener_, POLLIN, 0};
            if (poll(&waiting, 1, 20) <= 0) continue;
            const int fd = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
            if (fd < 0) continue;
            ++accepted_;
            const timeval limit = {5, 0};  // no test hangs for ever
            setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
            setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
            threads_.emplace_back([this, fd] {
                play_(fd);
                close(fd);
            });
        }
    }

    Play play_;
    int listener_ = -1;
    Endpoint endpoint_;
    std::atomic<bool> stopping_ = false;
    std::atomic<int> accepted_ = 0;
    std::thread acceptor_;
    std::vector<std::thread> threads_;
};

inline void say(int fd, std::string_view octets) {
    while (!octets.empty()) {
        const ssize_t sent = send(fd, octets.data(), octets.size(), MSG_NOSIGNAL);
        if (sent <= 0) return;
        octets.remove_prefix(static_cast<std::size_t>(sent));
    }
}

// Reads until `count` header sections have come or the client has gone; the bytes read.
inline std::string hear_heads(int fd, int count) {
    std::string heard;
    char buffer[4096];
    for (;;) {
        int heads = 0;
        for (std::size_t at = heard.find("\r\n\r\n"); at != std::string::npos;
             at = heard.find("\r\n\r\n", at + 4)) {
            ++heads;
        }
        if (heads >= count) return heard;
        const ssize_t got = recv(fd, buffer, sizeof buffer, 0);
        if (got <= 0) return heard;
        heard.append(buffer, static_cast<std::size_t>(got));
    }
}

inline void reset_connection(int fd) {
    const linger now = {1, 0};
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
}

}  // namespace httpmark

#endif  // HTTPMARK_NATIVE_TESTS_SHARED_SCRIPTED_SERVER_HPP_
