#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <vector>

#include "check.hpp"
#include "net/descriptor_reserve.hpp"
#include "net/loop.hpp"

namespace httpmark {

namespace {

constexpr LoopToken kWakeToken = ~LoopToken{0};
// Listeners have tokens no connection can have: the generation half is all ones.
constexpr LoopToken kListenerBase = 0xFFFFFFFF00000000;

// An event that takes so long is costly. Who causes such ones waits until the others have been
// served.
constexpr std::uint64_t kCostlyNs = 100'000;
// A connection's cost: one more for each costly event, one less for each other. A new one is to
// prove itself; one that is known to cost little may once have waited for a processor.
constexpr std::uint8_t kCostOfNew = 3;
constexpr std::uint8_t kCostly = 2;
// How long costly ones are served before the others are looked for again.
constexpr std::uint64_t kSliceNs = 500'000;
// How many costs are kept. Where two connections share one, one of them may wait in vain, and no
// more.
constexpr std::size_t kCosts = 1 << 16;

std::uint64_t read_clock_ns() {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 +
           static_cast<std::uint64_t>(now.tv_nsec);
}

class EpollLoop final : public Loop {
  public:
    explicit EpollLoop(const LoopSettings& settings) : settings_(settings) {}
    ~EpollLoop() override {
        if (receive_ != nullptr) munmap(receive_, settings_.receive_size);
        for (const int fd : {epoll_, wake_}) {
            if (fd >= 0) ::close(fd);
        }
    }

    bool start(LoopEvents& events, std::string& error) override {
        events_ = &events;
        epoll_ = epoll_create1(EPOLL_CLOEXEC);
        wake_ = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
        reserve_.hold();
        void* block = mmap(nullptr, settings_.receive_size, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (epoll_ < 0 || wake_ < 0 || block == MAP_FAILED || !watch(wake_, kWakeToken, EPOLLIN)) {
            error = std::string("epoll: ") + std::strerror(errno);
            return false;
        }
        receive_ = static_cast<char*>(block);
        return true;
    }

    bool add_listener(int socket, std::uint32_t listener, std::string& error) override {
        if (listeners_.size() <= listener) listeners_.resize(listener + 1, -1);
        listeners_[listener] = socket;
        if (watch(socket, kListenerBase | listener, EPOLLIN)) return true;
        error = std::string("epoll: ") + std::strerror(errno);
        return false;
    }

    void remove_listener(int socket) override {
        epoll_ctl(epoll_, EPOLL_CTL_DEL, socket, nullptr);
        // It may be among the events of this turn, and its number soon another socket's.
        std::replace(listeners_.begin(), listeners_.end(), socket, -1);
    }

    void pause_listener(std::uint32_t listener, bool paused) override {
        epoll_event event{};
        event.events = paused ? 0U : EPOLLIN;
        event.data.u64 = kListenerBase | listener;
        CHECK(epoll_ctl(epoll_, EPOLL_CTL_MOD, listeners_[listener], &event) == 0);
        paused_ = paused;
    }

    bool has_reserve() override { return reserve_.hold(); }

    std::string peer(std::int32_t handle) override { return peer_name(handle); }

    std::ptrdiff_t send(std::int32_t handle, LoopToken, const char* data,
                        std::size_t size) override {
        return send_with(handle, data, size, MSG_NOSIGNAL | MSG_DONTWAIT);
    }
    std::ptrdiff_t send_more(std::int32_t handle, LoopToken, const char* data,
                             std::size_t size) override {
        return send_with(handle, data, size, MSG_NOSIGNAL | MSG_DONTWAIT | MSG_MORE);
    }
    std::ptrdiff_t send_file(std::int32_t handle, LoopToken, const FilePart& part) override {
        return send_file_at_once(handle, part);
    }

    void set_interest(std::int32_t handle, LoopToken token, bool octets, bool room) override {
        epoll_event event{};
        event.events = (octets ? EPOLLIN : 0U) | (room ? EPOLLOUT : 0U);
        event.data.u64 = token;
        if (epoll_ctl(epoll_, EPOLL_CTL_MOD, handle, &event) == 0) return;
        // Refused as it was accepted, and its answer did not go out whole.
        if (errno == ENOENT && watch(handle, token, event.events)) return;
        // It can no longer be waited for, so it is cut off. Where epoll still watches it, epoll
        // tells of that; else a timeout ends it.
        shutdown(handle, SHUT_RDWR);
    }

    void shutdown_write(std::int32_t handle, LoopToken) override { shutdown(handle, SHUT_WR); }
    void close(std::int32_t handle, LoopToken) override { ::close(handle); }

    void wake() override {
        const std::uint64_t one = 1;
        // A full counter means that a wake-up is under way already.
        (void)!write(wake_, &one, sizeof one);
    }

    void turn(int timeout_ms) override {
        const int count =
            epoll_wait(epoll_, ready_.data(), static_cast<int>(ready_.size()), timeout_ms);
        events_->on_turn();
        std::uint64_t now = read_clock_ns();
        std::size_t costly = 0;
        for (int i = 0; i < count; ++i) {
            const epoll_event event = ready_[static_cast<std::size_t>(i)];
            const LoopToken token = event.data.u64;
            if (token == kWakeToken) {
                std::uint64_t drained = 0;
                (void)!read(wake_, &drained, sizeof drained);
                events_->on_wake();
                now = read_clock_ns();
            } else if ((token & kListenerBase) == kListenerBase) {
                accept_from(static_cast<std::uint32_t>(token));
                now = read_clock_ns();
            } else if (cost_of(token) >= kCostly) {
                ready_[costly++] = event;
            } else {
                serve_by_the_clock(event, now);
            }
        }
        serve_costly(costly, now);
    }

  private:
    static std::uint32_t slot_of(LoopToken token) { return static_cast<std::uint32_t>(token); }
    std::uint8_t& cost_of(LoopToken token) { return costs_[slot_of(token) % kCosts]; }

    // Each in its turn, by slots, for a slice: level triggering brings those that are left again.
    void serve_costly(std::size_t count, std::uint64_t now) {
        const std::uint32_t first = last_costly_ + 1;
        const auto is_later = [first](const epoll_event& one, const epoll_event& other) {
            return slot_of(one.data.u64) - first > slot_of(other.data.u64) - first;
        };
        const auto begin = ready_.begin();
        auto end = begin + static_cast<std::ptrdiff_t>(count);
        std::make_heap(begin, end, is_later);
        const std::uint64_t until = now + kSliceNs;
        while (end != begin && now < until) {
            std::pop_heap(begin, end, is_later);
            const epoll_event event = *--end;
            last_costly_ = slot_of(event.data.u64);
            serve_by_the_clock(event, now);
        }
    }

    void serve_by_the_clock(const epoll_event& event, std::uint64_t& now) {
        const std::uint64_t began = now;
        serve(event.data.u64, event.events);
        now = read_clock_ns();
        std::uint8_t& cost = cost_of(event.data.u64);
        if (now - began >= kCostlyNs) {
            if (cost < kCostOfNew) ++cost;
        } else if (cost > 0) {
            --cost;
        }
    }

    static std::ptrdiff_t send_with(int socket, const char* data, std::size_t size, int flags) {
        ssize_t taken = 0;
        do {
            taken = ::send(socket, data, size, flags);
        } while (taken < 0 && errno == EINTR);
        if (taken < 0) {
            if (errno != EAGAIN && errno != EWOULDBLOCK && errno != ENOBUFS) return kBroken;
            taken = 0;
        }
        return taken;
    }

    bool watch(int fd, LoopToken token, std::uint32_t interest) {
        epoll_event event{};
        event.events = interest;
        event.data.u64 = token;
        return epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &event) == 0;
    }

    void accept_from(std::uint32_t listener) {
        if (listeners_[listener] < 0) return;
        for (unsigned i = 0; i < settings_.accepts_per_wake && !paused_; ++i) {
            const int fd =
                accept4(listeners_[listener], nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
            if (fd < 0) {
                if (errno == EINTR || errno == ECONNABORTED) continue;
                const int fault = errno;
                const auto shed = reserve_.shed_one(listeners_[listener], fault, [&](int taken) {
                    if (events_->on_full()) {
                        accepted(taken, listener);
                    } else {
                        ::close(taken);
                    }
                });
                if (shed == DescriptorReserve::Shed::kCannot) events_->on_starved();
                return;
            }
            accepted(fd, listener);
        }
    }

    void accepted(int fd, std::uint32_t listener) {
        const LoopToken token = events_->on_accept(fd, listener);
        if (token == LoopEvents::kRefused) {
            ::close(fd);
            return;
        }
        cost_of(token) = kCostOfNew;
        if (events_->handle_of(token) >= 0 && !watch(fd, token, EPOLLIN) && errno != EEXIST) {
            events_->on_broken(token);
        }
    }

    void serve(LoopToken token, std::uint32_t what) {
        const std::int32_t handle = events_->handle_of(token);
        if (handle < 0) return;
        if ((what & EPOLLOUT) != 0) {
            events_->on_sendable(token);
            return;
        }
        if ((what & (EPOLLIN | EPOLLHUP | EPOLLERR)) == 0) return;
        if ((what & EPOLLIN) == 0) {
            events_->on_broken(token);
            return;
        }
        // One receive an event: level triggering brings the rest, and nobody starves.
        const ssize_t size = recv(handle, receive_, settings_.receive_size, 0);
        if (size > 0) {
            events_->on_data(token, receive_, static_cast<std::size_t>(size));
        } else if (size == 0) {
            events_->on_end(token);
        } else if (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR) {
            events_->on_broken(token);
        }
    }

    LoopSettings settings_;
    LoopEvents* events_ = nullptr;
    int epoll_ = -1;
    int wake_ = -1;
    DescriptorReserve reserve_;
    char* receive_ = nullptr;
    std::vector<int> listeners_;
    bool paused_ = false;
    std::array<std::uint8_t, kCosts> costs_{};
    std::uint32_t last_costly_ = 0;
    std::array<epoll_event, 256> ready_{};
};

}  // namespace

std::ptrdiff_t send_file_at_once(int socket, const FilePart& part) {
    auto offset = static_cast<off_t>(part.offset);
    ssize_t taken = 0;
    do {
        taken = sendfile(socket, part.descriptor, &offset, part.size);
    } while (taken < 0 && errno == EINTR);
    if (taken > 0) return taken;
    if (taken == 0) return Loop::kBroken;
    switch (errno) {
        case EAGAIN:
        case ENOBUFS:
            return 0;
        case EINVAL:
        case ENOSYS:
        case EOPNOTSUPP:
            return Loop::kCannot;
        default:
            return Loop::kBroken;
    }
}

std::string peer_name(int descriptor) {
    sockaddr_storage storage{};
    socklen_t size = sizeof storage;
    char text[INET6_ADDRSTRLEN] = "";
    if (getpeername(descriptor, reinterpret_cast<sockaddr*>(&storage), &size) != 0) return "-";
    if (storage.ss_family == AF_INET) {
        const auto& v4 = reinterpret_cast<const sockaddr_in&>(storage);
        inet_ntop(AF_INET, &v4.sin_addr, text, sizeof text);
        return std::string(text) + ':' + std::to_string(ntohs(v4.sin_port));
    }
    if (storage.ss_family == AF_INET6) {
        const auto& v6 = reinterpret_cast<const sockaddr_in6&>(storage);
        inet_ntop(AF_INET6, &v6.sin6_addr, text, sizeof text);
        return '[' + std::string(text) + "]:" + std::to_string(ntohs(v6.sin6_port));
    }
    return "unix";
}

std::unique_ptr<Loop> make_epoll_loop(const LoopSettings& settings) {
    return std::make_unique<EpollLoop>(settings);
}

}  // namespace httpmark
