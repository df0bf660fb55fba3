// The rules that hold wherever text has been read whole: characters, words, authorities. Each under
// the line of the RFC that it implements, in grammar.cpp.
#pragma once

#include <optional>
#include <string_view>

namespace httpmark::oracle {

using Octet = unsigned char;

constexpr Octet kCr = 0x0D;
constexpr Octet kLf = 0x0A;
constexpr Octet kSp = 0x20;
constexpr Octet kHtab = 0x09;

bool is_digit(Octet c);
bool is_alpha(Octet c);
bool is_vchar(Octet c);
bool is_obs_text(Octet c);
bool is_whitespace(Octet c);
bool is_one_of(Octet c, std::string_view set);
bool is_hexdig(Octet c);
bool is_tchar(Octet c);
bool is_field_octet(Octet c);
bool is_unreserved(Octet c);
bool is_sub_delim(Octet c);
bool is_plain_pchar(Octet c);
bool is_uri_octet_but_number_sign(Octet c);
bool is_browser_query_octet(Octet c);
bool is_qdtext(Octet c);
char lower(char c);
bool same_ignoring_case(std::string_view a, std::string_view b);
std::string_view without_whitespace_around(std::string_view text);

// Each takes what it matches from the front of `text`, or says no, leaving `text` in an undefined
// state.
using Text = std::string_view;

bool starts(Text text, bool (*fits)(Octet));
bool take(Text& text, std::string_view literal);
bool take_run(Text& text, bool (*fits)(Octet), std::size_t least);
bool token(Text& text);
void ows(Text& text);
bool quoted_string(Text& text);
bool token_or_quoted_string(Text& text);

// #element => [ element ] *( OWS "," OWS [ element ] ), as recipients read it (RFC 9110 5.6.1.2)
template <typename Element>
bool list(Text text, Element element) {
    for (;;) {
        if (!text.empty() && !text.starts_with(',') && !element(text)) return false;
        ows(text);
        if (text.empty()) return true;
        if (!take(text, ",")) return false;
        ows(text);
    }
}

enum class Port { kAbsent, kEmpty, kGiven };

struct Authority {
    bool host_is_empty = false;
    Port port = Port::kAbsent;
};

std::optional<Authority> host_and_port(Text text);
bool pct_encoded(Text& text);

}  // namespace httpmark::oracle
