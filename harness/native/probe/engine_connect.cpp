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

ProbeEngine::Begin ProbeEngine::begin(Conversation* conversation) {
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
    tick();
    const std::uint64_t start = now_us_;
    const int result = connect(fd, options_.server.sockaddr_ptr(), options_.server.length);
    const int error = result == 0 ? 0 : errno;
    if (error != 0 && error != EINPROGRESS && is_local_trouble(error)) {
        // EAGAIN: a Unix socket's queue is full, or all ports are taken.
        close(fd);
        trouble_errno_ = error;
        return Begin::kTryLater;
    }

    conversation->begin(fd, start);
    ++in_flight_;
    fresh_.append(conversation);
    timers_.insert(conversation);
    if (error != 0 && error != EINPROGRESS) {
        refuse(conversation);
        return Begin::kStarted;
    }
    if (error == 0 && !options_.tls) conversation->phase = Phase::kSteps;
    if (conversation->phase == Phase::kConnecting && !options_.tls &&
        begins_with_send(conversation->play) && !send_first(conversation)) {
        return Begin::kStarted;
    }
    conversation->wants_writable = conversation->phase == Phase::kConnecting;
    epoll_event event = {};
    event.data.ptr = conversation;
    event.events = interest(*conversation);
    if (epoll_ctl(epoll_fd_, EPOLL_CTL_ADD, fd, &event) != 0) {
        // Nothing was sent or little: start over later, on a connection of its own.
        trouble_errno_ = errno;
        close(fd);
        conversation->fd = -1;
        timers_.remove(conversation);
        fresh_.remove(conversation);
        --in_flight_;
        return Begin::kTryLater;
    }
    if (conversation->phase == Phase::kSteps) advance(conversation);
    return Begin::kStarted;
}

// On the loopback the handshake is over before connect returns, so that a first SEND goes out
// without a turn of the loop; where it is not, the send says so (EAGAIN). False: the conversation
// has ended.
bool ProbeEngine::send_first(Conversation* conversation) {
    const ProbeStep& step = conversation->play.steps[0];
    const ssize_t sent = send(conversation->fd, conversation->play.octets.data() + step.offset,
                              step.n, MSG_NOSIGNAL);
    if (sent >= 0 && is_joined_to_itself(conversation->fd, options_.server)) {
        refuse(conversation);
        return false;
    }
    if (sent >= 0) {
        tick();
        conversation->phase = Phase::kSteps;
        conversation->connect_us = clamp_u32(now_us_ - conversation->start_us);
        conversation->first_send_us = now_us_;
        conversation->entered = true;
        conversation->step_sent = static_cast<std::size_t>(sent);
        conversation->sent = clamp_u32(conversation->step_sent);
        note(conversation, EventKind::kSent, conversation->step_sent);
        return true;
    }
    if (errno == ECONNRESET || errno == EPIPE) {
        // Only a connection that stood can be reset: a reset of the handshake is ECONNREFUSED.
        see_broken_send(conversation, errno);
        finish(conversation);
        return false;
    }
    if (!is_local_trouble(errno) && errno != EINPROGRESS && errno != ENOTCONN) {
        refuse(conversation);
        return false;
    }
    return true;
}

void ProbeEngine::refuse(Conversation* conversation) {
    conversation->is_refused = true;
    conversation->is_dead = true;
    conversation->connect_us = clamp_u32(monotonic_us() - conversation->start_us);
    finish(conversation);
}

// The connect has come to its end. False: the conversation has, too.
bool ProbeEngine::connected(Conversation* conversation) {
    int error = 0;
    socklen_t size = sizeof error;
    getsockopt(conversation->fd, SOL_SOCKET, SO_ERROR, &error, &size);
    if (error == ECONNRESET || error == EPIPE) {
        see_broken_send(conversation, error);
    } else if (error != 0 || is_joined_to_itself(conversation->fd, options_.server)) {
        refuse(conversation);
        return false;
    }
    if (options_.tls && !conversation->is_dead &&
        !conversation->tls.begin(*options_.tls, conversation->fd)) {
        refuse(conversation);
        return false;
    }
    conversation->connect_us = clamp_u32(now_us_ - conversation->start_us);
    conversation->phase = Phase::kSteps;
    return true;
}

// The deadline is over, and no event has told of the connection yet: it may stand all the same.
bool ProbeEngine::is_connected_late(Conversation* conversation) {
    int error = 0;
    socklen_t size = sizeof error;
    sockaddr_storage peer;
    socklen_t peer_size = sizeof peer;
    getsockopt(conversation->fd, SOL_SOCKET, SO_ERROR, &error, &size);
    if (error != 0 ||
        getpeername(conversation->fd, reinterpret_cast<sockaddr*>(&peer), &peer_size) != 0) {
        return false;
    }
    conversation->connect_us = clamp_u32(now_us_ - conversation->start_us);
    conversation->phase = Phase::kSteps;
    watch_writable(conversation, false);
    return true;
}

std::uint32_t ProbeEngine::interest(const Conversation& conversation) {
    return EPOLLIN | EPOLLRDHUP | EPOLLET | (conversation.wants_writable ? EPOLLOUT : 0U);
}

void ProbeEngine::watch_writable(Conversation* conversation, bool on) {
    if (conversation->wants_writable == on) return;
    conversation->wants_writable = on;
    set_interest(conversation);
}

void ProbeEngine::set_interest(Conversation* conversation) {
    epoll_event event = {};
    event.data.ptr = conversation;
    event.events = interest(*conversation);
    epoll_ctl(epoll_fd_, EPOLL_CTL_MOD, conversation->fd, &event);
}

}  // namespace httpmark
