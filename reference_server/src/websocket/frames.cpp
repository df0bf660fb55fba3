#include "websocket/frames.hpp"

#include <algorithm>
#include <cstring>

#include "check.hpp"
#include "websocket/mask.hpp"

namespace httpmark::websocket {

namespace {

constexpr unsigned kFin = 0x80;
constexpr unsigned kRsv1 = 0x40;
constexpr unsigned kRsv2And3 = 0x30;
constexpr unsigned kMasked = 0x80;
constexpr unsigned kLength16 = 126;
constexpr unsigned kLength64 = 127;

constexpr bool is_known(unsigned opcode) {
    return opcode <= 0x2 || (opcode >= 0x8 && opcode <= 0xA);
}

}  // namespace

// FIN, the reserved bits, the opcode.
inline Violation FrameReader::first_octet(unsigned char c) {
    const unsigned opcode = c & 0x0FU;
    const bool fin = (c & kFin) != 0;
    const bool rsv1 = (c & kRsv1) != 0;
    if ((c & kRsv2And3) != 0 || (rsv1 && !compressible_)) return Violation::kReservedBit;
    if (!is_known(opcode)) return Violation::kOpcodeUnknown;
    opcode_ = static_cast<Opcode>(opcode);
    // It marks a message, so only its first frame may have it (RFC 7692 6.1).
    if (rsv1 && opcode_ != Opcode::kText && opcode_ != Opcode::kBinary) {
        return Violation::kReservedBit;
    }
    if (is_control(opcode_)) {
        if (!fin) return Violation::kControlFragmented;
    } else if (opcode_ == Opcode::kContinuation) {
        if (!in_message_) return Violation::kContinuationOfNothing;
    } else {
        if (in_message_) return Violation::kMessageNotFinished;
        message_opcode_ = opcode_;
        compressed_ = rsv1;
        message_begins_ = true;
        message_size_ = 0;
        fragments_ = 0;
    }
    if (!is_control(opcode_) && ++fragments_ > limits_.fragments_max) {
        return Violation::kFragmentsTooMany;
    }
    fin_ = fin;
    frame_offset_ = offset_;
    phase_ = Phase::kSecond;
    return Violation::kNone;
}

// Whether a length of this or more may be. A control frame has its own bound; of a compressed
// message, the size is not known yet.
inline Violation FrameReader::judge_length(std::uint64_t at_least) const {
    if (is_control(opcode_)) return Violation::kNone;
    if (at_least > limits_.frame_max) return Violation::kFrameTooLarge;
    if (!compressed_ && at_least > limits_.message_max - message_size_) {
        return Violation::kMessageTooLarge;
    }
    return Violation::kNone;
}

// MASK and the length of seven bits.
inline Violation FrameReader::second_octet(unsigned char c) {
    const unsigned length = c & 0x7FU;
    if ((c & kMasked) == 0) return Violation::kNotMasked;
    if (is_control(opcode_) && length > kControlMax) return Violation::kControlTooLong;
    const bool is_extended = length > kControlMax;
    length_is_wide_ = length == kLength64;
    length_left_ = is_extended ? (length_is_wide_ ? 8 : 2) : 0;
    length_ = is_extended ? 0 : length;
    key_size_ = 0;
    phase_ = is_extended ? Phase::kLength : Phase::kKey;
    return judge_length(length_is_wide_ ? 0x10000 : length);
}

// One byte of an extended length, the most significant first.
Violation FrameReader::length_octet(unsigned char c) {
    if (length_is_wide_ && length_left_ == 8 && c > 0x7F) return Violation::kLengthHighBit;
    length_ = length_ << 8 | c;
    --length_left_;
    // Of eight bytes the first six are zero: two would have been enough.
    const bool is_short =
        length_is_wide_ ? length_left_ == 2 && length_ == 0 : length_left_ == 0 && length_ < 126;
    if (is_short) return Violation::kLengthNotMinimal;
    if (length_left_ == 0) phase_ = Phase::kKey;
    return judge_length(length_ << (8 * length_left_));
}

inline void FrameReader::key_octets(std::span<char>& input) {
    const std::size_t size = std::min(input.size(), sizeof key_ - key_size_);
    std::memcpy(reinterpret_cast<char*>(&key_) + key_size_, input.data(), size);
    input = input.subspan(size);
    offset_ += size;
    key_size_ = static_cast<std::uint8_t>(key_size_ + size);
    if (key_size_ < sizeof key_) return;
    position_ = 0;
    phase_ = Phase::kPayload;
}

// A control frame that came whole is handed out where it stands.
FrameReader::Status FrameReader::control_payload(std::string_view part, Piece& piece) {
    const bool is_whole = part.size() == length_;
    if (!is_whole) std::copy(part.begin(), part.end(), control_.data() + position_);
    position_ += part.size();
    if (position_ < length_) return Status::kNeedMore;
    phase_ = Phase::kFirst;
    const std::string_view whole =
        is_whole ? part : std::string_view(control_.data(), static_cast<std::size_t>(length_));
    piece = {opcode_, false, true, true, whole, offset_ - length_, frame_offset_};
    return Status::kControl;
}

FrameReader::Status FrameReader::payload(std::span<char>& input, Piece& piece) {
    const std::size_t size =
        static_cast<std::size_t>(std::min<std::uint64_t>(input.size(), length_ - position_));
    if (size == 0 && length_ != position_) return Status::kNeedMore;
    apply_mask(input.data(), size, key_, position_);
    const std::string_view part(input.data(), size);
    input = input.subspan(size);
    offset_ += size;
    if (is_control(opcode_)) return control_payload(part, piece);
    position_ += size;
    message_size_ += size;
    const bool frame_ends = position_ == length_;
    const bool ends = frame_ends && fin_;
    piece = {message_opcode_, compressed_,  message_begins_, ends, part,
             offset_ - size,  frame_offset_};
    message_begins_ = false;
    if (frame_ends) {
        phase_ = Phase::kFirst;
        in_message_ = !fin_;
    }
    return Status::kData;
}

FrameReader::Status FrameReader::read(std::span<char>& input, Piece& piece) {
    while (true) {
        if (phase_ == Phase::kPayload) {
            const Status status = payload(input, piece);
            if (status != Status::kNeedMore || input.empty()) return status;
        }
        if (phase_ == Phase::kRejected) return Status::kRejected;
        if (input.empty()) return Status::kNeedMore;
        const unsigned char c = static_cast<unsigned char>(input.front());
        Violation violation = Violation::kNone;
        switch (phase_) {
            case Phase::kFirst:
                violation = first_octet(c);
                break;
            case Phase::kSecond:
                violation = second_octet(c);
                break;
            case Phase::kLength:
                violation = length_octet(c);
                break;
            case Phase::kKey:
                key_octets(input);
                continue;
            default:
                CHECK(false);
        }
        if (violation != Violation::kNone) {
            violation_ = violation;
            phase_ = Phase::kRejected;
            return Status::kRejected;
        }
        input = input.subspan(1);
        ++offset_;
    }
}

std::size_t write_frame_head(char* out, Opcode opcode, bool compressed, std::uint64_t length) {
    const std::size_t size = frame_head_size(length);
    out[0] = static_cast<char>(kFin | (compressed ? kRsv1 : 0U) | static_cast<unsigned>(opcode));
    out[1] = static_cast<char>(size == 2 ? length : (size == 4 ? kLength16 : kLength64));
    for (std::size_t i = 2; i < size; ++i) {
        out[i] = static_cast<char>(length >> (8 * (size - 1 - i)) & 0xFF);
    }
    return size;
}

}  // namespace httpmark::websocket
