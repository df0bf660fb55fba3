#include "probe/frames.hpp"

#include <algorithm>
#include <optional>

namespace httpmark {
namespace {

struct Place {
    std::size_t at;
    std::size_t bytes;
};

// Where a field lies. A name that no field has does not compile.
template <std::size_t count>
consteval Place place(const std::array<FrameField, count>& fields, std::string_view name) {
    std::size_t at = 0;
    std::size_t i = 0;
    for (; fields.at(i).name != name; ++i) at += fields[i].bytes;
    return {at, fields[i].bytes};
}

std::uint32_t get(std::string_view in, Place where) {
    std::uint32_t value = 0;
    for (std::size_t i = where.bytes; i-- > 0;) {
        value = value << 8 | static_cast<unsigned char>(in[where.at + i]);
    }
    return value;
}

// `out` has the size of the fields already; `from` is where they begin.
void put(std::string* out, std::size_t from, Place where, std::uint64_t value) {
    for (std::size_t i = 0; i < where.bytes; ++i) {
        (*out)[from + where.at + i] = static_cast<char>(value >> (8 * i) & 0xff);
    }
}

constexpr std::size_t kCaseHeadBytes = bytes_of(kCaseFields);
constexpr std::size_t kStepBytes = bytes_of(kStepFields);
constexpr std::size_t kAwaitBytes = bytes_of(kAwaitFields);
constexpr std::size_t kExchangeHeadBytes = bytes_of(kExchangeFields);
constexpr std::size_t kEventBytes = bytes_of(kEventFields);

// The step at `*at`, which moves past it; nothing, and `*why`, where it is malformed.
std::optional<ProbeStep> decode_step(std::string_view frame, std::size_t index, std::size_t* at,
                                     std::string* octets, std::string* why) {
    std::string_view rest = frame.substr(*at);
    if (rest.size() < kStepBytes) {
        *why = "ends within step " + std::to_string(index);
        return std::nullopt;
    }
    const std::uint32_t op = get(rest, place(kStepFields, "op"));
    ProbeStep step;
    step.if_open = (op & kStepIfOpen) != 0;
    step.if_unanswered = (op & kStepIfUnanswered) != 0;
    step.if_connected = (op & kStepIfConnected) != 0;
    step.if_prompt = (op & kStepIfPrompt) != 0;
    step.op = static_cast<StepOp>(op & kStepOpMask);
    step.n = get(rest, place(kStepFields, "n"));
    *at += kStepBytes;
    rest.remove_prefix(kStepBytes);
    if (!is_known(step.op)) {
        *why = "unknown step " + std::to_string(op & kStepOpMask);
        return std::nullopt;
    }
    if (step.op == StepOp::kSend) {
        if (rest.size() < step.n) {
            *why = "ends within the bytes of a SEND";
            return std::nullopt;
        }
        step.offset = octets->size();
        octets->append(rest.substr(0, step.n));
        *at += step.n;
    }
    if (step.op == StepOp::kAwait) {
        if (rest.size() < kAwaitBytes) {
            *why = "ends within an AWAIT";
            return std::nullopt;
        }
        step.kind = static_cast<AwaitKind>(get(rest, place(kAwaitFields, "kind")));
        if (!is_known(step.kind)) {
            *why = "unknown kind of AWAIT";
            return std::nullopt;
        }
        *at += kAwaitBytes;
    }
    return step;
}

}  // namespace

FrameResult decode_case(std::string_view input, std::size_t* used, ProbeCase* out,
                        std::string* complaint) {
    if (input.size() < kLengthBytes) return FrameResult::kNeedMore;
    const std::size_t length = get(input, place(kCaseFields, "length"));
    if (length < kCaseHeadBytes - kLengthBytes || length > kCaseBytesMax) {
        *complaint = "a case frame of " + std::to_string(length) + " bytes";
        return FrameResult::kMalformed;
    }
    if (input.size() - kLengthBytes < length) return FrameResult::kNeedMore;
    const std::string_view frame = input.substr(0, kLengthBytes + length);
    out->number = get(frame, place(kCaseFields, "number"));
    out->deadline_ms = get(frame, place(kCaseFields, "deadline_ms"));
    out->settle_ms = get(frame, place(kCaseFields, "settle_ms"));
    out->close_ms = get(frame, place(kCaseFields, "close_ms"));
    out->flags = static_cast<std::uint8_t>(get(frame, place(kCaseFields, "flags")));
    out->steps.clear();
    out->octets.clear();
    const auto malformed = [&](const std::string& why) {
        *complaint = "case " + std::to_string(out->number) + ": " + why;
        return FrameResult::kMalformed;
    };
    if (out->deadline_ms == 0) return malformed("deadline_ms is 0");
    if ((out->flags & ~(kCaseHeadOnly | kCaseTimeline)) != 0 ||
        get(frame, place(kCaseFields, "zero")) != 0) {
        return malformed("unknown flags");
    }
    const std::size_t count = get(frame, place(kCaseFields, "steps"));
    std::size_t at = kCaseHeadBytes;
    for (std::size_t i = 0; i < count; ++i) {
        std::string why;
        const auto step = decode_step(frame, i, &at, &out->octets, &why);
        if (!step) return malformed(why);
        out->steps.push_back(*step);
    }
    if (at != frame.size()) return malformed("has bytes after its last step");
    *used = frame.size();
    return FrameResult::kCase;
}

void encode_exchange(const ProbeExchange& exchange, std::string* out) {
    const std::size_t received = std::min(exchange.received.size(), kReceivedBytesMax);
    const std::size_t events =
        exchange.events == nullptr ? 0 : std::min(exchange.events->size(), kEventsMax);
    const std::size_t from = out->size();
    out->resize(from + kExchangeHeadBytes);
    const auto set = [&](Place where, std::uint64_t value) { put(out, from, where, value); };
    set(place(kExchangeFields, "length"),
        kExchangeHeadBytes - kLengthBytes + received + events * kEventBytes);
    set(place(kExchangeFields, "number"), exchange.number);
    set(place(kExchangeFields, "outcome"), static_cast<std::uint64_t>(exchange.outcome));
    set(place(kExchangeFields, "end"), static_cast<std::uint64_t>(exchange.end));
    set(place(kExchangeFields, "flags"), exchange.flags);
    set(place(kExchangeFields, "steps_done"), exchange.steps_done);
    set(place(kExchangeFields, "connect_us"), exchange.connect_us);
    set(place(kExchangeFields, "first_us"), exchange.first_us);
    set(place(kExchangeFields, "end_us"), exchange.end_us);
    set(place(kExchangeFields, "sent"), exchange.sent);
    set(place(kExchangeFields, "received"), received);
    set(place(kExchangeFields, "events"), events);
    set(place(kExchangeFields, "finals"), exchange.final_responses);
    set(place(kExchangeFields, "ended_unix_us"), exchange.ended_unix_us);
    out->append(exchange.received.substr(0, received));
    for (std::size_t i = 0; i < events; ++i) {
        const ProbeEvent& event = (*exchange.events)[i];
        const std::size_t at = out->size();
        out->resize(at + kEventBytes);
        put(out, at, place(kEventFields, "kind"), static_cast<std::uint64_t>(event.kind));
        put(out, at, place(kEventFields, "at_us"), event.at_us);
        put(out, at, place(kEventFields, "bytes"), event.octets);
    }
}

}  // namespace httpmark
