#include "websocket/deflate.hpp"

#include <zlib.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "laws.hpp"

namespace httpmark::websocket {
namespace {

struct Inflated {
    Violation violation = Violation::kNone;
    std::string message;
    bool operator==(const Inflated&) const = default;
};

Inflated inflate(MessageInflater& inflater, std::string_view payload, std::size_t cut,
                 std::size_t step, std::uint64_t size_max) {
    Inflated out;
    MessageBuffer message;
    std::size_t size = cut;
    do {
        // In memory of its own, which ends where the part does.
        const std::string part(payload.substr(0, size));
        payload.remove_prefix(part.size());
        out.violation = inflater.take(part, message, size_max);
        size = step;
    } while (out.violation == Violation::kNone && !payload.empty());
    if (out.violation == Violation::kNone) out.violation = inflater.finish(message, size_max);
    LAW(message.size() <= size_max);
    out.message = message.view();
    return out;
}

Inflated inflate_every_way(std::string_view payload, std::uint64_t size_max = 1U << 20) {
    const std::size_t all = payload.size() + 1;
    const auto anew = [&](std::size_t cut, std::size_t step) {
        MessageInflater inflater{DeflateParameters()};
        return inflate(inflater, payload, cut, step, size_max);
    };
    const Inflated whole = anew(all, all);
    LAW(anew(1, 1) == whole, << visible(payload));
    for (std::size_t cut = 0; cut < std::min<std::size_t>(payload.size(), 300); ++cut) {
        LAW(anew(cut, all) == whole, << visible(payload) << " cut at " << cut);
    }
    return whole;
}

std::string deflated(MessageDeflater& deflater, std::string_view message) {
    MessageBuffer payload;
    LAW(deflater.deflate(message, payload));
    return std::string(payload.view());
}

// RFC 7692 7.2.3, payload by payload.
TEST(Deflate, the_examples_of_the_rfc) {
    struct Row {
        const char* title;
        std::string_view payload;
        const char* message;
    };
    for (const Row& row : {
             Row{"one block", {"\xF2\x48\xCD\xC9\xC9\x07\x00", 7}, "Hello"},
             Row{"no compression", {"\x00\x05\x00\xFA\xFF\x48\x65\x6C\x6C\x6F\x00", 11}, "Hello"},
             Row{"a last block", {"\xF3\x48\xCD\xC9\xC9\x07\x00\x00", 8}, "Hello"},
             Row{"two blocks",
                 {"\xF2\x48\x05\x00\x00\x00\xFF\xFF\xCA\xC9\xC9\x07\x00", 13},
                 "Hello"},
             Row{"nothing", {"\x00", 1}, ""},
             Row{"a last block that is empty", {"\x01", 1}, ""},
         }) {
        const Inflated out = inflate_every_way(row.payload);
        LAW(out.violation == Violation::kNone && out.message == row.message, << row.title);
    }
    // 7.2.3.2: the second message refers to the first.
    MessageInflater inflater{DeflateParameters()};
    LAW(inflate(inflater, {"\xF2\x48\xCD\xC9\xC9\x07\x00", 7}, 9, 9, 99).message == "Hello");
    LAW(inflate(inflater, {"\xF2\x00\x11\x00\x00", 5}, 9, 9, 99).message == "Hello");
    MessageDeflater deflater({}, 6);
    LAW(deflated(deflater, "Hello") == std::string_view("\xF2\x48\xCD\xC9\xC9\x07\x00", 7));
    LAW(deflated(deflater, "Hello") == std::string_view("\xF2\x00\x11\x00\x00", 5));
    LAW(deflated(deflater, "") == std::string_view("\0", 1));
    LAW(deflated(deflater, "") == std::string_view("\0", 1));
}

TEST(Deflate, without_takeover_no_message_refers_to_another) {
    const DeflateParameters forgets{true, true, 15, 15};
    MessageDeflater deflater(forgets, 6);
    const std::string first = deflated(deflater, "Hello");
    LAW(deflated(deflater, "Hello") == first);
    MessageInflater inflater(forgets);
    LAW(inflate(inflater, first, 9, 9, 99).message == "Hello");
    const Inflated refers = inflate(inflater, {"\xF2\x00\x11\x00\x00", 5}, 9, 9, 99);
    LAW(refers.violation == Violation::kDeflateSyntax, << violation_row(refers.violation).name);
}

std::string message_of(std::size_t size, unsigned seed) {
    Random random(seed);
    std::string out;
    while (out.size() < size) {
        out += seed % 2 == 0 ? "item " + std::to_string(random() % 100) + "; "
                             : std::string(1, static_cast<char>(random()));
    }
    return out.substr(0, size);
}

// A client that keeps no more than its window: zlib is asked for one byte at a time, so that it
// remembers nothing else.
class NarrowClient {
  public:
    explicit NarrowClient(std::uint8_t bits) {
        LAW(inflateInit2(&stream_, -static_cast<int>(bits)) == Z_OK);
    }
    ~NarrowClient() { inflateEnd(&stream_); }
    NarrowClient(const NarrowClient&) = delete;
    NarrowClient& operator=(const NarrowClient&) = delete;
    // The message, or what came before a reference that goes too far.
    std::string message(std::string payload) {
        payload.append("\0\0\xFF\xFF", 4);
        stream_.next_in = reinterpret_cast<Bytef*>(payload.data());
        stream_.avail_in = static_cast<uInt>(payload.size());
        std::string out;
        while (true) {
            Bytef octet = 0;
            stream_.next_out = &octet;
            stream_.avail_out = 1;
            const int result = ::inflate(&stream_, Z_SYNC_FLUSH);
            if (stream_.avail_out == 0) out += static_cast<char>(octet);
            if (result == Z_DATA_ERROR || stream_.avail_out != 0) return out;
        }
    }

  private:
    z_stream stream_{};
};

// Whatever is compressed with a window is read by one who keeps no more than that.
TEST(Deflate, every_window_every_size) {
    for (std::uint8_t bits = 8; bits <= 15; ++bits) {
        for (const bool forgets : {false, true}) {
            const DeflateParameters parameters{forgets, forgets, bits, bits};
            MessageDeflater deflater(parameters, 9);
            MessageInflater inflater(parameters);
            NarrowClient client(bits);
            unsigned seed = 0;
            for (const std::size_t size :
                 {0U, 1U, 2U, 63U, 300U, 0U, 5000U, 70000U, 100U, 40000U}) {
                const std::string message = message_of(size, ++seed);
                const std::string payload = deflated(deflater, message);
                const std::size_t step = 1 + size / 9;
                const Inflated out = inflate(inflater, payload, 3, step, 70000);
                LAW(out.violation == Violation::kNone && out.message == message,
                    << static_cast<unsigned>(bits) << " " << size);
                LAW(client.message(payload) == message,
                    << static_cast<unsigned>(bits) << " " << size);
            }
        }
    }
}

// A client that was asked for a small window and keeps a larger one is understood all the same,
// in one piece as in many.
TEST(Deflate, a_reference_beyond_the_window_has_one_verdict) {
    const std::string part = message_of(2000, 1);
    MessageDeflater deflater({}, 9);
    const std::string payload = deflated(deflater, part + part);
    const std::string narrow = NarrowClient(9).message(payload);
    LAW(narrow.starts_with(part) && narrow.size() < 2100, << narrow.size());
    for (const std::size_t step : {std::size_t{1}, std::size_t{7}, payload.size()}) {
        MessageInflater inflater({false, false, 9, 9});
        const Inflated out = inflate(inflater, payload, step, step, 4000);
        LAW(out.violation == Violation::kNone && out.message == part + part, << step);
    }
}

// No decompressor sees a reference that goes too far while its output is in one piece; what is sent
// for a window of 256 bytes has none: each byte costs a bit at least.
TEST(Deflate, for_the_smallest_window_nothing_is_a_reference) {
    const std::string message(4096, 'x');
    MessageDeflater smallest({false, false, 8, 15}, 9);
    LAW(deflated(smallest, message).size() >= message.size() / 8);
    MessageDeflater next({false, false, 9, 15}, 9);
    LAW(deflated(next, message).size() < 100);
}

// One byte above the limit, and not one below it, at chunks of the decompressor and around them.
TEST(Deflate, the_limit_is_exact) {
    for (const std::size_t size : {1U, 2U, 100U, 16383U, 16384U, 16385U, 32768U, 50000U}) {
        MessageDeflater deflater({}, 9);
        const std::string message(size, 'x');
        const std::string payload = deflated(deflater, message);
        const Inflated fits = inflate_every_way(payload, size);
        LAW(fits.violation == Violation::kNone && fits.message == message, << size);
        const Inflated over = inflate_every_way(payload, size - 1);
        LAW(over.violation == Violation::kMessageTooLarge && over.message.size() == size - 1,
            << size);
    }
    LAW(inflate_every_way({"\0", 1}, 0).violation == Violation::kNone);
}

TEST(Deflate, a_bomb_costs_no_more_than_the_limit) {
    MessageDeflater deflater({}, 9);
    MessageBuffer payload;
    LAW(deflater.deflate(std::string(std::size_t{64} << 20, '\0'), payload));
    LAW(payload.size() < 70000);
    MessageInflater inflater{DeflateParameters()};
    MessageBuffer message;
    LAW(inflater.take(payload.view(), message, 100000) == Violation::kMessageTooLarge);
    LAW(message.size() == 100000 && message.capacity() <= 262144, << message.capacity());
}

// A message stops where a block does.
TEST(Deflate, what_is_cut_is_refused) {
    MessageDeflater deflater({}, 6);
    const std::string payload = deflated(deflater, message_of(300, 2));
    for (std::size_t size = 1; size < payload.size() - 1; ++size) {
        const Inflated out = inflate_every_way(payload.substr(0, size));
        LAW(out.violation == Violation::kDeflateNotFinished ||
                out.violation == Violation::kDeflateSyntax,
            << size << " " << out.message);
    }
    LAW(inflate_every_way("").violation == Violation::kDeflateNotFinished ||
        inflate_every_way("").message.empty());
    // A last block that ends the message, and is followed by nothing that could end a frame.
    LAW(inflate_every_way({"\xF3\x48\xCD\xC9\xC9\x07\x00", 7}).violation ==
        Violation::kDeflateNotFinished);
}

class BitWriter {
  public:
    void number(unsigned value, unsigned bits) {
        for (unsigned i = 0; i < bits; ++i) bit(value >> i & 1);
    }
    // Huffman codes have their first bit first.
    void code(unsigned value, unsigned bits) {
        for (unsigned i = bits; i > 0; --i) bit(value >> (i - 1) & 1);
    }
    std::string octets;

  private:
    void bit(unsigned value) {
        if (used_++ % 8 == 0) octets += '\0';
        octets.back() =
            static_cast<char>(static_cast<unsigned char>(octets.back()) | value << (used_ - 1) % 8);
    }
    unsigned used_ = 0;
};

// A block of RFC 1951 3.2.7 whose end is the code of 15 ones: 16 come with 00 00 FF FF, so it ends
// there, and one bit is left. The message would take it from the next one.
TEST(Deflate, a_block_cannot_end_in_what_is_appended) {
    BitWriter bits;
    bits.number(0, 1);   // not the last block
    bits.number(2, 2);   // with its own codes
    bits.number(0, 5);   // 257 of literals
    bits.number(0, 5);   // one of distances
    bits.number(15, 4);  // 19 of lengths: 1 to 15 and 18 have 4 bits each
    for (const unsigned symbol :
         {16U, 17U, 18U, 0U, 8U, 7U, 9U, 6U, 10U, 5U, 11U, 4U, 12U, 3U, 13U, 2U, 14U, 1U, 15U}) {
        bits.number(symbol == 18 || (symbol > 0 && symbol < 16) ? 4 : 0, 3);
    }
    const auto length = [&bits](unsigned symbol) { bits.code(symbol == 18 ? 15 : symbol - 1, 4); };
    const auto zeros = [&](unsigned count) {
        length(18);
        bits.number(count - 11, 7);
    };
    zeros('a');  // 'a' to 'o' have 1 to 15 bits
    for (unsigned size = 1; size <= 15; ++size) length(size);
    zeros(133);
    zeros(11);
    length(15);  // the end of the block
    length(1);   // the one distance
    const Inflated out = inflate_every_way(bits.octets);
    LAW(out.violation == Violation::kDeflateNotFinished, << violation_row(out.violation).name);
    LAW(out.message.find_first_not_of('a') == std::string::npos && out.message.size() >= 16);
}

TEST(Deflate, any_bytes_have_one_verdict) {
    for (unsigned seed = 0; seed < 300; ++seed) {
        Random random(seed);
        MessageDeflater deflater({}, 6);
        std::string payload = deflated(deflater, message_of(random() % 200, seed));
        for (unsigned i = 0; i < 1 + seed % 3; ++i) {
            payload[random() % payload.size()] = static_cast<char>(random());
        }
        inflate_every_way(payload, 150);
    }
}

TEST(Deflate, memory_of_an_arena_is_counted_and_given_back) {
    Arena arena(8 << 20);
    for (const bool kept : {false, true}) {
        DeflateParameters parameters;
        parameters.server_no_context_takeover = parameters.client_no_context_takeover = !kept;
        {
            MessageDeflater deflater(parameters, 6, &arena);
            MessageInflater inflater(parameters, &arena);
            for (const char* message : {"first", "second", ""}) {
                const std::string payload = deflated(deflater, message);
                LAW(inflate(inflater, payload, 3, 3, 100).message == message);
                LAW((arena.bytes_in_use() > 0) == kept, << message);
            }
        }
        LAW(arena.bytes_in_use() == 0);
    }
}

TEST(Deflate, above_the_ceiling_of_an_arena_it_fails_and_the_heap_is_not_asked) {
    Arena arena(1 << 20);
    std::vector<std::unique_ptr<MessageDeflater>> deflaters;
    MessageBuffer payload;
    do {
        deflaters.push_back(std::make_unique<MessageDeflater>(DeflateParameters(), 6, &arena));
    } while (deflaters.size() < 100 && deflaters.back()->deflate("x", payload));
    LAW(deflaters.size() > 1 && deflaters.size() < 10, << deflaters.size());
    deflaters.clear();
    LAW(arena.bytes_in_use() == 0);
}

}  // namespace
}  // namespace httpmark::websocket
