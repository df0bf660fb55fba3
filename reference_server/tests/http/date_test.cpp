#include "http/date.hpp"

#include <ctime>
#include <string>
#include <vector>

#include "guard_page.hpp"
#include "laws.hpp"

namespace httpmark {
namespace {

constexpr std::int64_t kNow = 1795312800;  // 2026-11-22
constexpr const char* kImf = "%a, %d %b %Y %H:%M:%S GMT";
constexpr const char* kRfc850 = "%A, %d-%b-%y %H:%M:%S GMT";
constexpr const char* kAsctime = "%a %b %e %H:%M:%S %Y";
constexpr const char* kAsctimeTwoDigits = "%a %b %d %H:%M:%S %Y";  // of a day before the tenth

std::string as(const char* format, const std::tm& broken) {
    std::string padded = format;  // "%Y" alone writes the year 0 as one digit
    if (const std::size_t year = padded.find("%Y"); year != padded.npos)
        padded.insert(year + 1, "04");
    char text[80];
    return {text, std::strftime(text, sizeof text, padded.c_str(), &broken)};
}
std::string as(const char* format, std::int64_t seconds) {
    const std::time_t time = seconds;
    std::tm broken{};
    gmtime_r(&time, &broken);
    return as(format, broken);
}

std::optional<std::int64_t> parse(std::string_view text, std::int64_t now = kNow) {
    static GuardPage guard;
    return parse_http_date({guard.place(text), text.size()}, now);
}

// With the C library alone: a date is what reads as one and is then written as the same text.
std::optional<std::int64_t> read_by_c_library(const std::string& text, const char* format,
                                              std::int64_t now) {
    std::tm broken{};
    std::string plain = text;
    const std::size_t leap = plain.find(":60 ");
    if (leap != std::string::npos) plain.replace(leap, 3, ":59");
    const char* const end = strptime(plain.c_str(), format, &broken);
    if (end == nullptr || *end != '\0') return std::nullopt;
    if (std::string_view(format) == kRfc850) {
        // The latest year with these digits, of which no day lies more than 50 years ahead.
        const std::time_t time = now;
        std::tm limit{};
        gmtime_r(&time, &limit);
        limit.tm_year += 50;
        int year = limit.tm_year;
        const int digits = broken.tm_year % 100;
        while (year % 100 != digits) --year;
        std::tm there = broken;
        there.tm_year = year;
        broken.tm_year = timegm(&there) > timegm(&limit) ? year - 100 : year;
    }
    const std::int64_t seconds = timegm(&broken);
    if (as(format, seconds) != plain) return std::nullopt;
    return seconds + (leap != std::string::npos ? 1 : 0);
}

std::optional<std::int64_t> read_by_c_library(const std::string& text, std::int64_t now = kNow) {
    for (const char* format : {kImf, kRfc850, kAsctime, kAsctimeTwoDigits}) {
        if (const auto seconds = read_by_c_library(text, format, now)) return seconds;
    }
    return std::nullopt;
}

TEST(Date, every_day_of_800_years_is_written_and_read) {
    for (std::int64_t day = -135140; day < 157054; ++day) {  // 1600 to 2399
        const std::int64_t seconds = day * 86400 + (day * 7919 % 86400 + 86400) % 86400;
        char text[kImfFixdateSize];
        LAW(put_imf_fixdate(seconds, text));
        const std::string imf(text, sizeof text);
        LAW(imf == as(kImf, seconds), << imf);
        LAW(parse_http_date(imf, kNow) == seconds, << imf);
        LAW(parse_http_date(as(kAsctime, seconds), kNow) == seconds, << imf);
    }
}

TEST(Date, years_of_four_digits_only_are_written) {
    char text[kImfFixdateSize];
    std::string unchanged(sizeof text, '?');
    for (const std::int64_t seconds :
         {std::int64_t{-62167219201}, std::int64_t{253402300800}, INT64_MIN, INT64_MAX}) {
        unchanged.copy(text, sizeof text);
        LAW(!put_imf_fixdate(seconds, text));
        LAW(std::string_view(text, sizeof text) == unchanged);
    }
    LAW(put_imf_fixdate(-62167219200, text));
    LAW(std::string_view(text, sizeof text) == "Sat, 01 Jan 0000 00:00:00 GMT");
    LAW(parse({text, sizeof text}) == -62167219200);
    LAW(put_imf_fixdate(253402300799, text));
    LAW(std::string_view(text, sizeof text) == "Fri, 31 Dec 9999 23:59:59 GMT");
    LAW(parse({text, sizeof text}) == 253402300799);
}

TEST(Date, a_year_of_two_digits_is_at_most_fifty_years_ahead) {
    for (const std::int64_t now : {kNow, std::int64_t{0}, std::int64_t{4089225600}}) {
        for (std::int64_t day = -18000; day < 18000; ++day) {
            const std::int64_t seconds = now + day * 86400 + day;
            const std::string text = as(kRfc850, seconds);
            LAW(parse(text, now) == seconds, << text << " at " << now);
        }
        // 50 years and a second ahead is 50 years ago, all but a second.
        std::tm broken{};
        const std::time_t time = now;
        gmtime_r(&time, &broken);
        broken.tm_year += 50;
        const std::int64_t edge = timegm(&broken);
        LAW(parse(as(kRfc850, edge), now) == edge);
        const std::string beyond = as(kRfc850, edge + 1);
        LAW(parse(beyond, now) == read_by_c_library(beyond, now), << beyond);
        LAW(parse(beyond, now) != edge + 1, << beyond);
    }
}

TEST(Date, one_changed_byte_makes_another_date_or_none) {
    for (const char* format : {kImf, kRfc850, kAsctime}) {
        for (const std::int64_t seconds : {std::int64_t{784111777}, std::int64_t{951782399}}) {
            const std::string text = as(format, seconds);
            LAW(parse(text) == seconds, << text);
            for (std::size_t at = 0; at <= text.size(); ++at) {
                LAW(parse(text.substr(0, at)) == (at == text.size() ? parse(text) : std::nullopt));
                for (int c = 1; c < 256; ++c) {  // the C library stops at NUL
                    std::string other = text;
                    other.insert(at, 1, static_cast<char>(c));
                    LAW(parse(other) == read_by_c_library(other), << visible(other));
                    if (at == text.size()) continue;
                    other = text;
                    other[at] = static_cast<char>(c);
                    LAW(parse(other) == read_by_c_library(other), << visible(other));
                }
                std::string other = text;
                other.insert(at, 1, '\0');
                LAW(!parse(other), << visible(other));
                if (at < text.size()) LAW(!parse(text.substr(0, at) + text.substr(at + 1)));
            }
        }
    }
}

TEST(Date, fields_out_of_range_are_no_date) {
    for (const char* bad : {"",
                            "nonsense",
                            "0",
                            "Sun, 6 Nov 1994 08:49:37 GMT",
                            "Sun, 06 Nov 1994 08:49:37",
                            "Sun, 06 Nov 1994 08:49:37 UTC",
                            "Sun, 06 Nov 1994 08:49:37 +0000",
                            "sun, 06 Nov 1994 08:49:37 GMT",
                            "Sun, 06 NOV 1994 08:49:37 GMT",
                            "Mon, 06 Nov 1994 08:49:37 GMT",
                            "Sunday, 06 Nov 1994 08:49:37 GMT",
                            "Sun, 06-Nov-94 08:49:37 GMT",
                            "Thu, 29 Feb 2001 00:00:00 GMT",
                            "Tue, 31 Nov 1994 00:00:00 GMT",
                            "Sun, 06 Nov 1994 24:00:00 GMT",
                            "Sun, 06 Nov 1994 08:60:00 GMT",
                            "Sun, 06 Nov 1994 08:49:61 GMT",
                            "Sun Nov 06  08:49:37 1994",
                            "Sun Nov 6 08:49:37 1994",
                            "Sun Nov  6 08:49:37 94",
                            "Sun, 06 Nov 1994 08:49:37 GMT, Sun, 06 Nov 1994 08:49:37 GMT"}) {
        LAW(!parse(bad), << bad);
        LAW(!read_by_c_library(bad), << bad);
    }
    LAW(parse("Tue, 29 Feb 2000 00:00:00 GMT") == 951782400);
    LAW(parse("Sat, 31 Dec 2016 23:59:60 GMT") == 1483228800);
    LAW(parse("Sun Nov 06 08:49:37 1994") == 784111777);  // 2DIGIT may begin with a zero
}

}  // namespace
}  // namespace httpmark
