// One case on its connection.
#ifndef HTTPMARK_NATIVE_PROBE_TALK_HPP_
#define HTTPMARK_NATIVE_PROBE_TALK_HPP_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "probe/frames.hpp"
#include "probe/response_framing.hpp"
#include "shared/tls.hpp"

namespace httpmark {

inline constexpr std::uint64_t kUsPerMs = 1000;
// The shortest time that a judgement depends on is a second and a half.
inline constexpr std::uint64_t kHeldUpMs = 300;

inline std::uint32_t clamp_u32(std::uint64_t value) {
    return static_cast<std::uint32_t>(
        std::min<std::uint64_t>(value, std::numeric_limits<std::uint32_t>::max()));
}

struct Conversation {
    enum class Phase : std::uint8_t { kIdle, kConnecting, kSteps, kSettle };

    int fd = -1;
    Phase phase = Phase::kIdle;
    bool entered = false;  // the current step has begun
    bool wants_writable = false;
    bool is_fresh = false;  // counts against in_flight
    bool peer_fin = false;
    bool own_fin = false;
    bool is_dead = false;  // nothing can come or go any more
    bool is_refused = false;
    bool head_only = false;
    bool has_unsent = false;
    bool has_session = false;  // the TLS handshake was over once
    std::uint8_t flags = 0;
    End end = End::kOpen;
    std::size_t step = 0;
    std::size_t step_sent = 0;  // bytes of the current SEND that are out
    std::size_t responses_taken = 0;
    std::uint64_t start_us = 0;
    std::uint64_t deadline_us = 0;
    std::uint64_t until_us = 0;  // of the current step or of settling
    std::uint64_t held_up_us = 0;
    std::uint64_t first_send_us = 0;
    std::uint64_t active_us = 0;
    std::uint32_t connect_us = 0;
    std::uint32_t first_us = kNever;
    std::uint32_t sent = 0;
    std::uint64_t came = 0;             // bytes, kept or not
    std::uint16_t final_responses = 0;  // 65,535 stands for more
    std::size_t untaken_finals = 0;     // of `responses`, from responses_taken on
    std::uint64_t armed_us = 0;  // its time in the heap, never after the time it has to wake at
    std::size_t heap_at = 0;
    Conversation* fresh_before = nullptr;
    Conversation* fresh_after = nullptr;
    TlsStream tls;
    ResponseFraming framing;
    std::vector<bool> responses;  // those seen, in order: true = final
    std::string received;
    std::vector<ProbeEvent> events;
    ProbeCase play;

    // Begins `play` on a new connection, for which connect() was called at `now_us`.
    void begin(int new_fd, std::uint64_t now_us) {
        fd = new_fd;
        phase = Phase::kConnecting;
        entered = wants_writable = false;
        peer_fin = own_fin = is_dead = is_refused = has_unsent = has_session = false;
        head_only = (play.flags & kCaseHeadOnly) != 0;
        flags = 0;
        end = End::kOpen;
        step = step_sent = responses_taken = 0;
        start_us = active_us = now_us;
        deadline_us = until_us = now_us + play.deadline_ms * kUsPerMs;
        first_send_us = held_up_us = 0;
        connect_us = sent = 0;
        came = 0;
        first_us = kNever;
        final_responses = 0;
        untaken_finals = 0;
        framing.reset();
        responses.clear();
        received.clear();
        events.clear();
    }

    // A response has come whole, or its header section where `head_only` says so.
    void add_response(bool is_final) {
        responses.push_back(is_final);
        if (!is_final) return;
        ++untaken_finals;
        if (final_responses < std::numeric_limits<std::uint16_t>::max()) ++final_responses;
    }

    // Gives all that is waited for so much more time. Where that is long, times say little.
    void postpone(std::uint64_t by_us) {
        until_us += by_us;
        deadline_us += by_us;
        held_up_us += by_us;
        if (held_up_us >= kHeldUpMs * kUsPerMs) flags |= kExchangeHeldUp;
    }
};

}  // namespace httpmark

#endif  // HTTPMARK_NATIVE_PROBE_TALK_HPP_
