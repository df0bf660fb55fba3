#include "files/target_path.hpp"

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "guard_page.hpp"
#include "http/syntax.hpp"
#include "http/uri.hpp"
#include "laws.hpp"

namespace httpmark {
namespace {

struct Named {
    PathFault fault;
    std::string name;
};

Named named(std::string_view path, const TargetPath::Options& options = {}) {
    static GuardPage guard;
    const TargetPath target({guard.place(path), path.size()}, options);
    LAW(std::string_view(target.name()) == target.name_view(), << visible(path));
    return {target.fault(), std::string(target.name_view())};
}

std::vector<std::string> segments_of(const std::string& path) {
    std::vector<std::string> out;
    std::size_t begin = path.starts_with('/') ? 1 : 0;
    while (true) {
        const std::size_t slash = path.find('/', begin);
        out.push_back(path.substr(begin, slash - begin));
        if (slash == path.npos) return out;
        begin = slash + 1;
    }
}

// Only dots are decoded, as if no other byte could be encoded.
std::string with_plain_dots(std::string text) {
    for (const char* dot : {"%2e", "%2E"}) {
        for (std::size_t at; (at = text.find(dot)) != text.npos;) text.replace(at, 3, ".");
    }
    return text;
}

// What can be wrong with a path, each judged by itself over the whole of it.
std::map<PathFault, bool> faults_of(const std::string& path, bool hidden_too) {
    std::map<PathFault, bool> out;
    std::string room(path.size(), '\0');
    out[PathFault::kPercent] = !percent_decode(path, room.data());
    const auto holds = [&](const char* text) { return path.find(text) != path.npos; };
    out[PathFault::kNul] = holds("%00");
    out[PathFault::kSeparator] = holds("%2f") || holds("%2F") || holds("%5c") || holds("%5C");
    out[PathFault::kNoSlash] = !path.empty() && path[0] != '/';
    out[PathFault::kEmptySegment] = holds("//");
    for (const char c : path) {
        if (!is_pchar(octet(c)) && c != '/' && c != '%') out[PathFault::kOctet] = true;
    }
    for (const std::string& segment : segments_of(with_plain_dots(path))) {
        const bool is_dots = segment == "." || segment == "..";
        if (is_dots) out[PathFault::kDotSegment] = true;
        if (!is_dots && !hidden_too && segment.starts_with('.')) out[PathFault::kHidden] = true;
    }
    // "../x" is what the file system makes of a name that climbs, wherever it does.
    const std::string below = with_plain_dots(path).substr(path.starts_with('/') ? 1 : 0);
    out[PathFault::kAboveRoot] = *std::filesystem::path(below).lexically_normal().begin() == "..";
    return out;
}

void check_against_oracle(const std::string& path, bool hidden_too) {
    const Named got = named(path, {hidden_too, "i"});
    const std::map<PathFault, bool> wrong = faults_of(path, hidden_too);
    bool any = false;
    bool any_but_dots = false;
    for (const auto& [fault, is_there] : wrong) {
        any |= is_there;
        any_but_dots |= is_there && fault != PathFault::kDotSegment;
    }
    LAW((got.fault == PathFault::kNone) == !any, << visible(path));
    if (got.fault != PathFault::kNone) {
        const auto found = wrong.find(got.fault);
        LAW(found != wrong.end() && found->second,
            << visible(path) << " has no fault " << static_cast<int>(got.fault));
        LAW(got.name.empty());
        LAW(got.fault != PathFault::kDotSegment || !any_but_dots, << visible(path));
        return;
    }
    std::string room(path.size(), '\0');
    std::string meant(*percent_decode(path, room.data()));
    if (meant.ends_with('/')) meant += 'i';
    LAW((path.empty() ? "" : "/" + got.name) == meant, << visible(path) << " " << got.name);
    if (path.empty()) return;
    // Nothing that the system could take for more than a name beneath.
    LAW(std::filesystem::path(got.name).lexically_normal() == got.name, << got.name);
    for (const std::string& segment : segments_of(got.name)) {
        LAW(!segment.empty() && segment != "." && segment != "..", << got.name);
        LAW(hidden_too || segment[0] != '.', << got.name);
    }
    LAW(got.name.find('\0') == got.name.npos && got.name.find('\\') == got.name.npos);
}

TEST(TargetPath, every_path_of_five_pieces) {
    const std::vector<std::string> pieces = {"/",  ".",      "%2e", "%2E", "a",  "%61",
                                             "..", "%2f",    "%5C", "%00", "\\", "%",
                                             ";",  "%c0%ae", "%25", " "};
    std::vector<std::string> paths = {""};
    for (unsigned length = 0; length < 5; ++length) {
        std::vector<std::string> longer;
        for (const std::string& path : paths) {
            check_against_oracle(path, false);
            check_against_oracle(path, true);
            // Without a slash there is but one thing wrong with it.
            if (length > 0 && path[0] != '/') continue;
            for (const std::string& piece : pieces) longer.push_back(path + piece);
        }
        paths = std::move(longer);
    }
    for (const std::string& path : paths) check_against_oracle(path, path.size() % 2 == 0);
}

TEST(TargetPath, every_byte_raw_and_encoded) {
    for (int c = 0; c < 256; ++c) {
        char encoded[4];
        std::snprintf(encoded, sizeof encoded, "%%%02x", static_cast<unsigned>(c));
        for (const std::string& byte :
             {std::string(1, static_cast<char>(c)), std::string(encoded)}) {
            for (const std::string& path : {"/" + byte, "/x" + byte, "/" + byte + "x/y",
                                            "/y/" + byte + byte, "/x" + byte + "/"}) {
                check_against_oracle(path, false);
                check_against_oracle(path, true);
            }
        }
    }
}

TEST(TargetPath, it_is_decoded_once) {
    LAW(named("/%2541").name == "%41" && named("/%252e%252e/x").name == "%2e%2e/x");
    LAW(named("/%252fetc").name == "%2fetc");
    LAW(named("/%25%30%30").name == "%00" && named("/%2500").name == "%00");
}

TEST(TargetPath, what_is_no_utf_8_is_bytes) {
    LAW(named("/%c0%ae%c0%ae/x").name == "\xC0\xAE\xC0\xAE/x");
    LAW(named("/%e0%80%ae%ff").name == "\xE0\x80\xAE\xFF");
    LAW(named("/%uff0e").fault == PathFault::kPercent);
}

TEST(TargetPath, a_slash_at_the_end_stands_for_the_index) {
    LAW(named("/").name == "index.html" && named("/a/").name == "a/index.html");
    LAW(named("/a/", {false, "default.htm"}).name == "a/default.htm");
    LAW(named("").name.empty() && named("").fault == PathFault::kNone);
    LAW(named("/a").name == "a" && named("/a/b").name == "a/b");
}

TEST(TargetPath, a_name_is_as_long_as_the_system_takes) {
    for (const bool slashes : {false, true}) {
        for (const std::size_t over : {0U, 1U, 2U, 5000U}) {
            std::string path = "/";
            for (std::size_t i = 0; i < TargetPath::kNameMax + over; ++i) {
                path += slashes && i % 2 == 1 && i + 1 < TargetPath::kNameMax + over ? "/" : "%41";
            }
            const Named got = named(path);
            LAW((got.fault == PathFault::kTooLong) == (over > 0), << over);
            LAW(got.name.size() == (over > 0 ? 0 : TargetPath::kNameMax), << over);
        }
    }
    const std::string index = "index.html";
    for (const std::size_t room : {index.size() + 1, index.size()}) {
        const std::string path = "/" + std::string(TargetPath::kNameMax - room, 'a') + "/";
        LAW((named(path).fault == PathFault::kNone) == (room > index.size()), << room);
    }
}

// RFC 3986 6.2.2.3 by the C++ library's rules for file names.
TEST(TargetPath, without_dot_segments_it_names_what_it_named) {
    Random random(11);
    unsigned seen = 0;
    for (unsigned i = 0; i < 60000; ++i) {
        const char* const pieces[] = {"/a", "/%62c", "/.", "/..", "/%2e", "/.%2E", "/%2e%2e", "/d"};
        std::string path;
        for (unsigned k = 1 + random() % 6; k > 0; --k) path += pieces[random() % 8];
        if (random() % 2 == 0) path += "/";
        check_against_oracle(path, false);
        if (named(path).fault != PathFault::kDotSegment) continue;
        ++seen;
        const std::string plain = without_dot_segments(path);
        const auto normal = std::filesystem::path(with_plain_dots(path)).lexically_normal();
        LAW(plain == normal.string(), << path << " " << plain);
        LAW(named(plain).fault == PathFault::kNone, << path << " " << plain);
        LAW(plain.starts_with('/') && !plain.starts_with("//"), << path);
    }
    LAW(seen > 10000);
}

}  // namespace
}  // namespace httpmark
