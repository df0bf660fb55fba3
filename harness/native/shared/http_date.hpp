// IMF-fixdate (RFC 9110 section 5.6.7), the only form a sender may generate.
#ifndef HTTPMARK_NATIVE_SHARED_HTTP_DATE_HPP_
#define HTTPMARK_NATIVE_SHARED_HTTP_DATE_HPP_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace httpmark {

inline constexpr std::size_t kImfFixdateSize = 29;

// Writes exactly kImfFixdateSize bytes, without a terminator. `seconds` counts from 1970 and has
// to lie in the years 1970 to 9999.
void format_imf_fixdate(std::int64_t seconds, char* out);

// The seconds since 1970, or nothing when `text` is not a well-formed IMF-fixdate of an existing
// day whose name of the day agrees with its date.
std::optional<std::int64_t> parse_imf_fixdate(std::string_view text);

}  // namespace httpmark

#endif  // HTTPMARK_NATIVE_SHARED_HTTP_DATE_HPP_
