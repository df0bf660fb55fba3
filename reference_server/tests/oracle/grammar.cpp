#include "grammar.hpp"

#include <algorithm>
#include <array>
#include <cstdint>

namespace httpmark::oracle {

// ---- Characters: RFC 5234 B.1, RFC 9110 5.6.2, RFC 3986 2 ---------------------------------------

bool is_digit(Octet c) {
    return c >= '0' && c <= '9';
}
bool is_alpha(Octet c) {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}
bool is_vchar(Octet c) {
    return c >= 0x21 && c <= 0x7E;
}
bool is_obs_text(Octet c) {
    return c >= 0x80;
}
bool is_whitespace(Octet c) {
    return c == kSp || c == kHtab;
}
bool is_one_of(Octet c, std::string_view set) {
    return set.find(static_cast<char>(c)) != std::string_view::npos;
}

// HEXDIG = DIGIT / "A" / "B" / "C" / "D" / "E" / "F", in either case (RFC 5234 2.3)
bool is_hexdig(Octet c) {
    return is_digit(c) || is_one_of(c, "ABCDEFabcdef");
}

// tchar = "!" / "#" / "$" / "%" / "&" / "'" / "*" / "+" / "-" / "." / "^" / "_" / "`" / "|" / "~"
//       / DIGIT / ALPHA
bool is_tchar(Octet c) {
    return is_digit(c) || is_alpha(c) || is_one_of(c, "!#$%&'*+-.^_`|~");
}

// field-vchar = VCHAR / obs-text; between them SP and HTAB (RFC 9110 5.5)
bool is_field_octet(Octet c) {
    return is_vchar(c) || is_obs_text(c) || is_whitespace(c);
}

// unreserved = ALPHA / DIGIT / "-" / "." / "_" / "~"
bool is_unreserved(Octet c) {
    return is_alpha(c) || is_digit(c) || is_one_of(c, "-._~");
}

// sub-delims = "!" / "$" / "&" / "'" / "(" / ")" / "*" / "+" / "," / ";" / "="
bool is_sub_delim(Octet c) {
    return is_one_of(c, "!$&'()*+,;=");
}

// pchar = unreserved / pct-encoded / sub-delims / ":" / "@", here without pct-encoded
bool is_plain_pchar(Octet c) {
    return is_unreserved(c) || is_sub_delim(c) || is_one_of(c, ":@");
}

// gen-delims = ":" / "/" / "?" / "#" / "[" / "]" / "@"; no form of request-target has a "#"
bool is_uri_octet_but_number_sign(Octet c) {
    return is_unreserved(c) || is_sub_delim(c) || is_one_of(c, ":/?[]@");
}

// What URL parsers of browsers leave as it is in a query, against RFC 3986 3.4.
bool is_browser_query_octet(Octet c) {
    return is_one_of(c, "[]\\^`{|}");
}

// qdtext = HTAB / SP / %x21 / %x23-5B / %x5D-7E / obs-text
bool is_qdtext(Octet c) {
    return is_field_octet(c) && c != '"' && c != '\\';
}

char lower(char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
}

bool same_ignoring_case(std::string_view a, std::string_view b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                      [](char x, char y) { return lower(x) == lower(y); });
}

std::string_view without_whitespace_around(std::string_view text) {
    while (!text.empty() && is_whitespace(static_cast<Octet>(text.front()))) text.remove_prefix(1);
    while (!text.empty() && is_whitespace(static_cast<Octet>(text.back()))) text.remove_suffix(1);
    return text;
}

// ---- Reading a complete text: each rule takes what it matches from the front of `text` ----------
//      or says no, leaving `text` in an undefined state

bool starts(Text text, bool (*fits)(Octet)) {
    return !text.empty() && fits(static_cast<Octet>(text.front()));
}

bool take(Text& text, std::string_view literal) {
    if (!text.starts_with(literal)) return false;
    text.remove_prefix(literal.size());
    return true;
}

// 1*fits when least is 1, *fits when it is 0
bool take_run(Text& text, bool (*fits)(Octet), std::size_t least) {
    std::size_t size = 0;
    while (size < text.size() && fits(static_cast<Octet>(text[size]))) ++size;
    text.remove_prefix(size);
    return size >= least;
}

// token = 1*tchar
bool token(Text& text) {
    return take_run(text, is_tchar, 1);
}

// OWS = *( SP / HTAB ); BWS = OWS
void ows(Text& text) {
    take_run(text, is_whitespace, 0);
}

// quoted-string = DQUOTE *( qdtext / quoted-pair ) DQUOTE
// quoted-pair   = "\" ( HTAB / SP / VCHAR / obs-text )
bool quoted_string(Text& text) {
    if (!take(text, "\"")) return false;
    while (!take(text, "\"")) {
        if (take(text, "\\")) {
            if (!starts(text, is_field_octet)) return false;
        } else if (!starts(text, is_qdtext)) {
            return false;
        }
        text.remove_prefix(1);
    }
    return true;
}

// token / quoted-string
bool token_or_quoted_string(Text& text) {
    return text.starts_with('"') ? quoted_string(text) : token(text);
}

// ---- Authority: RFC 3986 3.2.2, 3.2.3
// ------------------------------------------------------------

// dec-octet = DIGIT / %x31-39 DIGIT / "1" 2DIGIT / "2" %x30-34 DIGIT / "25" %x30-35
bool dec_octet(Text& text) {
    int value = 0;
    std::size_t size = 0;
    while (size < text.size() && size < 3 && is_digit(static_cast<Octet>(text[size]))) {
        value = value * 10 + (text[size++] - '0');
    }
    const bool leading_zero = size > 1 && text.front() == '0';
    text.remove_prefix(size);
    return size > 0 && !leading_zero && value <= 255;
}

// IPv4address = dec-octet "." dec-octet "." dec-octet "." dec-octet
bool ipv4_address(Text text) {
    return dec_octet(text) && take(text, ".") && dec_octet(text) && take(text, ".") &&
           dec_octet(text) && take(text, ".") && dec_octet(text) && text.empty();
}

// h16 = 1*4HEXDIG
bool h16(Text& text) {
    std::size_t size = 0;
    while (size < 4 && starts(text, is_hexdig)) {
        text.remove_prefix(1);
        ++size;
    }
    return size > 0;
}

// ls32 = ( h16 ":" h16 ) / IPv4address
bool ls32(Text text) {
    if (ipv4_address(text)) return true;
    return h16(text) && take(text, ":") && h16(text) && text.empty();
}

// [ *n( h16 ":" ) h16 ], where h16_max is n + 1
bool ipv6_left(Text text, int h16_max) {
    if (text.empty()) return true;
    for (int count = 1; count <= h16_max; ++count) {
        if (!h16(text)) return false;
        if (text.empty()) return true;
        if (!take(text, ":")) return false;
    }
    return false;
}

enum class Ipv6Tail { kNothing, kH16, kLs32 };

// n( h16 ":" ) followed by ls32, by h16 or by nothing
bool ipv6_right(Text text, int count, Ipv6Tail tail) {
    for (int done = 0; done < count; ++done) {
        if (!h16(text) || !take(text, ":")) return false;
    }
    if (tail == Ipv6Tail::kLs32) return ls32(text);
    if (tail == Ipv6Tail::kH16) return h16(text) && text.empty();
    return text.empty();
}

// IPv6address =                            6( h16 ":" ) ls32
//             /                       "::" 5( h16 ":" ) ls32
//             / [               h16 ] "::" 4( h16 ":" ) ls32
//             / [ *1( h16 ":" ) h16 ] "::" 3( h16 ":" ) ls32
//             / [ *2( h16 ":" ) h16 ] "::" 2( h16 ":" ) ls32
//             / [ *3( h16 ":" ) h16 ] "::"    h16 ":"   ls32
//             / [ *4( h16 ":" ) h16 ] "::"              ls32
//             / [ *5( h16 ":" ) h16 ] "::"              h16
//             / [ *6( h16 ":" ) h16 ] "::"
bool ipv6_address(Text text) {
    if (ipv6_right(text, 6, Ipv6Tail::kLs32)) return true;
    const std::size_t gap = text.find("::");
    if (gap == Text::npos) return false;
    const Text left = text.substr(0, gap);
    const Text right = text.substr(gap + 2);
    for (int left_max = 0; left_max <= 5; ++left_max) {
        if (ipv6_left(left, left_max) && ipv6_right(right, 5 - left_max, Ipv6Tail::kLs32)) {
            return true;
        }
    }
    return (ipv6_left(left, 6) && ipv6_right(right, 0, Ipv6Tail::kH16)) ||
           (ipv6_left(left, 7) && ipv6_right(right, 0, Ipv6Tail::kNothing));
}

// IPvFuture = "v" 1*HEXDIG "." 1*( unreserved / sub-delims / ":" )
bool ipv_future(Text text) {
    const auto last = [](Octet c) { return is_unreserved(c) || is_sub_delim(c) || c == ':'; };
    return (take(text, "v") || take(text, "V")) && take_run(text, is_hexdig, 1) &&
           take(text, ".") && take_run(text, last, 1) && text.empty();
}

// pct-encoded = "%" HEXDIG HEXDIG
bool pct_encoded(Text& text) {
    if (!take(text, "%")) return false;
    for (int digits = 0; digits < 2; ++digits) {
        if (!starts(text, is_hexdig)) return false;
        text.remove_prefix(1);
    }
    return true;
}

// reg-name = *( unreserved / pct-encoded / sub-delims ); IPv4address is one of these
bool reg_name(Text& text) {
    for (;;) {
        if (text.starts_with('%')) {
            if (!pct_encoded(text)) return false;
        } else if (starts(text, is_unreserved) || starts(text, is_sub_delim)) {
            text.remove_prefix(1);
        } else {
            return true;
        }
    }
}

// IP-literal = "[" ( IPv6address / IPvFuture ) "]"
bool ip_literal(Text& text) {
    const std::size_t end = text.find(']');
    if (!text.starts_with('[') || end == Text::npos) return false;
    const Text inside = text.substr(1, end - 1);
    text.remove_prefix(end + 1);
    return ipv6_address(inside) || ipv_future(inside);
}

// uri-host [ ":" port ]; host = IP-literal / IPv4address / reg-name; port = *DIGIT, 65535 at most
std::optional<Authority> host_and_port(Text text) {
    Authority authority;
    const std::size_t size = text.size();
    if (text.starts_with('[') ? !ip_literal(text) : !reg_name(text)) return std::nullopt;
    authority.host_is_empty = text.size() == size;
    if (text.empty()) return authority;
    if (!take(text, ":")) return std::nullopt;
    authority.port = text.empty() ? Port::kEmpty : Port::kGiven;
    std::uint64_t port = 0;
    for (const char c : text) {
        if (!is_digit(static_cast<Octet>(c))) return std::nullopt;
        port = std::min<std::uint64_t>(port * 10 + static_cast<std::uint64_t>(c - '0'), 65536);
    }
    if (port > 65535) return std::nullopt;
    return authority;
}

}  // namespace httpmark::oracle
