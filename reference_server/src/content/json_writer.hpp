// A writer of JSON, RFC 8259, that cannot write anything else: commas and colons are its own, what
// is no UTF-8 becomes U+FFFD, and a call that would break the text spoils the whole, which
// finish() tells. Nothing is allocated.
//
//     JsonWriter json(room);
//     json.begin_object().key("name").string(name).key("age").number(age).end_object();
//     if (const auto text = json.finish()) ...
//
// Without a room it only counts: the same calls twice give a text of exactly the room it needs.
#pragma once

#include <algorithm>
#include <array>
#include <charconv>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "content/text_block.hpp"
#include "limits.hpp"

namespace httpmark {

// What a writer can be misused by. The first one stays.
enum class JsonFault : std::uint8_t {
    kNone,
    kKeyExpected,    // a value in an object without a key before it
    kValueExpected,  // a key, or an end, where the value of a key must stand
    kNotInObject,    // a key, or end_object(), in no object
    kNotInArray,     // end_array() in no array
    kSecondRoot,     // anything behind the only value of a text
    kTooDeep,        // more than kJsonDepthMax levels
    kUnfinished,     // the end of the text before its value is complete
    kNoRoom,         // the text is longer than the room: size() tells what it needs
};

class JsonWriter {
  public:
    JsonWriter() = default;  // only counts
    explicit JsonWriter(std::span<char> room)
        : begin_(room.data()), at_(begin_), end_(begin_ + room.size()), writes_(true) {}

    JsonWriter& begin_object() { return begin('{'); }
    JsonWriter& end_object() { return end('}'); }
    JsonWriter& begin_array() { return begin('['); }
    JsonWriter& end_array() { return end(']'); }
    // The name of the next member. That names differ is the caller's matter (RFC 8259 4).
    JsonWriter& key(std::string_view name) {
        if (expects_ == Expects::kKey && quote_at_once<':'>(name)) [[likely]] {
            expects_ = Expects::kValue;
            needs_comma_ = false;
            return *this;
        }
        return other_key(name);
    }

    JsonWriter& string(std::string_view octets) {
        if (expects_ <= Expects::kValue && quote_at_once<'"'>(octets)) [[likely]] {
            after_value();
            return *this;
        }
        return other_string(octets);
    }
    // Bytes as a string of base64 (RFC 4648 4).
    JsonWriter& base64(std::string_view octets);
    // Integers exactly, whatever their size.
    template <std::integral Integer>
    requires(!std::same_as<Integer, bool> &&
             !std::same_as<Integer, char>) JsonWriter& number(Integer value) {
        return number_text(value);
    }
    // The shortest text that reads back as the same double, or the same float; null for what is not
    // finite, as in ECMAScript.
    JsonWriter& number(double value);
    JsonWriter& number(float value);
    JsonWriter& number(long double value) { return number(static_cast<double>(value)); }
    template <std::same_as<bool> Boolean>  // so that no pointer becomes one
    JsonWriter& boolean(Boolean value) {
        return literal(value ? "true" : "false");
    }
    JsonWriter& null() { return literal("null"); }

    // Bytes of the text so far, also of those that had no room.
    std::size_t size() const { return static_cast<std::size_t>(at_ - begin_) + missing_; }
    JsonFault fault() const { return fault_; }
    // The whole text, or nothing where it would be broken: fault() tells why. A writer that only
    // counts gives an empty text where it is well.
    std::optional<std::string_view> finish();

  private:
    // Up to kValue, a value may stand there. After a fault nothing may.
    enum class Expects : std::uint8_t { kRoot, kElement, kValue, kKey, kNothing, kFailed };

    template <class Number>
    JsonWriter& number_text(Number value) {
        std::array<char, 32> digits;
        const auto done = std::to_chars(digits.data(), digits.data() + digits.size(), value);
        return literal({digits.data(), static_cast<std::size_t>(done.ptr - digits.data())});
    }
    JsonWriter& literal(std::string_view text);
    JsonWriter& begin(char opening);
    JsonWriter& end(char closing);
    bool fail(JsonFault fault);
    bool before_value();
    void after_value() {
        needs_comma_ = true;
        expects_ = inside_;
    }
    template <char kAfter>
    bool quote_at_once(std::string_view octets);
    static bool copy_blocks(std::string_view text, char* out);
    JsonWriter& other_key(std::string_view name);
    JsonWriter& other_string(std::string_view octets);
    // What has no room is counted, and nothing is written behind the gap.
    bool has_room(std::size_t size) {
        if (size <= static_cast<std::size_t>(end_ - at_)) return true;
        end_ = at_;
        missing_ += size;
        return false;
    }
    void put(char c) {
        if (has_room(1)) *at_++ = c;
    }
    void put(std::string_view text) {
        if (has_room(text.size())) at_ = std::copy(text.begin(), text.end(), at_);
    }
    void quote(std::string_view octets);
    void escape(unsigned char c);

    char* begin_ = nullptr;
    char* at_ = nullptr;
    char* end_ = nullptr;
    std::size_t missing_ = 0;  // bytes that had no room
    bool writes_ = false;
    JsonFault fault_ = JsonFault::kNone;
    Expects expects_ = Expects::kRoot;
    Expects inside_ = Expects::kNothing;  // what comes after a value at this level
    bool needs_comma_ = false;            // before what comes next
    std::uint64_t objects_ = 0;  // the lowest bit tells whether the innermost level is an object
    unsigned depth_ = 0;
    static_assert(kJsonDepthMax <= 64);
};

// As most strings are: there is nothing to be escaped, and room for more than the string. With the
// comma before it, and kAfter behind it, which may be its last quote. False, and nothing is
// written, where it is not so.
template <char kAfter>
[[gnu::always_inline]] inline bool JsonWriter::quote_at_once(std::string_view octets) {
    constexpr std::size_t kMore = kTextBlockSize + 4;  // with comma, quotes and colon
    const std::size_t size = octets.size();
    const auto room = static_cast<std::size_t>(end_ - at_);
    if (room < kMore || size > room - kMore) return false;
    char* out = at_;
    *out = ',';
    out += needs_comma_ ? 1 : 0;
    if (size >= kTextBlockSize) {
        if (!copy_blocks(octets, out + 1)) return false;
    } else {
        const TextBlock block(octets.data(), size);
        if ((block.controls_high_and<'"', '\\'>() & text_block_bits(size)) != 0) return false;
        block.store(out + 1);
    }
    *out = '"';
    out += size + 1;
    out[0] = '"';
    if constexpr (kAfter != '"') *++out = kAfter;
    at_ = out + 1;
    return true;
}

// Bytes of the well-formed UTF-8 sequence at the front of a text (RFC 3629 4), 0 where there is
// none.
std::size_t utf8_sequence_size(std::string_view text);

}  // namespace httpmark
