// What goes in and out of httpmark-probe, and the only place where its numbers stand. The harness
// holds its own numbers against `httpmark-probe --print-layout`, which is made of these constants.
//
// All numbers are little-endian and unsigned. A frame begins with `length`, the number of bytes
// that follow it.
//
// Standard input: case frames. The fields of kCaseFields, then the steps. A step is the fields of
// kStepFields, and after them:
//   - of a SEND the `n` bytes to send;
//   - of an AWAIT the fields of kAwaitFields.
//
// Standard output: exchange frames, in any order. The fields of kExchangeFields, then the bytes
// that were received and kept (`received` of them), then `events` records of kEventFields.
#ifndef HTTPMARK_NATIVE_PROBE_FRAMES_HPP_
#define HTTPMARK_NATIVE_PROBE_FRAMES_HPP_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace httpmark {

inline constexpr std::size_t kCaseBytesMax = std::size_t{256} << 20;
inline constexpr std::size_t kReceivedBytesMax = std::size_t{4} << 20;
inline constexpr std::size_t kEventsMax = 65535;
inline constexpr std::size_t kStepsDoneMax = 255;    // stands for more, too
inline constexpr std::uint32_t kNever = 0xffffffff;  // of first_us: no byte came

// --- words
//
// name_of() gives each its name in the layout, and nothing for a number that has no meaning. The
// compiler warns (-Wswitch) about one that is left out.

enum class StepOp : std::uint8_t {
    kSend = 1,   // the n bytes that follow; one write where the kernel takes it whole
    kPause = 2,  // n ms; what arrives meanwhile is read
    kAwait = 3,  // for at most n ms; over when the server closes, too. Running out of n is no error
    kFin = 4,    // shutdown of the sending side
    kReset = 5,  // close with SO_LINGER 0; ends the case
    kWatch = 6,  // read for n ms or until FIN or RST
    kCloseWait = 7,  // read until FIN or RST, at most n ms
};
constexpr const char* name_of(StepOp op) {
    switch (op) {
        case StepOp::kSend:
            return "send";
        case StepOp::kPause:
            return "pause";
        case StepOp::kAwait:
            return "await";
        case StepOp::kFin:
            return "fin";
        case StepOp::kReset:
            return "reset";
        case StepOp::kWatch:
            return "watch";
        case StepOp::kCloseWait:
            return "close_wait";
    }
    return nullptr;
}

// Bits of a step's op. A step that is skipped counts as done.
enum StepFlag : std::uint8_t {
    // Skipped unless the connection is open both ways and no answer so far announced close.
    kStepIfOpen = 0x80,
    kStepIfUnanswered = 0x40,  // skipped once a final response has come
    // Skipped unless the connection is open both ways. Where an answer announced close, a SEND
    // waits kClosingMs for that close first.
    kStepIfConnected = 0x20,
    kStepIfPrompt = 0x10,  // skipped once a wait for an answer has run out
};
inline constexpr std::uint32_t kStepOpMask =
    0xffU & ~(0U | kStepIfOpen | kStepIfUnanswered | kStepIfConnected | kStepIfPrompt);
inline constexpr std::uint32_t kClosingMs = 50;
constexpr const char* name_of(StepFlag flag) {
    switch (flag) {
        case kStepIfOpen:
            return "if_open";
        case kStepIfUnanswered:
            return "if_unanswered";
        case kStepIfConnected:
            return "if_connected";
        case kStepIfPrompt:
            return "if_prompt";
    }
    return nullptr;
}

// What an AWAIT waits for. 101 is final: what follows it is no HTTP/1.1.
enum class AwaitKind : std::uint8_t {
    kFinal = 0,      // one more final response
    kHead = 1,       // likewise, and the request was HEAD
    kConnect = 2,    // likewise, and the request was CONNECT
    kAny = 3,        // one more response, interim ones too
    kLookFinal = 4,  // a final response, which is left to a later AWAIT
    kLookAny = 5,    // any response, which is left to a later AWAIT
};
constexpr const char* name_of(AwaitKind kind) {
    switch (kind) {
        case AwaitKind::kFinal:
            return "final";
        case AwaitKind::kHead:
            return "head";
        case AwaitKind::kConnect:
            return "connect";
        case AwaitKind::kAny:
            return "any";
        case AwaitKind::kLookFinal:
            return "look_final";
        case AwaitKind::kLookAny:
            return "look_any";
    }
    return nullptr;
}

enum CaseFlag : std::uint8_t {
    kCaseHeadOnly = 1,  // the end of a header section is enough for an AWAIT, without the body
    kCaseTimeline = 2,  // record events
};
constexpr const char* name_of(CaseFlag flag) {
    switch (flag) {
        case kCaseHeadOnly:
            return "head_only";
        case kCaseTimeline:
            return "timeline";
    }
    return nullptr;
}

enum class Outcome : std::uint8_t {
    kAnswered = 0,  // at least one byte came
    kClosed = 1,    // FIN without a byte
    kReset = 2,     // RST without a byte
    kHung = 3,      // nothing by the end
    // No connection. With kExchangeDeadline: the connect never came to an end.
    kRefused = 4,
};
constexpr const char* name_of(Outcome outcome) {
    switch (outcome) {
        case Outcome::kAnswered:
            return "answered";
        case Outcome::kClosed:
            return "closed";
        case Outcome::kReset:
            return "reset";
        case Outcome::kHung:
            return "hung";
        case Outcome::kRefused:
            return "refused";
    }
    return nullptr;
}

enum class End : std::uint8_t {
    kOpen = 0,    // still open when the probe closed it
    kClosed = 1,  // the server's FIN
    kReset = 2,   // the server's RST
};
constexpr const char* name_of(End end) {
    switch (end) {
        case End::kOpen:
            return "open";
        case End::kClosed:
            return "closed";
        case End::kReset:
            return "reset";
    }
    return nullptr;
}

enum ExchangeFlag : std::uint8_t {
    kExchangeUnsent = 1,          // not everything was sent, because the connection ended
    kExchangeDeadline = 2,        // the deadline came before the steps were done
    kExchangeAwaitRanOut = 4,     // the time of an AWAIT ran out
    kExchangeAnnouncedClose = 8,  // an answer announced close
    kExchangeCut = 16,            // more was received than is kept (kReceivedBytesMax)
    kExchangeLookRanOut = 32,     // likewise, of an AWAIT that looks
    kExchangeReached = 64,        // nothing came, and the other end has acknowledged all bytes
    kExchangeHeldUp = 128,        // the probe itself did not run for a while (kHeldUpMs)
};
constexpr const char* name_of(ExchangeFlag flag) {
    switch (flag) {
        case kExchangeUnsent:
            return "unsent";
        case kExchangeDeadline:
            return "deadline";
        case kExchangeAwaitRanOut:
            return "await_ran_out";
        case kExchangeAnnouncedClose:
            return "announced_close";
        case kExchangeCut:
            return "cut";
        case kExchangeLookRanOut:
            return "look_ran_out";
        case kExchangeReached:
            return "reached";
        case kExchangeHeldUp:
            return "held_up";
    }
    return nullptr;
}

enum class EventKind : std::uint8_t {
    kSent = 1,
    kReceived = 2,
    kFin = 3,
    kRst = 4,
    kOwnFin = 5,
    kCloseNotify = 6,  // of TLS
};
constexpr const char* name_of(EventKind kind) {
    switch (kind) {
        case EventKind::kSent:
            return "sent";
        case EventKind::kReceived:
            return "received";
        case EventKind::kFin:
            return "fin";
        case EventKind::kRst:
            return "rst";
        case EventKind::kOwnFin:
            return "own_fin";
        case EventKind::kCloseNotify:
            return "close_notify";
    }
    return nullptr;
}

template <typename Word>
constexpr bool is_known(Word word) {
    return name_of(word) != nullptr;
}

// --- fields, in the order of the wire

struct FrameField {
    std::string_view name;
    std::size_t bytes;
};

inline constexpr auto kCaseFields = std::to_array<FrameField>({
    {"length", 4},
    {"number", 4},       // comes back in the exchange; need not be in order
    {"deadline_ms", 4},  // for the whole case, from the beginning of the connect; at least 1. When
                         // it is over, the case ends as it stands
    {"settle_ms", 4},    // go on reading this long after the last step, for surplus bytes or a
                         // close; 0 = do not
    {"close_ms", 4},     // where an answer announced close (Connection: close, or HTTP/1.0 without
                         // keep-alive): wait this long after the last step for the server's FIN.
                         // The longer one of settle_ms and close_ms counts then
    {"flags", 1},        // CaseFlag
    {"zero", 1},
    {"steps", 2},  // how many
});

inline constexpr auto kStepFields = std::to_array<FrameField>({
    {"op", 1},  // StepOp, and the bits of StepFlag
    {"n", 4},   // bytes of a SEND, else milliseconds
});

inline constexpr auto kAwaitFields = std::to_array<FrameField>({{"kind", 1}});  // AwaitKind

inline constexpr auto kExchangeFields = std::to_array<FrameField>({
    {"length", 4},
    {"number", 4},
    {"outcome", 1},
    {"end", 1},
    {"flags", 1},  // ExchangeFlag
    {"steps_done", 1},
    {"connect_us", 4},  // from the beginning of the connect to the connection
    {"first_us", 4},    // from the first send to the first byte, or kNever
    {"end_us", 4},      // from the beginning of the connect to the end of the case
    {"sent", 4},        // bytes
    {"received", 4},    // bytes that follow
    {"events", 2},      // records that follow
    {"finals", 2},  // final responses that came whole; with kCaseHeadOnly: their header sections
    {"ended_unix_us", 8},  // Unix time of the end of the case, as the probe's clock had it
});

inline constexpr auto kEventFields = std::to_array<FrameField>({
    {"kind", 1},   // EventKind
    {"at_us", 4},  // from the beginning of the connect
    {"bytes", 4},  // sent or received
});

template <std::size_t count>
constexpr std::size_t bytes_of(const std::array<FrameField, count>& fields) {
    std::size_t bytes = 0;
    for (const FrameField& field : fields) bytes += field.bytes;
    return bytes;
}

inline constexpr std::size_t kLengthBytes = kCaseFields[0].bytes;
static_assert(kCaseFields[0].name == "length" && kExchangeFields[0].name == "length" &&
              kExchangeFields[0].bytes == kLengthBytes);

// --- frames, unpacked

struct ProbeStep {
    StepOp op = StepOp::kSend;
    bool if_open = false;
    bool if_unanswered = false;
    bool if_connected = false;
    bool if_prompt = false;
    AwaitKind kind = AwaitKind::kFinal;
    std::uint32_t n = 0;     // bytes of a SEND, else milliseconds
    std::size_t offset = 0;  // of a SEND's bytes in ProbeCase::octets
};

struct ProbeCase {
    std::uint32_t number = 0;
    std::uint32_t deadline_ms = 0;
    std::uint32_t settle_ms = 0;
    std::uint32_t close_ms = 0;
    std::uint8_t flags = 0;
    std::vector<ProbeStep> steps;
    std::string octets;  // of all SENDs, one after the other
};

struct ProbeEvent {
    EventKind kind = EventKind::kSent;
    std::uint32_t at_us = 0;
    std::uint32_t octets = 0;
};

struct ProbeExchange {
    std::uint32_t number = 0;
    Outcome outcome = Outcome::kHung;
    End end = End::kOpen;
    std::uint8_t flags = 0;
    std::uint8_t steps_done = 0;
    std::uint32_t connect_us = 0;
    std::uint32_t first_us = kNever;
    std::uint32_t end_us = 0;
    std::uint32_t sent = 0;
    std::uint16_t final_responses = 0;
    std::uint64_t ended_unix_us = 0;  // Unix time
    std::string_view received;
    const std::vector<ProbeEvent>* events = nullptr;
};

enum class FrameResult { kCase, kNeedMore, kMalformed };

// Takes one case frame from the front of `input`. kCase: `*used` bytes are done with. kMalformed:
// `*complaint` says why, in one line.
FrameResult decode_case(std::string_view input, std::size_t* used, ProbeCase* out,
                        std::string* complaint);

void encode_exchange(const ProbeExchange& exchange, std::string* out);

}  // namespace httpmark

#endif  // HTTPMARK_NATIVE_PROBE_FRAMES_HPP_
