#include "websocket/session.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "check.hpp"

namespace httpmark::websocket {

namespace {

constexpr std::size_t kReasonMax = kControlMax - 2;

}  // namespace

Sent judge_close(std::uint16_t code, std::string_view reason) {
    if (code != kCloseNoCode ? !may_be_sent(code) : !reason.empty()) return Sent::kCode;
    if (reason.size() > kReasonMax) return Sent::kTooLong;
    return is_utf8(reason) ? Sent::kYes : Sent::kNotUtf8;
}

Session::Session(FrameSink& sink, const SessionSettings& settings,
                 const std::optional<DeflateParameters>& agreed, Arena* arena)
    : sink_(sink),
      message_max_(settings.limits.message_max),
      deflate_min_(settings.deflate.size_min),
      reader_(settings.limits, agreed.has_value()),
      message_(arena),
      payload_(arena) {
    if (!agreed) return;
    inflater_.emplace(*agreed, arena);
    deflater_.emplace(*agreed, settings.deflate.level, arena);
}

// Tells the client, unless a Close frame was sent before, and ends.
bool Session::fail(Violation violation, std::uint64_t offset, Event& event) {
    const ViolationRow& row = violation_row(violation);
    if (state_ == State::kOpen) write_close(row.code, row.name);
    state_ = State::kClosed;
    event = {Event::Kind::kClosed, false, {}, row.code, {}, violation, offset};
    return true;
}

bool Session::message(const FrameReader::Piece& piece, std::string_view whole, Event& event) {
    const bool is_text = piece.opcode == Opcode::kText;
    event = {Event::Kind::kMessage, is_text, whole, 0, {}, Violation::kNone, 0};
    message_was_given_ = true;
    return true;
}

// A message in one piece is handed out where it stands.
bool Session::plain_data(const FrameReader::Piece& piece, Event& event) {
    if (piece.opcode == Opcode::kText) {
        const std::size_t valid = utf8_.take(piece.payload);
        if (valid < piece.payload.size()) {
            return fail(Violation::kTextNotUtf8, piece.offset + valid, event);
        }
        if (piece.ends && !utf8_.at_boundary()) {
            return fail(Violation::kTextNotUtf8, reader_.offset() - 1, event);
        }
    }
    if (piece.begins && piece.ends) return message(piece, piece.payload, event);
    if (!message_.append(piece.payload)) {
        return fail(Violation::kNoMemory, piece.frame_offset, event);
    }
    return piece.ends && message(piece, message_.view(), event);
}

// Text that cannot be valid comes before the fault that is found behind it.
bool Session::compressed_data(const FrameReader::Piece& piece, Event& event) {
    const std::uint64_t size_max = message_max_;
    const std::size_t before = message_.size();
    Violation violation = inflater_->take(piece.payload, message_, size_max);
    if (violation == Violation::kNone && piece.ends) {
        violation = inflater_->finish(message_, size_max);
    }
    if (piece.opcode == Opcode::kText) {
        const std::string_view fresh = message_.view().substr(before);
        const bool is_valid = utf8_.take(fresh) == fresh.size();
        const bool is_cut = violation == Violation::kNone && piece.ends && !utf8_.at_boundary();
        if (!is_valid || is_cut) violation = Violation::kTextNotUtf8;
    }
    if (violation != Violation::kNone) return fail(violation, piece.frame_offset, event);
    return piece.ends && message(piece, message_.view(), event);
}

bool Session::data(const FrameReader::Piece& piece, Event& event) {
    if (state_ != State::kOpen) return false;
    return piece.compressed ? compressed_data(piece, event) : plain_data(piece, event);
}

// The code and the reason of a Close frame (5.5.1, 7.4), and its answer.
bool Session::close_frame(const FrameReader::Piece& piece, Event& event) {
    const std::string_view payload = piece.payload;
    unsigned code = kCloseNoCode;
    std::string_view reason;
    if (payload.size() == 1) return fail(Violation::kCloseTooShort, piece.offset, event);
    if (!payload.empty()) {
        code =
            static_cast<unsigned char>(payload[0]) * 256U + static_cast<unsigned char>(payload[1]);
        if (!may_be_received(code)) return fail(Violation::kCloseCode, piece.offset, event);
        reason = payload.substr(2);
        Utf8Validator validator;
        const std::size_t valid = validator.take(reason);
        if (valid < reason.size()) {
            return fail(Violation::kCloseReasonNotUtf8, piece.offset + 2 + valid, event);
        }
        if (!validator.at_boundary()) {
            return fail(Violation::kCloseReasonNotUtf8, reader_.offset() - 1, event);
        }
    }
    // Without memory for the answer, the connection ends all the same.
    if (state_ == State::kOpen) write(Opcode::kClose, false, payload.substr(0, 2));
    state_ = State::kClosed;
    event = {Event::Kind::kClosed, false, {}, static_cast<std::uint16_t>(code), reason,
             Violation::kNone,     0};
    return true;
}

bool Session::control(const FrameReader::Piece& piece, Event& event) {
    if (piece.opcode == Opcode::kClose) return close_frame(piece, event);
    if (piece.opcode == Opcode::kPong || state_ != State::kOpen) return false;
    if (write(Opcode::kPong, false, piece.payload)) return false;
    return fail(Violation::kNoMemory, piece.frame_offset, event);
}

bool Session::receive(std::span<char>& input, Event& event) {
    if (message_was_given_) message_.clear();
    message_was_given_ = false;
    while (state_ != State::kClosed) {
        FrameReader::Piece piece;
        switch (reader_.read(input, piece)) {
            case FrameReader::Status::kNeedMore:
                return false;
            case FrameReader::Status::kData:
                if (data(piece, event)) return true;
                break;
            case FrameReader::Status::kControl:
                if (control(piece, event)) return true;
                break;
            case FrameReader::Status::kRejected:
                return fail(reader_.violation(), reader_.offset(), event);
        }
    }
    input = {};
    return false;
}

bool Session::lost(Event& event) {
    if (state_ == State::kClosed) return false;
    state_ = State::kClosed;
    event = {Event::Kind::kClosed, false, {}, kCloseAbnormal, {}, Violation::kNone, 0};
    return true;
}

bool Session::write(Opcode opcode, bool compressed, std::string_view payload) {
    const std::size_t head = frame_head_size(payload.size());
    char* const out = sink_.prepare(head + payload.size());
    if (out == nullptr) return false;
    write_frame_head(out, opcode, compressed, payload.size());
    std::copy(payload.begin(), payload.end(), out + head);
    return true;
}

bool Session::write_close(std::uint16_t code, std::string_view reason) {
    std::array<char, kControlMax> payload;
    CHECK(reason.size() <= kReasonMax);
    payload[0] = static_cast<char>(code >> 8);
    payload[1] = static_cast<char>(code & 0xFF);
    std::copy(reason.begin(), reason.end(), payload.begin() + 2);
    return write(Opcode::kClose, false, {payload.data(), 2 + reason.size()});
}

Sent Session::send(Opcode opcode, std::string_view message) {
    if (state_ != State::kOpen) return Sent::kClosed;
    if (!deflater_ || message.size() < deflate_min_) {
        return write(opcode, false, message) ? Sent::kYes : Sent::kNoMemory;
    }
    const bool is_sent =
        deflater_->deflate(message, payload_) && write(opcode, true, payload_.view());
    payload_.clear();
    // Later messages would refer to one that the client does not know. They go as they are.
    if (!is_sent) deflater_.reset();
    return is_sent ? Sent::kYes : Sent::kNoMemory;
}

Sent Session::send_text(std::string_view message) {
    return is_utf8(message) ? send(Opcode::kText, message) : Sent::kNotUtf8;
}

Sent Session::send_binary(std::string_view message) {
    return send(Opcode::kBinary, message);
}

Sent Session::ping(std::string_view payload) {
    if (state_ != State::kOpen) return Sent::kClosed;
    if (payload.size() > kControlMax) return Sent::kTooLong;
    return write(Opcode::kPing, false, payload) ? Sent::kYes : Sent::kNoMemory;
}

Sent Session::close(std::uint16_t code, std::string_view reason) {
    if (state_ != State::kOpen) return Sent::kClosed;
    const Sent fault = judge_close(code, reason);
    if (fault != Sent::kYes) return fault;
    const bool has_code = code != kCloseNoCode;
    const bool is_sent = has_code ? write_close(code, reason) : write(Opcode::kClose, false, {});
    if (!is_sent) return Sent::kNoMemory;
    state_ = State::kClosing;
    return Sent::kYes;
}

}  // namespace httpmark::websocket
