#include "http/syntax.hpp"

#include <string>

#include "laws.hpp"

namespace httpmark {
namespace {

TEST(Syntax, classes_have_as_many_members_as_the_grammars_say) {
    unsigned tchar = 0, pchar = 0, hexdig = 0, unreserved = 0, sub_delim = 0, ctl = 0, target = 0;
    for (unsigned i = 0; i < 256; ++i) {
        const auto c = static_cast<unsigned char>(i);
        tchar += is_tchar(c);
        pchar += is_pchar(c);
        hexdig += is_hexdig(c);
        unreserved += is_unreserved(c);
        sub_delim += is_sub_delim(c);
        ctl += is_ctl(c);
        target += is_target_char(c);
    }
    LAW(tchar == 77);
    LAW(unreserved == 66);
    LAW(sub_delim == 11);
    LAW(pchar == 79);
    LAW(target == 82);
    LAW(hexdig == 22);
    LAW(ctl == 33);
}

constexpr const char* kGoodHosts[] = {"a",
                                      "example.org",
                                      "example.org.",
                                      "a:80",
                                      "a:",
                                      "a:00080",
                                      "127.0.0.1:8080",
                                      "[::1]",
                                      "[::1]:80",
                                      "[::]",
                                      "[1:2:3:4:5:6:7:8]",
                                      "[1::8]",
                                      "[::ffff:1.2.3.4]",
                                      "[v1.x]",
                                      "[vF.a:b]",
                                      "a,b",
                                      "a_b",
                                      "%41",
                                      "a%2Fb:1",
                                      "a;b=c",
                                      "[1:2:3:4:5:6:1.2.3.4]",
                                      "a:65535",
                                      "[1:2:3:4:5:6:7::]",
                                      "[::2:3:4:5:6:7:8]"};
constexpr const char* kBadHosts[] = {"a b",
                                     "a\tb",
                                     "u@a",
                                     "u:p@a",
                                     "a/b",
                                     "a?q",
                                     "a#f",
                                     "http://a",
                                     "a:abc",
                                     "a:80:80",
                                     "a:-1",
                                     "a:+1",
                                     "a:65536",
                                     "a:99999",
                                     "a:100000000000",
                                     "[::1",
                                     "::1",
                                     "[::1]x",
                                     "[::g]",
                                     "[1:2:3:4:5:6:7:8:9]",
                                     "[1::2::3]",
                                     "[:1]",
                                     "[1:]",
                                     "[12345::]",
                                     "[]",
                                     "[v.x]",
                                     "[v1.]",
                                     "[1.2.3.4]",
                                     "[::1.2.3]",
                                     "[::1.2.3.256]",
                                     "[::01.2.3.4]",
                                     "%4",
                                     "%zz",
                                     "a%",
                                     "a\x01",
                                     "caf\xc3\xa9",
                                     "\"a\"",
                                     "<a>",
                                     "{a}",
                                     "a\\b",
                                     "a^b",
                                     "a|b",
                                     "a`b",
                                     "[v1x]",
                                     "[1:2:3:4:5:6:7:1.2.3.4]",
                                     "[1:2:3:4:5:6:7]",
                                     "[fe80::1%25eth0]",
                                     "a]",
                                     "a:8 0",
                                     "[1:2:3:4:5:6:7:8::]"};

TEST(Syntax, hosts) {
    for (const char* good : kGoodHosts) {
        LAW(parse_host(good).kind == HostKind::kValid, << good);
        LAW(judge_host_value(good) == HostKind::kValid, << good);
    }
    for (const char* empty : {"", ":", ":80"}) {
        LAW(parse_host(empty).kind == HostKind::kEmpty, << empty);
        LAW(judge_host_value(empty) == HostKind::kEmpty, << empty);
    }
    for (const char* bad : kBadHosts) {
        LAW(parse_host(bad).kind == HostKind::kInvalid, << bad);
        LAW(judge_host_value(bad) == HostKind::kInvalid, << bad);
    }
    LAW(parse_host(std::string_view("a\0b", 3)).kind == HostKind::kInvalid);
}

TEST(Syntax, both_host_judges_agree_on_short_strings) {
    constexpr std::string_view kAlphabet = "a:1[]%.v@ \x7f/F";
    std::string text;
    for (std::size_t length = 0; length <= 4; ++length) {
        std::size_t count = 1;
        for (std::size_t i = 0; i < length; ++i) count *= kAlphabet.size();
        for (std::size_t n = 0; n < count; ++n) {
            text.clear();
            for (std::size_t rest = n, i = 0; i < length; ++i, rest /= kAlphabet.size()) {
                text += kAlphabet[rest % kAlphabet.size()];
            }
            LAW(parse_host(text).kind == judge_host_value(text), << visible(text));
        }
    }
}

TEST(Syntax, host_parts) {
    const HostParts parts = parse_host("[::1]:80");
    LAW(parts.host == "[::1]" && parts.port == "80" && parts.has_port);
    LAW(!parse_host("a").has_port);
    LAW(parse_host("a:").has_port && parse_host("a:").port.empty());
}

TEST(Syntax, small_helpers) {
    LAW(trim_ows(" \t a b\t ") == "a b");
    LAW(trim_ows(" \t").empty());
    LAW(trim_ows("\r a").front() == '\r');
    LAW(equals_ignoring_case("CHunked", "chunked") && !equals_ignoring_case("chunke", "chunked"));
    for (unsigned i = 0; i < 16; ++i) {
        LAW(hex_value(static_cast<unsigned char>("0123456789abcdef"[i])) == i);
        LAW(hex_value(static_cast<unsigned char>("0123456789ABCDEF"[i])) == i);
    }
}

}  // namespace
}  // namespace httpmark
