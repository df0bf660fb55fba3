// Every bound of the server in one place. A request is refused at the byte that exceeds a limit.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace httpmark {

// What the server tolerates beyond the strictest legal reading.
//   kStrict   the strictest choice the RFCs allow (the default).
//   kRfc      also: up to 8 empty lines before a request-line (RFC 9112 2.2), an empty Host
//             (RFC 9112 3.3), and Content-Length repeated or listed with equal values (RFC
//             9110 8.6).
//   kBrowser  as kRfc, and the bytes  [ ] \ ^ ` { | }  raw in a query, as URL parsers of web
//             browsers send them.
enum class Strictness : std::uint8_t { kStrict, kRfc, kBrowser };

// What the RFCs leave open and strictness does not decide. All are off by default.
struct Choices {
    bool refuse_empty_codings = false;     // empty members of Transfer-Encoding (RFC 9110 5.6.1)
    bool refuse_framing_trailers = false;  // instead of dropping them (RFC 9110 6.5.1)
    bool refuse_repeated_fields = false;   // singletons sent twice (RFC 9110 5.3)
    bool answer_trace = false;             // TRACE is reflected (RFC 9110 9.3.8), else 501
    bool answer_idle = false;              // an idle timeout is told by a 408
};

struct Limits {
    std::uint64_t method_max = 32;
    std::uint64_t target_max = 8192;
    std::uint64_t field_name_max = 256;
    std::uint64_t field_value_max = 8192;
    std::uint64_t field_lines_max = 100;
    std::uint64_t head_max = 32768;
    std::uint64_t body_max = 33554432;
    std::uint64_t request_max = 34603008;
    std::uint64_t chunk_line_max = 2048;
    std::uint64_t chunk_extension_max = 1024;
    std::uint64_t chunk_extensions_max = 16384;
    std::uint64_t trailer_lines_max = 100;
    std::uint64_t trailers_max = 16384;
    std::uint64_t requests_per_connection = 0;
    std::uint64_t pending_output_max = 262144;
    std::uint64_t kernel_unsent_max = 262144;
    std::uint64_t linger_max = 2097152;
    std::uint64_t early_drain_max = 262144;
    std::uint64_t connections_max = 0;
    std::uint64_t memory_max = 268435456;
    std::uint64_t backlog = 4096;
    std::uint64_t accepts_per_wake = 64;
    std::uint64_t idle_timeout_ms = 60000;
    std::uint64_t head_timeout_ms = 10000;
    std::uint64_t body_timeout_ms = 30000;
    std::uint64_t body_rate_min = 1024;
    std::uint64_t handler_timeout_ms = 0;
    std::uint64_t write_timeout_ms = 30000;
    std::uint64_t linger_timeout_ms = 2000;
    std::uint64_t handshake_timeout_ms = 10000;
    std::uint64_t drain_timeout_ms = 30000;
    std::uint64_t frame_max = 8388608;
    std::uint64_t message_max = 8388608;
    std::uint64_t fragments_max = 131072;
    std::uint64_t ping_after_ms = 30000;
    std::uint64_t pong_timeout_ms = 15000;
    std::uint64_t close_timeout_ms = 5000;
};

// One row for each limit. The table of flags is made from it, and --print-limits.
struct LimitRow {
    const char* flag;
    std::uint64_t Limits::*value;
    std::uint64_t lowest;
    std::uint64_t highest;
    const char* outcome;
    const char* meaning;
};

inline constexpr std::uint64_t kMilliseconds = 86400000;  // no timeout is longer than a day

inline constexpr std::array<LimitRow, 37> kLimitTable = {{
    {"method-max", &Limits::method_max, 7, 255, "501", "bytes of a method"},
    {"target-max", &Limits::target_max, 16, 60000, "414", "bytes of a request-target"},
    {"field-name-max", &Limits::field_name_max, 17, 16384, "431", "bytes of a field name"},
    {"field-value-max", &Limits::field_value_max, 16, 60000, "431",
     "bytes of a field value, including the whitespace around it"},
    {"field-lines-max", &Limits::field_lines_max, 1, 1000, "431", "field lines of a request"},
    {"head-max", &Limits::head_max, 128, 65535, "431", "bytes of the request line and the fields"},
    {"body-max", &Limits::body_max, 0, 1ULL << 40, "413", "bytes of decoded content"},
    {"request-max", &Limits::request_max, 1024, 1ULL << 41, "413",
     "bytes of head, content, chunk framing and trailers"},
    {"chunk-line-max", &Limits::chunk_line_max, 16, 16384, "400",
     "bytes of a chunk-size line, including extensions and CRLF"},
    {"chunk-extension-max", &Limits::chunk_extension_max, 0, 16384, "400",
     "bytes of extensions in one chunk-size line"},
    {"chunk-extensions-max", &Limits::chunk_extensions_max, 0, 1ULL << 30, "400",
     "bytes of extensions in all chunk-size lines of a request"},
    {"trailer-lines-max", &Limits::trailer_lines_max, 0, 1000, "431", "trailer lines of a request"},
    {"trailers-max", &Limits::trailers_max, 2, 65535, "431", "bytes of the trailer section"},
    {"requests-per-connection", &Limits::requests_per_connection, 0, 1ULL << 31, "close",
     "requests answered on one connection, 0 for no limit"},
    {"pending-output-max", &Limits::pending_output_max, 65536, 1ULL << 30, "pause",
     "unsent bytes above which a connection is not read"},
    {"kernel-unsent-max", &Limits::kernel_unsent_max, 0, 1ULL << 30, "pause",
     "bytes of a connection that the kernel holds and has not sent, 0 for as many as it likes"},
    {"linger-max", &Limits::linger_max, 0, 1ULL << 30, "close",
     "bytes read and discarded after the last answer (RFC 9112 9.6)"},
    {"early-drain-max", &Limits::early_drain_max, 0, 1ULL << 30, "close",
     "bytes of content read after an answer that did not wait for it"},
    {"connections-max", &Limits::connections_max, 0, 1ULL << 31, "503",
     "open connections, 0 for no limit"},
    {"memory-max", &Limits::memory_max, 1 << 20, 1ULL << 40, "503",
     "bytes held for incomplete requests and unsent answers"},
    {"backlog", &Limits::backlog, 1, 65535, "-", "length of the listening queue"},
    {"accepts-per-wake", &Limits::accepts_per_wake, 1, 4096, "-",
     "connections accepted at a time (epoll only)"},
    {"idle-timeout-ms", &Limits::idle_timeout_ms, 0, kMilliseconds, "close", "between requests"},
    {"head-timeout-ms", &Limits::head_timeout_ms, 0, kMilliseconds, "408",
     "from the first byte of a request to the end of its head"},
    {"body-timeout-ms", &Limits::body_timeout_ms, 0, kMilliseconds, "408",
     "for the content, plus one second for each body-rate-min bytes; 0: no minimum rate either"},
    {"body-rate-min", &Limits::body_rate_min, 0, 1ULL << 30, "408",
     "bytes per second that extend body-timeout-ms"},
    {"handler-timeout-ms", &Limits::handler_timeout_ms, 0, kMilliseconds, "503",
     "for a handler that answers later"},
    {"write-timeout-ms", &Limits::write_timeout_ms, 0, kMilliseconds, "close",
     "while sending makes no progress"},
    {"linger-timeout-ms", &Limits::linger_timeout_ms, 1, kMilliseconds, "close",
     "between the last answer and the close"},
    {"handshake-timeout-ms", &Limits::handshake_timeout_ms, 0, kMilliseconds, "close",
     "for a TLS handshake"},
    {"drain-timeout-ms", &Limits::drain_timeout_ms, 0, kMilliseconds, "close",
     "for requests in progress after SIGTERM; 0: they are cut off at once"},
    {"frame-max", &Limits::frame_max, 125, 1ULL << 40, "1009",
     "bytes of a WebSocket frame's payload"},
    {"message-max", &Limits::message_max, 1, 1ULL << 40, "1009",
     "bytes of a WebSocket message, decompressed"},
    {"fragments-max", &Limits::fragments_max, 1, 1ULL << 40, "1009",
     "frames of a WebSocket message"},
    {"ping-after-ms", &Limits::ping_after_ms, 0, kMilliseconds, "ping",
     "without a byte from a WebSocket peer; 0: it may be silent for ever"},
    {"pong-timeout-ms", &Limits::pong_timeout_ms, 1, kMilliseconds, "close",
     "from that Ping to the next byte"},
    {"close-timeout-ms", &Limits::close_timeout_ms, 1, kMilliseconds, "close",
     "for the answer to a Close frame"},
}};

// What is taken of a form. A handler may give its own; the size of the whole is body_max.
struct FormLimits {
    std::uint64_t fields_max = 1000;  // pairs of name and value
};
struct MultipartLimits {
    std::uint64_t parts_max = 1000;
    std::uint64_t part_head_max = 4096;  // header section of a part, at most kPartHeadMax
    std::uint64_t part_max = 33554432;   // content of one part
    std::uint64_t preamble_max = 1024;   // before the first delimiter
    std::uint64_t epilogue_max = 1024;   // after the last one
};

// Sizes that no flag changes.
inline constexpr std::size_t kReceiveBufferSize = 64 * 1024;
inline constexpr std::size_t kOutputScratchSize = 128 * 1024;
inline constexpr std::size_t kSentInTurnMax = 2 * 1024 * 1024;  // of one connection, at a time
inline constexpr std::size_t kTlsRecordMax = 16384;             // RFC 8446 5.1
// What a receive decrypts to: its own bytes and a record begun before.
inline constexpr std::size_t kPlainBufferSize = kReceiveBufferSize + 2 * kTlsRecordMax;
// A whole scratch as records, and room for what a handshake or an alert adds.
inline constexpr std::size_t kCipherBufferSize = kOutputScratchSize + 64 * 1024;
inline constexpr std::size_t kHeadStep = 256;  // of what follows an incomplete head, at first
inline constexpr std::size_t kParkedMax = 1024 * 1024;  // kept of one connection unread
inline constexpr std::size_t kSmallReplyMax = 2048;  // room kept free before a request is answered
inline constexpr std::size_t kWorkerStackSize = 256 * 1024;
inline constexpr std::size_t kBoundaryMax = 70;  // RFC 2046 5.1.1
inline constexpr std::size_t kPartHeadMax = 4096;
inline constexpr std::size_t kTransportPaddingMax = 64;     // blanks after a delimiter of multipart
inline constexpr std::size_t kMediaTypeParametersMax = 16;  // of a media type
inline constexpr std::size_t kJsonDepthMax = 64;
inline constexpr std::size_t kCookieNameAndValueMax = 4096;  // RFC 6265bis 5.6
inline constexpr std::size_t kCookieAttributeMax = 1024;
inline constexpr std::uint64_t kCodedContentMin = 1024;  // smaller content is not worth a coding
inline constexpr std::uint64_t kDecodedContentMax = 33554432;  // where a route says nothing else
inline constexpr int kCodingLevel = 6;                         // of zlib
inline constexpr std::uint32_t kTickMs = 64;
inline constexpr std::uint32_t kIdleLookedAt = 64;  // connections, in search of one to close
inline constexpr unsigned kWorkersMax = 256;

}  // namespace httpmark
