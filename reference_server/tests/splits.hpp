// One input, every way it can arrive: at once, byte by byte, cut in two at each place, at an
// unreadable page, at 64 alignments, with every kernel. All must give one verdict.
#pragma once

#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "guard_page.hpp"
#include "http/framing.hpp"
#include "http/parser.hpp"
#include "laws.hpp"
#include "scan/scan.hpp"

namespace httpmark {

inline const std::vector<const ScanKernel*>& kernels() {
    static const std::vector<const ScanKernel*> list = [] {
        std::vector<const ScanKernel*> out;
        for (const ScanKernel* kernel : scan_kernels()) {
            if (kernel->supported()) out.push_back(kernel);
        }
        return out;
    }();
    return list;
}

struct ParserSetting {
    Limits limits;
    Strictness strictness = Strictness::kStrict;
};

inline bool same(const ParseResult& a, const ParseResult& b) {
    return a.verdict == b.verdict && a.reason == b.reason && a.offset == b.offset;
}
inline bool same(const Span& a, const Span& b) {
    return a.begin == b.begin && a.size == b.size;
}
inline bool same(const RequestHead& a, const RequestHead& b) {
    return a.method == b.method && a.form == b.form && a.version_major == b.version_major &&
           a.version_minor == b.version_minor && a.flags == b.flags &&
           same(a.method_name, b.method_name) && same(a.target, b.target) &&
           same(a.authority, b.authority) && a.fields_begin == b.fields_begin &&
           a.field_count == b.field_count && a.content_length == b.content_length;
}

struct Parsed {
    ParseResult result;
    RequestHead head;
};

inline Parsed parse_once(std::string_view input, const ParserSetting& setting,
                         const ScanKernel& kernel) {
    HeadParser parser;
    const ParseResult result =
        parser.parse(input.data(), input.size(), setting.limits, setting.strictness, kernel);
    return {result, parser.head()};
}

// The verdict at once, after which: byte by byte it is undecided up to the byte that decides,
// and then the same. That is the law "a pure function of the prefix" in full.
inline Parsed parse_at_once_and_by_octet(std::string_view input, const ParserSetting& setting,
                                         const ScanKernel& kernel) {
    const Parsed whole = parse_once(input, setting, kernel);
    HeadParser parser;
    std::size_t decided = input.size() + 1;
    if (whole.result.verdict == Verdict::kAccepted) decided = whole.result.offset;
    if (whole.result.verdict == Verdict::kRejected) decided = whole.result.offset + 1;
    bool undecided_before = true;
    for (std::size_t size = 1; size <= input.size(); ++size) {
        const ParseResult result =
            parser.parse(input.data(), size, setting.limits, setting.strictness, kernel);
        if (result.verdict == Verdict::kNeedMore) continue;
        undecided_before = undecided_before && size == decided;
        LAW(same(result, whole.result),
            << kernel.name << ": " << visible(input) << " at " << size << " gives "
            << error_row(result.reason).name << "@" << result.offset << ", at once "
            << error_row(whole.result.reason).name << "@" << whole.result.offset);
        if (result.verdict == Verdict::kAccepted) {
            LAW(same(parser.head(), whole.head), << kernel.name << ": " << visible(input));
        }
        decided = size;
        break;
    }
    LAW(undecided_before, << kernel.name << ": " << visible(input));
    LAW(whole.result.verdict == Verdict::kNeedMore || decided <= input.size(),
        << kernel.name << ": " << visible(input));
    return whole;
}

inline void check_every_split(std::string_view input, const ParserSetting& setting,
                              const ScanKernel& kernel, const Parsed& whole) {
    bool agree = true;
    for (std::size_t cut = 1; cut < input.size(); ++cut) {
        HeadParser parser;
        ParseResult result =
            parser.parse(input.data(), cut, setting.limits, setting.strictness, kernel);
        if (result.verdict == Verdict::kNeedMore) {
            result = parser.parse(input.data(), input.size(), setting.limits, setting.strictness,
                                  kernel);
        }
        agree = agree && same(result, whole.result) &&
                (result.verdict != Verdict::kAccepted || same(parser.head(), whole.head));
        ++law_count;
    }
    LAW(agree, << kernel.name << " split: " << visible(input));
}

inline void check_every_alignment(std::string_view input, const ParserSetting& setting,
                                  const ScanKernel& kernel, const Parsed& whole) {
    // What follows the input has no meaning, whatever it looks like.
    static constexpr std::string_view kTails[] = {
        std::string_view("\0\0\0", 3), "\xFF\xFF", "\r\n\r\n", "%%%", ":::", "aaa"};
    std::vector<char> room(input.size() + 256);
    for (std::size_t offset = 0; offset < 64; ++offset) {
        char* const at =
            room.data() + 64 - reinterpret_cast<std::uintptr_t>(room.data()) % 64 + offset;
        const std::string_view tail = kTails[offset % std::size(kTails)];
        std::memcpy(at, input.data(), input.size());
        for (std::size_t i = 0; i < 64; ++i) at[input.size() + i] = tail[i % tail.size()];
        LAW(same(parse_once({at, input.size()}, setting, kernel).result, whole.result),
            << kernel.name << " alignment " << offset << ": " << visible(input));
    }
}

// Everything. For inputs of some hundred bytes.
inline Parsed parse_every_way(std::string_view input, const ParserSetting& setting = {}) {
    static GuardPage guard;
    const Parsed first = parse_at_once_and_by_octet(input, setting, *kernels().front());
    for (const ScanKernel* kernel : kernels()) {
        const Parsed whole = parse_at_once_and_by_octet(input, setting, *kernel);
        LAW(same(whole.result, first.result), << kernel->name << ": " << visible(input));
        check_every_split(input, setting, *kernel, first);
        check_every_alignment(input, setting, *kernel, first);
        LAW(same(parse_once({guard.place(input), input.size()}, setting, *kernel).result,
                 first.result),
            << kernel->name << " guard page: " << visible(input));
    }
    return first;
}

inline void expect_accepted(std::string_view input, const ParserSetting& setting = {}) {
    const Parsed parsed = parse_every_way(input, setting);
    LAW(parsed.result.verdict == Verdict::kAccepted && parsed.result.offset == input.size(),
        << visible(input) << " is " << error_row(parsed.result.reason).name << "@"
        << parsed.result.offset);
}

inline void expect_rejected(std::string_view input, Reason reason, std::size_t offset,
                            const ParserSetting& setting = {}) {
    const Parsed parsed = parse_every_way(input, setting);
    LAW(parsed.result.verdict == Verdict::kRejected && parsed.result.reason == reason &&
            parsed.result.offset == offset,
        << visible(input) << " is " << error_row(parsed.result.reason).name << "@"
        << parsed.result.offset << ", not " << error_row(reason).name << "@" << offset);
}

inline Reason judged(const Parsed& parsed, const ParserSetting& setting = {}, bool tls = false) {
    if (parsed.result.verdict != Verdict::kAccepted) return parsed.result.reason;
    return judge_head(parsed.head, setting.limits, setting.strictness, tls);
}

}  // namespace httpmark
