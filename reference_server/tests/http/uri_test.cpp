#include "http/uri.hpp"

#include <string>

#include "http/syntax.hpp"
#include "laws.hpp"

namespace httpmark {
namespace {

std::optional<std::string> decoded(std::string text, bool plus_is_space = false) {
    const auto apart = [&] {
        std::string room(text.size(), '?');
        const auto out = percent_decode(text, room.data(), plus_is_space);
        return out ? std::optional<std::string>(*out) : std::nullopt;
    }();
    const auto in_place = percent_decode(text, text.data(), plus_is_space);
    LAW(in_place.has_value() == apart.has_value() && (!in_place || *in_place == *apart), << text);
    return apart;
}

TEST(Uri, every_pair_of_octets_behind_a_percent) {
    for (int a = 0; a < 256; ++a) {
        for (int b = 0; b < 256; ++b) {
            const std::string text{'x', '%', static_cast<char>(a), static_cast<char>(b), 'y'};
            const bool good = is_hexdig(octet(text[2])) && is_hexdig(octet(text[3]));
            const auto out = decoded(text);
            LAW(out.has_value() == good);
            if (!good) continue;
            const char meant = static_cast<char>(std::stoi(text.substr(2, 2), nullptr, 16));
            LAW(*out == (std::string{'x', meant, 'y'}), << text);
        }
    }
}

TEST(Uri, decoding) {
    LAW(decoded("") == "" && decoded("/a+b") == "/a+b" && decoded("/a+b", true) == "/a b");
    LAW(decoded("%2B+", true) == "+ ");
    LAW(decoded("%2541") == "%41");  // once
    LAW(decoded("%00%2f%2F") == (std::string{'\0', '/', '/'}));
    for (const char* bad : {"%", "%4", "a%", "a%4", "%%41", "%4%41", "%g1", "%1g"}) {
        LAW(!decoded(bad), << bad);
    }
}

TEST(Uri, dot_segments) {
    struct Row {
        const char* path;
        const char* without;
    };
    for (const Row& row : {Row{"/", "/"},
                           {"", ""},
                           {"/a/b/c/./../../g", "/a/g"},  // RFC 3986 5.2.4
                           {"/a", "/a"},
                           {"/a/", "/a/"},
                           {"/.", "/"},
                           {"/./", "/"},
                           {"/..", "/"},
                           {"/../", "/"},
                           {"/../../a", "/a"},
                           {"/a/..", "/"},
                           {"/a/../", "/"},
                           {"/a/b/..", "/a/"},
                           {"/a/.", "/a/"},
                           {"/a//../b", "/a/b"},
                           {"//", "//"},
                           {"//../x", "/x"},
                           {"/a/.../b", "/a/.../b"},
                           {"/a/..b/c", "/a/..b/c"},
                           {"/a/b../c", "/a/b../c"},
                           {"/.a", "/.a"},
                           {"/%2e%2e/a", "/%2e%2e/a"},
                           {"/a/../../../../etc", "/etc"}}) {
        std::string room(row.path);
        LAW(remove_dot_segments(room, room.data()) == row.without, << row.path);
    }
    // Whatever the path, nothing is left that leads anywhere but down.
    Random random(7);
    for (unsigned i = 0; i < 20000; ++i) {
        std::string path = "/";
        for (unsigned k = random() % 12; k > 0; --k) path += "./.a/"[random() % 5];
        std::string room = path;
        const std::string out(remove_dot_segments(path, room.data()));
        LAW(out.starts_with('/') && (out + "/").find("/../") == std::string::npos &&
                (out + "/").find("/./") == std::string::npos,
            << path << " " << out);
        std::string again = out;
        LAW(remove_dot_segments(out, again.data()) == out, << path);
    }
}

}  // namespace
}  // namespace httpmark
