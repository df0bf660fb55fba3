// Dates of HTTP, RFC 9110 5.6.7. Pure: what time it is, is told.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace httpmark {

inline constexpr std::size_t kImfFixdateSize = 29;

// "Sun, 06 Nov 1994 08:49:37 GMT" into `out`, which has room for kImfFixdateSize. False, and
// nothing written, for a year that has not four digits.
bool put_imf_fixdate(std::int64_t unix_seconds, char* out);

// An HTTP-date in any of its three formats, to the letter: IMF-fixdate, RFC 850 date, asctime date.
// nullopt for anything else, for a day that the calendar does not have, and for one that falls on
// another weekday. A year of two digits is the latest one with these digits that is not more than
// 50 years after `now`. The leap second :60 is the first second of the next minute.
std::optional<std::int64_t> parse_http_date(std::string_view text, std::int64_t now);

}  // namespace httpmark
