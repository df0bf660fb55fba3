// What comes from the server: bytes, responses in them, and the end of the connection.
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

#include "probe/engine.hpp"
#include "shared/clock.hpp"

namespace httpmark {
namespace {

constexpr int kReadsPerEvent = 16;

bool takes_final(AwaitKind kind) {
    return kind == AwaitKind::kFinal || kind == AwaitKind::kHead || kind == AwaitKind::kConnect;
}

// What the request was that the response beginning now belongs to: told by the AWAIT that will take
// it, which is as many AWAITs ahead as there are final responses that no AWAIT has taken yet.
RequestKind kind_of_next_response(const Talk& talk) {
    std::size_t ahead = 0;
    for (std::size_t i = talk.responses_taken; i < talk.responses.size(); ++i) {
        if (talk.responses[i]) ++ahead;
    }
    for (std::size_t i = talk.step; i < talk.play.steps.size(); ++i) {
        const ProbeStep& step = talk.play.steps[i];
        if (step.op != StepOp::kAwait || !takes_final(step.kind)) continue;
        if (ahead-- != 0) continue;
        if (step.kind == AwaitKind::kHead) return RequestKind::kHead;
        if (step.kind == AwaitKind::kConnect) return RequestKind::kConnect;
        return RequestKind::kOrdinary;
    }
    return RequestKind::kOrdinary;
}

}  // namespace

ssize_t ProbeEngine::receive_bytes(Talk* talk, char* data, std::size_t size) {
    if (!talk->tls.is_open()) return recv(talk->fd, data, size, 0);
    const ssize_t got = talk->tls.receive(data, size);
    const int error = errno;
    talk->has_session = talk->has_session || talk->tls.is_established();
    errno = error;
    if (got == 0) {
        now_us_ = monotonic_us();
        note(talk, EventKind::kCloseNotify, 0);
    } else if (got < 0 && errno == EPROTO && talk->has_session) {
        // The transport ended without close_notify: an end of the connection all the same.
        return 0;
    }
    return got;
}

void ProbeEngine::read_available(Talk* talk) {
    if (talk->peer_fin || talk->is_dead) return;
    for (int i = 0;; ++i) {
        const ssize_t got = receive_bytes(talk, receive_.data(), receive_.size());
        if (got > 0) {
            keep(talk, {receive_.data(), static_cast<std::size_t>(got)});
            // What the session holds already makes no edge.
            if (i < kReadsPerEvent || (talk->tls.is_open() && talk->tls.has_pending())) continue;
            // Others want their turn. Setting the interest again makes an edge of what is still
            // there.
            set_interest(talk);
            return;
        }
        if (got == 0) {
            send_reset_ ? see_reset(talk) : see_fin(talk);
            return;
        }
        if (errno == EINTR) continue;
        if (errno == EAGAIN) return;
        see_reset(talk);
        return;
    }
}

void ProbeEngine::keep(Talk* talk, std::string_view octets) {
    now_us_ = monotonic_us();
    if (talk->received.empty() && talk->first_send_us != 0) {
        talk->first_us = clamp_u32(now_us_ - talk->first_send_us);
    }
    fresh_.touch(talk, now_us_);
    note(talk, EventKind::kReceived, octets.size());
    const std::size_t kept = std::min(octets.size(), kReceivedBytesMax - talk->received.size());
    if (kept < octets.size()) talk->flags |= kExchangeCut;
    talk->received.append(octets.data(), kept);
    held_bytes_ += kept;
    digest(talk, octets);
}

void ProbeEngine::digest(Talk* talk, std::string_view octets) {
    while (!octets.empty()) {
        switch (talk->framing.feed(&octets)) {
            case FramingEvent::kNeedMore:
            case FramingEvent::kGarbage:
                break;
            case FramingEvent::kHead: {
                const bool is_interim = talk->framing.is_interim();
                const bool is_whole = talk->framing.begin_body(kind_of_next_response(*talk));
                if (is_interim) {
                    talk->responses.push_back(false);
                } else if (is_whole || talk->head_only) {
                    talk->responses.push_back(true);
                    ++talk->final_responses;
                }
                break;
            }
            case FramingEvent::kMessage:
                if (!talk->head_only) {
                    talk->responses.push_back(true);
                    ++talk->final_responses;
                }
                break;
        }
    }
}

void ProbeEngine::see_fin(Talk* talk) {
    talk->peer_fin = true;
    talk->end = End::kClosed;
    now_us_ = monotonic_us();
    note(talk, EventKind::kFin, 0);
    if (talk->framing.finish() && !talk->head_only) {
        talk->responses.push_back(true);
        ++talk->final_responses;
    }
    if (talk->own_fin) talk->is_dead = true;
}

// A send has failed. What the server said before that is still there to be read; after it the
// kernel, which has told the error already, reports an ordinary end: a FIN if there was one (then
// the error is EPIPE), else it stands for the reset.
void ProbeEngine::see_broken_send(Talk* talk, int error) {
    send_reset_ = error == ECONNRESET;
    read_available(talk);
    send_reset_ = false;
    if (!talk->is_dead) see_reset(talk);
}

void ProbeEngine::see_reset(Talk* talk) {
    now_us_ = monotonic_us();
    note(talk, EventKind::kRst, 0);
    if (talk->end == End::kOpen) talk->end = End::kReset;
    talk->peer_fin = true;
    talk->is_dead = true;
}

void ProbeEngine::note(Talk* talk, EventKind kind, std::size_t bytes) {
    if ((talk->play.flags & kCaseTimeline) == 0 || talk->events.size() >= kEventsMax) return;
    talk->events.push_back({kind, clamp_u32(now_us_ - talk->start_us), clamp_u32(bytes)});
    held_bytes_ += sizeof(ProbeEvent);
}

}  // namespace httpmark
