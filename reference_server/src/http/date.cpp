#include "http/date.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <span>
#include <tuple>

#include "http/syntax.hpp"

namespace httpmark {

namespace {

constexpr std::string_view kDays[] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
constexpr std::string_view kLongDays[] = {"Sunday",   "Monday", "Tuesday", "Wednesday",
                                          "Thursday", "Friday", "Saturday"};
constexpr std::string_view kMonths[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                        "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
constexpr std::int64_t kDaySeconds = 86400;
// 0000-01-01 00:00:00 and 9999-12-31 23:59:59.
constexpr std::int64_t kFirst = -62167219200;
constexpr std::int64_t kLast = 253402300799;

struct BrokenDate {
    unsigned weekday = 0;  // from Sunday
    unsigned year = 0;
    unsigned month = 0;  // from 1
    unsigned day = 0;
    unsigned hour = 0;
    unsigned minute = 0;
    unsigned second = 0;
};

BrokenDate broken_date(std::int64_t unix_seconds) {
    std::int64_t days = unix_seconds / kDaySeconds;
    std::int64_t rest = unix_seconds % kDaySeconds;
    if (rest < 0) {
        rest += kDaySeconds;
        --days;
    }
    const std::chrono::sys_days day{std::chrono::days{static_cast<int>(days)}};
    const std::chrono::year_month_day date{day};
    return {std::chrono::weekday{day}.c_encoding(),
            static_cast<unsigned>(static_cast<int>(date.year())),
            static_cast<unsigned>(date.month()),
            static_cast<unsigned>(date.day()),
            static_cast<unsigned>(rest / 3600),
            static_cast<unsigned>(rest / 60 % 60),
            static_cast<unsigned>(rest % 60)};
}

std::optional<std::int64_t> moment_of(const BrokenDate& date) {
    const std::chrono::year_month_day day{std::chrono::year{static_cast<int>(date.year)},
                                          std::chrono::month{date.month},
                                          std::chrono::day{date.day}};
    if (!day.ok() || date.hour > 23 || date.minute > 59 || date.second > 60) return std::nullopt;
    const std::chrono::sys_days days{day};
    if (std::chrono::weekday{days}.c_encoding() != date.weekday) return std::nullopt;
    return std::int64_t{days.time_since_epoch().count()} * kDaySeconds + date.hour * 3600 +
           date.minute * 60 + date.second;
}

// The front of a date, element by element; each gives false where the text is another.
class DateReader {
  public:
    explicit DateReader(std::string_view text) : rest_(text) {}

    bool done() const { return rest_.empty(); }
    bool take(std::string_view text) {
        if (!rest_.starts_with(text)) return false;
        rest_.remove_prefix(text.size());
        return true;
    }
    bool digits(std::size_t count, unsigned& number) {
        if (rest_.size() < count) return false;
        number = 0;
        for (const char c : rest_.substr(0, count)) {
            if (!is_digit(octet(c))) return false;
            number = number * 10 + (octet(c) - unsigned{'0'});
        }
        rest_.remove_prefix(count);
        return true;
    }
    bool name(std::span<const std::string_view> names, unsigned& index) {
        for (index = 0; index < names.size(); ++index) {
            if (take(names[index])) return true;
        }
        return false;
    }
    bool month(BrokenDate& date) {
        if (!name(kMonths, date.month)) return false;
        ++date.month;
        return true;
    }
    bool time(BrokenDate& date) {
        return digits(2, date.hour) && take(":") && digits(2, date.minute) && take(":") &&
               digits(2, date.second);
    }

  private:
    std::string_view rest_;
};

// "Sun, 06 Nov 1994 08:49:37 GMT"
bool read_imf_fixdate(DateReader reader, BrokenDate& date) {
    return reader.name(kDays, date.weekday) && reader.take(", ") && reader.digits(2, date.day) &&
           reader.take(" ") && reader.month(date) && reader.take(" ") &&
           reader.digits(4, date.year) && reader.take(" ") && reader.time(date) &&
           reader.take(" GMT") && reader.done();
}

// "Sun Nov  6 08:49:37 1994"
bool read_asctime_date(DateReader reader, BrokenDate& date) {
    return reader.name(kDays, date.weekday) && reader.take(" ") && reader.month(date) &&
           reader.take(" ") && reader.digits(reader.take(" ") ? 1 : 2, date.day) &&
           reader.take(" ") && reader.time(date) && reader.take(" ") &&
           reader.digits(4, date.year) && reader.done();
}

// "Sunday, 06-Nov-94 08:49:37 GMT"; the year is left with its two digits.
bool read_rfc850_date(DateReader reader, BrokenDate& date) {
    return reader.name(kLongDays, date.weekday) && reader.take(", ") &&
           reader.digits(2, date.day) && reader.take("-") && reader.month(date) &&
           reader.take("-") && reader.digits(2, date.year) && reader.take(" ") &&
           reader.time(date) && reader.take(" GMT") && reader.done();
}

// In which century a year of two digits is.
void choose_century(BrokenDate& date, std::int64_t now) {
    const BrokenDate today = broken_date(std::clamp(now, std::int64_t{0}, kLast));
    const auto in_its_year = [](const BrokenDate& d) {
        return std::tuple(d.month, d.day, d.hour, d.minute, d.second);
    };
    const unsigned latest = today.year + 50;
    date.year += latest / 100 * 100;
    if (date.year > latest || (date.year == latest && in_its_year(date) > in_its_year(today))) {
        date.year -= 100;
    }
}

char* put(char* out, std::string_view text) {
    std::memcpy(out, text.data(), text.size());
    return out + text.size();
}

char* put_two(char* out, unsigned number) {
    *out++ = static_cast<char>('0' + number / 10 % 10);
    *out++ = static_cast<char>('0' + number % 10);
    return out;
}

}  // namespace

bool put_imf_fixdate(std::int64_t unix_seconds, char* out) {
    if (unix_seconds < kFirst || unix_seconds > kLast) return false;
    const BrokenDate date = broken_date(unix_seconds);
    out = put(out, kDays[date.weekday]);
    out = put(out, ", ");
    out = put_two(out, date.day);
    *out++ = ' ';
    out = put(out, kMonths[date.month - 1]);
    *out++ = ' ';
    out = put_two(out, date.year / 100);
    out = put_two(out, date.year % 100);
    *out++ = ' ';
    out = put_two(out, date.hour);
    *out++ = ':';
    out = put_two(out, date.minute);
    *out++ = ':';
    out = put_two(out, date.second);
    put(out, " GMT");
    return true;
}

std::optional<std::int64_t> parse_http_date(std::string_view text, std::int64_t now) {
    BrokenDate date;
    const DateReader reader(text);
    if (read_imf_fixdate(reader, date) || read_asctime_date(reader, date)) return moment_of(date);
    if (!read_rfc850_date(reader, date)) return std::nullopt;
    choose_century(date, now);
    return moment_of(date);
}

}  // namespace httpmark
