// What hangs off a connection while a request is incomplete or output unsent. All of it lies in the
// arena.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string_view>

#include "app/content_reader.hpp"
#include "app/mailbox.hpp"
#include "app/router.hpp"
#include "http/chunked.hpp"
#include "http/framing.hpp"
#include "http/parser.hpp"
#include "http/response.hpp"
#include "net/arena.hpp"

namespace httpmark {

// A growing run of bytes in the arena.
struct Buffer {
    char* data = nullptr;
    std::size_t size = 0;
    std::size_t capacity = 0;

    bool append(Arena& arena, std::string_view octets) {
        if (octets.empty()) return true;
        if (!reserve(arena, size + octets.size())) return false;
        std::memcpy(data + size, octets.data(), octets.size());
        size += octets.size();
        return true;
    }
    bool reserve(Arena& arena, std::size_t wanted) {
        if (wanted <= capacity) return true;
        std::size_t grown_capacity = 0;
        char* const grown = arena.allocate(std::max(wanted, capacity * 2), grown_capacity);
        if (grown == nullptr) return false;
        if (size != 0) std::memcpy(grown, data, size);
        arena.release(data, capacity);
        data = grown;
        capacity = grown_capacity;
        return true;
    }
    void release(Arena& arena) {
        arena.release(data, capacity);
        *this = Buffer();
    }
    std::string_view view() const { return {data, size}; }
};
// A request that is not all there yet, or whose answer is due later.
struct Exchange {
    static constexpr std::uint64_t kNever = ~std::uint64_t{0};
    enum class Stage : std::uint8_t { kHead, kBody, kWaiting, kPaused, kParked };

    Stage stage = Stage::kHead;
    bool continue_due = false;  // a 100 waits for the end of a pause
    bool answered = false;      // the rest of the content is only read to stay in step
    const Route* route = nullptr;
    std::uint32_t head_size = 0;
    std::size_t block_capacity = 0;
    Framing framing;
    std::uint64_t body_left = 0;
    std::uint64_t body_taken = 0;
    std::uint64_t started_ms = 0;
    std::uint64_t due_ms = 0;  // of a deferred answer; kNever where another thread answers.
                               // Of a pause, when it began.
    HeadParser parser;
    ChunkedDecoder chunked;
    Buffer head;
    Buffer content;
    Buffer trailers;
    std::shared_ptr<WaitingRequest> later;  // where another thread answers
    std::unique_ptr<ContentReader> reader;  // of content that is not gathered
    Buffer parked;  // bytes after this request, received while it could not be left
};

// Bytes that the wire did not take.
struct Output {
    char* data() { return reinterpret_cast<char*>(this) + sizeof(Output); }
    std::size_t capacity = 0;  // of data()
    std::size_t block_capacity = 0;
    std::size_t begin = 0;
    std::size_t end = 0;
    LaterContent later;  // after them
    // On a TLS connection the above is plaintext, and this what is encrypted already and goes
    // first.
    Buffer cipher;
    std::size_t cipher_begin = 0;
};

}  // namespace httpmark
