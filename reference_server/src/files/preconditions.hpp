// What a request makes its answer depend on: If-Match, If-None-Match, If-Modified-Since,
// If-Unmodified-Since, If-Range and Range, in the order of RFC 9110 13.2.2.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "files/validators.hpp"
#include "http/parser.hpp"

namespace httpmark {

class Preconditions {
  public:
    enum class Outcome : std::uint8_t {
        kMet,          // the method is done
        kNotModified,  // 304
        kFailed,       // 412
    };

    // `section` is the field section of a head that was accepted. A list of entity tags that breaks
    // the grammar holds none of them; a date that is none, or that comes twice, is ignored.
    Preconditions(std::string_view section, const Validators& validators, std::int64_t now);

    Outcome outcome(Method method) const;
    // The value of Range where it counts: it is there once, and If-Range is not there or true.
    std::optional<std::string_view> range() const;
    bool has_if_range() const { return if_range_.count != 0; }

  private:
    // If-Match or If-None-Match, all its lines taken together.
    struct TagList {
        std::size_t lines = 0;
        bool any = false;  // "*"
        bool broken = false;
        bool matched = false;
        bool is_there() const { return lines != 0; }
        // Whether the current representation is one of those listed.
        bool holds() const { return !broken && (any ? lines == 1 : matched); }
    };
    // A field that a message holds once.
    struct Singleton {
        std::size_t count = 0;
        std::string_view value;
        void take(std::string_view text) {
            value = text;
            ++count;
        }
    };

    void take(std::string_view name, std::string_view value);
    void take_tags(TagList& list, std::string_view value, bool strongly) const;
    bool is_same_strongly(bool weak, std::string_view opaque) const;
    std::optional<std::int64_t> date_of(const Singleton& field) const;
    bool if_range_is_true() const;

    const Validators& validators_;
    std::int64_t now_;
    TagList if_match_;
    TagList if_none_match_;
    Singleton if_modified_since_;
    Singleton if_unmodified_since_;
    Singleton if_range_;
    Singleton range_;
};

}  // namespace httpmark
