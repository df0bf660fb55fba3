#include "shared/http_date.hpp"

#include <chrono>
#include <cstring>

namespace httpmark {
namespace {

constexpr std::string_view kDays = "SunMonTueWedThuFriSat";
constexpr std::string_view kMonths = "JanFebMarAprMayJunJulAugSepOctNovDec";
constexpr std::int64_t kSecondsPerDay = 86400;

void put_two(char* out, std::int64_t value) {
    out[0] = static_cast<char>('0' + value / 10 % 10);
    out[1] = static_cast<char>('0' + value % 10);
}

// -1 when one of the `count` bytes at `at` is no digit.
int digits(std::string_view text, std::size_t at, std::size_t count) {
    int value = 0;
    for (std::size_t i = at; i < at + count; ++i) {
        if (text[i] < '0' || text[i] > '9') return -1;
        value = value * 10 + (text[i] - '0');
    }
    return value;
}

int name_index(std::string_view names, std::string_view name) {
    for (std::size_t i = 0; i + 3 <= names.size(); i += 3) {
        if (names.substr(i, 3) == name) return static_cast<int>(i / 3);
    }
    return -1;
}

}  // namespace

void format_imf_fixdate(std::int64_t seconds, char* out) {
    using namespace std::chrono;
    const std::int64_t day_number = seconds / kSecondsPerDay;
    const std::int64_t of_day = seconds % kSecondsPerDay;
    const sys_days day{days{static_cast<int>(day_number)}};
    const year_month_day date{day};
    const weekday name{day};
    std::memcpy(out, "Sun, 00 Jan 0000 00:00:00 GMT", kImfFixdateSize);
    std::memcpy(out, kDays.data() + name.c_encoding() * 3, 3);
    put_two(out + 5, static_cast<unsigned>(date.day()));
    std::memcpy(out + 8, kMonths.data() + (static_cast<unsigned>(date.month()) - 1) * 3, 3);
    const int year_number = static_cast<int>(date.year());
    put_two(out + 12, year_number / 100);
    put_two(out + 14, year_number % 100);
    put_two(out + 17, of_day / 3600);
    put_two(out + 20, of_day / 60 % 60);
    put_two(out + 23, of_day % 60);
}

std::optional<std::int64_t> parse_imf_fixdate(std::string_view text) {
    using namespace std::chrono;
    if (text.size() != kImfFixdateSize) return std::nullopt;
    if (text.substr(3, 2) != ", " || text[7] != ' ' || text[11] != ' ' || text[16] != ' ' ||
        text[19] != ':' || text[22] != ':' || text.substr(25) != " GMT") {
        return std::nullopt;
    }
    const int day_name = name_index(kDays, text.substr(0, 3));
    const int day_number = digits(text, 5, 2);
    const int month_index = name_index(kMonths, text.substr(8, 3));
    const int year_number = digits(text, 12, 4);
    const int hour = digits(text, 17, 2);
    const int minute = digits(text, 20, 2);
    const int second = digits(text, 23, 2);
    if (day_name < 0 || day_number < 0 || month_index < 0 || year_number < 0) return std::nullopt;
    // 60 is a leap second, which the grammar allows.
    if (hour < 0 || hour > 23 || minute < 0 || minute > 59 || second < 0 || second > 60) {
        return std::nullopt;
    }
    const year_month_day date{year{year_number}, month{static_cast<unsigned>(month_index) + 1},
                              day{static_cast<unsigned>(day_number)}};
    if (!date.ok()) return std::nullopt;
    const sys_days day_point{date};
    if (weekday{day_point}.c_encoding() != static_cast<unsigned>(day_name)) return std::nullopt;
    return static_cast<std::int64_t>(day_point.time_since_epoch().count()) * kSecondsPerDay +
           hour * 3600 + minute * 60 + second;
}

}  // namespace httpmark
