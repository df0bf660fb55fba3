// The character classes of HTTP, each as one constexpr predicate. Every table of every kernel is
// generated from these at compile time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace httpmark {

// RFC 5234 B.1
constexpr bool is_alpha(unsigned char c) {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}
constexpr bool is_digit(unsigned char c) {
    return c >= '0' && c <= '9';
}
constexpr bool is_hexdig(unsigned char c) {
    return is_digit(c) || (c >= 'A' && c <= 'F') || (c >= 'a' && c <= 'f');
}
constexpr bool is_ctl(unsigned char c) {
    return c < 0x20 || c == 0x7F;
}
constexpr bool is_ows(unsigned char c) {
    return c == ' ' || c == '\t';
}

// RFC 9110 5.6.2
constexpr bool is_tchar(unsigned char c) {
    switch (c) {
        case '!':
        case '#':
        case '$':
        case '%':
        case '&':
        case '\'':
        case '*':
        case '+':
        case '-':
        case '.':
        case '^':
        case '_':
        case '`':
        case '|':
        case '~':
            return true;
        default:
            return is_alpha(c) || is_digit(c);
    }
}

// RFC 3986 2.3, 2.2
constexpr bool is_unreserved(unsigned char c) {
    return is_alpha(c) || is_digit(c) || c == '-' || c == '.' || c == '_' || c == '~';
}
constexpr bool is_sub_delim(unsigned char c) {
    switch (c) {
        case '!':
        case '$':
        case '&':
        case '\'':
        case '(':
        case ')':
        case '*':
        case '+':
        case ',':
        case ';':
        case '=':
            return true;
        default:
            return false;
    }
}
// RFC 3986 3.3, without pct-encoded, which is a matter of three bytes.
constexpr bool is_pchar(unsigned char c) {
    return is_unreserved(c) || is_sub_delim(c) || c == ':' || c == '@';
}
// A byte that may stand in the path or query of a request-target; '%' needs two HEXDIG after it.
constexpr bool is_target_char(unsigned char c) {
    return is_pchar(c) || c == '/' || c == '?' || c == '%';
}
// What URL parsers of browsers leave raw in a query (Strictness::kBrowser).
constexpr bool is_browser_query_char(unsigned char c) {
    switch (c) {
        case '[':
        case ']':
        case '\\':
        case '^':
        case '`':
        case '{':
        case '|':
        case '}':
            return true;
        default:
            return false;
    }
}
// RFC 9110 5.5: CTL other than HTAB has no place in a field value. CR and LF are left out because
// they end the line; that they come as a pair is checked apart.
constexpr bool is_forbidden_in_field(unsigned char c) {
    return is_ctl(c) && c != '\t' && c != '\r' && c != '\n';
}
// RFC 9110 5.6.4
constexpr bool is_qdtext(unsigned char c) {
    return !is_ctl(c) ? (c != '"' && c != '\\') : c == '\t';
}
constexpr bool is_quoted_pair_char(unsigned char c) {
    return !is_ctl(c) || c == '\t';
}

constexpr char to_lower(char c) {
    return (c >= 'A' && c <= 'Z') ? static_cast<char>(c | 0x20) : c;
}
constexpr unsigned char octet(char c) {
    return static_cast<unsigned char>(c);
}

enum CharClass : std::uint8_t {
    kClassToken = 1,
    kClassTarget = 2,  // without '%', which needs a look at what follows
    kClassHex = 4,
    kClassForbidden = 8,
    kClassHostName = 16,  // reg-name bytes that need no further look: unreserved / sub-delims
};

constexpr std::uint8_t classes_of(unsigned char c) {
    unsigned bits = 0;
    if (is_tchar(c)) bits |= kClassToken;
    if (is_target_char(c) && c != '%') bits |= kClassTarget;
    if (is_hexdig(c)) bits |= kClassHex;
    if (is_forbidden_in_field(c)) bits |= kClassForbidden;
    if (is_unreserved(c) || is_sub_delim(c)) bits |= kClassHostName;
    return static_cast<std::uint8_t>(bits);
}

constexpr std::array<std::uint8_t, 256> make_class_table() {
    std::array<std::uint8_t, 256> table{};
    for (unsigned c = 0; c < 256; ++c) table[c] = classes_of(static_cast<unsigned char>(c));
    return table;
}
inline constexpr std::array<std::uint8_t, 256> kClassTable = make_class_table();

constexpr bool equals_ignoring_case(std::string_view a, std::string_view lower) {
    if (a.size() != lower.size()) return false;
    for (std::size_t i = 0; i < a.size(); ++i) {
        if (to_lower(a[i]) != lower[i]) return false;
    }
    return true;
}

// The same where the other may have capitals, too.
constexpr bool same_ignoring_case(std::string_view a, std::string_view b) {
    if (a.size() != b.size()) return false;
    for (std::size_t i = 0; i < a.size(); ++i) {
        if (to_lower(a[i]) != to_lower(b[i])) return false;
    }
    return true;
}

constexpr std::string_view trim_ows(std::string_view text) {
    while (!text.empty() && is_ows(octet(text.front()))) text.remove_prefix(1);
    while (!text.empty() && is_ows(octet(text.back()))) text.remove_suffix(1);
    return text;
}

// The high bit of each byte of `word` that is NUL, in whatever order the machine has them; above
// the lowest there may be others that say nothing.
constexpr std::uint64_t nul_octets(std::uint64_t word) {
    constexpr std::uint64_t kEach = 0x0101010101010101;
    return (word - kEach) & ~word & (kEach * 0x80);
}

// The same of each byte that is `c`.
constexpr std::uint64_t octets_like(std::uint64_t word, char c) {
    return nul_octets(word ^ 0x0101010101010101 * octet(c));
}

// Where `c` first stands in the text, or its size: quick for short ones, because it calls nobody.
// Up to 7 bytes behind the text are read, which must be there.
[[gnu::always_inline]] inline std::size_t find_octet(const char* text, std::size_t size, char c) {
    for (std::size_t at = 0; at < size; at += 8) {
        std::uint64_t word = 0;
        std::memcpy(&word, text + at, sizeof word);
        const std::uint64_t hits = octets_like(word, c);
        if (hits == 0) continue;
        if (__BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__) {
            while (at < size && text[at] != c) ++at;
        } else {
            at += static_cast<std::size_t>(__builtin_ctzll(hits)) / 8;
        }
        return at < size ? at : size;
    }
    return size;
}

// The same where nothing behind the text may be read.
inline std::size_t find_within(const char* text, std::size_t size, char c) {
    const std::size_t whole = size / 8 * 8;
    if (const std::size_t at = find_octet(text, whole, c); at != whole) return at;
    std::size_t at = whole;
    while (at < size && text[at] != c) ++at;
    return at;
}

constexpr unsigned hex_value(unsigned char c) {
    return is_digit(c) ? c - unsigned{'0'} : (c | 0x20U) - unsigned{'a'} + 10U;
}

// uri-host [ ":" port ], RFC 9110 7.2 and RFC 3986 3.2.2.
enum class HostKind : std::uint8_t { kInvalid, kEmpty, kValid };
struct HostParts {
    HostKind kind = HostKind::kInvalid;
    std::string_view host;
    std::string_view port;  // digits only, may be empty
    bool has_port = false;  // a colon was there
};
HostParts parse_host(std::string_view text);

// The same verdict without the parts; quick for a plain name with or without a port.
HostKind judge_host_value(std::string_view text);

// IPv6address of RFC 3986 3.2.2, without the brackets.
bool is_ipv6_address(std::string_view text);

}  // namespace httpmark
