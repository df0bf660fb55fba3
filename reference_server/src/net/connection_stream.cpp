// Content that is asked of a stream while it is sent, and what wakes one that had nothing.
#include <algorithm>
#include <cstring>
#include <memory>
#include <string_view>

#include "app/waker.hpp"
#include "http/chunked.hpp"
#include "net/asking.hpp"
#include "net/connection.hpp"
#include "net/exchange.hpp"

namespace httpmark {

namespace {

constexpr std::string_view kLineEnd = "\r\n";
constexpr std::string_view kSeparator = ": ";
constexpr std::string_view kLastChunk = "0\r\n";
constexpr std::size_t kChunkSizeMax = 6;  // "3e00\r\n"
// A piece, its chunk and the last one fit into a block of 16 KiB and into one TLS record.
constexpr std::size_t kPieceMax = 15872;
constexpr std::size_t kPieceRoom =
    kChunkSizeMax + kPieceMax + 2 * kLineEnd.size() + kLastChunk.size();
static_assert(kPieceMax <= 0xFFFF && kPieceRoom <= kTlsRecordMax);

char* put(char* out, std::string_view text) {
    std::memcpy(out, text.data(), text.size());
    return out + text.size();
}

// Up to `end`, and where it begins.
char* put_chunk_size(char* end, std::size_t size) {
    char* at = end - kLineEnd.size();
    put(at, kLineEnd);
    do {
        *--at = "0123456789abcdef"[size & 15];
        size >>= 4;
    } while (size != 0);
    return at;
}

bool is_trailer(const Field& field) {
    return field_is_safe(field) && !is_forbidden_trailer(field.name);
}

}  // namespace

// The next piece of the stream, framed; false where there is none now, or the stream has failed.
bool Connections::next_piece(Connection& c, std::string_view& octets) {
    if (c.output->later.asleep) return false;
    c.output->begin = c.output->end = 0;
    Output* out = ensure_output(c, kPieceRoom);
    if (out == nullptr || !take_piece(*out)) {
        c.set(Connection::kBroken);
        return false;
    }
    if (out->later.left == 0) {
        const bool chunked = out->later.framing == ContentFraming::kChunks;
        if (chunked && !append_last_chunk(c)) {
            c.set(Connection::kBroken);
            return false;
        }
        out = c.output;
        release_later(*out);
    }
    if (out->begin == out->end) {
        // It may be long until there is more: a block of the least size will do meanwhile.
        if (out->later.asleep && out->cipher.capacity == 0) replace_output(c, 0);
        return false;
    }
    octets = {out->data() + out->begin, out->end - out->begin};
    return true;
}

// Asks the stream. False where it has failed, or has not kept to what it said.
bool Connections::take_piece(Output& out) {
    LaterContent& later = out.later;
    char* const room = out.data() + kChunkSizeMax;
    const auto most = static_cast<std::size_t>(std::min<std::uint64_t>(later.left, kPieceMax));
    ContentStream::Piece piece;
    const Reason reason = reason_of([&] {
        piece = later.stream->read({room, most});
        return Reason::kNone;
    });
    if (reason != Reason::kNone) return false;
    const bool ends = piece.state == ContentStream::State::kEnd;
    if (piece.size > most || piece.state == ContentStream::State::kFailed) return false;
    if (piece.size == 0 && piece.state == ContentStream::State::kMore) return false;
    if (later.framing == ContentFraming::kLength) {
        later.left -= piece.size;
        if (ends && later.left != 0) return false;
    } else if (ends) {
        later.left = 0;
    }
    later.asleep = piece.state == ContentStream::State::kLater && later.left != 0;
    out.begin = kChunkSizeMax;
    out.end = kChunkSizeMax + piece.size;
    if (later.framing == ContentFraming::kChunks && piece.size != 0) {
        out.begin = static_cast<std::size_t>(put_chunk_size(room, piece.size) - out.data());
        put(out.data() + out.end, kLineEnd);
        out.end += kLineEnd.size();
    }
    return true;
}

bool Connections::append_last_chunk(Connection& c) {
    std::span<const Field> trailers;
    const Reason reason = reason_of([&] {
        trailers = c.output->later.stream->trailers();
        return Reason::kNone;
    });
    if (reason != Reason::kNone || !std::all_of(trailers.begin(), trailers.end(), is_trailer))
        return false;
    std::size_t size = kLastChunk.size() + kLineEnd.size();
    for (const Field& field : trailers) {
        size += field.name.size() + kSeparator.size() + field.value.size() + kLineEnd.size();
    }
    Output* const out = ensure_output(c, size);
    if (out == nullptr) return false;
    char* at = put(out->data() + out->end, kLastChunk);
    for (const Field& field : trailers) {
        at = put(put(put(put(at, field.name), kSeparator), field.value), kLineEnd);
    }
    put(at, kLineEnd);
    out->end += size;
    return true;
}

// All that could be sent of a stream has been, and it has no more for now.
bool Connections::is_asleep(const Output& output) {
    return output.later.asleep && output.begin == output.end &&
           output.cipher.size == output.cipher_begin;
}

Waker Connections::waker() {
    return Waker(std::make_shared<Sleeper>(mailbox_, current_id_, slot(current_id_).generation));
}

void Connections::wake_up(Sleeper& sleeper) {
    sleeper.posted.store(false, std::memory_order_release);  // before looking: later calls count
    const std::uint32_t id = sleeper.id;
    if (!is_current(id, sleeper.generation)) return;
    Connection& c = slot(id);
    if (c.state == Connection::State::kUpgraded) {
        call_queue(id);
        return;
    }
    if (c.exchange != nullptr && c.exchange->stage == Exchange::Stage::kPaused) {
        wake_content(id);
        return;
    }
    if (c.output == nullptr || !c.output->later.asleep) return;
    c.output->later.asleep = false;
    if (c.wait == Connection::Wait::kStream) c.wait = Connection::Wait::kNothing;
    current_ = &c;
    current_id_ = id;
    push_output(c);
    resume(id);
}

}  // namespace httpmark
