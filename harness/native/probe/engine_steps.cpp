// The steps of a case, one after the other.
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

#include "probe/engine.hpp"
#include "shared/clock.hpp"

namespace httpmark {
namespace {

bool is_look(AwaitKind kind) {
    return kind == AwaitKind::kLookFinal || kind == AwaitKind::kLookAny;
}

ssize_t send_bytes(Conversation* conversation, const char* data, std::size_t size) {
    return conversation->tls.is_open() ? conversation->tls.send(data, size)
                                       : send(conversation->fd, data, size, MSG_NOSIGNAL);
}

}  // namespace

void ProbeEngine::advance(Conversation* conversation) {
    for (;;) {
        if (conversation->is_dead) {
            finish(conversation);
            return;
        }
        if (conversation->phase == Phase::kSettle) {
            if (conversation->peer_fin || now_us_ >= conversation->until_us ||
                now_us_ >= conversation->deadline_us) {
                finish(conversation);
                return;
            }
            timers_.arm(conversation);
            return;
        }
        if (conversation->step == conversation->play.steps.size()) {
            settle(conversation);
            continue;
        }
        if (now_us_ >= conversation->deadline_us) {
            conversation->flags |= kExchangeDeadline;
            finish(conversation);
            return;
        }
        if (conversation->tls.is_open() && !conversation->has_session) {
            // No step before there is a session: a FIN of ours would cut the handshake.
            timers_.arm(conversation);
            return;
        }
        const ProbeStep& step = conversation->play.steps[conversation->step];
        if (!conversation->entered && !enter(conversation, step)) {
            ++conversation->step;
            continue;
        }
        const Progress progress = play(conversation, step);
        if (progress == Progress::kEnded) {
            finish(conversation);
            return;
        }
        if (progress == Progress::kWaits) {
            if (conversation->is_dead) continue;
            timers_.arm(conversation);
            return;
        }
        ++conversation->step;
        conversation->entered = false;
    }
}

// Begins a step. False: it is to be skipped.
bool ProbeEngine::enter(Conversation* conversation, const ProbeStep& step) {
    const bool is_open = !conversation->peer_fin && !conversation->own_fin;
    if (step.if_open && (!is_open || conversation->framing.announced_close())) return false;
    if (step.if_connected && !is_open) return false;
    if (step.if_prompt && (conversation->flags & kExchangeAwaitRanOut) != 0) return false;
    if (step.if_unanswered && conversation->final_responses != 0) return false;
    conversation->entered = true;
    conversation->step_sent = 0;
    conversation->until_us = conversation->deadline_us;
    if (step.op != StepOp::kSend) {
        tick();
        conversation->until_us = now_us_ + step.n * kUsPerMs;
    } else if (step.if_connected && conversation->framing.announced_close()) {
        tick();
        conversation->until_us = now_us_ + kClosingMs * kUsPerMs;
    }
    return true;
}

ProbeEngine::Progress ProbeEngine::play(Conversation* conversation, const ProbeStep& step) {
    const bool is_over = now_us_ >= conversation->until_us;
    bool is_done = true;
    switch (step.op) {
        case StepOp::kSend:
            is_done = awaits_close(conversation, step, is_over) ? conversation->peer_fin
                                                                : play_send(conversation, step);
            break;
        case StepOp::kPause:
            is_done = is_over;
            break;
        case StepOp::kAwait:
            is_done = play_await(conversation, step, is_over);
            break;
        case StepOp::kFin:
            play_fin(conversation);
            break;
        case StepOp::kReset:
            read_available(conversation);
            ++conversation->step;
            return Progress::kEnded;
        case StepOp::kWatch:
        case StepOp::kCloseWait:
            is_done = is_over || conversation->peer_fin;
            break;
    }
    return is_done ? Progress::kDone : Progress::kWaits;
}

bool ProbeEngine::play_await(Conversation* conversation, const ProbeStep& step, bool is_over) {
    if (take_response(conversation, step.kind) || conversation->peer_fin) return true;
    if (is_over) {
        conversation->flags |= is_look(step.kind) ? kExchangeLookRanOut : kExchangeAwaitRanOut;
    }
    return is_over;
}

// Whether a SEND still gives the server time for the close that an answer announced: most close at
// once, and bytes of ours would make a reset of that.
bool ProbeEngine::awaits_close(Conversation* conversation, const ProbeStep& step, bool is_over) {
    if (!step.if_connected || conversation->step_sent != 0 ||
        conversation->until_us == conversation->deadline_us)
        return false;
    if (!is_over || conversation->peer_fin) return true;
    conversation->until_us = conversation->deadline_us;
    return false;
}

void ProbeEngine::play_fin(Conversation* conversation) {
    if (conversation->own_fin) return;
    conversation->tls.shut_down();
    shutdown(conversation->fd, SHUT_WR);
    conversation->own_fin = true;
    note(conversation, EventKind::kOwnFin, 0);
}

bool ProbeEngine::play_send(Conversation* conversation, const ProbeStep& step) {
    const char* octets = conversation->play.octets.data() + step.offset;
    if (conversation->own_fin && conversation->step_sent < step.n) {
        conversation->has_unsent = true;
        return true;
    }
    while (conversation->step_sent < step.n) {
        const ssize_t sent = send_bytes(conversation, octets + conversation->step_sent,
                                        step.n - conversation->step_sent);
        if (sent >= 0) {
            tick();
            if (conversation->first_send_us == 0) conversation->first_send_us = now_us_;
            conversation->step_sent += static_cast<std::size_t>(sent);
            conversation->sent =
                clamp_u32(std::uint64_t{conversation->sent} + static_cast<std::uint64_t>(sent));
            fresh_.touch(conversation, now_us_);
            note(conversation, EventKind::kSent, static_cast<std::size_t>(sent));
            continue;
        }
        if (errno == EINTR) continue;
        if (errno == EAGAIN || errno == ENOBUFS) {
            watch_writable(conversation, true);
            return false;
        }
        conversation->has_unsent = true;
        see_broken_send(conversation, errno);
        return false;
    }
    watch_writable(conversation, false);
    return true;
}

bool ProbeEngine::take_response(Conversation* conversation, AwaitKind kind) {
    if (is_look(kind)) {
        return conversation->untaken_finals != 0 ||
               (kind == AwaitKind::kLookAny &&
                conversation->responses_taken < conversation->responses.size());
    }
    while (conversation->responses_taken < conversation->responses.size()) {
        const bool is_final = conversation->responses[conversation->responses_taken];
        ++conversation->responses_taken;
        if (is_final) --conversation->untaken_finals;
        if (is_final || kind == AwaitKind::kAny) return true;
    }
    return false;
}

void ProbeEngine::settle(Conversation* conversation) {
    std::uint32_t wait_ms = conversation->play.settle_ms;
    if (conversation->framing.announced_close())
        wait_ms = std::max(wait_ms, conversation->play.close_ms);
    conversation->phase = Phase::kSettle;
    tick();
    conversation->until_us = now_us_ + wait_ms * kUsPerMs;
}

}  // namespace httpmark
