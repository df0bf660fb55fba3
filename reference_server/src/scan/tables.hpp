// Shuffle tables of the kernels, made from the predicates of syntax.hpp by the compiler. Both
// 16-byte lanes of a wide register are loaded from the same 16 bytes, so they cannot differ.
#pragma once

#include <cstddef>
#include <cstdint>

#include "http/syntax.hpp"

namespace httpmark {

struct NibbleTable {
    alignas(16) std::uint8_t bits[16];
};

// bits[low nibble] has bit h set when the byte (h << 4 | low) has the class; bytes above 0x7F
// have none, because a byte shuffle gives zero where the index has its high bit set.
constexpr NibbleTable make_nibble_table(std::uint8_t char_class) {
    NibbleTable table{};
    for (unsigned c = 0; c < 128; ++c) {
        if ((kClassTable[c] & char_class) != 0) {
            table.bits[c & 15] = static_cast<std::uint8_t>(table.bits[c & 15] | (1U << (c >> 4)));
        }
    }
    return table;
}

constexpr NibbleTable make_high_nibble_bits() {
    NibbleTable table{};
    for (unsigned h = 0; h < 8; ++h) table.bits[h] = static_cast<std::uint8_t>(1U << h);
    return table;
}

inline constexpr NibbleTable kTokenNibbles = make_nibble_table(kClassToken);
inline constexpr NibbleTable kTargetNibbles = make_nibble_table(kClassTarget);
inline constexpr NibbleTable kHostNibbles = make_nibble_table(kClassHostName);
inline constexpr NibbleTable kHexNibbles = make_nibble_table(kClassHex);
inline constexpr NibbleTable kForbiddenNibbles = make_nibble_table(kClassForbidden);
inline constexpr NibbleTable kHighNibbleBits = make_high_nibble_bits();

// The table look-up as the kernels do it, for the proof below and for the tests.
constexpr bool nibble_lookup(const NibbleTable& table, unsigned c) {
    if (c >= 128) return false;
    return (table.bits[c & 15] & kHighNibbleBits.bits[c >> 4]) != 0;
}

constexpr bool nibble_tables_agree() {
    for (unsigned c = 0; c < 256; ++c) {
        const unsigned char o = static_cast<unsigned char>(c);
        if (nibble_lookup(kTokenNibbles, c) != is_tchar(o)) return false;
        if (nibble_lookup(kTargetNibbles, c) != (is_target_char(o) && c != '%')) return false;
        if (nibble_lookup(kHexNibbles, c) != is_hexdig(o)) return false;
        if (nibble_lookup(kHostNibbles, c) != (is_unreserved(o) || is_sub_delim(o))) return false;
        if (nibble_lookup(kForbiddenNibbles, c) != is_forbidden_in_field(o)) return false;
    }
    return true;
}
static_assert(nibble_tables_agree());

struct WideOctets {
    alignas(64) std::uint8_t octets[64];
};
constexpr WideOctets make_wide(int value) {
    WideOctets wide{};
    for (std::uint8_t& o : wide.octets) o = static_cast<std::uint8_t>(value);
    return wide;
}

struct AsciiTable {
    alignas(64) std::uint8_t bits[128];
};
constexpr AsciiTable make_ascii_table() {
    AsciiTable table{};
    for (unsigned c = 0; c < 128; ++c) table.bits[c] = kClassTable[c];
    return table;
}
inline constexpr AsciiTable kAsciiClasses = make_ascii_table();

}  // namespace httpmark
