#include "files/media_type_of_name.hpp"

#include <string>

#include "laws.hpp"

namespace httpmark {
namespace {

constexpr std::string_view kUnknown = "application/octet-stream";

TEST(MediaTypeOfName, the_extension_decides_whatever_its_case) {
    struct Row {
        std::string_view name;
        std::string_view type;
    };
    for (const Row& row : {Row{"index.html", "text/html"},
                           {"a/b.c/index.HTML", "text/html"},
                           {"app.min.js", "text/javascript"},
                           {"module.mjs", "text/javascript"},
                           {"style.css", "text/css"},
                           {"photo.JPG", "image/jpeg"},
                           {"photo.jpeg", "image/jpeg"},
                           {"icon.svg", "image/svg+xml"},
                           {"data.json", "application/json"},
                           {"notes.txt", "text/plain"},
                           {"font.woff2", "font/woff2"},
                           {"program.wasm", "application/wasm"},
                           {"archive.tar.gz", "application/gzip"},
                           {"a.html.bin", kUnknown},
                           {"html", kUnknown},
                           {"", kUnknown},
                           {"name.", kUnknown},
                           {"folder.html/name", kUnknown},
                           {"a.htmll", kUnknown},
                           {"a.ht", kUnknown},
                           {"a.12345678", kUnknown},
                           {std::string_view("a.\0html", 7), kUnknown},
                           {"a.html ", kUnknown}}) {
        LAW(media_type_of_name(row.name) == row.type, << row.name);
    }
}

// No name leads to anything else than a type and a subtype without parameters.
TEST(MediaTypeOfName, every_extension_of_three_letters) {
    std::string name = "a.xyz";
    unsigned known = 0;
    for (char a = 'a'; a <= 'z'; ++a) {
        for (char b = 'a'; b <= 'z'; ++b) {
            for (char c = 'a'; c <= 'z'; ++c) {
                name.replace(2, 3, {a, b, c});
                const std::string_view type = media_type_of_name(name);
                known += type == kUnknown ? 0 : 1;
                if (type == kUnknown) continue;
                LAW(type.find('/') != type.npos && type.find_first_of("; ") == type.npos, << name);
            }
        }
    }
    LAW(known > 20);
}

}  // namespace
}  // namespace httpmark
