#include "json.hpp"

#include <cstring>

#include "http/syntax.hpp"

namespace httpmark::example {

namespace {

// What stands in a JSON string as it is.
constexpr bool is_plain(unsigned char c) {
    return c >= 0x20 && c < 0x80 && c != '"' && c != '\\';
}

// Bytes of the well-formed UTF-8 sequence at the front (RFC 3629 4), 0 when there is none.
std::size_t utf8_length(std::string_view text) {
    const unsigned char c = octet(text[0]);
    if (c < 0x80) return 1;
    std::size_t length = 0;
    unsigned low = 0x80;
    unsigned high = 0xBF;
    if (c >= 0xC2 && c <= 0xDF) {
        length = 2;
    } else if (c >= 0xE0 && c <= 0xEF) {
        length = 3;
        if (c == 0xE0) low = 0xA0;
        if (c == 0xED) high = 0x9F;
    } else if (c >= 0xF0 && c <= 0xF4) {
        length = 4;
        if (c == 0xF0) low = 0x90;
        if (c == 0xF4) high = 0x8F;
    } else {
        return 0;
    }
    if (text.size() < length) return 0;
    for (std::size_t i = 1; i < length; ++i) {
        const unsigned next = octet(text[i]);
        if (next < (i == 1 ? low : 0x80U) || next > (i == 1 ? high : 0xBFU)) return 0;
    }
    return length;
}

}  // namespace

void JsonWriter::raw(std::string_view text) {
    if (out_ != nullptr && !text.empty()) std::memcpy(out_ + size_, text.data(), text.size());
    size_ += text.size();
}

void JsonWriter::number(std::uint64_t value) {
    std::array<char, 20> digits;
    std::size_t at = digits.size();
    do {
        digits[--at] = static_cast<char>('0' + value % 10);
        value /= 10;
    } while (value != 0);
    raw({digits.data() + at, digits.size() - at});
}

void JsonWriter::base64(std::string_view octets) {
    constexpr std::string_view kAlphabet =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    if (out_ == nullptr) {
        size_ += 2 + (octets.size() + 2) / 3 * 4;
        return;
    }
    character('"');
    char* out = out_ + size_;
    std::size_t i = 0;
    const auto at = [&](std::size_t k) { return static_cast<unsigned>(octet(octets[k])); };
    for (; i + 2 < octets.size(); i += 3) {
        const unsigned word = at(i) << 16 | at(i + 1) << 8 | at(i + 2);
        *out++ = kAlphabet[word >> 18];
        *out++ = kAlphabet[word >> 12 & 63];
        *out++ = kAlphabet[word >> 6 & 63];
        *out++ = kAlphabet[word & 63];
    }
    if (i < octets.size()) {
        const bool two = i + 1 < octets.size();
        const unsigned word = at(i) << 16 | (two ? at(i + 1) << 8 : 0U);
        *out++ = kAlphabet[word >> 18];
        *out++ = kAlphabet[word >> 12 & 63];
        *out++ = two ? kAlphabet[word >> 6 & 63] : '=';
        *out++ = '=';
    }
    size_ = static_cast<std::size_t>(out - out_);
    character('"');
}

void JsonWriter::string(std::string_view octets) {
    character('"');
    for (std::size_t i = 0; i < octets.size();) {
        const unsigned char c = octet(octets[i]);
        if (is_plain(c)) {
            character(octets[i++]);
            continue;
        }
        const std::size_t length = utf8_length(octets.substr(i));
        if (length == 0) {
            raw("\xEF\xBF\xBD");
            ++i;
            continue;
        }
        if (c == '"' || c == '\\') {
            character('\\');
            character(static_cast<char>(c));
        } else if (c < 0x20) {
            constexpr std::string_view kHex = "0123456789abcdef";
            raw("\\u00");
            character(kHex[c >> 4]);
            character(kHex[c & 15]);
        } else {
            raw(octets.substr(i, length));
        }
        i += length;
    }
    character('"');
}

}  // namespace httpmark::example
