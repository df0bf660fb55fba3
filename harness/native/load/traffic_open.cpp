// How connections are opened and closed.
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "load/traffic.hpp"
#include "shared/clock.hpp"

namespace httpmark {
namespace {

constexpr std::uint64_t kOpenNsMax = 10'000'000'000;  // connect and handshake
constexpr std::uint8_t kOpenFailuresMax = 3;
constexpr std::uint64_t kRetryNs = 100'000'000;
// Of the first connections so many are under way at a time: a listen queue is not endless.
constexpr std::size_t kOpeningMax = 64;

}  // namespace

int Traffic::open_socket(std::uint32_t index) {
    const int fd = socket(plan_.server.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) return -1;
    const int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (plan_.source.count != 0) {
        const Endpoint source = plan_.source.at(first_index_ + index);
        setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof on);  // of IPv6, too
        // An IPv6 range that is only routed to this machine has no addresses that bind() knows.
        if (source.family() == AF_INET6)
            setsockopt(fd, IPPROTO_IPV6, IPV6_FREEBIND, &on, sizeof on);
        if (bind(fd, source.sockaddr_ptr(), source.length) != 0) {
            close(fd);
            return -1;
        }
    }
    if (connect(fd, plan_.server.sockaddr_ptr(), plan_.server.length) != 0 &&
        errno != EINPROGRESS) {
        const int error = errno;
        close(fd);
        errno = error;
        return -1;
    }
    return fd;
}

void Traffic::open(LoadConnection* connection) {
    connection->begun_ns = monotonic_ns();
    connection->fd = open_socket(connection->index);
    if (connection->fd < 0) {
        give_up_opening(connection, std::string("connect: ") + std::strerror(errno));
        return;
    }
    ++live_;
    connection->phase = Phase::kConnecting;
    if (!watch_reading(*connection)) {
        give_up_opening(connection, std::string("epoll: ") + std::strerror(errno));
        return;
    }
    opening_.push_back({connection->index, connection->begun_ns});
    advance(connection);
}

void Traffic::advance(LoadConnection* connection) {
    if (connection->phase == Phase::kConnecting && !advance_connect(connection)) return;
    if (connection->phase == Phase::kHandshake && !advance_handshake(connection)) return;
    connection->failures = 0;
    watch_writable(connection, false);
    if (pace_ != nullptr) {
        ++result_.established;
    } else {
        mode_->start(connection);
    }
}

// False: it still waits, or has failed.
bool Traffic::advance_connect(LoadConnection* connection) {
    // Asked a second time connect() tells what became of the first: on loopback, all at once.
    if (connect(connection->fd, plan_.server.sockaddr_ptr(), plan_.server.length) != 0 &&
        errno != EISCONN) {
        if (errno == EALREADY || errno == EINPROGRESS || errno == EINTR) {
            watch_writable(connection, true);
        } else {
            give_up_opening(connection, std::string("connect: ") + std::strerror(errno));
        }
        return false;
    }
    connection->connected_ns = monotonic_ns();
    result_.counts.connect.add(connection->connected_ns - connection->begun_ns);
    if (pace_ != nullptr) pace_->opened(connection->begun_ns, connection->connected_ns);
    if (plan_.tls != nullptr && !connection->tls.begin(*plan_.tls, connection->fd)) {
        give_up_opening(connection, "TLS: no session");
        return false;
    }
    connection->phase = plan_.tls != nullptr ? Phase::kHandshake : Phase::kOpen;
    return true;
}

// Likewise.
bool Traffic::advance_handshake(LoadConnection* connection) {
    std::string complaint;
    switch (connection->tls.handshake(&complaint)) {
        case TlsStream::Progress::kAgain:
            watch_writable(connection, connection->tls.wants_to_send());
            return false;
        case TlsStream::Progress::kFailed:
            give_up_opening(connection, complaint);
            return false;
        case TlsStream::Progress::kDone:
            break;
    }
    result_.counts.handshake.add(monotonic_ns() - connection->connected_ns);
    connection->phase = Phase::kOpen;
    return true;
}

void Traffic::close_socket(LoadConnection* connection) {
    if (connection->fd < 0) return;
    connection->tls.reset();
    close(connection->fd);
    connection->fd = -1;
    connection->phase = Phase::kNone;
    connection->wants_writable = false;
    --live_;
}

// Under load it is tried again, a few times: a slot that is empty for good would be load that
// nobody sees missing.
void Traffic::give_up_opening(LoadConnection* connection, const std::string& why) {
    const std::uint64_t now = monotonic_ns();
    close_socket(connection);
    ++result_.counts.errors.connect;
    if (result_.counts.complaints.size() < kComplaintsMax) result_.counts.complaints.push_back(why);
    if (pace_ == nullptr && ++connection->failures < kOpenFailuresMax) {
        retries_.push_back({connection->index, now + kRetryNs});
        return;
    }
    lose(connection, connection->unanswered);
    connection->queued = 0;
}

void Traffic::mind_openings(std::uint64_t now_ns) {
    while (!opening_.empty()) {
        LoadConnection* connection = &connections_[opening_.front().index];
        const bool is_opening =
            connection->begun_ns == opening_.front().at_ns && connection->is_opening();
        if (is_opening && now_ns - connection->begun_ns < kOpenNsMax) break;
        opening_.pop_front();
        if (is_opening) {
            give_up_opening(connection, connection->phase == Phase::kConnecting
                                            ? "connect: timed out"
                                            : "TLS handshake: timed out");
        }
    }
    while (!retries_.empty() && retries_.front().at_ns <= now_ns) {
        LoadConnection* connection = &connections_[retries_.front().index];
        retries_.pop_front();
        const bool is_wanted = is_sending_ || connection->unanswered != 0 || mode_->backlog() != 0;
        if (connection->fd < 0 && is_wanted) open(connection);
    }
}

std::uint64_t Traffic::next_retry_ns() const {
    return retries_.empty() ? Mode::kNoTime : retries_.front().at_ns;
}

// A target that has never answered is not asked ten thousand times.
bool Traffic::may_begin(std::size_t begun) const {
    const bool is_hopeless = result_.established == 0 && settled() != 0;
    return begun < connections_.size() && begun - settled() < kOpeningMax && !is_hopeless;
}

void Traffic::connect_all() {
    ConnectPace pace(plan_.connect_rate / static_cast<double>(plan_.threads), monotonic_ns());
    pace_ = &pace;
    std::vector<std::uint32_t> early;
    std::size_t begun = 0;
    for (;;) {
        std::uint64_t now = monotonic_ns();
        for (; may_begin(begun) && pace.next_due_ns() <= now; now = monotonic_ns()) {
            pace.begun();
            open(&connections_[begun++]);
        }
        mind_openings(now);
        if (begun == settled() && !may_begin(begun)) break;
        const std::uint64_t due = may_begin(begun) ? pace.next_due_ns() : now + 100 * kNsPerMs;
        const std::uint64_t wait = due > now ? std::min(due - now, 100 * kNsPerMs) : 0;
        for (const epoll_event& event : poller_.wait_ns(wait)) {
            LoadConnection* connection = &connections_[event.data.u32];
            if (connection->is_opening()) {
                advance(connection);
            } else {
                // A server may speak first (TLS tickets, a close). It is heard once the load
                // begins; told of it at each turn until then, the time it takes would be in other
                // connections' handshakes.
                poller_.remove(connection->fd);
                early.push_back(connection->index);
            }
        }
    }
    for (const std::uint32_t index : early) watch_reading(connections_[index]);
    pace_ = nullptr;
}

bool Traffic::watch_reading(const LoadConnection& connection) {
    return poller_.add(connection.fd, connection.index);
}

void Traffic::close_all() {
    for (LoadConnection& connection : connections_) {
        if (connection.fd < 0) continue;
        if (connection.unanswered != 0) {
            // What may still come is of no interest, and TIME_WAIT would keep the port.
            const linger reset = {1, 0};
            setsockopt(connection.fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
        }
        close_socket(&connection);
    }
}

}  // namespace httpmark
