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

ssize_t send_bytes(Talk* talk, const char* data, std::size_t size) {
    return talk->tls.is_open() ? talk->tls.send(data, size)
                               : send(talk->fd, data, size, MSG_NOSIGNAL);
}

}  // namespace

void ProbeEngine::advance(Talk* talk) {
    for (;;) {
        if (talk->is_dead) {
            finish(talk);
            return;
        }
        if (talk->phase == Phase::kSettle) {
            if (talk->peer_fin || now_us_ >= talk->until_us || now_us_ >= talk->deadline_us) {
                finish(talk);
                return;
            }
            timers_.arm(talk);
            return;
        }
        if (talk->step == talk->play.steps.size()) {
            settle(talk);
            continue;
        }
        if (now_us_ >= talk->deadline_us) {
            talk->flags |= kExchangeDeadline;
            finish(talk);
            return;
        }
        if (talk->tls.is_open() && !talk->has_session) {
            // No step before there is a session: a FIN of ours would cut the handshake.
            timers_.arm(talk);
            return;
        }
        const ProbeStep& step = talk->play.steps[talk->step];
        if (!talk->entered && !enter(talk, step)) {
            ++talk->step;
            continue;
        }
        const Progress progress = play(talk, step);
        if (progress == Progress::kEnded) {
            finish(talk);
            return;
        }
        if (progress == Progress::kWaits) {
            if (talk->is_dead) continue;
            timers_.arm(talk);
            return;
        }
        ++talk->step;
        talk->entered = false;
    }
}

// Begins a step. False: it is to be skipped.
bool ProbeEngine::enter(Talk* talk, const ProbeStep& step) {
    const bool is_open = !talk->peer_fin && !talk->own_fin;
    if (step.if_open && (!is_open || talk->framing.announced_close())) return false;
    if (step.if_unanswered && talk->final_responses != 0) return false;
    talk->entered = true;
    talk->step_sent = 0;
    talk->until_us = talk->deadline_us;
    if (step.op != StepOp::kSend) {
        now_us_ = monotonic_us();
        talk->until_us = now_us_ + step.n * kUsPerMs;
    }
    return true;
}

ProbeEngine::Progress ProbeEngine::play(Talk* talk, const ProbeStep& step) {
    const bool is_over = now_us_ >= talk->until_us;
    bool is_done = true;
    switch (step.op) {
        case StepOp::kSend:
            is_done = play_send(talk, step);
            break;
        case StepOp::kPause:
            is_done = is_over;
            break;
        case StepOp::kAwait:
            is_done = play_await(talk, step, is_over);
            break;
        case StepOp::kFin:
            play_fin(talk);
            break;
        case StepOp::kReset:
            read_available(talk);
            ++talk->step;
            return Progress::kEnded;
        case StepOp::kWatch:
        case StepOp::kCloseWait:
            is_done = is_over || talk->peer_fin;
            break;
    }
    return is_done ? Progress::kDone : Progress::kWaits;
}

bool ProbeEngine::play_await(Talk* talk, const ProbeStep& step, bool is_over) {
    if (take_response(talk, step.kind) || talk->peer_fin) return true;
    if (is_over && !is_look(step.kind)) talk->flags |= kExchangeAwaitRanOut;
    return is_over;
}

void ProbeEngine::play_fin(Talk* talk) {
    if (talk->own_fin) return;
    talk->tls.shut_down();
    shutdown(talk->fd, SHUT_WR);
    talk->own_fin = true;
    note(talk, EventKind::kOwnFin, 0);
}

bool ProbeEngine::play_send(Talk* talk, const ProbeStep& step) {
    const char* octets = talk->play.octets.data() + step.offset;
    if (talk->own_fin && talk->step_sent < step.n) {
        talk->has_unsent = true;
        return true;
    }
    while (talk->step_sent < step.n) {
        const ssize_t sent = send_bytes(talk, octets + talk->step_sent, step.n - talk->step_sent);
        if (sent >= 0) {
            now_us_ = monotonic_us();
            if (talk->first_send_us == 0) talk->first_send_us = now_us_;
            talk->step_sent += static_cast<std::size_t>(sent);
            talk->sent = clamp_u32(std::uint64_t{talk->sent} + static_cast<std::uint64_t>(sent));
            fresh_.touch(talk, now_us_);
            note(talk, EventKind::kSent, static_cast<std::size_t>(sent));
            continue;
        }
        if (errno == EINTR) continue;
        if (errno == EAGAIN || errno == ENOBUFS) {
            watch_writable(talk, true);
            return false;
        }
        talk->has_unsent = true;
        see_broken_send(talk, errno);
        return false;
    }
    watch_writable(talk, false);
    return true;
}

bool ProbeEngine::take_response(Talk* talk, AwaitKind kind) {
    if (is_look(kind)) {
        const auto untaken =
            talk->responses.begin() + static_cast<std::ptrdiff_t>(talk->responses_taken);
        return kind == AwaitKind::kLookAny
                   ? untaken != talk->responses.end()
                   : std::find(untaken, talk->responses.end(), true) != talk->responses.end();
    }
    while (talk->responses_taken < talk->responses.size()) {
        const bool is_final = talk->responses[talk->responses_taken];
        ++talk->responses_taken;
        if (is_final || kind == AwaitKind::kAny) return true;
    }
    return false;
}

void ProbeEngine::settle(Talk* talk) {
    std::uint32_t wait_ms = talk->play.settle_ms;
    if (talk->framing.announced_close()) wait_ms = std::max(wait_ms, talk->play.close_ms);
    talk->phase = Phase::kSettle;
    now_us_ = monotonic_us();
    talk->until_us = now_us_ + wait_ms * kUsPerMs;
}

}  // namespace httpmark
