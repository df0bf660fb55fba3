// One WebSocket connection after its handshake, RFC 6455 5 to 7, as a state machine: bytes of the
// client in, messages out; frames of the server go to a sink. It answers a Ping by itself, ignores
// a Pong, and does the closing handshake from either side. No sockets, no clock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "websocket/deflate.hpp"
#include "websocket/frames.hpp"
#include "websocket/message_buffer.hpp"
#include "websocket/utf8.hpp"
#include "websocket/violation.hpp"

namespace httpmark::websocket {

// Where frames go: room for exactly that many bytes, which are written at once, or nullptr when
// memory is short.
class FrameSink {
  public:
    virtual char* prepare(std::size_t size) = 0;

  protected:
    ~FrameSink() = default;
};

struct SessionSettings {
    MessageLimits limits;
    DeflateSettings deflate;
};

// What became of something that was to be sent. kYes alone has written anything.
// kFull: too much waits for room on the wire, which only a connection can tell.
enum class Sent : std::uint8_t { kYes, kClosed, kNotUtf8, kTooLong, kCode, kNoMemory, kFull };

// What close() says of a code and a reason, for any connection that is open.
Sent judge_close(std::uint16_t code, std::string_view reason);

// What has come. All views hold until the next receive().
struct Event {
    enum class Kind : std::uint8_t { kMessage, kClosed };
    Kind kind = Kind::kMessage;
    bool is_text = false;
    std::string_view message;
    // Of kClosed: the client's code and reason, kCloseNoCode where its Close frame held none; or,
    // where it broke the protocol, what it was told, with the violation and its offset in the
    // stream. For what is only found after decompression that is the offset of the frame.
    std::uint16_t code = 0;
    std::string_view reason;
    Violation violation = Violation::kNone;
    std::uint64_t offset = 0;
};

class Session {
  public:
    // kClosing: a Close frame was sent, and the client's is awaited. kClosed: nothing more is read
    // or sent, and the server closes the connection (7.1.1).
    enum class State : std::uint8_t { kOpen, kClosing, kClosed };

    // `agreed`: what the handshake negotiated of permessage-deflate. `arena`: memory for
    // messages that come in parts, and for compression.
    Session(FrameSink& sink, const SessionSettings& settings,
            const std::optional<DeflateParameters>& agreed, Arena* arena = nullptr);

    // Takes bytes from the front of `input`, which it changes in place, up to the next event; false
    // when all was taken without one. After a Close frame was sent, messages are discarded.
    bool receive(std::span<char>& input, Event& event);
    // The connection has ended. True with an event when no closing handshake came before.
    bool lost(Event& event);

    Sent send_text(std::string_view message);  // must be UTF-8
    Sent send_binary(std::string_view message);
    Sent ping(std::string_view payload);  // at most kControlMax bytes
    // Starts the closing handshake. The reason is UTF-8 of at most 123 bytes; kCloseNoCode sends
    // neither.
    Sent close(std::uint16_t code, std::string_view reason = {});

    State state() const { return state_; }
    // Bytes taken so far; after a violation found in a frame's head, the offset of the fault.
    std::uint64_t offset() const { return reader_.offset(); }

  private:
    bool data(const FrameReader::Piece& piece, Event& event);
    bool plain_data(const FrameReader::Piece& piece, Event& event);
    bool compressed_data(const FrameReader::Piece& piece, Event& event);
    bool message(const FrameReader::Piece& piece, std::string_view whole, Event& event);
    bool control(const FrameReader::Piece& piece, Event& event);
    bool close_frame(const FrameReader::Piece& piece, Event& event);
    bool fail(Violation violation, std::uint64_t offset, Event& event);
    Sent send(Opcode opcode, std::string_view message);
    bool write(Opcode opcode, bool compressed, std::string_view payload);
    bool write_close(std::uint16_t code, std::string_view reason);

    FrameSink& sink_;
    std::uint64_t message_max_;
    std::uint64_t deflate_min_;
    State state_ = State::kOpen;
    bool message_was_given_ = false;
    Utf8Validator utf8_;  // of the text under way; at a boundary between messages
    FrameReader reader_;
    MessageBuffer message_;  // of a message that is not in one piece
    MessageBuffer payload_;  // of a compressed frame on its way out
    std::optional<MessageInflater> inflater_;
    std::optional<MessageDeflater> deflater_;
};

}  // namespace httpmark::websocket
