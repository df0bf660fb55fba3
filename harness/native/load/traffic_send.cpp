// How requests go out.
#include <algorithm>
#include <cerrno>

#include "load/traffic.hpp"

namespace httpmark {

void Traffic::flush(LoadConnection* connection) {
    const auto kinds = static_cast<std::uint32_t>(plan_.requests.size());
    while (connection->queued != 0) {
        const std::size_t from = block_at_[connection->send_kind] + connection->send_offset;
        std::size_t to = block_at_[connection->send_kind + connection->queued];
        if (plan_.split_bytes != 0) to = std::min(to, from + plan_.split_bytes);
        const ssize_t sent = transmit(connection, block_.data() + from, to - from);
        if (sent < 0) {
            if (errno == EINTR) continue;
            if (errno == EAGAIN) {
                watch_writable(connection, true);
                return;
            }
            // The reading side will say what happened, after what the server still had to say.
            watch_writable(connection, false);
            return;
        }
        ++result_.counts.writes;
        result_.counts.bytes_sent += static_cast<std::uint64_t>(sent);
        std::uint32_t done = 0;
        if (from + static_cast<std::size_t>(sent) ==
            block_at_[connection->send_kind + connection->queued]) {
            done = connection->queued;
            connection->send_offset = 0;
        } else {
            const std::size_t reached = from + static_cast<std::size_t>(sent);
            while (block_at_[connection->send_kind + done + 1] <= reached) ++done;
            connection->send_offset = reached - block_at_[connection->send_kind + done];
        }
        connection->queued -= done;
        connection->send_kind = (connection->send_kind + done) % kinds;
        result_.counts.requests_sent += done;
        if (plan_.split_bytes != 0 && connection->queued != 0) {
            watch_writable(connection, true);  // the next piece in the next turn
            return;
        }
    }
    watch_writable(connection, false);
}

void Traffic::change_watch(LoadConnection* connection, bool writable) {
    connection->wants_writable = writable;
    poller_.set(connection->fd, connection->index, EPOLLIN | (writable ? EPOLLOUT : 0U));
}

}  // namespace httpmark
