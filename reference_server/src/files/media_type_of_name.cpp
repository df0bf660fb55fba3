#include "files/media_type_of_name.hpp"

#include <array>
#include <cstdint>
#include <optional>

#include "http/syntax.hpp"

namespace httpmark {

namespace {

constexpr std::string_view kUnknown = "application/octet-stream";
constexpr std::size_t kExtensionMax = 7;

// The bytes of an extension as one number, in lower case; nullopt where there are too many.
constexpr std::optional<std::uint64_t> key_of(std::string_view extension) {
    if (extension.empty() || extension.size() > kExtensionMax) return std::nullopt;
    std::uint64_t key = 1;  // before the first byte, so that zeros count
    for (const char c : extension) key = key << 8 | octet(to_lower(c));
    return key;
}

struct Row {
    std::uint64_t key;
    std::string_view media_type;

    constexpr Row(std::string_view extension, std::string_view type)
        : key(key_of(extension).value()), media_type(type) {}
};

// Those that web sites are made of, the most usual first.
constexpr std::array kRows = {
    Row{"html", "text/html"},
    Row{"js", "text/javascript"},  // RFC 9239
    Row{"css", "text/css"},
    Row{"png", "image/png"},
    Row{"jpg", "image/jpeg"},
    Row{"svg", "image/svg+xml"},
    Row{"json", "application/json"},
    Row{"txt", "text/plain"},
    Row{"woff2", "font/woff2"},
    Row{"webp", "image/webp"},
    Row{"ico", "image/vnd.microsoft.icon"},
    Row{"gif", "image/gif"},
    Row{"jpeg", "image/jpeg"},
    Row{"avif", "image/avif"},
    Row{"mjs", "text/javascript"},
    Row{"htm", "text/html"},
    Row{"xhtml", "application/xhtml+xml"},
    Row{"xml", "application/xml"},
    Row{"wasm", "application/wasm"},
    Row{"map", "application/json"},
    Row{"jsonld", "application/ld+json"},
    Row{"csv", "text/csv"},
    Row{"md", "text/markdown"},
    Row{"ics", "text/calendar"},
    Row{"vtt", "text/vtt"},
    Row{"pdf", "application/pdf"},
    Row{"rtf", "application/rtf"},
    Row{"epub", "application/epub+zip"},
    Row{"bmp", "image/bmp"},
    Row{"tif", "image/tiff"},
    Row{"tiff", "image/tiff"},
    Row{"apng", "image/apng"},
    Row{"woff", "font/woff"},
    Row{"ttf", "font/ttf"},
    Row{"otf", "font/otf"},
    Row{"mp4", "video/mp4"},
    Row{"webm", "video/webm"},
    Row{"ogv", "video/ogg"},
    Row{"mpeg", "video/mpeg"},
    Row{"mp3", "audio/mpeg"},
    Row{"m4a", "audio/mp4"},
    Row{"ogg", "audio/ogg"},
    Row{"opus", "audio/ogg"},
    Row{"wav", "audio/wav"},
    Row{"flac", "audio/flac"},
    Row{"zip", "application/zip"},
    Row{"gz", "application/gzip"},
    Row{"tar", "application/x-tar"},
};

}  // namespace

std::string_view media_type_of_name(std::string_view name) {
    name.remove_prefix(name.rfind('/') + 1);  // of the last segment; npos + 1 is 0
    const std::size_t dot = name.rfind('.');
    if (dot == name.npos) return kUnknown;
    const auto key = key_of(name.substr(dot + 1));
    if (!key) return kUnknown;
    for (const Row& row : kRows) {
        if (row.key == *key) return row.media_type;
    }
    return kUnknown;
}

}  // namespace httpmark
