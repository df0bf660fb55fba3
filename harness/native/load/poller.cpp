#include "load/poller.hpp"

#include <unistd.h>

#include <cerrno>
#include <ctime>

#include "shared/clock.hpp"

namespace httpmark {

int wait_for_events(int epoll_fd, epoll_event* events, int count, std::uint64_t wait_ns,
                    bool* has_ns) {
    if (*has_ns) {
        const timespec timeout = {static_cast<time_t>(wait_ns / kNsPerSecond),
                                  static_cast<long>(wait_ns % kNsPerSecond)};
        const int ready = epoll_pwait2(epoll_fd, events, count, &timeout, nullptr);
        // Linux below 5.11 does not know it, and a container's filter may forbid what it does not
        // know.
        if (ready >= 0 || (errno != ENOSYS && errno != EPERM)) return ready;
        *has_ns = false;
    }
    return epoll_wait(epoll_fd, events, count,
                      static_cast<int>((wait_ns + kNsPerMs - 1) / kNsPerMs));
}

Poller::Poller() : fd_(epoll_create1(EPOLL_CLOEXEC)) {}

Poller::~Poller() {
    close(fd_);
}

bool Poller::add(int fd, std::uint32_t index) {
    epoll_event event = {};
    event.events = EPOLLIN;
    event.data.u32 = index;
    return epoll_ctl(fd_, EPOLL_CTL_ADD, fd, &event) == 0;
}

void Poller::set(int fd, std::uint32_t index, std::uint32_t events) {
    epoll_event event = {};
    event.events = events;
    event.data.u32 = index;
    epoll_ctl(fd_, EPOLL_CTL_MOD, fd, &event);
}

void Poller::remove(int fd) {
    epoll_ctl(fd_, EPOLL_CTL_DEL, fd, nullptr);
}

std::span<const epoll_event> Poller::wait_ns(std::uint64_t ns) {
    return ready(
        wait_for_events(fd_, events_.data(), static_cast<int>(events_.size()), ns, &has_ns_wait_));
}

std::span<const epoll_event> Poller::wait_ms(std::uint64_t ms) {
    return ready(
        epoll_wait(fd_, events_.data(), static_cast<int>(events_.size()), static_cast<int>(ms)));
}

std::span<const epoll_event> Poller::ready(int count) const {
    return {events_.data(), count > 0 ? static_cast<std::size_t>(count) : 0};
}

}  // namespace httpmark
