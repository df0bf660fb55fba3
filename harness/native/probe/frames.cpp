#include "probe/frames.hpp"

#include <algorithm>

namespace httpmark {
namespace {

constexpr std::size_t kCaseFixedBytes = 4 * 4 + 1 + 1 + 2;  // after the length

std::uint32_t get_u8(std::string_view in, std::size_t at) {
  return static_cast<unsigned char>(in[at]);
}
std::uint32_t get_u16(std::string_view in, std::size_t at) {
  return get_u8(in, at) | get_u8(in, at + 1) << 8;
}
std::uint32_t get_u32(std::string_view in, std::size_t at) {
  return get_u16(in, at) | get_u16(in, at + 2) << 16;
}

void put_u8(std::string* out, std::uint32_t value) {
  out->push_back(static_cast<char>(value & 0xff));
}
void put_u16(std::string* out, std::uint32_t value) {
  put_u8(out, value);
  put_u8(out, value >> 8);
}
void put_u32(std::string* out, std::uint32_t value) {
  put_u16(out, value);
  put_u16(out, value >> 16);
}

}  // namespace

FrameResult decode_case(std::string_view input, std::size_t* used, ProbeCase* out,
                        std::string* complaint) {
  if (input.size() < 4) return FrameResult::kNeedMore;
  const std::size_t length = get_u32(input, 0);
  if (length < kCaseFixedBytes || length > kCaseBytesMax) {
    *complaint = "a case frame of " + std::to_string(length) + " octets";
    return FrameResult::kMalformed;
  }
  if (input.size() - 4 < length) return FrameResult::kNeedMore;
  const std::string_view body = input.substr(4, length);
  out->number = get_u32(body, 0);
  out->deadline_ms = get_u32(body, 4);
  out->settle_ms = get_u32(body, 8);
  out->close_ms = get_u32(body, 12);
  out->flags = static_cast<std::uint8_t>(get_u8(body, 16));
  const std::size_t count = get_u16(body, 18);
  out->steps.clear();
  out->octets.clear();
  const auto malformed = [&](const std::string& why) {
    *complaint = "case " + std::to_string(out->number) + ": " + why;
    return FrameResult::kMalformed;
  };
  if (out->deadline_ms == 0) return malformed("deadline_ms is 0");
  if ((out->flags & ~(kCaseHeadersOnly | kCaseEvents)) != 0 || get_u8(body, 17) != 0) {
    return malformed("unknown flags");
  }
  std::size_t at = kCaseFixedBytes;
  for (std::size_t i = 0; i < count; ++i) {
    if (body.size() - at < 5) return malformed("ends within step " + std::to_string(i));
    const std::uint32_t op = get_u8(body, at);
    ProbeStep step;
    step.if_open = (op & kStepIfOpen) != 0;
    step.if_unanswered = (op & kStepIfUnanswered) != 0;
    step.op = static_cast<StepOp>(op & 0x3f);
    step.n = get_u32(body, at + 1);
    at += 5;
    switch (step.op) {
      case StepOp::kSend:
        if (body.size() - at < step.n) return malformed("ends within the octets of a SEND");
        step.offset = out->octets.size();
        out->octets.append(body.substr(at, step.n));
        at += step.n;
        break;
      case StepOp::kAwait:
        if (body.size() - at < 1) return malformed("ends within an AWAIT");
        if (get_u8(body, at) > 5) return malformed("unknown kind of AWAIT");
        step.kind = static_cast<AwaitKind>(get_u8(body, at));
        ++at;
        break;
      case StepOp::kPause:
      case StepOp::kFin:
      case StepOp::kReset:
      case StepOp::kWatch:
      case StepOp::kCloseWait:
        break;
      default:
        return malformed("unknown step " + std::to_string(op & 0x3f));
    }
    out->steps.push_back(step);
  }
  if (at != body.size()) return malformed("has octets behind its last step");
  *used = 4 + length;
  return FrameResult::kCase;
}

void encode_exchange(const ProbeExchange& exchange, std::string* out) {
  const std::size_t received = std::min(exchange.received.size(), kReceivedBytesMax);
  const std::size_t events =
      exchange.events == nullptr ? 0 : std::min(exchange.events->size(), kEventsMax);
  constexpr std::size_t kFixed = 4 + 4 + 5 * 4 + 2 + 2;  // after the length
  put_u32(out, static_cast<std::uint32_t>(kFixed + received + events * 9));
  put_u32(out, exchange.number);
  put_u8(out, static_cast<std::uint32_t>(exchange.outcome));
  put_u8(out, static_cast<std::uint32_t>(exchange.end));
  put_u8(out, exchange.flags);
  put_u8(out, exchange.steps_done);
  put_u32(out, exchange.connect_us);
  put_u32(out, exchange.first_us);
  put_u32(out, exchange.end_us);
  put_u32(out, exchange.sent);
  put_u32(out, static_cast<std::uint32_t>(received));
  put_u16(out, static_cast<std::uint32_t>(events));
  put_u16(out, exchange.final_responses);
  out->append(exchange.received.substr(0, received));
  for (std::size_t i = 0; i < events; ++i) {
    const ProbeEvent& event = (*exchange.events)[i];
    put_u8(out, static_cast<std::uint32_t>(event.kind));
    put_u32(out, event.at_us);
    put_u32(out, event.octets);
  }
}

}  // namespace httpmark
