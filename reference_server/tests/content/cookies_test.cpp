#include "content/cookies.hpp"

#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "guard_page.hpp"
#include "laws.hpp"

namespace httpmark {
namespace {

using Pairs = std::vector<std::pair<std::string, std::string>>;

Pairs read(std::string_view value) {
    static GuardPage guard;
    CookieReader reader({guard.place(value), value.size()});
    Pairs out;
    Cookie cookie;
    while (reader.next(cookie)) out.emplace_back(cookie.name, cookie.value);
    return out;
}

std::string trimmed(const std::string& text) {
    const std::size_t begin = text.find_first_not_of(" \t");
    if (begin == std::string::npos) return "";
    return text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

Pairs naive_pairs(const std::string& value) {
    Pairs out;
    std::string pair;
    for (const char c : value + ";") {
        if (c != ';') {
            pair += c;
            continue;
        }
        pair = trimmed(pair);
        const std::size_t equals = pair.find('=');
        if (equals != std::string::npos) {
            out.emplace_back(trimmed(pair.substr(0, equals)), trimmed(pair.substr(equals + 1)));
        } else if (!pair.empty()) {
            out.emplace_back("", pair);
        }
        pair.clear();
    }
    return out;
}

TEST(Cookies, what_a_client_sends) {
    LAW(read("a=1; b=2") == (Pairs{{"a", "1"}, {"b", "2"}}));
    LAW(read("a=1;b=2;") == (Pairs{{"a", "1"}, {"b", "2"}}));
    LAW(read("a=\"x=y\"; b; =c; ; d= ") ==
        (Pairs{{"a", "\"x=y\""}, {"", "b"}, {"", "c"}, {"d", ""}}));
    LAW(read("").empty() && read(" ; ;\t;").empty());
    LAW(find_cookie("a=1; A=2; a=3", "a") == "1" && find_cookie("a=1; A=2", "A") == "2");
    LAW(!find_cookie("aa=1; b=a=2", "a") && find_cookie("b=a=2", "b") == "a=2");
}

TEST(Cookies, any_octets_give_the_pairs_of_the_naive_reader) {
    Random random(5);
    for (unsigned i = 0; i < 30000; ++i) {
        std::string text;
        for (unsigned k = random() % 24; k > 0; --k) {
            text += random() % 6 == 0 ? static_cast<char>(random()) : "a=; \t\",=;"[random() % 9];
        }
        LAW(read(text) == naive_pairs(text), << visible(text));
        // What stands before a ';' is not changed by what follows it, nor the other way round.
        const std::size_t cut = text.find(';');
        if (cut == std::string::npos) continue;
        Pairs halves = read(text.substr(0, cut));
        for (auto& pair : read(text.substr(cut))) halves.push_back(std::move(pair));
        LAW(halves == read(text), << visible(text));
    }
}

SetCookieResult write(const SetCookie& cookie, std::string& room) {
    room.assign(10000, '#');
    const SetCookieResult result = write_set_cookie(cookie, room);
    LAW(result.fault == judge_set_cookie(cookie));
    LAW((result.fault == SetCookieFault::kNone) == !result.value.empty());
    // Room for it exactly, and for one byte less.
    std::string exact(result.value.size(), '#');
    if (!result.value.empty()) {
        LAW(write_set_cookie(cookie, exact).value == result.value);
        exact.pop_back();
        LAW(write_set_cookie(cookie, exact).fault == SetCookieFault::kNoRoom);
    }
    return result;
}

// As a client reads it, RFC 6265bis 5.6: the attributes by name in lower case.
struct Understood {
    std::string name;
    std::string value;
    std::map<std::string, std::string> attributes;
};
Understood understood(std::string_view field) {
    Understood out;
    bool is_first = true;
    for (auto& [name, value] : naive_pairs(std::string(field))) {
        std::string lower = name.empty() ? value : name;
        if (is_first) {
            out.name = name;
            out.value = value;
        } else {
            for (char& c : lower)
                c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
            LAW(out.attributes.emplace(lower, name.empty() ? "" : value).second, << lower);
        }
        is_first = false;
    }
    return out;
}

TEST(Cookies, what_is_written) {
    std::string room;
    LAW(write({.name = "a", .value = ""}, room).value == "a=");
    LAW(write({.name = "__Host-id",
               .value = "\"x/y\"",
               .path = "/",
               .max_age_s = 3600,
               .expires_unix_s = 784111777,
               .is_secure = true,
               .is_http_only = true,
               .is_partitioned = true,
               .same_site = SameSite::kNone},
              room)
            .value ==
        "__Host-id=\"x/y\"; Expires=Sun, 06 Nov 1994 08:49:37 GMT; Max-Age=3600; Path=/; "
        "SameSite=None; Secure; HttpOnly; Partitioned");
    LAW(write({.name = "a", .value = "b", .domain = "example.org", .same_site = SameSite::kLax},
              room)
            .value == "a=b; Domain=example.org; SameSite=Lax");
    LAW(write({.name = "a", .value = "b", .max_age_s = -1, .same_site = SameSite::kStrict}, room)
            .value == "a=b; Max-Age=-1; SameSite=Strict");
    for (const std::int64_t seconds :
         {std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::int64_t>::max()}) {
        LAW(write({.name = "a", .value = "b", .max_age_s = seconds}, room).value ==
            "a=b; Max-Age=" + std::to_string(seconds));
    }
}

// Whatever stands in a text that the application gives: a client reads that text back, or the
// cookie is refused.
TEST(Cookies, no_octet_breaks_the_field) {
    std::string room;
    for (unsigned a = 0; a < 256; ++a) {
        for (const unsigned b : {unsigned{'x'}, unsigned{';'}, unsigned{'"'}, unsigned{' '}, a}) {
            const std::string text{'/', static_cast<char>(a), static_cast<char>(b), 'z'};
            const std::string name = text.substr(1);
            for (const SetCookie& cookie :
                 {SetCookie{.name = name, .value = "v"}, SetCookie{.name = "n", .value = name},
                  SetCookie{.name = "n", .value = "v", .domain = name},
                  SetCookie{.name = "n", .value = "v", .path = text}}) {
                const SetCookieResult result = write(cookie, room);
                if (result.fault != SetCookieFault::kNone) continue;
                const Understood back = understood(result.value);
                LAW(back.name == cookie.name && back.value == cookie.value, << visible(name));
                LAW(back.attributes.size() ==
                    (cookie.domain.empty() ? 0U : 1U) + (cookie.path.empty() ? 0U : 1U));
                for (const auto& [key, value] : back.attributes) {
                    LAW(value == (key == "path" ? cookie.path : cookie.domain), << visible(text));
                }
                for (const char c : result.value) LAW(c >= 0x20 && c < 0x7F, << visible(text));
            }
        }
    }
}

TEST(Cookies, what_is_refused) {
    const std::string long_text(4096, 'a');
    struct Row {
        SetCookie cookie;
        SetCookieFault fault;
    };
    using enum SetCookieFault;
    const std::string folder = "/" + long_text.substr(0, 1024);
    std::string room;
    for (const Row& row :
         {Row{{.name = "", .value = "v"}, kName},
          Row{{.name = "a=b", .value = "v"}, kName},
          Row{{.name = "a", .value = "b;c"}, kValue},
          Row{{.name = "a", .value = "b\r\nX: y"}, kValue},
          Row{{.name = "a", .value = "\""}, kValue},
          Row{{.name = "a", .value = "\"b"}, kValue},
          Row{{.name = "a", .value = "b c"}, kValue},
          Row{{.name = "a", .value = "\xC3\xA9"}, kValue},
          Row{{.name = "a", .value = long_text}, kTooLong},
          Row{{.name = "a", .value = std::string_view(long_text).substr(1)}, kNone},
          Row{{.name = "a", .value = "b", .path = folder}, kTooLong},
          Row{{.name = "a", .value = "b", .domain = "a..b"}, kDomain},
          Row{{.name = "a", .value = "b", .domain = "."}, kDomain},
          Row{{.name = "a", .value = "b", .domain = "a."}, kDomain},
          Row{{.name = "a", .value = "b", .domain = ".a-1._b.C9"}, kNone},
          Row{{.name = "a", .value = "b", .path = "x"}, kPath},
          Row{{.name = "a", .value = "b", .path = "/;Secure"}, kPath},
          Row{{.name = "a", .value = "b", .expires_unix_s = 253402300800}, kExpires},
          Row{{.name = "a", .value = "b", .expires_unix_s = 253402300799}, kNone},
          Row{{.name = "a", .value = "b", .expires_unix_s = -11644473601}, kExpires},
          Row{{.name = "a", .value = "b", .expires_unix_s = -11644473600}, kNone},
          Row{{.name = "__SECURE-a", .value = "b"}, kPrefix},
          Row{{.name = "__Secure-a", .value = "b", .is_secure = true}, kNone},
          Row{{.name = "__host-a", .value = "b", .path = "/"}, kPrefix},
          Row{{.name = "__Host-a", .value = "b", .path = "/x", .is_secure = true}, kPrefix},
          Row{{.name = "__Host-a", .value = "b", .is_secure = true}, kPrefix},
          Row{{.name = "__Host-a", .value = "b", .domain = "a", .path = "/", .is_secure = true},
              kPrefix},
          Row{{.name = "__Host-a", .value = "b", .path = "/", .is_secure = true}, kNone},
          Row{{.name = "a", .value = "b", .same_site = SameSite::kNone}, kNotSecure},
          Row{{.name = "a", .value = "b", .is_partitioned = true}, kNotSecure}}) {
        LAW(write(row.cookie, room).fault == row.fault,
            << visible(row.cookie.name) << "=" << visible(row.cookie.value) << " "
            << static_cast<int>(judge_set_cookie(row.cookie)));
    }
}

}  // namespace
}  // namespace httpmark
