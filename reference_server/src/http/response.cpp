#include "http/response.hpp"

#include <cstring>
#include <ctime>

#include "check.hpp"
#include "http/syntax.hpp"

namespace httpmark {

namespace {

constexpr std::string_view kDayNames = "SunMonTueWedThuFriSat";
constexpr std::string_view kMonthNames = "JanFebMarAprMayJunJulAugSepOctNovDec";

char* put(char* out, std::string_view text) {
    if (text.empty()) return out;  // memcpy() wants no null pointer, not even for nothing
    std::memcpy(out, text.data(), text.size());
    return out + text.size();
}

char* put_two(char* out, int number) {
    *out++ = static_cast<char>('0' + number / 10 % 10);
    *out++ = static_cast<char>('0' + number % 10);
    return out;
}

struct Decimal {
    std::array<char, 20> digits;
    std::size_t size;
    std::string_view text() const { return {digits.data() + digits.size() - size, size}; }
};
Decimal decimal(std::uint64_t number) {
    Decimal out{};
    do {
        out.digits[out.digits.size() - ++out.size] = static_cast<char>('0' + number % 10);
        number /= 10;
    } while (number != 0);
    return out;
}

}  // namespace

DateLine::DateLine(std::string_view server_name) {
    if (server_name.empty()) return;
    CHECK(server_name.size() <= kServerNameMax);
    char* out = put(text_.data() + kSize, "Server: ");
    out = put(out, server_name);
    out = put(out, "\r\n");
    size_ = static_cast<std::size_t>(out - text_.data());
}

bool DateLine::update(std::int64_t unix_seconds) {
    if (unix_seconds == seconds_) return false;
    seconds_ = unix_seconds;
    const std::time_t time = static_cast<std::time_t>(unix_seconds);
    std::tm broken{};
    CHECK(gmtime_r(&time, &broken) != nullptr);
    char* out = put(text_.data(), "Date: ");
    out = put(out, kDayNames.substr(static_cast<std::size_t>(broken.tm_wday) * 3, 3));
    out = put(out, ", ");
    out = put_two(out, broken.tm_mday);
    *out++ = ' ';
    out = put(out, kMonthNames.substr(static_cast<std::size_t>(broken.tm_mon) * 3, 3));
    *out++ = ' ';
    out = put_two(out, (broken.tm_year + 1900) / 100);
    out = put_two(out, (broken.tm_year + 1900) % 100);
    *out++ = ' ';
    out = put_two(out, broken.tm_hour);
    *out++ = ':';
    out = put_two(out, broken.tm_min);
    *out++ = ':';
    out = put_two(out, broken.tm_sec);
    out = put(out, " GMT\r\n");
    CHECK(out == text_.data() + kSize);
    return true;
}

bool field_is_safe(const Field& field) {
    if (field.name.empty()) return false;
    for (const char c : field.name) {
        if (!is_tchar(octet(c))) return false;
    }
    for (const char c : field.value) {
        if (is_ctl(octet(c)) && c != '\t') return false;
    }
    // These belong to the writer: a handler that set them could break the framing.
    return !equals_ignoring_case(field.name, "content-length") &&
           !equals_ignoring_case(field.name, "transfer-encoding") &&
           !equals_ignoring_case(field.name, "connection") &&
           !equals_ignoring_case(field.name, "date");
}

bool ResponseWriter::head(unsigned status, std::span<const Field> fields,
                          std::uint64_t content_length, std::size_t content_here, char*& content) {
    const bool no_length = status_forbids_length(status);
    if (status_forbids_content(status)) content_length = content_here = 0;
    const std::string_view phrase = status_phrase(status);
    const Decimal length = decimal(content_length);
    std::size_t size = 9 + 4 + phrase.size() + 2 + date_.text().size() + 2;
    for (const Field& field : fields) {
        if (!field_is_safe(field)) {
            fault_ = Reason::kHandlerFailed;
            return false;
        }
        size += field.name.size() + 2 + field.value.size() + 2;
    }
    // RFC 9110 8.6: no Content-Length in 1xx and 204; a 304 may leave it out.
    if (!no_length) size += 16 + length.size + 2;
    if (!options_.allow.empty()) size += 7 + options_.allow.size() + 2;
    constexpr std::string_view kClose = "Connection: close\r\n";
    constexpr std::string_view kKeepAlive = "Connection: keep-alive\r\n";
    const std::string_view connection =
        options_.close ? kClose : (options_.say_keep_alive ? kKeepAlive : std::string_view());
    size += connection.size();
    const std::size_t head_size = size;
    if (!options_.head_request) size += content_here;
    char* const begin = sink_.prepare(size);
    if (begin == nullptr) {
        fault_ = Reason::kNoMemory;
        return false;
    }
    status_ = status;
    content_size_ = options_.head_request ? 0 : content_length;
    char* out = put(begin, "HTTP/1.1 ");
    out = put(out, decimal(status).text());
    *out++ = ' ';
    out = put(out, phrase);
    out = put(out, "\r\n");
    out = put(out, date_.text());
    for (const Field& field : fields) {
        out = put(out, field.name);
        out = put(out, ": ");
        out = put(out, field.value);
        out = put(out, "\r\n");
    }
    if (!options_.allow.empty()) {
        out = put(out, "Allow: ");
        out = put(out, options_.allow);
        out = put(out, "\r\n");
    }
    if (!no_length) {
        out = put(out, "Content-Length: ");
        out = put(out, length.text());
        out = put(out, "\r\n");
    }
    out = put(out, connection);
    out = put(out, "\r\n");
    CHECK(out == begin + head_size);
    content = size == head_size ? nullptr : out;
    return true;
}

bool ResponseWriter::write(unsigned status, std::span<const Field> fields,
                           std::string_view content) {
    char* room = nullptr;
    if (!head(status, fields, content.size(), content.size(), room)) return false;
    if (room != nullptr) put(room, content);
    return true;
}

bool ResponseWriter::start(unsigned status, std::span<const Field> fields, std::size_t size,
                           char*& content) {
    return head(status, fields, size, size, content);
}

bool ResponseWriter::write_fill(unsigned status, std::span<const Field> fields,
                                std::uint64_t size) {
    char* room = nullptr;
    if (!head(status, fields, size, 0, room)) return false;
    if (options_.head_request || status_forbids_content(status)) return true;
    return sink_.append_fill(size);
}

}  // namespace httpmark
