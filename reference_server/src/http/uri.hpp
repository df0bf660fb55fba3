// What handlers do with a path. The parser does none of it: a request-target is kept as it came.
#pragma once

#include <optional>
#include <string_view>

namespace httpmark {

// RFC 3986 2.1: the bytes that are meant, NUL and '/' among them, into `out`, which has room for
// text.size(). nullopt where a '%' is not followed by two hexadecimal digits. With `plus_is_space`
// as in application/x-www-form-urlencoded. `out` may be where `text` begins.
std::optional<std::string_view> percent_decode(std::string_view text, char* out,
                                               bool plus_is_space = false);

// RFC 3986 5.2.4: an absolute path without its "." and ".." segments, into `out`, which has room
// for path.size(). Never leads above the root. `out` may be where `path` begins. Segments are what
// stands between slashes: whoever wants "%2e" to count decodes first, and once.
std::string_view remove_dot_segments(std::string_view path, char* out);

}  // namespace httpmark
