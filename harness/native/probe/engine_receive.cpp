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
// What a conversation may keep when all together hold as much as they may, and of a flood.
constexpr std::size_t kFewBytes = 64 * 1024;

// Far more than anybody answers: a request has 16 octets or more, and gets one final response and
// perhaps an interim one.
std::size_t responses_max(const Conversation& conversation) {
    return 1024 + conversation.play.octets.size() / 8;
}

bool takes_final(AwaitKind kind) {
    return kind == AwaitKind::kFinal || kind == AwaitKind::kHead || kind == AwaitKind::kConnect;
}

// What the request was that the response beginning now belongs to: told by the AWAIT that will take
// it, which is as many AWAITs ahead as there are final responses that no AWAIT has taken yet.
RequestKind kind_of_next_response(const Conversation& conversation) {
    // Counted as they come: a server may send any number, and none is looked at twice.
    std::size_t ahead = conversation.untaken_finals;
    for (std::size_t i = conversation.step; i < conversation.play.steps.size(); ++i) {
        const ProbeStep& step = conversation.play.steps[i];
        if (step.op != StepOp::kAwait || !takes_final(step.kind)) continue;
        if (ahead-- != 0) continue;
        if (step.kind == AwaitKind::kHead) return RequestKind::kHead;
        if (step.kind == AwaitKind::kConnect) return RequestKind::kConnect;
        return RequestKind::kOrdinary;
    }
    return RequestKind::kOrdinary;
}

}  // namespace

ssize_t ProbeEngine::receive_bytes(Conversation* conversation, char* data, std::size_t size) {
    if (!conversation->tls.is_open()) return recv(conversation->fd, data, size, 0);
    const ssize_t got = conversation->tls.receive(data, size);
    const int error = errno;
    conversation->has_session = conversation->has_session || conversation->tls.is_established();
    errno = error;
    if (got == 0) {
        tick();
        note(conversation, EventKind::kCloseNotify, 0);
    } else if (got < 0 && errno == EPROTO && conversation->has_session) {
        // The transport ended without close_notify: an end of the connection all the same.
        return 0;
    }
    return got;
}

void ProbeEngine::read_available(Conversation* conversation) {
    if (conversation->peer_fin || conversation->is_dead) return;
    for (int i = 0;; ++i) {
        const ssize_t got = receive_bytes(conversation, receive_.data(), receive_.size());
        if (got > 0) {
            keep(conversation, {receive_.data(), static_cast<std::size_t>(got)});
            // Who sends so much in one conversation does not mean to end.
            if (conversation->came >= kFloodBytes ||
                conversation->responses.size() > responses_max(*conversation)) {
                leave_flood(conversation);
                return;
            }
            // What the session holds already makes no edge.
            if (i < kReadsPerEvent ||
                (conversation->tls.is_open() && conversation->tls.has_pending()))
                continue;
            // Others want their turn. Setting the interest again makes an edge of what is still
            // there.
            set_interest(conversation);
            return;
        }
        if (got == 0) {
            send_reset_ ? see_reset(conversation) : see_fin(conversation);
            return;
        }
        if (errno == EINTR) continue;
        if (errno == EAGAIN) return;
        see_reset(conversation);
        return;
    }
}

void ProbeEngine::leave_flood(Conversation* conversation) {
    // Counted by finish(): many short responses are as much of a flood.
    conversation->came = std::max(conversation->came, kFloodBytes);
    conversation->is_dead = true;
    conversation->flags |= kExchangeCut | kExchangeDeadline;
    const std::size_t kept = std::min(conversation->received.size(), kFewBytes);
    held_bytes_ -= conversation->received.size() - kept;
    conversation->received.resize(kept);
    conversation->received.shrink_to_fit();
}

void ProbeEngine::keep(Conversation* conversation, std::string_view octets) {
    tick();
    if (conversation->received.empty() && conversation->first_send_us != 0) {
        conversation->first_us = clamp_u32(now_us_ - conversation->first_send_us);
    }
    fresh_.touch(conversation, now_us_);
    note(conversation, EventKind::kReceived, octets.size());
    conversation->came += octets.size();
    const bool has_room = held_bytes_ + output_.held() < kHeldBytesMax;
    const std::size_t most = has_room ? kReceivedBytesMax : kFewBytes;
    const std::size_t held = std::min(conversation->received.size(), most);
    const std::size_t kept = std::min(octets.size(), most - held);
    if (kept < octets.size()) conversation->flags |= kExchangeCut;
    conversation->received.append(octets.data(), kept);
    held_bytes_ += kept;
    digest(conversation, octets);
}

void ProbeEngine::digest(Conversation* conversation, std::string_view octets) {
    while (!octets.empty()) {
        switch (conversation->framing.feed(&octets)) {
            case FramingEvent::kNeedMore:
            case FramingEvent::kGarbage:
                break;
            case FramingEvent::kHead: {
                const bool is_interim = conversation->framing.is_interim();
                const bool is_whole =
                    conversation->framing.begin_body(kind_of_next_response(*conversation));
                if (is_interim || is_whole || conversation->head_only) {
                    conversation->add_response(!is_interim);
                }
                break;
            }
            case FramingEvent::kMessage:
                if (!conversation->head_only) conversation->add_response(true);
                break;
        }
    }
}

void ProbeEngine::see_fin(Conversation* conversation) {
    conversation->peer_fin = true;
    conversation->end = End::kClosed;
    tick();
    note(conversation, EventKind::kFin, 0);
    if (conversation->framing.finish() && !conversation->head_only) {
        conversation->add_response(true);
    }
    if (conversation->own_fin) conversation->is_dead = true;
}

// A send has failed. What the server said before that is still there to be read; after it the
// kernel, which has told the error already, reports an ordinary end: a FIN if there was one (then
// the error is EPIPE), else it stands for the reset.
void ProbeEngine::see_broken_send(Conversation* conversation, int error) {
    send_reset_ = error == ECONNRESET;
    read_available(conversation);
    send_reset_ = false;
    if (!conversation->is_dead) see_reset(conversation);
}

void ProbeEngine::see_reset(Conversation* conversation) {
    tick();
    note(conversation, EventKind::kRst, 0);
    if (conversation->end == End::kOpen) conversation->end = End::kReset;
    conversation->peer_fin = true;
    conversation->is_dead = true;
}

void ProbeEngine::note(Conversation* conversation, EventKind kind, std::size_t bytes) {
    if ((conversation->play.flags & kCaseTimeline) == 0 ||
        conversation->events.size() >= kEventsMax)
        return;
    conversation->events.push_back(
        {kind, clamp_u32(now_us_ - conversation->start_us), clamp_u32(bytes)});
    held_bytes_ += sizeof(ProbeEvent);
}

}  // namespace httpmark
