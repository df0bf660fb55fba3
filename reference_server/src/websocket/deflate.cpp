#include "websocket/deflate.hpp"

#include <zlib.h>

#include <algorithm>
#include <limits>
#include <new>

#include "check.hpp"

namespace httpmark::websocket {

namespace {

constexpr std::size_t kChunk = 16384;
// The end of what a flush writes: an empty block without compression, less its first bits.
constexpr std::string_view kFlushTail("\x00\x00\xFF\xFF", 4);
constexpr int kBlockEnd = 128;   // of z_stream::data_type: no block is under way
constexpr int kUnusedBits = 63;  // of z_stream::data_type: bits of the last byte
constexpr int kMemoryLevel = 8;
constexpr int kWindowBitsMax = 15;

Bytef* writable(std::string_view octets) {
    return const_cast<Bytef*>(reinterpret_cast<const Bytef*>(octets.data()));
}

// zlib does not say how large a block is that it gives back: that stands before it.
struct BlockHead {
    alignas(16) std::size_t capacity;
};

void* allocate(void* arena, uInt items, uInt size) {
    std::size_t capacity = 0;
    char* const block = static_cast<Arena*>(arena)->allocate(
        sizeof(BlockHead) + std::size_t{items} * size, capacity);
    if (block == nullptr) return nullptr;
    return new (block) BlockHead{capacity} + 1;
}

void release(void* arena, void* block) {
    BlockHead* const head = static_cast<BlockHead*>(block) - 1;
    static_cast<Arena*>(arena)->release(reinterpret_cast<char*>(head), head->capacity);
}

std::unique_ptr<z_stream> new_stream(Arena* arena) {
    std::unique_ptr<z_stream> stream(new (std::nothrow) z_stream());
    if (stream == nullptr || arena == nullptr) return stream;
    stream->opaque = arena;
    stream->zalloc = allocate;
    stream->zfree = release;
    return stream;
}

}  // namespace

MessageInflater::MessageInflater(const DeflateParameters& parameters, Arena* arena)
    : arena_(arena), parameters_(parameters) {}

MessageInflater::~MessageInflater() {
    close();
}

void MessageInflater::close() {
    if (stream_) inflateEnd(stream_.get());
    stream_.reset();
}

bool MessageInflater::open() {
    stream_ = new_stream(arena_);
    if (!stream_) return false;
    // The largest window, whatever was agreed. With a smaller one zlib takes a reference that is
    // farther back only where the same call wrote what it refers to: then the answer would depend
    // on how the message arrives.
    if (inflateInit2(stream_.get(), -kWindowBitsMax) == Z_OK) return true;
    stream_.reset();
    return false;
}

Violation MessageInflater::take(std::string_view piece, MessageBuffer& message,
                                std::uint64_t size_max) {
    if (!stream_ && !open()) return Violation::kNoMemory;
    z_stream& stream = *stream_;
    while (true) {
        // Lengths of zlib are of 32 bits; pieces are not longer than a receive, but may be.
        const std::string_view part = piece.substr(0, std::numeric_limits<uInt>::max());
        const std::size_t room =
            static_cast<std::size_t>(std::min<std::uint64_t>(kChunk, size_max - message.size()));
        // A byte above the limit has its own place: it only shows that there is one.
        Bytef above = 0;
        char* const out = room == 0 ? reinterpret_cast<char*>(&above) : message.prepare(room);
        if (out == nullptr) return Violation::kNoMemory;
        const uInt given = room == 0 ? 1 : static_cast<uInt>(room);
        stream.next_in = writable(part);
        stream.avail_in = static_cast<uInt>(part.size());
        stream.next_out = reinterpret_cast<Bytef*>(out);
        stream.avail_out = given;
        const int result = inflate(&stream, Z_SYNC_FLUSH);
        const uInt made = given - stream.avail_out;
        piece.remove_prefix(part.size() - stream.avail_in);
        if (room == 0 && made != 0) return Violation::kMessageTooLarge;
        message.commit(made);
        if (result == Z_MEM_ERROR) return Violation::kNoMemory;
        if (part.size() != stream.avail_in) at_stream_start_ = false;
        if (result == Z_STREAM_END) {
            // A last block may stand within a message (7.2.3.4); what follows begins anew.
            inflateReset(&stream);
            at_stream_start_ = true;
        } else if (result != Z_OK && result != Z_BUF_ERROR) {
            return Violation::kDeflateSyntax;
        }
        if (piece.empty() && stream.avail_out != 0) return Violation::kNone;
    }
}

Violation MessageInflater::finish(MessageBuffer& message, std::uint64_t size_max) {
    const Violation violation = take(kFlushTail, message, size_max);
    if (violation != Violation::kNone) return violation;
    const int where = stream_->data_type;
    const bool at_block_end = (where & kBlockEnd) != 0 && (where & kUnusedBits) == 0;
    if (!at_stream_start_ && !at_block_end) return Violation::kDeflateNotFinished;
    if (parameters_.client_no_context_takeover) {
        close();
        at_stream_start_ = true;
    }
    return Violation::kNone;
}

MessageDeflater::MessageDeflater(const DeflateParameters& parameters, std::uint8_t level,
                                 Arena* arena)
    : arena_(arena), parameters_(parameters), level_(level) {}

MessageDeflater::~MessageDeflater() {
    close();
}

void MessageDeflater::close() {
    if (stream_) deflateEnd(stream_.get());
    stream_.reset();
}

bool MessageDeflater::open() {
    stream_ = new_stream(arena_);
    if (!stream_) return false;
    // zlib writes no window of 256 bytes. Without references to earlier bytes any window will do.
    const bool refers = parameters_.server_max_window_bits > 8;
    const int bits = refers ? parameters_.server_max_window_bits : 9;
    if (deflateInit2(stream_.get(), level_, Z_DEFLATED, -bits, kMemoryLevel,
                     refers ? Z_DEFAULT_STRATEGY : Z_HUFFMAN_ONLY) == Z_OK)
        return true;
    stream_.reset();
    return false;
}

bool MessageDeflater::deflate(std::string_view message, MessageBuffer& payload) {
    if (message.empty()) return payload.append(std::string_view("\0", 1));  // 7.2.3.6
    if (!stream_ && !open()) return false;
    z_stream& stream = *stream_;
    while (true) {
        const std::string_view part = message.substr(0, std::numeric_limits<uInt>::max());
        char* const out = payload.prepare(kChunk);
        if (out == nullptr) return false;
        stream.next_in = writable(part);
        stream.avail_in = static_cast<uInt>(part.size());
        stream.next_out = reinterpret_cast<Bytef*>(out);
        stream.avail_out = kChunk;
        const bool is_last = part.size() == message.size();
        const int result = ::deflate(&stream, is_last ? Z_SYNC_FLUSH : Z_NO_FLUSH);
        CHECK(result == Z_OK || result == Z_BUF_ERROR);
        payload.commit(kChunk - stream.avail_out);
        message.remove_prefix(part.size() - stream.avail_in);
        if (message.empty() && stream.avail_out != 0) break;
    }
    CHECK(payload.view().ends_with(kFlushTail));
    payload.remove_suffix(kFlushTail.size());
    if (parameters_.server_no_context_takeover) close();
    return true;
}

}  // namespace httpmark::websocket
