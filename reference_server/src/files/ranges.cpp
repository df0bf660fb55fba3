#include "files/ranges.hpp"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <limits>
#include <span>

#include "check.hpp"
#include "http/syntax.hpp"

namespace httpmark {

namespace {

constexpr std::uint64_t kHuge = std::numeric_limits<std::uint64_t>::max();

struct Interval {
    std::uint64_t first;
    std::uint64_t end;  // after the last byte
};

// 1*DIGIT at the front, without leading zeros; empty where there is none.
std::string_view take_digits(std::string_view& text) {
    std::size_t size = 0;
    while (size < text.size() && is_digit(octet(text[size]))) ++size;
    std::string_view digits = text.substr(0, size);
    text.remove_prefix(size);
    while (digits.size() > 1 && digits.front() == '0') digits.remove_prefix(1);
    return digits;
}

// What is too big for 64 bits is kHuge, which no file reaches.
std::uint64_t number_of(std::string_view digits) {
    std::uint64_t number = 0;
    for (const char c : digits) {
        const std::uint64_t digit = octet(c) - std::uint64_t{'0'};
        number = number > (kHuge - digit) / 10 ? kHuge : number * 10 + digit;
    }
    return number;
}

// Of numbers of any size, without leading zeros.
bool is_less(std::string_view a, std::string_view b) {
    return a.size() != b.size() ? a.size() < b.size() : a < b;
}

struct Spec {
    bool valid = false;
    bool suffix = false;
    std::uint64_t first = 0;  // of a suffix-range: its length
    std::uint64_t last = kHuge;
};

// int-range = first-pos "-" [ last-pos ], suffix-range = "-" suffix-length
Spec read_spec(std::string_view text) {
    Spec spec;
    spec.suffix = text.starts_with('-');
    if (spec.suffix) text.remove_prefix(1);
    const std::string_view first = take_digits(text);
    if (first.empty()) return {};
    spec.first = number_of(first);
    if (!spec.suffix) {
        if (!text.starts_with('-')) return {};
        text.remove_prefix(1);
        if (const std::string_view last = take_digits(text); !last.empty()) {
            if (is_less(last, first)) return {};
            spec.last = number_of(last);
        }
    }
    spec.valid = text.empty();
    return spec;
}

// False where the file has none of it.
bool is_satisfiable(const Spec& spec, std::uint64_t size, Interval& interval) {
    if (spec.suffix) {
        interval = {size - std::min(spec.first, size), size};
        return spec.first != 0;
    }
    if (spec.first >= size) return false;
    interval = {spec.first, spec.last < size ? spec.last + 1 : size};
    return true;
}

// Whether they overlap or touch, all of them; then the first is all.
bool join(std::span<Interval> intervals) {
    std::sort(intervals.begin(), intervals.end(),
              [](const Interval& a, const Interval& b) { return a.first < b.first; });
    Interval& whole = intervals.front();
    for (const Interval& next : intervals.subspan(1)) {
        if (next.first > whole.end) return false;
        whole.end = std::max(whole.end, next.end);
    }
    return true;
}

}  // namespace

RangeChoice choose_range(std::string_view value, std::uint64_t size) {
    const std::size_t equals = value.find('=');
    if (equals == value.npos || !equals_ignoring_case(value.substr(0, equals), "bytes")) return {};
    value.remove_prefix(equals + 1);
    std::array<Interval, kRangesMax> intervals;
    std::size_t satisfiable = 0;
    std::size_t count = 0;
    for (bool more = true; more;) {
        const std::size_t comma = value.find(',');
        const std::string_view text = trim_ows(value.substr(0, comma));
        more = comma != value.npos;
        if (more) value.remove_prefix(comma + 1);
        if (text.empty()) continue;  // RFC 9110 5.6.1.2
        const Spec spec = read_spec(text);
        if (!spec.valid || ++count > kRangesMax) return {};
        if (is_satisfiable(spec, size, intervals[satisfiable])) ++satisfiable;
    }
    if (count == 0) return {};
    if (satisfiable == 0) return {RangeChoice::Verdict::kUnsatisfiable, 0, 0};
    // The last bytes of an empty file are a range that no Content-Range can name.
    if (size == 0 || !join(std::span(intervals).first(satisfiable))) return {};
    return {RangeChoice::Verdict::kPart, intervals[0].first, intervals[0].end - intervals[0].first};
}

ContentRange::ContentRange(const RangeChoice& choice, std::uint64_t size) {
    char* const end = text_.data() + text_.size();
    std::memcpy(text_.data(), "bytes ", 6);
    char* out = text_.data() + 6;
    if (choice.verdict == RangeChoice::Verdict::kUnsatisfiable) {
        *out++ = '*';
    } else {
        CHECK(choice.size != 0);
        out = std::to_chars(out, end, choice.first).ptr;
        *out++ = '-';
        out = std::to_chars(out, end, choice.first + choice.size - 1).ptr;
    }
    *out++ = '/';
    out = std::to_chars(out, end, size).ptr;
    size_ = static_cast<std::size_t>(out - text_.data());
}

}  // namespace httpmark
