// What goes in and out of httpmark-probe. All numbers little endian.
//
// Case frame (standard input):
//   u32 length          of all that follows
//   u32 number          comes back in the exchange; need not be in order
//   u32 deadline_ms     for the whole case, from the beginning of the connect; at least 1; when it
//                       expires the case ends as it stands
//   u32 settle_ms       after the last step go on reading this long, for surplus octets or a close;
//                       0 = do not
//   u32 close_ms        after the last step, when an answer announced close (Connection: close, or
//                       HTTP/1.0 without keep-alive), wait so long for the server's FIN; the longer
//                       of settle_ms and close_ms counts then
//   u8  flags           1 = an AWAIT is satisfied by the end of a header section, the body is not
//                       waited for; 2 = record events
//   u8  0
//   u16 step count, then the steps:
//     u8 op | u32 n | payload
//     op bit 0x80: only if the connection is still open both ways and no answer so far announced
//     close; skipped otherwise (a skipped step counts as done)
//     op bit 0x40: only if no final response has come so far; skipped otherwise
//       1 SEND        the n octets that follow; one write where the kernel takes it whole
//       2 PAUSE       n ms; what arrives meanwhile is read
//       3 AWAIT       one further final response for at most n ms; payload u8 kind: 0 ordinary,
//                     1 the request was HEAD, 2 it was CONNECT, 3 any response, interim ones too;
//                     4 and 5 wait for a final or for any response and leave it to a later AWAIT.
//                     Also over when the server closes. Running out of n is no error.
//                     101 is final: what follows it is no HTTP/1.1.
//       4 FIN         shutdown of the sending side
//       5 RESET       close with SO_LINGER 0; ends the case
//       6 WATCH       read for n ms or until FIN or RST
//       7 CLOSE_WAIT  read until FIN or RST, at most n ms
//
// Exchange frame (standard output, in any order):
//   u32 length          of all that follows
//   u32 number
//   u8  outcome         0 answered: at least one octet came; 1 closed: FIN without an octet; 2
//   reset:
//                       RST without an octet; 3 hung: nothing by the end; 4 refused: no connection
//                       (deadline flag set: the connect never came to an end)
//   u8  end             0 still open when the probe closed it, 1 FIN, 2 RST
//   u8  flags           1 = not everything was sent, because the connection ended; 2 = the deadline
//                       expired before the steps were done; 4 = an AWAIT ran out; 8 = an answer
//                       announced close; 16 = more was received than is kept (kReceivedBytesMax)
//   u8  steps done      255 stands for 255 and more
//   u32 connect_us      from the beginning of the connect to the connection
//   u32 first_us        from the first send to the first octet; 0xffffffff = none
//   u32 end_us          from the beginning of the connect to the end of the case
//   u32 sent octets
//   u32 N               octets received and kept
//   u16 E               number of events
//   u16 final responses seen: complete ones (with case flag 1: complete header sections)
//   N octets
//   E times u8 kind (1 sent, 2 received, 3 FIN seen, 4 RST seen, 5 own FIN, 6 close_notify seen) |
//   u32 us since the beginning of the connect | u32 octets
#ifndef HTTPMARK_NATIVE_PROBE_FRAMES_HPP_
#define HTTPMARK_NATIVE_PROBE_FRAMES_HPP_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace httpmark {

inline constexpr std::size_t kCaseBytesMax = std::size_t{256} << 20;
inline constexpr std::size_t kReceivedBytesMax = std::size_t{4} << 20;
inline constexpr std::size_t kEventsMax = 65535;
inline constexpr std::uint32_t kNever = 0xffffffff;

enum class StepOp : std::uint8_t {
  kSend = 1,
  kPause = 2,
  kAwait = 3,
  kFin = 4,
  kReset = 5,
  kWatch = 6,
  kCloseWait = 7,
};
inline constexpr std::uint8_t kStepIfOpen = 0x80;
inline constexpr std::uint8_t kStepIfUnanswered = 0x40;

enum class AwaitKind : std::uint8_t {
  kOrdinary = 0,
  kHead = 1,
  kConnect = 2,
  kAny = 3,
  kLookFinal = 4,
  kLookAny = 5,
};

inline constexpr std::uint8_t kCaseHeadersOnly = 1;
inline constexpr std::uint8_t kCaseEvents = 2;

struct ProbeStep {
  StepOp op = StepOp::kSend;
  bool if_open = false;
  bool if_unanswered = false;
  AwaitKind kind = AwaitKind::kOrdinary;
  std::uint32_t n = 0;     // octets of a SEND, else milliseconds
  std::size_t offset = 0;  // of a SEND's octets in ProbeCase::octets
};

struct ProbeCase {
  std::uint32_t number = 0;
  std::uint32_t deadline_ms = 0;
  std::uint32_t settle_ms = 0;
  std::uint32_t close_ms = 0;
  std::uint8_t flags = 0;
  std::vector<ProbeStep> steps;
  std::string octets;  // of all SENDs, one behind the other
};

enum class Outcome : std::uint8_t {
  kAnswered = 0,
  kClosed = 1,
  kReset = 2,
  kHung = 3,
  kRefused = 4,
};
enum class End : std::uint8_t { kOpen = 0, kFin = 1, kRst = 2 };

inline constexpr std::uint8_t kExchangeUnsent = 1;
inline constexpr std::uint8_t kExchangeDeadline = 2;
inline constexpr std::uint8_t kExchangeAwaitRanOut = 4;
inline constexpr std::uint8_t kExchangeAnnouncedClose = 8;
inline constexpr std::uint8_t kExchangeCut = 16;

enum class EventKind : std::uint8_t {
  kSent = 1,
  kReceived = 2,
  kFin = 3,
  kRst = 4,
  kOwnFin = 5,
  kCloseNotify = 6
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
  std::string_view received;
  const std::vector<ProbeEvent>* events = nullptr;
};

enum class FrameResult { kCase, kNeedMore, kMalformed };

// Takes one case frame from the front of `input`. kCase: `*used` octets are done with. kMalformed:
// `*complaint` says why, in one line.
FrameResult decode_case(std::string_view input, std::size_t* used, ProbeCase* out,
                        std::string* complaint);

void encode_exchange(const ProbeExchange& exchange, std::string* out);

}  // namespace httpmark

#endif  // HTTPMARK_NATIVE_PROBE_FRAMES_HPP_
