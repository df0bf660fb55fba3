#include "probe/case_input.hpp"

#include <sys/epoll.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string_view>

namespace httpmark {
namespace {

constexpr std::size_t kReadBytes = 256 * 1024;

}  // namespace

void CaseInput::watch(int epoll_fd) {
    epoll_fd_ = epoll_fd;
    epoll_event event = {};
    // One-shot, because a closed pipe reports itself even unasked. A plain file cannot be waited
    // for and need not be.
    event.events = EPOLLONESHOT;
    event.data.ptr = this;
    is_pollable_ = epoll_ctl(epoll_fd_, EPOLL_CTL_ADD, fd_, &event) == 0;
}

void CaseInput::on_event() {
    is_armed_ = false;
    read_some();
}

bool CaseInput::next(ProbeCase* out) {
    while (complaint_.empty()) {
        const std::string_view rest = std::string_view(text_).substr(at_);
        std::size_t used = 0;
        switch (decode_case(rest, &used, out, &complaint_)) {
            case FrameResult::kCase:
                at_ += used;
                return true;
            case FrameResult::kMalformed:
                has_ended_ = true;
                return false;
            case FrameResult::kNeedMore:
                break;
        }
        if (has_ended_) {
            if (!rest.empty()) complaint_ = "it ends within a case frame";
            return false;
        }
        ask_for_more();
        if (is_pollable_) return false;
    }
    return false;
}

void CaseInput::ask_for_more() {
    if (is_armed_) return;
    if (!is_pollable_) {
        read_some();
        return;
    }
    epoll_event event = {};
    event.events = EPOLLIN | EPOLLONESHOT;
    event.data.ptr = this;
    epoll_ctl(epoll_fd_, EPOLL_CTL_MOD, fd_, &event);
    is_armed_ = true;
}

void CaseInput::read_some() {
    if (at_ != 0) {
        text_.erase(0, at_);
        at_ = 0;
    }
    const std::size_t before = text_.size();
    text_.resize(before + kReadBytes);
    const ssize_t got = read(fd_, text_.data() + before, kReadBytes);
    text_.resize(before + (got > 0 ? static_cast<std::size_t>(got) : 0));
    if (got > 0 || (got < 0 && (errno == EINTR || errno == EAGAIN))) return;
    has_ended_ = true;
    if (got < 0) complaint_ = std::string("standard input: ") + std::strerror(errno);
}

}  // namespace httpmark
