// Where one response ends and the next begins (RFC 9112 section 6.3), byte by byte, so that the
// probe knows when to go on. It is lenient on purpose (bare LF ends a line, field syntax is not
// looked at): what the bytes are worth is decided by the judge, who reads them again.
#ifndef HTTPMARK_NATIVE_PROBE_RESPONSE_FRAMING_HPP_
#define HTTPMARK_NATIVE_PROBE_RESPONSE_FRAMING_HPP_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace httpmark {

inline constexpr std::size_t kResponseLineBytesMax = 64 * 1024;
inline constexpr std::size_t kResponseHeadBytesMax = 1024 * 1024;

enum class RequestKind : std::uint8_t { kOrdinary, kHead, kConnect };

enum class FramingEvent : std::uint8_t {
    kNeedMore,  // all bytes given are used up
    kHead,      // a header section is complete; say what the request was with begin_body()
    kMessage,   // the response is complete
    kGarbage,   // no HTTP response; nothing more will be recognised
};

class ResponseFraming {
  public:
    ResponseFraming() { reset(); }
    // As for a new connection.
    void reset();

    // Consumes bytes from the front of `*input` up to the next event. kGarbage is told once; after
    // it, and after a response that ends HTTP on this connection (2xx to CONNECT, 101), everything
    // is swallowed with kNeedMore.
    FramingEvent feed(std::string_view* input);
    // To be called after kHead, before the next feed. Tells whether the response is complete with
    // its head (then no kMessage follows for it).
    bool begin_body(RequestKind request);
    // The connection has ended: true when that completes a response (RFC 9112 section 6.3, rule 8).
    bool finish();

    int status() const { return status_; }
    bool is_interim() const { return status_ >= 100 && status_ < 200 && status_ != 101; }
    // In any header section so far: Connection: close, or HTTP/1.0 without keep-alive.
    bool announced_close() const { return announced_close_; }
    bool is_lost() const { return state_ == State::kLost; }
    // At the edge between two messages: what comes now begins a new response.
    bool is_between() const { return state_ == State::kStatusLine && line_.empty(); }

  private:
    enum class State : std::uint8_t {
        kStatusLine,
        kFields,
        kHeadDone,
        kLength,
        kChunkSize,
        kChunkData,
        kChunkEnd,
        kTrailer,
        kUntilClose,
        kLost,
    };

    FramingEvent lose(std::string_view* input);
    // Nothing: go on with the rest of the input.
    std::optional<FramingEvent> feed_content(std::string_view* input);
    std::optional<FramingEvent> feed_line(std::string_view* input);
    std::optional<FramingEvent> read_line(std::string_view* input);
    // Moves bytes into line_ up to LF. True when a line (without its end) is complete.
    bool take_line(std::string_view* input, bool* too_long);
    bool read_status_line();
    void read_field();
    bool read_chunk_size();
    void begin_message();

    State state_ = State::kStatusLine;
    bool announced_close_ = false;
    bool keep_alive_ = false;
    bool is_chunked_ = false;
    bool has_coding_ = false;
    bool has_length_ = false;
    bool bad_length_ = false;
    int minor_version_ = 1;
    int status_ = 0;
    std::uint64_t left_ = 0;
    std::uint64_t length_ = 0;
    std::size_t head_bytes_ = 0;
    std::string line_;
};

}  // namespace httpmark

#endif  // HTTPMARK_NATIVE_PROBE_RESPONSE_FRAMING_HPP_
