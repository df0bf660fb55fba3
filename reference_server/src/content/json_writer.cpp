#include "content/json_writer.hpp"

#include <bit>
#include <cmath>
#include <cstring>

#include "http/syntax.hpp"

namespace httpmark {

namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

constexpr bool is_plain(unsigned char c) {
    return c >= 0x20 && c < 0x80 && c != '"' && c != '\\';
}

constexpr std::uint64_t kEach = 0x0101010101010101;
constexpr std::uint64_t kSpaces = kEach * ' ';

// The high bits of the bytes that do not go into a string as they are. That of the lowest one is
// right; a borrow can reach only those above it.
constexpr std::uint64_t odd_octets(std::uint64_t word) {
    const std::uint64_t quote = word ^ kEach * '"';
    const std::uint64_t backslash = word ^ kEach * '\\';
    return (word | (word - kSpaces) | (quote - kEach) | (backslash - kEach)) & (kEach * 0x80);
}

template <class Word>
Word load(const char* p) {
    Word word;
    std::memcpy(&word, p, sizeof word);
    return word;
}

// How many bytes of the front go into a string as they are, eight at a time while there are as
// many.
std::size_t plain_prefix(std::string_view text) {
    std::size_t at = 0;
    if constexpr (std::endian::native == std::endian::little) {
        for (; text.size() - at >= 8; at += 8) {
            const std::uint64_t odd = odd_octets(load<std::uint64_t>(text.data() + at));
            if (odd != 0) return at + static_cast<std::size_t>(std::countr_zero(odd)) / 8;
        }
    }
    while (at < text.size() && is_plain(octet(text[at]))) ++at;
    return at;
}

}  // namespace

std::size_t utf8_sequence_size(std::string_view text) {
    if (text.empty()) return 0;
    const unsigned char c = octet(text[0]);
    if (c < 0x80) return 1;
    std::size_t size = 0;
    unsigned low = 0x80;  // of the second byte
    unsigned high = 0xBF;
    if (c >= 0xC2 && c <= 0xDF) {
        size = 2;
    } else if (c >= 0xE0 && c <= 0xEF) {
        size = 3;
        if (c == 0xE0) low = 0xA0;   // shorter forms exist
        if (c == 0xED) high = 0x9F;  // surrogates
    } else if (c >= 0xF0 && c <= 0xF4) {
        size = 4;
        if (c == 0xF0) low = 0x90;
        if (c == 0xF4) high = 0x8F;  // above U+10FFFF
    }
    if (size == 0 || text.size() < size || octet(text[1]) < low || octet(text[1]) > high) return 0;
    for (std::size_t i = 2; i < size; ++i) {
        if ((octet(text[i]) & 0xC0) != 0x80) return 0;
    }
    return size;
}

bool JsonWriter::fail(JsonFault fault) {
    if (fault_ == JsonFault::kNone) fault_ = fault;
    expects_ = Expects::kFailed;
    return false;
}

// Whether a value may stand here; writes the comma before it.
bool JsonWriter::before_value() {
    if (expects_ > Expects::kValue) {
        return fail(expects_ == Expects::kKey ? JsonFault::kKeyExpected : JsonFault::kSecondRoot);
    }
    if (needs_comma_) put(',');
    return true;
}

JsonWriter& JsonWriter::literal(std::string_view text) {
    if (before_value()) {
        put(text);
        after_value();
    }
    return *this;
}

JsonWriter& JsonWriter::begin(char opening) {
    if (!before_value()) return *this;
    if (depth_ == kJsonDepthMax) {
        fail(JsonFault::kTooDeep);
        return *this;
    }
    put(opening);
    ++depth_;
    objects_ = objects_ << 1 | (opening == '{' ? 1U : 0U);
    expects_ = inside_ = opening == '{' ? Expects::kKey : Expects::kElement;
    needs_comma_ = false;
    return *this;
}

JsonWriter& JsonWriter::end(char closing) {
    if (fault_ != JsonFault::kNone) return *this;
    const bool is_object = closing == '}';
    if (expects_ == Expects::kValue) {
        fail(JsonFault::kValueExpected);
    } else if (depth_ == 0 || ((objects_ & 1) != 0) != is_object) {
        fail(is_object ? JsonFault::kNotInObject : JsonFault::kNotInArray);
    } else {
        put(closing);
        --depth_;
        objects_ >>= 1;
        inside_ = depth_ == 0           ? Expects::kNothing
                  : (objects_ & 1) != 0 ? Expects::kKey
                                        : Expects::kElement;
        after_value();
    }
    return *this;
}

JsonWriter& JsonWriter::other_key(std::string_view name) {
    if (fault_ != JsonFault::kNone) return *this;
    if (expects_ != Expects::kKey) {
        fail(expects_ == Expects::kValue ? JsonFault::kValueExpected : JsonFault::kNotInObject);
        return *this;
    }
    if (needs_comma_) put(',');
    quote(name);
    put(':');
    expects_ = Expects::kValue;
    needs_comma_ = false;
    return *this;
}

JsonWriter& JsonWriter::other_string(std::string_view octets) {
    if (before_value()) {
        quote(octets);
        after_value();
    }
    return *this;
}

// Text of a block or more that goes into a string as it is. False where there is anything else;
// then something of it is there.
bool JsonWriter::copy_blocks(std::string_view text, char* out) {
    const std::size_t last = text.size() - kTextBlockSize;
    for (std::size_t at = 0;; at = std::min(at + kTextBlockSize, last)) {
        const TextBlock block(text.data() + at);
        if (block.controls_high_and<'"', '\\'>() != 0) return false;
        block.store(out + at);
        if (at == last) return true;
    }
}

// RFC 8259 7
void JsonWriter::escape(unsigned char c) {
    constexpr std::string_view kHex = "0123456789abcdef";
    if (c >= 0x20) {
        put('\\');
        put(static_cast<char>(c));
    } else {
        put("\\u00");
        put(kHex[c >> 4]);
        put(kHex[c & 15]);
    }
}

void JsonWriter::quote(std::string_view octets) {
    put('"');
    while (!octets.empty()) {
        // What is written as it is goes in one piece, sequences of several bytes included.
        std::size_t run = plain_prefix(octets);
        while (run < octets.size() && octet(octets[run]) >= 0x80) {
            const std::size_t size = utf8_sequence_size(octets.substr(run));
            if (size == 0) break;
            run += size;
            run += plain_prefix(octets.substr(run));
        }
        put(octets.substr(0, run));
        octets.remove_prefix(run);
        if (octets.empty()) break;
        const unsigned char c = octet(octets[0]);
        if (c >= 0x80) {
            put(kReplacement);
        } else {
            escape(c);
        }
        octets.remove_prefix(1);
    }
    put('"');
}

JsonWriter& JsonWriter::number(double value) {
    return std::isfinite(value) ? number_text(value) : null();
}

JsonWriter& JsonWriter::number(float value) {
    return std::isfinite(value) ? number_text(value) : null();
}

JsonWriter& JsonWriter::base64(std::string_view octets) {
    constexpr std::string_view kAlphabet =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    if (!before_value()) return *this;
    put('"');
    if (!has_room((octets.size() + 2) / 3 * 4)) octets = {};
    for (; !octets.empty(); octets.remove_prefix(std::min<std::size_t>(3, octets.size()))) {
        const auto at = [&](std::size_t i) { return i < octets.size() ? octet(octets[i]) : 0U; };
        const unsigned word = at(0) << 16 | at(1) << 8 | at(2);
        const std::array<char, 4> four{kAlphabet[word >> 18], kAlphabet[word >> 12 & 63],
                                       octets.size() > 1 ? kAlphabet[word >> 6 & 63] : '=',
                                       octets.size() > 2 ? kAlphabet[word & 63] : '='};
        put({four.data(), four.size()});
    }
    put('"');
    after_value();
    return *this;
}

std::optional<std::string_view> JsonWriter::finish() {
    if (expects_ != Expects::kNothing) fail(JsonFault::kUnfinished);
    if (writes_ && missing_ != 0) fail(JsonFault::kNoRoom);
    if (fault_ != JsonFault::kNone) return std::nullopt;
    return std::string_view(begin_, static_cast<std::size_t>(at_ - begin_));
}

}  // namespace httpmark
