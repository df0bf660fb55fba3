#include "content/json_writer.hpp"

#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "guard_page.hpp"
#include "laws.hpp"

namespace httpmark {
namespace {

// A reader of JSON that shares nothing with the writer. It gives the text back without escapes:
// a string as the bytes it means between '<' and '>', all else as it stands.
class Reader {
  public:
    explicit Reader(std::string_view text) : rest_(text) {}
    std::optional<std::string> read() {
        if (!value() || !rest_.empty()) return std::nullopt;
        return out_;
    }

  private:
    bool take(char c) {
        if (rest_.empty() || rest_[0] != c) return false;
        rest_.remove_prefix(1);
        return true;
    }
    bool word(std::string_view word) {
        if (!rest_.starts_with(word)) return false;
        rest_.remove_prefix(word.size());
        out_ += word;
        return true;
    }
    bool digits() {
        std::size_t size = 0;
        while (size < rest_.size() && rest_[size] >= '0' && rest_[size] <= '9') ++size;
        out_ += rest_.substr(0, size);
        rest_.remove_prefix(size);
        return size > 0;
    }
    bool number() {
        if (take('-')) out_ += '-';
        if (rest_.size() > 1 && rest_[0] == '0' && rest_[1] >= '0' && rest_[1] <= '9') return false;
        if (!digits()) return false;
        if (take('.')) {
            out_ += '.';
            if (!digits()) return false;
        }
        if (take('e')) {
            out_ += 'e';
            if (take('-')) {
                out_ += '-';
            } else if (take('+')) {
                out_ += '+';
            }
            return digits();
        }
        return true;
    }
    bool string() {
        if (!take('"')) return false;
        out_ += '<';
        while (!take('"')) {
            if (rest_.empty() || static_cast<unsigned char>(rest_[0]) < 0x20) return false;
            if (!take('\\')) {
                out_ += rest_[0];
                rest_.remove_prefix(1);
            } else if (rest_.starts_with("u00")) {
                out_ += static_cast<char>(std::stoi(std::string(rest_.substr(3, 2)), nullptr, 16));
                rest_.remove_prefix(5);
            } else {
                if (!rest_.starts_with('"') && !rest_.starts_with('\\')) return false;
                out_ += rest_[0];
                rest_.remove_prefix(1);
            }
        }
        out_ += '>';
        return true;
    }
    bool members(char closing, bool named) {
        if (take(closing)) return true;
        do {
            if (named && (!string() || !take(':'))) return false;
            if (named) out_ += ':';
            if (!value()) return false;
            out_ += ',';
        } while (take(','));
        return take(closing);
    }
    bool value() {
        if (rest_.empty()) return false;
        switch (rest_[0]) {
            case '"':
                return string();
            case '{':
            case '[': {
                const bool is_object = take('{');
                if (!is_object) take('[');
                out_ += is_object ? '{' : '[';
                const bool good = members(is_object ? '}' : ']', is_object);
                out_ += is_object ? '}' : ']';
                return good;
            }
            case 't':
                return word("true");
            case 'f':
                return word("false");
            case 'n':
                return word("null");
            default:
                return number();
        }
    }
    std::string_view rest_;
    std::string out_;
};

using Calls = std::function<void(JsonWriter&)>;

struct Written {
    std::optional<std::string> text;
    JsonFault fault = JsonFault::kNone;
};

// Counted first, then into exactly that room, and into ones with more, where strings are written in
// another way; each smaller room is refused and not written beyond.
Written write(const Calls& calls) {
    JsonWriter counter;
    calls(counter);
    const std::size_t size = counter.size();
    const bool is_well = counter.finish().has_value();
    std::string room(size, '#');
    JsonWriter json(room);
    calls(json);
    LAW(json.size() == size);
    const auto text = json.finish();
    LAW(text.has_value() == is_well && json.fault() == counter.fault());
    for (const std::size_t more : {5U, 19U, 20U, 21U, 64U}) {
        std::string wide(size + more + 16, '#');
        JsonWriter quick(std::span<char>(wide.data(), size + more));
        calls(quick);
        LAW(quick.size() == size && quick.finish() == text && quick.fault() == json.fault());
        LAW(wide.ends_with(std::string(16, '#')), << more);
    }
    if (!text) return {std::nullopt, json.fault()};
    LAW(text->data() == room.data() && text->size() == size);
    for (std::size_t less = 0; less < size && less < 70; ++less) {
        std::string small(size, '#');
        JsonWriter cut(std::span<char>(small.data(), less));
        calls(cut);
        LAW(!cut.finish() && cut.fault() == JsonFault::kNoRoom && cut.size() == size);
        LAW(small.find_first_not_of('#', less) == std::string::npos, << less);
    }
    return {std::string(*text), JsonFault::kNone};
}
// The bytes stand at a page that cannot be read.
std::string string_of(std::string_view octets) {
    static GuardPage guard;
    const std::string_view placed(guard.place(octets), octets.size());
    return write([&](JsonWriter& json) { json.string(placed); }).text.value_or("(none)");
}

// A code point from the bytes, written again: they are UTF-8 if that gives the same bytes.
bool is_utf8(std::string_view text) {
    const auto at = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
    std::uint32_t point = 0;
    if (text.size() == 1) {
        point = at(0);
    } else {
        point = at(0) & (0xFFU >> (text.size() + 1));
        for (std::size_t i = 1; i < text.size(); ++i) point = point << 6 | (at(i) & 0x3FU);
    }
    if (point > 0x10FFFF || (point >= 0xD800 && point <= 0xDFFF)) return false;
    std::string again;
    const auto tail = [&](unsigned shift) {
        again += static_cast<char>(0x80U | (point >> shift & 0x3FU));
    };
    if (point < 0x80) {
        again += static_cast<char>(point);
    } else if (point < 0x800) {
        again += static_cast<char>(0xC0U | point >> 6);
        tail(0);
    } else if (point < 0x10000) {
        again += static_cast<char>(0xE0U | point >> 12);
        tail(6);
        tail(0);
    } else {
        again += static_cast<char>(0xF0U | point >> 18);
        tail(12);
        tail(6);
        tail(0);
    }
    return again == text;
}

std::size_t naive_sequence_size(std::string_view text) {
    for (std::size_t size = 1; size <= 4 && size <= text.size(); ++size) {
        if (is_utf8(text.substr(0, size))) return size;
    }
    return 0;
}
std::string naive_repaired(std::string_view octets) {
    std::string out;
    while (!octets.empty()) {
        const std::size_t size = naive_sequence_size(octets);
        out += size == 0 ? "\xEF\xBF\xBD" : std::string(octets.substr(0, size));
        octets.remove_prefix(std::max<std::size_t>(1, size));
    }
    return out;
}

TEST(JsonWriter, every_sequence_of_utf8_is_told) {
    for (unsigned a = 0; a < 256; ++a) {
        for (unsigned b = 0; b < 256; ++b) {
            // The third and fourth byte matter by their two high bits alone; their edges are here.
            for (const unsigned c : {0x00U, 0x41U, 0x7FU, 0x80U, 0xBFU, 0xC0U, 0xFFU}) {
                for (const unsigned d : {0x7FU, 0x80U, 0xBFU, 0xC0U}) {
                    const std::string text{static_cast<char>(a), static_cast<char>(b),
                                           static_cast<char>(c), static_cast<char>(d)};
                    for (std::size_t size = c == 0 && d == 0x7F ? 0 : 3; size <= 4; ++size) {
                        const std::string_view part = std::string_view(text).substr(0, size);
                        LAW(utf8_sequence_size(part) == naive_sequence_size(part),
                            << visible(part));
                    }
                }
            }
        }
    }
}

// Each octet at each place of a block, alone and beside each kind of neighbour.
TEST(JsonWriter, every_octet_is_escaped_as_it_must) {
    for (unsigned c = 0; c < 256; ++c) {
        for (std::size_t size = 1; size <= 24; size += size < 10 ? 1 : 7) {
            for (std::size_t at = 0; at < size; ++at) {
                for (const char around : {'a', '"', '\x1F', '\x7F', '\x80'}) {
                    std::string text(size, around);
                    text[at] = static_cast<char>(c);
                    JsonWriter counter;
                    std::string room(8 * size + 2, '#');
                    JsonWriter json(room);
                    const auto out = json.string(text).finish();
                    LAW(out && Reader(*out).read() == "<" + naive_repaired(text) + ">",
                        << visible(text));
                    counter.string(text);
                    LAW(counter.size() == json.size());
                }
            }
        }
    }
}

// What fits exactly is written, and nothing behind the room.
TEST(JsonWriter, a_room_is_filled_to_its_last_byte) {
    for (std::size_t size = 0; size <= 40; ++size) {
        for (const char last : {'a', '"'}) {
            std::string text(size, 'a');
            if (size != 0) text.back() = last;
            const std::size_t needed = string_of(text).size();
            for (std::size_t room = 0; room <= needed + 40; ++room) {
                std::string kept(room + 16, '#');
                JsonWriter json(std::span(kept.data(), room));
                const auto out = json.string(text).finish();
                LAW(out.has_value() == (room >= needed) && json.size() == needed, << room);
                LAW(!out || *out == string_of(text), << text);
                LAW(kept.ends_with(std::string(16, '#')), << text);
            }
        }
    }
}

TEST(JsonWriter, any_octets_are_repaired_and_read_back) {
    Random random(31);
    for (unsigned i = 0; i < 20000; ++i) {
        std::string text;
        for (unsigned k = random() % 30; k > 0; --k) {
            text += random() % 2 == 0 ? static_cast<char>(random())
                                      : "a\"\\\n\xE2\x82\xAC\xF0\x9F\x98\x80"[random() % 11];
        }
        LAW(Reader(string_of(text)).read() == "<" + naive_repaired(text) + ">", << visible(text));
    }
}

TEST(JsonWriter, texts) {
    LAW(string_of("a\"\\/\n\x7f\xE2\x82\xAC") == "\"a\\\"\\\\/\\u000a\x7f\xE2\x82\xAC\"");
    LAW(string_of(std::string(1, '\0')) == "\"\\u0000\"");
    const Written out = write([](JsonWriter& json) {
        json.begin_object().key("a").number(1).key("").begin_array();
        json.null().boolean(true).boolean(false).string("x").begin_object().end_object();
        json.begin_array().end_array().end_array().key("b").number(-0.5).end_object();
    });
    LAW(out.text == "{\"a\":1,\"\":[null,true,false,\"x\",{},[]],\"b\":-0.5}", << *out.text);
    LAW(write([](JsonWriter& json) { json.null(); }).text == "null");
    struct Row {
        const char* octets;
        const char* text;
    };
    for (const Row& row : {Row{"", "\"\""},
                           {"f", "\"Zg==\""},
                           {"fo", "\"Zm8=\""},
                           {"foo", "\"Zm9v\""},
                           {"foob", "\"Zm9vYg==\""},
                           {"\xFF\xFE\xFB", "\"//77\""}}) {  // RFC 4648 10
        LAW(write([&](JsonWriter& json) { json.base64(row.octets); }).text == row.text,
            << row.text);
    }
}

// Not as the double that it becomes.
TEST(JsonWriter, a_float_is_written_as_short_as_it_can_be) {
    const auto text = [](auto value) {
        return write([&](JsonWriter& json) { json.number(value); }).text.value_or("(none)");
    };
    LAW(text(0.1F) == "0.1" && text(-2.5F) == "-2.5" && text(16777216.0F) == text(16777216.0));
    LAW(text(std::numeric_limits<float>::infinity()) == "null");
    LAW(text(0.5L) == "0.5");
}

TEST(JsonWriter, numbers_read_back_as_what_they_are) {
    const auto text_of = [](auto value) {
        return write([&](JsonWriter& json) { json.number(value); }).text.value_or("(none)");
    };
    LAW(text_of(std::numeric_limits<std::uint64_t>::max()) == "18446744073709551615");
    LAW(text_of(std::numeric_limits<std::int64_t>::min()) == "-9223372036854775808");
    LAW(text_of(0) == "0" && text_of(static_cast<signed char>(-7)) == "-7" && text_of(8U) == "8");
    LAW(text_of(0.1) == "0.1" && text_of(-0.0) == "-0" && text_of(1e300) == "1e+300");
    LAW(text_of(5.0) == "5" && text_of(5e-324) == "5e-324");
    LAW(text_of(std::nan("")) == "null" && text_of(HUGE_VAL) == "null" &&
        text_of(-HUGE_VAL) == "null");
    Random random(37);
    for (unsigned i = 0; i < 20000; ++i) {
        const std::uint64_t bits = std::uint64_t{random()} << 32 | random();
        double value = 0;
        std::memcpy(&value, &bits, sizeof value);
        if (!std::isfinite(value)) continue;
        const std::string text = text_of(value);
        LAW(std::strtod(text.c_str(), nullptr) == value, << text);
        LAW(Reader(text).read() == text, << text);
    }
}

enum class Call : unsigned {
    kBeginObject,
    kBeginArray,
    kEndObject,
    kEndArray,
    kKey,
    kString,
    kNumber,
    kBase64
};

void call(JsonWriter& json, Call what) {
    switch (what) {
        case Call::kBeginObject:
            json.begin_object();
            break;
        case Call::kBeginArray:
            json.begin_array();
            break;
        case Call::kEndObject:
            json.end_object();
            break;
        case Call::kEndArray:
            json.end_array();
            break;
        case Call::kKey:
            json.key("k");
            break;
        case Call::kString:
            json.string("s");
            break;
        case Call::kNumber:
            json.number(7);
            break;
        case Call::kBase64:
            json.base64("b");
            break;
    }
}

// The grammar as a stack: '[', '{' and, where a value must follow, ':'.
class Model {
  public:
    JsonFault call(Call what) {
        const char top = open_.empty() ? ' ' : open_.back();
        const bool is_end = what == Call::kEndObject || what == Call::kEndArray;
        if ((what == Call::kKey || is_end) && top == ':') return JsonFault::kValueExpected;
        if (what == Call::kKey || what == Call::kEndObject) {
            if (top != '{') return JsonFault::kNotInObject;
        } else if (what == Call::kEndArray) {
            if (top != '[') return JsonFault::kNotInArray;
        } else if (top == '{') {
            return JsonFault::kKeyExpected;
        } else if (has_root_ && open_.empty()) {
            return JsonFault::kSecondRoot;
        }
        has_root_ = true;
        if (is_end) open_.pop_back();
        if (what == Call::kKey) {
            open_ += ':';
        } else if (what == Call::kBeginObject || what == Call::kBeginArray) {
            open_ += what == Call::kBeginObject ? '{' : '[';
        } else if (open_.ends_with(':')) {
            open_.pop_back();
        }
        return JsonFault::kNone;
    }
    JsonFault end() const {
        return has_root_ && open_.empty() ? JsonFault::kNone : JsonFault::kUnfinished;
    }

  private:
    std::string open_;
    bool has_root_ = false;
};

// Whatever is called in whatever order: the text is whole JSON, or there is none and the reason is
// the one that the model gives.
TEST(JsonWriter, no_misuse_makes_broken_json) {
    Random random(41);
    unsigned good = 0;
    for (unsigned i = 0; i < 60000; ++i) {
        std::vector<Call> calls;
        for (unsigned k = 1 + random() % 9; k > 0; --k) {
            calls.push_back(static_cast<Call>(random() % 8));
        }
        Model model;
        JsonFault expected = JsonFault::kNone;
        for (const Call one : calls) {
            if ((expected = model.call(one)) != JsonFault::kNone) break;
        }
        if (expected == JsonFault::kNone) expected = model.end();
        const Written out = write([&](JsonWriter& json) {
            for (const Call one : calls) call(json, one);
        });
        LAW(out.fault == expected, << static_cast<int>(out.fault) << static_cast<int>(expected));
        LAW(out.text.has_value() == (expected == JsonFault::kNone));
        if (!out.text) continue;
        ++good;
        LAW(Reader(*out.text).read().has_value(), << *out.text);
    }
    LAW(good > 1000, << good);
}

TEST(JsonWriter, depth_has_a_limit) {
    for (const std::size_t depth : {kJsonDepthMax, kJsonDepthMax + 1}) {
        // Alternating, so that each level is remembered for what it is.
        const Written out = write([&](JsonWriter& json) {
            for (std::size_t i = 0; i < depth; ++i) {
                if (i % 2 == 0) {
                    json.begin_array();
                } else {
                    json.begin_object().key("k");
                }
            }
            if (depth % 2 == 0) json.null();
            for (std::size_t i = depth; i > 0; --i) {
                if (i % 2 == 1) {
                    json.end_array();
                } else {
                    json.end_object();
                }
            }
        });
        LAW(out.fault == (depth > kJsonDepthMax ? JsonFault::kTooDeep : JsonFault::kNone));
        LAW(!out.text || Reader(*out.text).read().has_value());
    }
}

}  // namespace
}  // namespace httpmark
