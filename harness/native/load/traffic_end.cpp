// What the end of a connection means for the requests on it.
#include <algorithm>

#include "load/traffic.hpp"
#include "shared/clock.hpp"

namespace httpmark {

void Traffic::on_end(LoadConnection* connection, bool is_reset) {
    if (mode_->accepts_end(connection)) return;
    LoadErrors& errors = result_.counts.errors;
    CheckResult end;
    if (is_reset) {
        ++errors.reset;
        end.why = "connection reset";
        complain(*connection, end, connection->partial);
    } else if (connection->unanswered != 0) {
        ++errors.closed;
        end.why = "connection closed with requests unanswered";
        complain(*connection, end, connection->partial);
    }
    reopen(connection);
}

// The request that is half out and has its answer is not to be sent on another connection.
void Traffic::end_answered_half(LoadConnection* connection) {
    if (connection->queued <= connection->unanswered) return;
    --connection->queued;
    connection->send_kind =
        (connection->send_kind + 1) % static_cast<std::uint32_t>(plan_.requests.size());
    ++result_.counts.requests_sent;
}

// The server has announced the close: what it did not answer it has not looked at.
void Traffic::reopen_and_resend(LoadConnection* connection) {
    end_answered_half(connection);
    result_.counts.resent += connection->unanswered - connection->queued;
    connection->queued = connection->unanswered;
    connection->send_kind = connection->receive_kind;
    replace(connection);
}

void Traffic::reopen(LoadConnection* connection) {
    end_answered_half(connection);
    lose(connection, connection->unanswered - connection->queued);
    connection->receive_kind = connection->send_kind;
    replace(connection);
}

// They are errors, and in an open loop there is the time they waited: a server does not get better
// percentiles by hanging up.
void Traffic::lose(LoadConnection* connection, std::uint32_t count) {
    result_.counts.errors.lost += count;
    connection->unanswered -= count;
    unanswered_ -= count;
    const std::uint64_t now = monotonic_ns();
    std::uint64_t left = count;
    while (left != 0) {
        SendGroup& group = connection->groups.oldest();
        const std::uint64_t part = std::min(left, group.count);
        if (counts_from_due_ && result_.started_ns != 0 && group.at_ns >= result_.started_ns) {
            result_.counts.response.add(now - group.at_ns, part);
            result_.counts.service.add(now - group.sent_ns, part);
        }
        group.count -= part;
        left -= part;
        if (group.count == 0) connection->groups.drop_oldest();
    }
}

// Another connection in the place of this one, with its requests that are to be sent.
void Traffic::replace(LoadConnection* connection) {
    mode_->before_replacing(connection);
    close_socket(connection);
    connection->send_offset = connection->need = 0;
    connection->closing = false;
    connection->partial.clear();
    // In the drain only for what is still to be answered.
    if (!is_sending_ && connection->unanswered == 0 && mode_->backlog() == 0) return;
    if (!mode_->replaces()) {
        lose(connection, connection->unanswered);
        connection->queued = 0;
        return;
    }
    ++result_.counts.reconnects;
    open(connection);
}

}  // namespace httpmark
