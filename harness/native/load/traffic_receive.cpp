// How answers come in, and what is counted of them.
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "load/traffic.hpp"
#include "shared/clock.hpp"
#include "shared/printable.hpp"

namespace httpmark {
namespace {

// An unfinished answer up to this size is moved in front of the next read; a larger one is
// collected apart.
constexpr std::size_t kCarryBytesMax = 8 * 1024;
constexpr std::size_t kGone = std::string_view::npos;  // the connection is another one now
constexpr std::uint64_t kDateStillNsMax = std::uint64_t{kDateSkewSecondsMax} * kNsPerSecond;

std::int64_t seconds_of(std::uint64_t ns) {
    return static_cast<std::int64_t>(ns / kNsPerSecond);
}

ssize_t receive(LoadConnection* connection, char* data, std::size_t size) {
    if (connection->tls.is_open()) return connection->tls.receive(data, size);
    return recv(connection->fd, data, size, 0);
}

}  // namespace

// What TLS has read and not given out yet is not told by epoll.
void Traffic::on_readable(LoadConnection* connection) {
    while (read_once(connection) && connection->tls.is_open() && connection->tls.has_pending()) {
    }
}

// False when there is nothing more, or the connection is another one now.
bool Traffic::read_once(LoadConnection* connection) {
    std::string& partial = connection->partial;
    const bool is_carried = partial.size() <= kCarryBytesMax;
    const std::size_t carried = is_carried ? partial.size() : 0;
    if (carried != 0) std::memcpy(receive_.data(), partial.data(), carried);
    const ssize_t got = receive(connection, receive_.data() + carried, receive_.size() - carried);
    const std::uint64_t now = monotonic_ns();
    if (got <= 0) {
        if (got < 0 && (errno == EAGAIN || errno == EINTR)) return false;
        on_end(connection, got < 0);
        return false;
    }
    const auto size = static_cast<std::size_t>(got);
    connection->heard_ns = heard_ns_ = now;
    ++result_.counts.reads;
    result_.counts.bytes_received += size;
    const std::uint32_t before = connection->unanswered;
    if (is_carried) {
        const std::string_view octets(receive_.data(), carried + size);
        std::size_t done = 0;
        if (octets.size() >= connection->need) {
            done = digest(connection, octets, now);
            if (done == kGone) return false;
        }
        if (done < octets.size()) {
            partial.assign(octets.substr(done));
        } else if (carried != 0) {
            partial.clear();
        }
    } else {
        partial.append(receive_.data(), size);
        if (partial.size() < connection->need) return true;
        const std::size_t done = digest(connection, partial, now);
        if (done == kGone) return false;
        partial.erase(0, done);
    }
    if (partial.empty()) connection->need = 0;
    if (connection->closing) {
        // RFC 9112 section 9.6: the client closes once it has read that answer.
        reopen_and_resend(connection);
        return false;
    }
    mode_->refill(connection, before - connection->unanswered, now);
    return true;
}

// Answers at the front of `octets`; returns how many bytes are done with, or kGone.
std::size_t Traffic::digest(LoadConnection* connection, std::string_view octets,
                            std::uint64_t now_ns) {
    std::size_t at = 0;
    const bool is_one_kind = verifiers_.size() == 1;
    while (at < octets.size()) {
        ResponseVerifier& verifier = verifiers_[connection->receive_kind];
        const std::string_view rest = octets.substr(at);
        const std::uint32_t limit = connection->answerable();
        if (limit == 0) {
            ++result_.counts.errors.surplus;
            CheckResult surplus;
            surplus.why = "bytes that no request asked for";
            complain(*connection, surplus, rest);
            reopen(connection);
            return kGone;
        }
        const std::uint64_t sent_ns = connection->groups.oldest().sent_ns;
        verifier.set_wall_clock(wall_seconds_, wall_seconds_ - seconds_of(now_ns - sent_ns));
        const std::size_t equal = verifier.count_equal(
            rest, is_one_kind && !verifier.announced_close() ? limit : std::size_t{1});
        if (equal != 0) {
            at += equal * verifier.learned_size();
            look_at_date(connection, now_ns);
            answered(connection, equal, now_ns, true);
            if (!verifier.announced_close()) continue;
            connection->closing = true;
            return at;
        }
        const CheckResult result = verifier.check(rest);
        if (result.kind == CheckKind::kNeedMore) {
            connection->need = result.need;
            return at;
        }
        if (!count_checked(connection, result, rest, now_ns)) return kGone;
        at += result.size;
        if (result.announced_close && result.kind != CheckKind::kInterim) {
            connection->closing = true;
            return at;  // whatever comes after it is no answer
        }
    }
    return at;
}

// A message that is not equal to the first. False: the connection is gone.
bool Traffic::count_checked(LoadConnection* connection, const CheckResult& result,
                            std::string_view octets, std::uint64_t now_ns) {
    switch (result.kind) {
        case CheckKind::kNeedMore:
            break;
        case CheckKind::kVariant:
            ++result_.counts.variants;
            [[fallthrough]];
        case CheckKind::kVerified:
            look_at_date(connection, now_ns);
            answered(connection, 1, now_ns, true);
            break;
        case CheckKind::kInterim:
            ++result_.counts.interim;
            break;
        case CheckKind::kStatus:
        case CheckKind::kBody:
        case CheckKind::kDate:
            complain(*connection, result, octets);
            count_fault(*connection, result, octets);
            answered(connection, 1, now_ns, result.is_late);
            break;
        case CheckKind::kFraming:
            ++result_.counts.errors.framing;
            complain(*connection, result, octets);
            reopen(connection);
            return false;
    }
    return true;
}

void Traffic::count_fault(const LoadConnection& connection, const CheckResult& result,
                          std::string_view octets) {
    LoadErrors& errors = result_.counts.errors;
    const std::string& body = verifiers_[connection.receive_kind].body();
    // Whether it is the answer to another request. Whatever there is ends with the nothing that
    // answers a HEAD.
    const auto is_of = [&](const ResponseVerifier& other) {
        return !other.body().empty() && other.body() != body &&
               octets.substr(0, result.size).ends_with(other.body());
    };
    const bool is_other =
        result.kind == CheckKind::kBody && std::any_of(verifiers_.begin(), verifiers_.end(), is_of);
    ++(is_other                            ? errors.order
       : result.kind == CheckKind::kStatus ? errors.status
       : result.kind == CheckKind::kBody   ? errors.body
                                           : errors.date);
    if (result.kind == CheckKind::kStatus) ++result_.counts.statuses[result.status];
    if (result.is_late) ++result_.counts.late_dates;
}

void Traffic::answered(LoadConnection* connection, std::uint64_t count, std::uint64_t now_ns,
                       bool verified) {
    connection->unanswered -= static_cast<std::uint32_t>(count);
    unanswered_ -= count;
    if (verifiers_.size() > 1) {
        connection->receive_kind = (connection->receive_kind + static_cast<std::uint32_t>(count)) %
                                   static_cast<std::uint32_t>(verifiers_.size());
    }
    if (verified) connection->responses += count;
    if (verified && !counts_from_due_) result_.counts.responses += count;
    while (count != 0) {
        SendGroup& group = connection->groups.oldest();
        const std::uint64_t part = std::min(count, group.count);
        // What belongs to nothing right is in no latency either.
        if (verified && !counts_from_due_) note_response(now_ns - group.at_ns, part, now_ns);
        if (verified && counts_from_due_ && result_.started_ns != 0 &&
            group.at_ns >= result_.started_ns) {
            result_.counts.responses += part;
            note_response(now_ns - group.at_ns, part, now_ns);
            result_.counts.service.add(now_ns - group.sent_ns, part);
        }
        group.count -= part;
        count -= part;
        if (group.count != 0) continue;
        if (plan_.refill == Refill::kBatch && !counts_from_due_)
            result_.counts.batch.add(now_ns - group.at_ns);
        connection->groups.drop_oldest();
    }
}

// A Date near the clock that does not move with it is that of an answer which was made once.
void Traffic::look_at_date(LoadConnection* connection, std::uint64_t now_ns) {
    const ResponseVerifier& verifier = verifiers_[connection->receive_kind];
    DateSpan& span = dates_[connection->receive_kind];
    if (!verifier.has_date() || span.since_ns == 0 || span.changes != verifier.date_changes()) {
        span = {verifier.date_changes(), now_ns};
    }
    // By when the request was sent: what was asked before it was first seen may well have it.
    const std::uint64_t sent_ns = connection->groups.oldest().sent_ns;
    if (sent_ns <= span.since_ns + kDateStillNsMax) return;
    span.since_ns = now_ns;
    ++result_.counts.errors.date;
    ++result_.counts.late_dates;
    CheckResult still;
    still.why = "the Date has not moved for over two seconds";
    complain(*connection, still, {});
}

void Traffic::note_response(std::uint64_t ns, std::uint64_t count, std::uint64_t now_ns) {
    LoadCounts& counts = result_.counts;
    counts.response.add(ns, count);
    if (!is_in_window_) return;
    while (now_ns >= slice_end_ns_ && slice_ + 1 < counts.slices.size()) {
        ++slice_;
        slice_end_ns_ += ns_of(plan_.slice_s());
    }
    counts.slices[slice_].add(ns, count);
}

void Traffic::complain(const LoadConnection& connection, const CheckResult& result,
                       std::string_view octets) {
    if (result_.counts.complaints.size() >= kComplaintsMax) return;
    std::string text = "connection " + std::to_string(connection.index) + ": " + result.why;
    if (result.why_at != 0) text += " at byte " + std::to_string(result.why_at);
    constexpr std::size_t kShown = 160;
    if (!octets.empty()) text += ": " + printable(octets.substr(0, kShown));
    result_.counts.complaints.push_back(text);
}

}  // namespace httpmark
