#include "http/uri.hpp"

#include <algorithm>

#include "http/syntax.hpp"

namespace httpmark {

std::optional<std::string_view> percent_decode(std::string_view text, char* out,
                                               bool plus_is_space) {
    char* const begin = out;
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] != '%') {
            *out++ = plus_is_space && text[i] == '+' ? ' ' : text[i];
            continue;
        }
        if (text.size() - i < 3 || !is_hexdig(octet(text[i + 1])) ||
            !is_hexdig(octet(text[i + 2]))) {
            return std::nullopt;
        }
        *out++ =
            static_cast<char>(hex_value(octet(text[i + 1])) << 4 | hex_value(octet(text[i + 2])));
        i += 2;
    }
    return std::string_view(begin, static_cast<std::size_t>(out - begin));
}

std::string_view remove_dot_segments(std::string_view path, char* out) {
    char* const begin = out;
    while (!path.empty()) {
        // One segment with the slash before it.
        const std::size_t end = std::min(path.find('/', 1), path.size());
        const std::string_view segment = path.substr(0, end);
        path.remove_prefix(end);
        const bool up = segment == "/..";
        if (up || segment == "/.") {
            if (up) {
                while (out != begin && *--out != '/') {
                }
            }
            if (path.empty()) *out++ = '/';  // what is left is a folder
            continue;
        }
        out = std::copy(segment.begin(), segment.end(), out);
    }
    return {begin, static_cast<std::size_t>(out - begin)};
}

}  // namespace httpmark
