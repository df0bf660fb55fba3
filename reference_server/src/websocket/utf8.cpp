#include "websocket/utf8.hpp"

#include <cstring>

namespace httpmark::websocket {

namespace {

std::uint64_t high_bits(const char* data) {
    std::uint64_t word;
    std::memcpy(&word, data, sizeof word);
    return word & 0x8080808080808080;
}

// Where the bytes below 0x80 that stand at `at` end, or shortly before.
std::size_t skip_ascii(std::string_view text, std::size_t at) {
    const char* const data = text.data();
    while (text.size() - at >= 32 && (high_bits(data + at) | high_bits(data + at + 8) |
                                      high_bits(data + at + 16) | high_bits(data + at + 24)) == 0) {
        at += 32;
    }
    while (text.size() - at >= 8 && high_bits(data + at) == 0) at += 8;
    while (at < text.size() && static_cast<unsigned char>(data[at]) < 0x80) ++at;
    return at;
}

}  // namespace

// The first byte of a character of several. The second has a narrower range where a longer form
// than needed, a surrogate, or what is above U+10FFFF would begin.
bool Utf8Validator::lead(unsigned char c) {
    if (c < 0xC2 || c > 0xF4) return false;
    left_ = c < 0xE0 ? 1 : (c < 0xF0 ? 2 : 3);
    lowest_ = c == 0xE0 ? 0xA0 : (c == 0xF0 ? 0x90 : 0x80);
    highest_ = c == 0xED ? 0x9F : (c == 0xF4 ? 0x8F : 0xBF);
    return true;
}

inline bool Utf8Validator::step(unsigned char c) {
    if (left_ == 0) return lead(c);
    if (c < lowest_ || c > highest_) return false;
    lowest_ = 0x80;
    highest_ = 0xBF;
    --left_;
    return true;
}

std::size_t Utf8Validator::take(std::string_view text) {
    std::size_t at = 0;
    while (at < text.size()) {
        const unsigned char c = static_cast<unsigned char>(text[at]);
        if (left_ == 0 && c < 0x80) {
            at = skip_ascii(text, at);
        } else if (step(c)) {
            ++at;
        } else {
            return at;
        }
    }
    return at;
}

bool is_utf8(std::string_view text) {
    Utf8Validator validator;
    return validator.take(text) == text.size() && validator.at_boundary();
}

}  // namespace httpmark::websocket
