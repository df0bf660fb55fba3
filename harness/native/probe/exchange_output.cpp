#include "probe/exchange_output.hpp"

#include <fcntl.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "probe/timers.hpp"

namespace httpmark {
namespace {

constexpr std::size_t kBatchBytes = 64 * 1024;
constexpr std::uint64_t kDelayUs = 20'000;
// While this much waits to be written no new case begins: a reader that does not read costs a
// bounded amount of memory.
constexpr std::size_t kBytesMax = std::size_t{4} << 20;

}  // namespace

void ExchangeOutput::watch(int epoll_fd) {
    epoll_fd_ = epoll_fd;
    epoll_event event = {};
    event.events = EPOLLONESHOT;
    event.data.ptr = this;
    is_pollable_ = epoll_ctl(epoll_fd_, EPOLL_CTL_ADD, fd_, &event) == 0;
    fd_flags_ = fcntl(fd_, F_GETFL);
    if (is_pollable_) fcntl(fd_, F_SETFL, fd_flags_ | O_NONBLOCK);
}

void ExchangeOutput::unwatch() {
    if (is_pollable_) fcntl(fd_, F_SETFL, fd_flags_);
}

void ExchangeOutput::on_event() {
    is_blocked_ = false;
    write_some();
}

void ExchangeOutput::add(const ProbeExchange& exchange, std::uint64_t now_us) {
    if (text_.empty()) since_us_ = now_us;
    encode_exchange(exchange, &text_);
}

bool ExchangeOutput::is_full() const {
    return text_.size() - at_ >= kBytesMax;
}

bool ExchangeOutput::is_due(std::uint64_t now_us, bool is_idle) const {
    return !text_.empty() && !is_blocked_ &&
           (is_idle || text_.size() >= kBatchBytes || now_us - since_us_ >= kDelayUs);
}

std::uint64_t ExchangeOutput::due_us() const {
    return !text_.empty() && !is_blocked_ ? since_us_ + kDelayUs : Timers::kNoTime;
}

void ExchangeOutput::write_some() {
    while (at_ < text_.size()) {
        const ssize_t sent = write(fd_, text_.data() + at_, text_.size() - at_);
        if (sent > 0) {
            at_ += static_cast<std::size_t>(sent);
            continue;
        }
        if (sent < 0 && errno == EINTR) continue;
        if (sent < 0 && errno == EAGAIN && is_pollable_) {
            epoll_event event = {};
            event.events = EPOLLOUT | EPOLLONESHOT;
            event.data.ptr = this;
            epoll_ctl(epoll_fd_, EPOLL_CTL_MOD, fd_, &event);
            is_blocked_ = true;
            // What is written need not be kept.
            if (at_ >= kBatchBytes) {
                text_.erase(0, at_);
                at_ = 0;
            }
            return;
        }
        std::fprintf(stderr, "httpmark-probe: standard output: %s\n", std::strerror(errno));
        has_failed_ = true;
        return;
    }
    text_.clear();
    at_ = 0;
    if (text_.capacity() > kBytesMax) text_.shrink_to_fit();
}

}  // namespace httpmark
