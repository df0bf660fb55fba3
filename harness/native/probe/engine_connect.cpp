// How a case gets its connection.
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "probe/engine.hpp"
#include "shared/clock.hpp"

namespace httpmark {
namespace {

// Where nobody listens at a port from which connections also start, the kernel may choose that very
// port to start from, and TCP then joins the socket to itself (RFC 9293 section 3.5, simultaneous
// open): it would answer each request with the request.
bool is_joined_to_itself(int fd, const Endpoint& server) {
    if (server.family() == AF_UNIX) return false;
    sockaddr_storage own = {};
    socklen_t size = sizeof own;
    return getsockname(fd, reinterpret_cast<sockaddr*>(&own), &size) == 0 &&
           size == server.length && std::memcmp(&own, &server.address, size) == 0;
}

// Trouble of this machine, which says nothing about the server.
bool is_local_trouble(int error) {
    return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM ||
           error == EADDRNOTAVAIL || error == EAGAIN || error == EINTR;
}

bool begins_with_send(const ProbeCase& play) {
    return !play.steps.empty() && play.steps[0].op == StepOp::kSend && play.steps[0].n != 0;
}

}  // namespace

ProbeEngine::Begin ProbeEngine::begin(Talk* talk) {
    const int family = options_.server.family();
    const int fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        trouble_errno_ = errno;
        return Begin::kTryLater;
    }
    if (family != AF_UNIX) {
        const int on = 1;
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    }
    now_us_ = monotonic_us();
    const std::uint64_t start = now_us_;
    const int result = connect(fd, options_.server.sockaddr_ptr(), options_.server.length);
    const int error = result == 0 ? 0 : errno;
    if (error != 0 && error != EINPROGRESS && is_local_trouble(error)) {
        // EAGAIN: a Unix socket's queue is full, or all ports are taken.
        close(fd);
        trouble_errno_ = error;
        return Begin::kTryLater;
    }

    talk->begin(fd, start);
    ++in_flight_;
    fresh_.append(talk);
    timers_.insert(talk);
    if (error != 0 && error != EINPROGRESS) {
        refuse(talk);
        return Begin::kStarted;
    }
    if (error == 0 && !options_.tls) talk->phase = Phase::kSteps;
    if (talk->phase == Phase::kConnecting && !options_.tls && begins_with_send(talk->play) &&
        !send_first(talk)) {
        return Begin::kStarted;
    }
    talk->wants_writable = talk->phase == Phase::kConnecting;
    epoll_event event = {};
    event.data.ptr = talk;
    event.events = interest(*talk);
    if (epoll_ctl(epoll_fd_, EPOLL_CTL_ADD, fd, &event) != 0) {
        // Nothing was sent or little: start over later, on a connection of its own.
        trouble_errno_ = errno;
        close(fd);
        talk->fd = -1;
        timers_.remove(talk);
        fresh_.remove(talk);
        --in_flight_;
        return Begin::kTryLater;
    }
    if (talk->phase == Phase::kSteps) advance(talk);
    return Begin::kStarted;
}

// On the loopback the handshake is over before connect returns, so that a first SEND goes out
// without a turn of the loop; where it is not, the send says so (EAGAIN). False: the talk has
// ended.
bool ProbeEngine::send_first(Talk* talk) {
    const ProbeStep& step = talk->play.steps[0];
    const ssize_t sent =
        send(talk->fd, talk->play.octets.data() + step.offset, step.n, MSG_NOSIGNAL);
    if (sent >= 0 && is_joined_to_itself(talk->fd, options_.server)) {
        refuse(talk);
        return false;
    }
    if (sent >= 0) {
        now_us_ = monotonic_us();
        talk->phase = Phase::kSteps;
        talk->connect_us = clamp_u32(now_us_ - talk->start_us);
        talk->first_send_us = now_us_;
        talk->entered = true;
        talk->step_sent = static_cast<std::size_t>(sent);
        talk->sent = clamp_u32(talk->step_sent);
        note(talk, EventKind::kSent, talk->step_sent);
        return true;
    }
    if (errno == ECONNRESET || errno == EPIPE) {
        // Only a connection that stood can be reset: a reset of the handshake is ECONNREFUSED.
        see_broken_send(talk, errno);
        finish(talk);
        return false;
    }
    if (!is_local_trouble(errno) && errno != EINPROGRESS && errno != ENOTCONN) {
        refuse(talk);
        return false;
    }
    return true;
}

void ProbeEngine::refuse(Talk* talk) {
    talk->is_refused = true;
    talk->is_dead = true;
    talk->connect_us = clamp_u32(monotonic_us() - talk->start_us);
    finish(talk);
}

// The connect has come to its end. False: the talk has, too.
bool ProbeEngine::connected(Talk* talk) {
    int error = 0;
    socklen_t size = sizeof error;
    getsockopt(talk->fd, SOL_SOCKET, SO_ERROR, &error, &size);
    if (error == ECONNRESET || error == EPIPE) {
        see_broken_send(talk, error);
    } else if (error != 0 || is_joined_to_itself(talk->fd, options_.server)) {
        refuse(talk);
        return false;
    }
    if (options_.tls && !talk->is_dead && !talk->tls.begin(*options_.tls, talk->fd)) {
        refuse(talk);
        return false;
    }
    talk->connect_us = clamp_u32(now_us_ - talk->start_us);
    talk->phase = Phase::kSteps;
    return true;
}

// The deadline is over, and no event has told of the connection yet: it may stand all the same.
bool ProbeEngine::is_connected_late(Talk* talk) {
    int error = 0;
    socklen_t size = sizeof error;
    sockaddr_storage peer;
    socklen_t peer_size = sizeof peer;
    getsockopt(talk->fd, SOL_SOCKET, SO_ERROR, &error, &size);
    if (error != 0 || getpeername(talk->fd, reinterpret_cast<sockaddr*>(&peer), &peer_size) != 0) {
        return false;
    }
    talk->connect_us = clamp_u32(now_us_ - talk->start_us);
    talk->phase = Phase::kSteps;
    watch_writable(talk, false);
    return true;
}

std::uint32_t ProbeEngine::interest(const Talk& talk) {
    return EPOLLIN | EPOLLRDHUP | EPOLLET | (talk.wants_writable ? EPOLLOUT : 0U);
}

void ProbeEngine::watch_writable(Talk* talk, bool on) {
    if (talk->wants_writable == on) return;
    talk->wants_writable = on;
    set_interest(talk);
}

void ProbeEngine::set_interest(Talk* talk) {
    epoll_event event = {};
    event.data.ptr = talk;
    event.events = interest(*talk);
    epoll_ctl(epoll_fd_, EPOLL_CTL_MOD, talk->fd, &event);
}

}  // namespace httpmark
