// Frames, RFC 6455 5: what a client sends is read in pieces, what the server sends is given its
// head.
//
// The verdict is a pure function of the bytes seen so far, wherever they were cut. A fault of
// syntax is raised at the byte that makes the frame hopeless, a limit at the first byte of a length
// that cannot be below it any more; at one byte syntax wins.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "websocket/violation.hpp"

namespace httpmark::websocket {

enum class Opcode : std::uint8_t {
    kContinuation = 0x0,
    kText = 0x1,
    kBinary = 0x2,
    kClose = 0x8,
    kPing = 0x9,
    kPong = 0xA,
};

inline constexpr std::size_t kControlMax = 125;

constexpr bool is_control(Opcode opcode) {
    return opcode >= Opcode::kClose;
}

struct MessageLimits {
    std::uint64_t frame_max = 8388608;     // bytes of a frame's payload as it is sent
    std::uint64_t message_max = 8388608;   // bytes of a message, decompressed
    std::uint64_t fragments_max = 131072;  // frames of a message
};

class FrameReader {
  public:
    enum class Status : std::uint8_t { kNeedMore, kData, kControl, kRejected };

    // Data comes as it arrives, at least one piece for each frame; what a control frame holds comes
    // whole.
    struct Piece {
        Opcode opcode = Opcode::kContinuation;  // of continuations: the one of their message
        bool compressed = false;                // RSV1 of the message's first frame (RFC 7692 6)
        bool begins = false;                    // the first piece of its message
        bool ends = false;                      // the last one
        std::string_view payload;               // unmasked
        std::uint64_t offset = 0;               // of the payload's first byte in the stream
        std::uint64_t frame_offset = 0;         // of its frame
    };

    // `compressible`: permessage-deflate was negotiated, so a message may have RSV1.
    FrameReader(const MessageLimits& limits, bool compressible)
        : limits_(limits), compressible_(compressible) {}

    // Takes bytes from the front of `input` and unmasks payload there, in place. kData and kControl
    // hand out a piece, which points into `input` or, where a control frame came in several parts,
    // into the reader. kNeedMore means all was taken.
    Status read(std::span<char>& input, Piece& piece);

    Violation violation() const { return violation_; }
    // Bytes taken so far; on kRejected, the offset of the fault.
    std::uint64_t offset() const { return offset_; }

  private:
    enum class Phase : std::uint8_t { kFirst, kSecond, kLength, kKey, kPayload, kRejected };

    Violation first_octet(unsigned char c);
    Violation second_octet(unsigned char c);
    Violation length_octet(unsigned char c);
    Violation judge_length(std::uint64_t at_least) const;
    void key_octets(std::span<char>& input);
    Status payload(std::span<char>& input, Piece& piece);
    Status control_payload(std::string_view part, Piece& piece);

    MessageLimits limits_;
    bool compressible_;
    bool in_message_ = false;  // a fragmented message is under way
    bool message_begins_ = false;
    bool fin_ = false;
    bool compressed_ = false;
    Opcode opcode_ = Opcode::kContinuation;
    Opcode message_opcode_ = Opcode::kContinuation;
    Phase phase_ = Phase::kFirst;
    Violation violation_ = Violation::kNone;
    std::uint8_t length_left_ = 0;  // bytes of the extended length that are still to come
    bool length_is_wide_ = false;   // it has eight
    std::uint8_t key_size_ = 0;
    std::uint32_t key_ = 0;
    std::uint64_t length_ = 0;
    std::uint64_t position_ = 0;  // bytes of the payload taken
    std::uint64_t message_size_ = 0;
    std::uint64_t fragments_ = 0;  // frames of the message under way
    std::uint64_t offset_ = 0;
    std::uint64_t frame_offset_ = 0;
    std::array<char, kControlMax> control_;
};

// Frames of a server are never masked (RFC 6455 5.1) and, here, never fragmented.
inline constexpr std::size_t kFrameHeadMax = 10;

// The shortest encoding of the length is the only one there is (5.2).
constexpr std::size_t frame_head_size(std::uint64_t length) {
    return length <= kControlMax ? 2 : (length <= 0xFFFF ? 4 : 10);
}

// Writes frame_head_size(length) bytes to `out`, which it returns.
std::size_t write_frame_head(char* out, Opcode opcode, bool compressed, std::uint64_t length);

}  // namespace httpmark::websocket
