// Forms, cookies and media types: readers of a text that is there whole. Each ends, hands out views
// of the text in its order, and agrees with itself.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

#include "check.hpp"
#include "content/cookies.hpp"
#include "content/form.hpp"
#include "content/json_writer.hpp"
#include "content/media_type.hpp"
#include "http/syntax.hpp"

namespace {

using namespace httpmark;

void read_form(std::string_view text, BrokenPercent broken_percent) {
    const FormLimits limits{20};
    FormReader reader(text, limits, broken_percent);
    FormField field;
    const char* at = text.data();
    std::uint64_t fields = 0;
    while (reader.next(field)) {
        CHECK(field.name.data() >= at && field.value.data() >= field.name.data());
        at = field.value.data() + field.value.size();
        CHECK(at <= text.data() + text.size());
        for (const std::string_view part : {field.name, field.value}) {
            std::string room(part);
            const std::string_view out = decode_form(room, room.data());
            CHECK(out.size() <= part.size() && form_text_means(part, out));
        }
        ++fields;
    }
    CHECK(fields <= limits.fields_max);
    CHECK(reader.offset() <= text.size());
    CHECK((reader.fault() == Reason::kNone) == (reader.offset() == text.size()));
    CHECK(broken_percent == BrokenPercent::kRefused || reader.fault() != Reason::kFormPercent);
}

void read_cookies(std::string_view text, std::string_view other) {
    CookieReader reader(text);
    Cookie cookie;
    while (reader.next(cookie)) {
        CHECK(cookie.value.find(';') == std::string_view::npos);
        CHECK(find_cookie(text, cookie.name).has_value());
    }
    std::string room(text.size() + other.size() + 20, '#');
    const SetCookieResult result =
        write_set_cookie({.name = "n", .value = text, .path = other}, room);
    CHECK(result.fault == SetCookieFault::kNone || result.value.empty());
    if (result.fault == SetCookieFault::kNone) {
        CHECK(find_cookie(result.value, "n") == text);
        CHECK(other.empty() || find_cookie(result.value, "Path") == trim_ows(other));
    }
}

void read_media_types(std::string_view text, std::string_view other) {
    const MediaTypeResult one = parse_media_type(text);
    const MediaTypeResult two = parse_media_type(other);
    CHECK(one.offset <= text.size());
    CHECK((one.fault == Reason::kNone) != one.media_type.type.empty());
    CHECK(same_media_type(one.media_type, one.media_type));
    CHECK(same_media_type(one.media_type, two.media_type) ==
          same_media_type(two.media_type, one.media_type));
    media_type_of_file(text);
}

void write_json(std::string_view text) {
    JsonWriter counter;
    counter.string(text);
    std::string room(counter.size(), '#');
    JsonWriter json(room);
    const auto out = json.string(text).finish();
    CHECK(out && out->size() == room.size());
    std::string_view rest = *out;
    while (!rest.empty()) {
        const std::size_t size = utf8_sequence_size(rest);
        CHECK(size > 0 && static_cast<unsigned char>(rest[0]) >= 0x20);
        rest.remove_prefix(size);
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* octets, std::size_t size) {
    const std::string_view text(reinterpret_cast<const char*>(octets), size);
    const std::size_t line = std::min(text.find('\n'), text.size());
    const std::string_view first = text.substr(0, line);
    const std::string_view second = text.substr(std::min(line + 1, text.size()));
    read_form(text, BrokenPercent::kRefused);
    read_form(text, BrokenPercent::kKept);
    read_cookies(first, second);
    read_media_types(first, second);
    write_json(text);
    return 0;
}
