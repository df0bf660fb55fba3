// Content of an answer that comes piece by piece, whatever its length.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace httpmark {

struct Field;

// Belongs to one answer and is destroyed when no more will be asked of it: all of it was sent, or
// the connection is gone. It is asked in the thread of the connection's worker, whenever there is
// room on the wire, so that a slow reader holds it back.
class ContentStream {
  public:
    enum class State : std::uint8_t {
        kMore,    // there is more: ask again when there is room
        kLater,   // nothing more for now: ask again when a Waker says so, or perhaps before
        kEnd,     // that was all
        kFailed,  // the rest cannot be had: the connection is closed, and the client can tell
    };
    struct Piece {
        std::size_t size;  // bytes that were written, also with kLater and kEnd
        State state;
    };

    virtual ~ContentStream() = default;
    // Writes the next bytes into `room`, as many as it likes. None with kMore counts as kFailed.
    virtual Piece read(std::span<char> room) = 0;
    // After kEnd, and only where the answer is chunked. They stay as they are until the stream is
    // destroyed. One that would break the framing, or that has no place in trailers (RFC 9110
    // 6.5.1), counts as kFailed.
    virtual std::span<const Field> trailers() { return {}; }
};

}  // namespace httpmark
