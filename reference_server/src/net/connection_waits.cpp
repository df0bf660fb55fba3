// What a connection waits for, for how long, and what follows where it does not come.
#include <algorithm>

#include "check.hpp"
#include "net/connection.hpp"
#include "net/exchange.hpp"

namespace httpmark {

void Connections::set_interest(std::uint32_t id, bool octets, bool room) {
    Connection& c = slot(id);
    if (octets == !c.has(Connection::kReadingOff) && room == c.has(Connection::kRoomAwaited)) {
        return;
    }
    c.clear(Connection::kReadingOff | Connection::kRoomAwaited);
    if (!octets) c.set(Connection::kReadingOff);
    if (room) c.set(Connection::kRoomAwaited);
    transport_.set_interest(id, octets, room);
}

// No request is under way; empty lines before one are none (RFC 9112 2.2).
bool Connections::is_between_requests(const Connection& c) {
    return c.exchange == nullptr ||
           (c.exchange->stage == Exchange::Stage::kHead && !c.exchange->parser.begun());
}

// It waits for the first octet of a request, and owes nothing.
bool Connections::is_idle(const Connection& c) {
    return c.state == Connection::State::kOpen && c.output == nullptr && is_between_requests(c) &&
           c.wait != Connection::Wait::kHandshake && !c.has(Connection::kClosing);
}

// RFC 9112 9.5: a server may close an idle connection at any time. Who holds connections and says
// nothing must not keep others out. Few are looked at, from where the last search ended, so that a
// flood of new connections costs no more than that.
bool Connections::close_an_idle_one() {
    std::uint32_t found = kNoSlot;
    std::uint32_t open = 0;
    for (std::uint32_t i = 0; i < std::min(capacity_, kChunk) && open < kIdleLookedAt; ++i) {
        if (++looked_at_ >= capacity_) looked_at_ = 0;
        const Connection& c = slot(looked_at_);
        if (c.state != Connection::State::kFree) ++open;
        if (!is_idle(c)) continue;
        // Deadlines are ticks that may have run over.
        if (found == kNoSlot || static_cast<std::int32_t>(slot(found).deadline - c.deadline) > 0) {
            found = looked_at_;
        }
    }
    if (found == kNoSlot) return false;
    Counters::add(counters_.made_room);
    Connection& c = slot(found);
    if (c.tls != nullptr) {  // RFC 8446 6.1: no end without an alert
        current_ = &c;
        current_id_ = found;
        c.tls->shut(*pipe_);
        send_ciphertext(c);
    }
    free_slot(found);
    return true;
}

// After every event: what the connection waits for now.
void Connections::settle(std::uint32_t id) {
    Connection& c = slot(id);
    const Limits& limits = settings_.limits;
    if (c.state != Connection::State::kOpen) {
        if (c.state == Connection::State::kUpgraded) settle_websocket(id);
        return;
    }
    if (c.has(Connection::kBroken)) {
        free_slot(id);
        return;
    }
    if (c.output != nullptr) {
        await_room(id);
        return;
    }
    if (c.has(Connection::kClosing)) {
        begin_linger(id);
        return;
    }
    if ((c.has(Connection::kPeerClosed) || draining_) && is_between_requests(c)) {
        release_exchange(c);
    }
    const Exchange* const x = c.exchange;
    if (c.has(Connection::kPeerClosed) && x != nullptr && x->stage < Exchange::Stage::kWaiting) {
        // RFC 9112 8: the rest of this request will never come.
        give_up_content(c, Reason::kIncomplete);
        flush();
        settle(id);
        return;
    }
    if (c.tls != nullptr && !c.tls->established() && !c.has(Connection::kPeerClosed)) {
        set_interest(id, true, false);
        if (c.wait != Connection::Wait::kHandshake) {
            set_wait(id, Connection::Wait::kHandshake, limits.handshake_timeout_ms);
        }
        return;
    }
    if (x != nullptr) {
        await_exchange(id);
        return;
    }
    if (c.has(Connection::kPeerClosed) || draining_) {
        // The peer's FIN is answered by ours, in TLS by an alert before it.
        begin_linger(id);
        return;
    }
    set_interest(id, true, false);
    set_wait(id, Connection::Wait::kIdle, limits.idle_timeout_ms);
}

// Output is unsent. Where it is little and nothing else is in the way, the next requests may come.
void Connections::await_room(std::uint32_t id) {
    Connection& c = slot(id);
    const bool asleep = is_asleep(*c.output);
    const bool reads =
        (asleep || !blocked(c)) && !c.has(Connection::kClosing | Connection::kPeerClosed) &&
        (c.exchange == nullptr ||
         (c.exchange->parked.size == 0 && c.exchange->stage < Exchange::Stage::kWaiting));
    set_interest(id, reads, !asleep);
    if (asleep) {
        if (c.wait == Connection::Wait::kStream) return;
        set_wait(id, Connection::Wait::kStream, settings_.limits.handler_timeout_ms);
    } else if (c.wait != Connection::Wait::kWrite) {
        set_wait(id, Connection::Wait::kWrite, settings_.limits.write_timeout_ms);
    }
}

// A request is incomplete, or its answer is due later.
void Connections::await_exchange(std::uint32_t id) {
    Connection& c = slot(id);
    const Limits& limits = settings_.limits;
    const Exchange& x = *c.exchange;
    switch (x.stage) {
        case Exchange::Stage::kHead:
            set_interest(id, true, false);
            if (is_between_requests(c)) {
                set_wait(id, Connection::Wait::kIdle, limits.idle_timeout_ms);
            } else if (c.wait != Connection::Wait::kHead) {
                set_wait(id, Connection::Wait::kHead, limits.head_timeout_ms);
            }
            break;
        case Exchange::Stage::kBody:
            set_interest(id, true, false);
            if (c.wait != Connection::Wait::kBody) {
                set_wait(id, Connection::Wait::kBody, limits.body_timeout_ms);
            }
            break;
        case Exchange::Stage::kWaiting:
            set_interest(id, x.parked.size == 0 && !c.has(Connection::kPeerClosed), false);
            if (c.wait != Connection::Wait::kHandler) {
                const std::uint64_t until = std::min(x.due_ms, handler_due_ms(x));
                const std::uint64_t ms = until > now_ms_ ? until - now_ms_ : 1;
                set_wait(id, Connection::Wait::kHandler, until == Exchange::kNever ? 0 : ms);
            }
            break;
        case Exchange::Stage::kPaused:
            set_interest(id, false, false);
            if (c.wait != Connection::Wait::kPause) {
                set_wait(id, Connection::Wait::kPause, limits.handler_timeout_ms);
            }
            break;
        case Exchange::Stage::kParked:
            break;
    }
}

// The rest of a request does not come: refused, unless it has its answer already.
void Connections::give_up_content(Connection& c, Reason reason) {
    if (c.exchange->answered) {
        c.set(Connection::kClosing);
        release_exchange(c);
    } else {
        refuse(c, reason, c.exchange->parser.head().method);
    }
}

void Connections::begin_linger(std::uint32_t id) {
    Connection& c = slot(id);
    current_ = &c;
    current_id_ = id;
    if (c.tls != nullptr) {
        c.tls->shut(*pipe_);
        send_ciphertext(c);
        end_tls(c);
        if (c.output != nullptr) {  // the alert did not fit: shut when it has gone
            settle(id);
            return;
        }
    }
    if (c.has(Connection::kPeerClosed) || c.has(Connection::kBroken)) {
        free_slot(id);
        return;
    }
    transport_.shutdown_write(id);
    c.state = Connection::State::kLinger;
    set_interest(id, true, false);
    set_wait(id, Connection::Wait::kLinger, settings_.limits.linger_timeout_ms);
}

// No list operation for a later deadline: the node fires at its old tick and is put in again.
void Connections::set_wait(std::uint32_t id, Connection::Wait wait, std::uint64_t ms) {
    Connection& c = slot(id);
    c.wait = wait;
    if (ms == 0) {
        c.wait = Connection::Wait::kNothing;
        return;
    }
    c.deadline = static_cast<std::uint32_t>((now_ms_ + ms + kTickMs - 1) / kTickMs);
    if (c.timer.queued()) {
        if (static_cast<std::int32_t>(c.timer.expires - c.deadline) <= 0) return;
        wheel_.remove(id);
    }
    wheel_.insert(id, c.deadline);
}

int Connections::timeout_ms() const {
    const std::uint32_t ticks = wheel_.ticks_until_next();
    if (ticks == TimerWheel::kNone) return -1;
    const std::uint64_t due =
        (static_cast<std::uint64_t>(now_ms_ / kTickMs) -
         (static_cast<std::uint32_t>(now_ms_ / kTickMs) - wheel_.now()) + ticks) *
        kTickMs;
    return due <= now_ms_ ? 0 : static_cast<int>(std::min<std::uint64_t>(due - now_ms_, 3600000));
}

void Connections::run_timers() {
    const auto tick = static_cast<std::uint32_t>(now_ms_ / kTickMs);
    while (true) {
        const std::uint32_t id = wheel_.take_due(tick);
        if (id == TimerWheel::kNone) return;
        Connection& c = slot(id);
        if (c.wait == Connection::Wait::kNothing) continue;
        if (static_cast<std::int32_t>(c.deadline - tick) > 0) {
            wheel_.insert(id, c.deadline);
            continue;
        }
        on_timer(id);
    }
}

void Connections::on_timer(std::uint32_t id) {
    Connection& c = slot(id);
    current_ = &c;
    current_id_ = id;
    switch (c.wait) {
        case Connection::Wait::kHead: {
            // The wait may have begun with a request before this one.
            if (prolong_wait(id, c.exchange->started_ms + settings_.limits.head_timeout_ms)) return;
            Counters::add(counters_.timeouts);
            refuse(c, Reason::kHeadTimeout, c.exchange->parser.head().method);
            break;
        }
        case Connection::Wait::kBody:
            if (prolong_wait(id, content_due_ms(*c.exchange))) return;
            Counters::add(counters_.timeouts);
            give_up_content(c, Reason::kBodyTimeout);
            break;
        case Connection::Wait::kPause:
            Counters::add(counters_.timeouts);
            refuse(c, Reason::kHandlerTimeout, c.exchange->parser.head().method);
            break;
        case Connection::Wait::kHandler:
            if (answer_waiting(id)) return;
            break;
        case Connection::Wait::kIdle:
            // Said in TLS by an alert, and staged, so that a request under way to us is no RST.
            Counters::add(counters_.timeouts);
            if (settings_.choices.answer_idle) {
                refuse(c, Reason::kIdleTimeout, Method::kUnknown);
                break;
            }
            release_exchange(c);
            begin_linger(id);
            return;
        case Connection::Wait::kPing:
            ping_peer(id);
            return;
        case Connection::Wait::kPong:
        case Connection::Wait::kClose:
            Counters::add(counters_.timeouts);
            lose_websocket(id);
            break;
        case Connection::Wait::kWrite:
        case Connection::Wait::kLinger:
        case Connection::Wait::kHandshake:
        case Connection::Wait::kStream:
        case Connection::Wait::kNothing:
            Counters::add(counters_.timeouts);
            free_slot(id);
            return;
    }
    flush();
    settle(id);
}

// True where the time has not come yet.
bool Connections::prolong_wait(std::uint32_t id, std::uint64_t until_ms) {
    if (until_ms <= now_ms_) return false;
    set_wait(id, slot(id).wait, until_ms - now_ms_);
    return true;
}

// Content earns time by coming.
std::uint64_t Connections::content_due_ms(const Exchange& x) const {
    const Limits& limits = settings_.limits;
    const std::uint64_t taken =
        x.framing.kind == BodyKind::kChunked ? x.chunked.offset() : x.framing.length - x.body_left;
    const std::uint64_t earned =
        limits.body_rate_min == 0 ? 0 : taken * 1000 / limits.body_rate_min;
    return x.started_ms + limits.body_timeout_ms + earned;
}

// When the handler's own limit is over.
std::uint64_t Connections::handler_due_ms(const Exchange& x) const {
    const std::uint64_t limit = settings_.limits.handler_timeout_ms;
    return limit == 0 ? ~std::uint64_t{0} : x.started_ms + limit;
}

// The answer that was deferred. False where the handler's own limit is over: then it has been
// refused.
bool Connections::answer_waiting(std::uint32_t id) {
    Connection& c = slot(id);
    Exchange& x = *c.exchange;
    c.wait = Connection::Wait::kNothing;
    if (x.due_ms > handler_due_ms(x)) {
        refuse(c, Reason::kHandlerTimeout, x.parser.head().method);
        return false;
    }
    x.stage = Exchange::Stage::kBody;
    Request request = kept_request(c);
    request.asked_again = true;
    respond(c, request);
    leave_waiting(id);
    return true;
}

}  // namespace httpmark
