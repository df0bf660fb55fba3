#include "content/media_type.hpp"

#include <map>
#include <regex>
#include <string>

#include "guard_page.hpp"
#include "http/syntax.hpp"
#include "laws.hpp"
#include "limits.hpp"

namespace httpmark {
namespace {

// At a page that cannot be read, so that a look beyond the end kills the test.
MediaTypeResult parse(std::string_view text) {
    static GuardPage guard;
    const MediaTypeResult at_guard = parse_media_type({guard.place(text), text.size()});
    const MediaTypeResult result = parse_media_type(text);
    LAW(result.fault == at_guard.fault && result.offset == at_guard.offset, << visible(text));
    LAW(result.offset <= text.size(), << visible(text));
    return result;
}

std::string value_of(const MediaTypeResult& result, std::string_view name) {
    const auto parameter = parameter_of(result.media_type, name);
    if (!parameter) return "(none)";
    std::string room(parameter->value);
    return parameter->is_quoted ? std::string(unquote(room, room.data())) : room;
}

TEST(MediaType, what_is_read) {
    const MediaTypeResult plain = parse("Text/HTML");
    LAW(plain.fault == Reason::kNone && plain.offset == 0 && plain.media_type.type == "Text" &&
        plain.media_type.subtype == "HTML" && value_of(plain, "charset") == "(none)");
    const MediaTypeResult full =
        parse(" text/html ;charset=\"u\\tf\\\"-8\" ; ;A=b;; C=\"\"\t; d=\"x;y=z\" ");
    LAW(full.fault == Reason::kNone && full.offset == 0 && value_of(full, "charset") == "utf\"-8" &&
        value_of(full, "a") == "b" && value_of(full, "c").empty() &&
        value_of(full, "d") == "x;y=z" && value_of(full, "y") == "(none)");
}

TEST(MediaType, faults_and_where_they_are) {
    struct Row {
        const char* text;
        Reason fault;
        std::size_t offset;
    };
    constexpr Reason kType = Reason::kMediaTypeSyntax;
    constexpr Reason kParameter = Reason::kParameterSyntax;
    for (const Row& row : {Row{"", kType, 0},
                           {"text", kType, 4},
                           {"/html", kType, 0},
                           {"text/", kType, 5},
                           {"text /html", kType, 4},
                           {"text/ html", kType, 5},
                           {"text/html, text/html", kParameter, 9},
                           {"text/html charset=a", kParameter, 10},
                           {"text/html;a", kParameter, 11},
                           {"text/html;a=", kParameter, 12},
                           {"text/html;a =b", kParameter, 11},
                           {"text/html;a= b", kParameter, 12},
                           {"text/html;=b", kParameter, 10},
                           {"text/html;a=\"b", kParameter, 14},
                           {"text/html;a=\"b\\", kParameter, 15},
                           {"text/html;a=\"b\"c", kParameter, 15},
                           {"text/html;a=\"\x01\"", kParameter, 13},
                           {"text/html;a=\"\\\x01\"", kParameter, 14},
                           {"text/html;a=1;b=2;A=1", Reason::kParameterRepeated, 18}}) {
        const MediaTypeResult result = parse(row.text);
        LAW(result.fault == row.fault && result.offset == row.offset,
            << visible(row.text) << " " << error_row(result.fault).name << "@" << result.offset);
        LAW(result.media_type.type.empty() && result.media_type.parameters.empty());
    }
    std::string many = "a/b";
    for (std::size_t i = 0; i < kMediaTypeParametersMax; ++i)
        many += ";p" + std::to_string(i) + "=1";
    LAW(parse(many).fault == Reason::kNone);
    const MediaTypeResult over = parse(many + ";q=1");
    LAW(over.fault == Reason::kParametersTooMany && over.offset == many.size() + 1);
}

TEST(MediaType, every_octet_in_every_place) {
    for (unsigned c = 0; c < 256; ++c) {
        const char octet_here = static_cast<char>(c);
        const auto with = [&](std::string text) {
            text[text.find('X')] = octet_here;
            return parse(text).fault == Reason::kNone;
        };
        const unsigned char o = static_cast<unsigned char>(c);
        LAW(with("aXa/b") == is_tchar(o), << c);
        LAW(with("a/bXb") == is_tchar(o), << c);
        LAW(with("a/b;pXp=v") == is_tchar(o), << c);
        LAW(with("a/b;p=vXv") == is_tchar(o), << c);
        LAW(with("a/b;p=\"vXv\"") == (is_qdtext(o) || c == '\\'), << c);
        LAW(with("a/b;p=\"v\\X\"") == is_quoted_pair_char(o), << c);
        LAW(with("a/bX") == (is_tchar(o) || is_ows(o) || c == ';'), << c);
    }
}

// The grammar of RFC 9110 8.3.1 and 5.6.6 once more, as an expression.
TEST(MediaType, agrees_with_the_grammar_as_a_regular_expression) {
    const std::string token = "[!#$%&'*+.^_`|~0-9A-Za-z-]+";
    const std::string quoted = "\"(?:[\\t !#-\\[\\]-~]|\\\\[\\t -~])*\"";
    const std::regex grammar("[ \\t]*" + token + "/" + token + "(?:[ \\t]*;[ \\t]*(?:" + token +
                             "=(?:" + token + "|" + quoted + "))?)*[ \\t]*");
    Random random(11);
    unsigned good = 0;
    for (unsigned i = 0; i < 60000; ++i) {
        std::string text = random() % 8 == 0 ? "" : "a/b";
        for (unsigned k = random() % 12; k > 0; --k)
            text += ";;;;==\"\"a b\t\\/,\x01"[random() % 15];
        const MediaTypeResult result = parse(text);
        const bool is_good =
            result.fault == Reason::kNone || result.fault == Reason::kParameterRepeated;
        good += is_good ? 1 : 0;
        LAW(is_good == std::regex_match(text, grammar),
            << visible(text) << " " << error_row(result.fault).name);
    }
    LAW(good > 5000, << good);
}

TEST(MediaType, comparisons) {
    const auto is = [&](std::string_view text, std::string_view lower) {
        return is_media_type(parse(text).media_type, lower);
    };
    LAW(is("Text/Html; a=b", "text/html") && is("text/html", "text/*") && is("a/b", "*/*"));
    LAW(!is("text/html", "text/htm") && !is("text/html", "texts/html") && !is("text/htm", "text"));
    LAW(!is("broken", "*/*") && !is("text/html", "*/html"));
    const auto same = [&](std::string_view a, std::string_view b) {
        const MediaType left = parse(a).media_type;
        const MediaType right = parse(b).media_type;
        LAW(same_media_type(left, right) == same_media_type(right, left), << a << b);
        LAW(same_media_type(left, left) && same_media_type(right, right));
        return same_media_type(left, right);
    };
    LAW(same("Text/Html;A=b; c=d", "text/html ;C=\"d\";a=\"\\b\""));
    LAW(same("a/b;charset=UTF-8", "a/b;charset=\"utf-8\"") && !same("a/b;x=A", "a/b;x=a"));
    LAW(!same("a/b", "a/b;x=1") && !same("a/b;x=1", "a/b;y=1") && !same("a/b", "a/c"));
    LAW(!same("a/b;x=1", "a/b;x=12") && !same("a/b;x=1", "a/b;x=1;y=2") && !same("a/b", "c/b"));
}

TEST(MediaType, quoted_pairs) {
    for (const QuotedPairs pairs : {QuotedPairs::kAll, QuotedPairs::kOnlyNeeded}) {
        const bool all = pairs == QuotedPairs::kAll;
        std::string text = "a\\\"b\\\\c\\d";
        LAW(unquote(text, text.data(), pairs) == (all ? "a\"b\\cd" : "a\"b\\c\\d"));
        LAW(unquote("", text.data(), pairs).empty());
        LAW(unquote("\\", text.data(), pairs) == "\\");
    }
}

TEST(MediaType, what_becomes_smaller) {
    for (const char* type :
         {"text/html", "Text/Plain;charset=utf-8", "application/json", "image/svg+xml",
          "application/problem+JSON", "application/xml", "text/javascript", "application/wasm",
          "application/javascript", "application/rtf", "application/x-ndjson", "application/x-tar",
          "application/vnd.ms-fontobject", "application/atom+xml", "font/otf", "font/ttf",
          "image/bmp", "image/vnd.microsoft.icon"}) {
        LAW(is_compressible(parse(type).media_type), << type);
    }
    for (const char* type : {"image/png", "video/mp4", "application/zip", "font/woff2",
                             "text/event-stream", "application/octet-stream", "broken"}) {
        LAW(!is_compressible(parse(type).media_type), << type);
    }
}

// By what IANA registers; where it registers nothing, by what browsers take.
const std::map<std::string, std::string> kTypesOfFiles = {
    {"/index.html", "text/html"},
    {"INDEX.HTM", "text/html"},
    {"a.b/c.Css", "text/css"},
    {".json", "application/json"},
    {"a.tar.gz", "application/gzip"},
    {"x.js", "text/javascript"},
    {"x.mjs", "text/javascript"},
    {"x.map", "application/json"},
    {"x.jsonld", "application/ld+json"},
    {"x.webmanifest", "application/manifest+json"},
    {"x.wasm", "application/wasm"},
    {"x.txt", "text/plain"},
    {"README.md", "text/markdown"},
    {"x.csv", "text/csv"},
    {"x.ics", "text/calendar"},
    {"x.vtt", "text/vtt"},
    {"x.xml", "application/xml"},
    {"x.xhtml", "application/xhtml+xml"},
    {"x.atom", "application/atom+xml"},
    {"x.rss", "application/rss+xml"},
    {"x.rtf", "application/rtf"},
    {"x.pdf", "application/pdf"},
    {"x.epub", "application/epub+zip"},
    {"x.svg", "image/svg+xml"},
    {"x.png", "image/png"},
    {"x.apng", "image/apng"},
    {"x.gif", "image/gif"},
    {"x.jpg", "image/jpeg"},
    {"x.jpeg", "image/jpeg"},
    {"x.jxl", "image/jxl"},
    {"x.webp", "image/webp"},
    {"x.avif", "image/avif"},
    {"x.bmp", "image/bmp"},
    {"x.ico", "image/vnd.microsoft.icon"},
    {"x.tif", "image/tiff"},
    {"x.tiff", "image/tiff"},
    {"x.aac", "audio/aac"},
    {"x.flac", "audio/flac"},
    {"x.mp3", "audio/mpeg"},
    {"x.oga", "audio/ogg"},
    {"x.ogg", "audio/ogg"},
    {"x.opus", "audio/ogg"},
    {"x.wav", "audio/wav"},
    {"x.weba", "audio/webm"},
    {"x.mp4", "video/mp4"},
    {"x.mpeg", "video/mpeg"},
    {"x.ogv", "video/ogg"},
    {"x.webm", "video/webm"},
    {"x.otf", "font/otf"},
    {"x.ttf", "font/ttf"},
    {"x.woff", "font/woff"},
    {"a.woff2", "font/woff2"},
    {"x.eot", "application/vnd.ms-fontobject"},
    {"x.7z", "application/x-7z-compressed"},
    {"x.tar", "application/x-tar"},
    {"x.xz", "application/x-xz"},
    {"x.zip", "application/zip"},
    {"x.zst", "application/zstd"},
    {"x.bin", "application/octet-stream"},
};

TEST(MediaType, of_files) {
    for (const auto& [path, type] : kTypesOfFiles) {
        LAW(media_type_of_file(path) == type, << path << media_type_of_file(path));
        LAW(parse(type).fault == Reason::kNone);
    }
    for (const char* path :
         {"", "/", "html", "a.html/", "a.html/b", "a.", "a.htmlx", "a.ht",
          "a.123456789012345678901234567890", "a.html\\", "a.html%00", "a.html ", "a.html.bin"}) {
        LAW(media_type_of_file(path) == "application/octet-stream", << path);
    }
}

// No name leads to anything else than a type and a subtype without parameters.
TEST(MediaType, every_extension_of_three_letters) {
    std::string name = "a.xyz";
    unsigned known = 0;
    for (char a = 'a'; a <= 'z'; ++a) {
        for (char b = 'a'; b <= 'z'; ++b) {
            for (char c = 'a'; c <= 'z'; ++c) {
                name.replace(2, 3, {a, b, c});
                const std::string_view type = media_type_of_file(name);
                if (type == "application/octet-stream") continue;
                ++known;
                LAW(type.find('/') != type.npos && type.find_first_of("; ") == type.npos, << name);
            }
        }
    }
    LAW(known > 20);
}

}  // namespace
}  // namespace httpmark
