#include "websocket/frames.hpp"

#include <string>
#include <vector>

#include "laws.hpp"
#include "websocket/client.hpp"

namespace httpmark::websocket {
namespace {

struct Message {
    Opcode opcode;
    bool compressed;
    bool is_whole;
    std::string payload;
    bool operator==(const Message&) const = default;
};

struct Read {
    std::vector<Message> messages;
    Violation violation = Violation::kNone;
    std::uint64_t offset = 0;
    bool operator==(const Read&) const = default;
};

// What the pieces make together, and the laws that each of them keeps.
void gather(const FrameReader::Piece& piece, FrameReader::Status status, Read& read) {
    if (status == FrameReader::Status::kControl) {
        LAW(piece.payload.size() <= kControlMax && piece.begins && piece.ends);
        // It may come within a message, and is set before that.
        const bool within = !read.messages.empty() && !read.messages.back().is_whole;
        read.messages.insert(read.messages.end() - (within ? 1 : 0),
                             {piece.opcode, false, true, std::string(piece.payload)});
        return;
    }
    LAW(piece.begins == (read.messages.empty() || read.messages.back().is_whole));
    if (piece.begins) read.messages.push_back({piece.opcode, piece.compressed, false, {}});
    Message& message = read.messages.back();
    LAW(message.opcode == piece.opcode && message.compressed == piece.compressed);
    message.payload += piece.payload;
    message.is_whole = piece.ends;
}

Read read_in(std::string_view stream, std::size_t first, std::size_t step,
             const MessageLimits& limits, bool compressible) {
    FrameReader reader(limits, compressible);
    Read read;
    std::size_t at = 0;
    auto status = FrameReader::Status::kNeedMore;
    for (std::size_t size = first; at < stream.size(); size = step) {
        std::string part(stream.substr(at, size));
        std::span<char> input(part);
        FrameReader::Piece piece;
        while ((status = reader.read(input, piece)) == FrameReader::Status::kData ||
               status == FrameReader::Status::kControl) {
            LAW(piece.offset + piece.payload.size() == reader.offset());
            LAW(piece.frame_offset < piece.offset);
            gather(piece, status, read);
        }
        if (status == FrameReader::Status::kRejected) break;
        LAW(input.empty());
        at += part.size();
    }
    read.violation = reader.violation();
    read.offset = reader.offset();
    LAW((read.violation != Violation::kNone) == (status == FrameReader::Status::kRejected));
    return read;
}

Read read_every_way(std::string_view stream, const MessageLimits& limits = {},
                    bool compressible = false) {
    const std::size_t all = stream.size() + 1;
    const Read whole = read_in(stream, all, all, limits, compressible);
    LAW(read_in(stream, 1, 1, limits, compressible) == whole, << visible(stream));
    for (std::size_t cut = 1; cut < std::min<std::size_t>(stream.size(), 400); ++cut) {
        LAW(read_in(stream, cut, all, limits, compressible) == whole,
            << visible(stream) << " cut at " << cut);
    }
    return whole;
}

void expect_violation(std::string_view stream, Violation violation, std::uint64_t offset,
                      const MessageLimits& limits = {}, bool compressible = false) {
    const Read read = read_every_way(stream, limits, compressible);
    LAW(read.violation == violation && read.offset == offset,
        << visible(stream) << " is " << violation_row(read.violation).name << "@" << read.offset);
    // The byte before leaves it open: a verdict comes at the byte that decides.
    LAW(read_every_way(stream.substr(0, offset), limits, compressible).violation ==
            Violation::kNone,
        << visible(stream));
}

// RFC 6455 5.7.
TEST(Frames, the_examples_of_the_rfc) {
    const std::string_view hello("\x81\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58", 11);
    LAW(text("Hello") == hello);
    const Read read = read_every_way(hello);
    LAW(read.messages == (std::vector<Message>{{Opcode::kText, false, true, "Hello"}}));
    char out[kFrameHeadMax];
    LAW(write_frame_head(out, Opcode::kText, false, 5) == 2 &&
        std::string_view(out, 2) == "\x81\x05");
    LAW(write_frame_head(out, Opcode::kBinary, false, 256) == 4 &&
        std::string_view(out, 4) == std::string_view("\x82\x7E\x01\x00", 4));
    LAW(write_frame_head(out, Opcode::kBinary, false, 65536) == 10 &&
        std::string_view(out, 10) ==
            std::string_view("\x82\x7F\x00\x00\x00\x00\x00\x01\x00\x00", 10));
}

// Every first byte, at the start of a stream and within a message, with and without the extension:
// judged by RFC 6455 5.2 to 5.5 and RFC 7692 6, rule by rule.
TEST(Frames, every_first_byte) {
    for (unsigned first = 0; first < 256; ++first) {
        for (const bool within : {false, true}) {
            for (const bool compressible : {false, true}) {
                const bool fin = first >= 128;
                const unsigned rsv = first >> 4 & 7;
                const unsigned opcode = first & 15;
                const bool starts = opcode == 1 || opcode == 2;
                const bool controls = opcode >= 8 && opcode <= 10;
                const bool rsv_is_good = rsv == 0 || (rsv == 4 && compressible);
                Violation due = Violation::kNone;
                if (!rsv_is_good) {
                    due = Violation::kReservedBit;
                } else if (!starts && !controls && opcode != 0) {
                    due = Violation::kOpcodeUnknown;
                } else if (rsv == 4 && !starts) {
                    due = Violation::kReservedBit;
                } else if (controls && !fin) {
                    due = Violation::kControlFragmented;
                } else if (opcode == 0 && !within) {
                    due = Violation::kContinuationOfNothing;
                } else if (starts && within) {
                    due = Violation::kMessageNotFinished;
                }
                const std::string before = within ? client_frame(0x01, "ab") : "";
                const std::string stream = before + client_frame(first, "c");
                const Read read = read_every_way(stream, {}, compressible);
                LAW(read.violation == due, << first << " " << violation_row(read.violation).name);
                LAW(read.offset == (due == Violation::kNone ? stream.size() : before.size()));
            }
        }
    }
}

TEST(Frames, every_second_byte) {
    for (unsigned second = 0; second < 256; ++second) {
        for (const char first : {'\x82', '\x89', '\x88', '\x8A'}) {
            const bool is_masked = second >= 128;
            const bool is_long = (second & 127) > 125 && first != '\x82';
            const Violation due = !is_masked ? Violation::kNotMasked
                                  : is_long  ? Violation::kControlTooLong
                                             : Violation::kNone;
            const Read read = read_every_way(std::string{first, static_cast<char>(second)});
            LAW(read.violation == due && read.offset == (due == Violation::kNone ? 2U : 1U),
                << second);
        }
    }
}

TEST(Frames, a_length_has_one_encoding) {
    const MessageLimits wide{1ULL << 62, 1ULL << 62};
    for (const std::uint64_t length : {0ULL, 1ULL, 125ULL, 126ULL, 127ULL, 255ULL, 256ULL, 65535ULL,
                                       65536ULL, 65537ULL, 1ULL << 32, 1ULL << 61}) {
        const std::string head =
            std::string("\x82") + length_octets(length, LengthForm::kShortest, 0x80);
        LAW(read_every_way(head, wide).violation == Violation::kNone, << length);
        if (length < 126) {
            expect_violation(
                std::string("\x82") + length_octets(length, LengthForm::kSixteen, 0x80),
                Violation::kLengthNotMinimal, 3, wide);
        }
        // Two bytes would have done: clear as soon as the first six are zero.
        if (length < 65536) {
            expect_violation(
                std::string("\x82") + length_octets(length, LengthForm::kSixtyFour, 0x80),
                Violation::kLengthNotMinimal, 7, wide);
        }
    }
    expect_violation(std::string("\x82\xFF\x80", 3), Violation::kLengthHighBit, 2, wide);
    expect_violation(std::string("\x82\xFF\xFF", 3), Violation::kLengthHighBit, 2, wide);
    LAW(read_every_way("\x82\xFF\x3F", wide).violation == Violation::kNone);
}

// A naive twin: the whole length against the limit, and the first byte from which on no
// continuation is below it.
TEST(Frames, limits_are_exact_and_raised_at_the_first_byte_that_shows_it) {
    for (const std::uint64_t limit : {0ULL, 1ULL, 124ULL, 125ULL, 126ULL, 255ULL, 256ULL, 65535ULL,
                                      65536ULL, 1000000ULL, 1ULL << 40}) {
        for (const std::uint64_t length :
             {limit, limit + 1, limit + 255, limit + 256, limit * 2 + 1, limit * 256 + 7}) {
            const std::string octets = length_octets(length, LengthForm::kShortest, 0x80);
            const std::string stream = "\x82" + octets;
            std::size_t at = stream.size();
            for (std::size_t known = octets.size(); known > 0; --known) {
                // The least length with these bytes; after the first one, that of its form.
                const std::uint64_t form_min =
                    octets.size() == 1 ? length : (octets.size() == 3 ? 126 : 65536);
                const unsigned left = static_cast<unsigned>(octets.size() - known);
                const std::uint64_t least =
                    known == 1 ? form_min : std::max(form_min, length >> (8 * left) << (8 * left));
                if (least > limit) at = known;
            }
            const MessageLimits by_frame{limit, ~0ULL};
            const MessageLimits by_message{~0ULL, limit};
            if (length <= limit) {
                LAW(read_every_way(stream, by_frame).violation == Violation::kNone);
                LAW(read_every_way(stream, by_message).violation == Violation::kNone);
            } else {
                expect_violation(stream, Violation::kFrameTooLarge, at, by_frame);
                expect_violation(stream, Violation::kMessageTooLarge, at, by_message);
            }
        }
    }
}

TEST(Frames, fragments_count_together_and_controls_between_them_do_not) {
    const MessageLimits limits{100, 10};
    const std::string first = client_frame(0x01, "12345") + ping(std::string(125, 'p'));
    LAW(read_every_way(first + client_frame(0x80, "67890"), limits).violation == Violation::kNone);
    expect_violation(first + client_frame(0x80, "678901"), Violation::kMessageTooLarge,
                     first.size() + 1, limits);
    const std::string full = first + client_frame(0x00, "67890");
    LAW(read_every_way(full + client_frame(0x80, ""), limits).violation == Violation::kNone);
    expect_violation(full + client_frame(0x00, "x"), Violation::kMessageTooLarge, full.size() + 1,
                     limits);
    // The next message begins with nothing.
    LAW(read_every_way(full + client_frame(0x80, "") + text("1234567890"), limits).violation ==
        Violation::kNone);
    // How large a compressed one is shows only later.
    LAW(read_every_way(client_frame(0xC1, "12345678901"), limits, true).violation ==
        Violation::kNone);
    expect_violation(client_frame(0xC1, std::string(101, 'x')), Violation::kFrameTooLarge, 1,
                     limits, true);
}

TEST(Frames, what_it_hands_out) {
    const std::string stream = fragments(0x42, "abcdef", {2, 0, 3}, ping("!")) + pong() +
                               binary("") + client_frame(0x88, std::string(125, 'q'));
    const Read read = read_every_way(stream, {}, true);
    const std::vector<Message> due = {
        {Opcode::kPing, false, true, "!"},
        {Opcode::kPing, false, true, "!"},
        {Opcode::kPing, false, true, "!"},
        {Opcode::kBinary, true, true, "abcdef"},
        {Opcode::kPong, false, true, ""},
        {Opcode::kBinary, false, true, ""},
        {Opcode::kClose, false, true, std::string(125, 'q')},
    };
    LAW(read.messages == due && read.offset == stream.size());
}

// Whatever is written is read back, at the lengths where the encoding changes.
TEST(Frames, every_size_around_a_change_of_encoding_comes_through) {
    for (const std::size_t size : {0U, 1U, 3U, 4U, 31U, 32U, 33U, 124U, 125U, 126U, 127U, 128U,
                                   255U, 256U, 65534U, 65535U, 65536U, 65537U, 100000U}) {
        Random random(size);
        std::string payload(size, '\0');
        for (char& c : payload) c = static_cast<char>(random());
        const std::string key{static_cast<char>(random()), static_cast<char>(random()),
                              static_cast<char>(random()), static_cast<char>(random())};
        const std::string stream = client_frame(0x82, payload, key);
        for (const std::size_t step :
             {std::size_t{1}, std::size_t{5}, std::size_t{4096}, stream.size()}) {
            const Read read = read_in(stream, step, step, {}, false);
            LAW(read.messages.size() == 1 && read.messages[0].payload == payload, << size);
        }
        std::string head(kFrameHeadMax, '\0');
        head.resize(write_frame_head(head.data(), Opcode::kBinary, false, size));
        LAW(head + payload == binary_back(payload), << size);
        LAW(head.size() == frame_head_size(size));
    }
}

}  // namespace
}  // namespace httpmark::websocket
