// Whole workers on loopback sockets, one with each engine, and a plain blocking client.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "check.hpp"
#include "needs.hpp"
#include "net/worker.hpp"
#include "routes.hpp"

namespace httpmark {

class LiveServer {
  public:
    explicit LiveServer(Engine engine, ServerSettings settings = {})
        : settings_(with_routes(std::move(settings))) {
        const int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        address_.sin_family = AF_INET;
        address_.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        CHECK(bind(fd, reinterpret_cast<sockaddr*>(&address_), sizeof address_) == 0);
        CHECK(listen(fd, 1024) == 0);
        socklen_t size = sizeof address_;
        CHECK(getsockname(fd, reinterpret_cast<sockaddr*>(&address_), &size) == 0);
        worker_ = std::make_unique<Worker>(settings_, engine, shared_);
        ready_ = worker_->start({{fd, false}}, nullptr, error_);
        if (ready_) thread_ = std::thread([this] { worker_->run(); });
    }
    LiveServer(const LiveServer&) = delete;
    LiveServer& operator=(const LiveServer&) = delete;
    ~LiveServer() { stop(true); }
    void stop(bool at_once) {
        if (!thread_.joinable()) return;
        worker_->request_stop(false);
        if (at_once) worker_->request_stop(true);
        thread_.join();
    }
    bool ready() const { return ready_; }
    const std::string& error() const { return error_; }
    const Counters& counters() const { return worker_->counters(); }

    int connect() const {
        const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        connect(fd);
        return fd;
    }
    void connect(int fd) const {
        CHECK(::connect(fd, reinterpret_cast<const sockaddr*>(&address_), sizeof address_) == 0);
    }

  private:
    ServerSettings settings_;
    SharedState shared_;
    sockaddr_in address_{};
    std::unique_ptr<Worker> worker_;
    std::thread thread_;
    std::string error_;
    bool ready_ = false;
};

inline void write_all(int fd, std::string_view octets) {
    while (!octets.empty()) {
        const ssize_t sent = send(fd, octets.data(), octets.size(), MSG_NOSIGNAL);
        if (sent <= 0) return;
        octets.remove_prefix(static_cast<std::size_t>(sent));
    }
}

// Reads until `size` bytes have come, or the end, or nothing for twenty seconds.
struct Received {
    std::string octets;
    bool ended = false;
    bool reset = false;
};
inline Received read_some(int fd, std::size_t size) {
    Received out;
    char buffer[65536];
    while (out.octets.size() < size) {
        pollfd waiting{fd, POLLIN, 0};
        if (poll(&waiting, 1, 20000) <= 0) break;
        const ssize_t got = recv(fd, buffer, sizeof buffer, 0);
        if (got < 0) out.reset = true;
        if (got == 0) out.ended = true;
        if (got <= 0) break;
        out.octets.append(buffer, static_cast<std::size_t>(got));
    }
    return out;
}
inline constexpr std::size_t kToTheEnd = ~std::size_t{0};

class EveryEngine : public testing::TestWithParam<Engine> {
  protected:
    bool start(ServerSettings settings = {}) {
        server_ = std::make_unique<LiveServer>(GetParam(), settings);
        return server_->ready();
    }
    std::unique_ptr<LiveServer> server_;
};

#define START(...)                                                                   \
    do {                                                                             \
        if (start(__VA_ARGS__)) break;                                               \
        const char* const engine = GetParam() == Engine::kEpoll ? "epoll" : "uring"; \
        ASSERT_TRUE(lacks_uring(engine, server_->error())) << server_->error();      \
        GTEST_SKIP() << server_->error();                                            \
    } while (false)

inline std::vector<Engine> engines() {
    std::vector<Engine> out{Engine::kEpoll};
    if (engine_is_built(Engine::kUring)) {
        out.push_back(Engine::kUring);
        out.push_back(Engine::kUringDirect);
    }
    return out;
}

inline std::string engine_name(const testing::TestParamInfo<Engine>& info) {
    switch (info.param) {
        case Engine::kEpoll:
            return "epoll";
        case Engine::kUring:
            return "uring";
        case Engine::kUringDirect:
            return "uring_direct";
    }
    return "none";
}

}  // namespace httpmark
