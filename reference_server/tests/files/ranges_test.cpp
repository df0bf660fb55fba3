#include "files/ranges.hpp"

#include <cctype>
#include <set>
#include <string>
#include <vector>

#include "guard_page.hpp"
#include "laws.hpp"

namespace httpmark {
namespace {

using Verdict = RangeChoice::Verdict;

RangeChoice choose(std::string_view value, std::uint64_t size) {
    static GuardPage guard;
    return choose_range({guard.place(value), value.size()}, size);
}

// Decimal numbers of any size, compared as texts of one length.
std::string padded(const std::string& digits) {
    return std::string(80 - std::min<std::size_t>(digits.size(), 80), '0') + digits;
}

// RFC 9110 14 on the positions of a small file, one by one.
struct Oracle {
    bool ignored = false;
    bool satisfiable = false;
    std::set<unsigned> positions;
};
Oracle judge(const std::string& value, unsigned size) {
    Oracle out;
    out.ignored = true;
    std::string unit = value.substr(0, 6);
    for (char& c : unit) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    if (unit != "bytes=") return out;
    std::string rest = value.substr(6) + ",";
    unsigned specs = 0;
    for (std::size_t comma; (comma = rest.find(',')) != rest.npos; rest.erase(0, comma + 1)) {
        std::string part = rest.substr(0, comma);
        while (part.ends_with(' ') || part.ends_with('\t')) part.pop_back();
        while (part.starts_with(' ') || part.starts_with('\t')) part.erase(0, 1);
        if (part.empty()) continue;
        const std::size_t hyphen = part.find('-');
        if (hyphen == part.npos) return out;
        const std::string first = part.substr(0, hyphen);
        const std::string last = part.substr(hyphen + 1);
        if ((first + last).find_first_not_of("0123456789") != part.npos) return out;
        if (first.empty() && last.empty()) return out;
        if (!first.empty() && !last.empty() && padded(last) < padded(first)) return out;
        ++specs;
        if (first.empty() && padded(last) != padded("0")) out.satisfiable = true;
        for (unsigned at = 0; at < size; ++at) {
            const std::string here = padded(std::to_string(at));
            const std::string from_end = padded(std::to_string(size - at));
            const bool is_in =
                first.empty() ? from_end <= padded(last)
                              : padded(first) <= here && (last.empty() || here <= padded(last));
            if (is_in) out.positions.insert(at);
        }
    }
    out.satisfiable = out.satisfiable || !out.positions.empty();
    out.ignored = specs == 0 || specs > kRangesMax;
    return out;
}

void check_against_oracle(const std::string& value, unsigned size) {
    const RangeChoice got = choose(value, size);
    const Oracle due = judge(value, size);
    const auto& at = due.positions;
    const bool one = !at.empty() && *at.rbegin() - *at.begin() + 1 == at.size();
    Verdict verdict = Verdict::kPart;
    if (due.ignored || (due.satisfiable && !one)) verdict = Verdict::kWhole;
    if (!due.ignored && !due.satisfiable) verdict = Verdict::kUnsatisfiable;
    LAW(got.verdict == verdict, << visible(value) << " of " << size);
    if (got.verdict == Verdict::kPart && verdict == Verdict::kPart) {
        LAW(got.first == *at.begin() && got.size == at.size(), << visible(value) << " of " << size);
    } else {
        LAW(got.first == 0 && got.size == 0, << visible(value));
    }
}

TEST(Ranges, every_range_set_of_six_pieces) {
    const std::vector<std::string> pieces = {"0", "3", "9", "-", ",", " ", "18446744073709551616"};
    std::vector<std::string> values = {"bytes="};
    for (unsigned length = 0; length <= 6; ++length) {
        std::vector<std::string> longer;
        for (const std::string& value : values) {
            check_against_oracle(value, static_cast<unsigned>(value.size() % 12));
            if (length < 5) {
                for (const unsigned size : {0U, 1U, 4U, 10U}) check_against_oracle(value, size);
            }
            if (length == 6) continue;
            for (const std::string& piece : pieces) longer.push_back(value + piece);
        }
        values = std::move(longer);
    }
}

TEST(Ranges, several_ranges) {
    Random random(3);
    for (unsigned i = 0; i < 20000; ++i) {
        std::string value = "Bytes=";
        for (unsigned k = 1 + random() % 19; k > 0; --k) {
            const unsigned first = random() % 14;
            if (random() % 4 == 0) {
                value += "-" + std::to_string(first);
            } else {
                value += std::to_string(first) + "-";
                if (random() % 4 != 0) value += std::to_string(first + random() % 4);
            }
            if (k > 1) value += random() % 5 == 0 ? " ,, " : ",";
        }
        check_against_oracle(value, random() % 16);
    }
}

TEST(Ranges, another_byte_anywhere) {
    for (const std::string base : {"bytes=2-5", "bytes=-3", "bytes=4-", "bytes=0-1, 2-3"}) {
        for (std::size_t at = 0; at <= base.size(); ++at) {
            check_against_oracle(base.substr(0, at), 8);
            for (int c = 0; c < 256; ++c) {
                std::string value = base;
                value.insert(at, 1, static_cast<char>(c));
                check_against_oracle(value, 8);
                if (at == base.size()) continue;
                value = base;
                value[at] = static_cast<char>(c);
                check_against_oracle(value, 8);
            }
        }
    }
}

TEST(Ranges, numbers_do_not_wrap_round) {
    constexpr std::uint64_t kMax = UINT64_MAX;
    for (const std::string big : {"18446744073709551615", "18446744073709551616",
                                  "99999999999999999999999999999999999999"}) {
        LAW(choose("bytes=" + big + "-", 100).verdict == Verdict::kUnsatisfiable, << big);
        LAW(choose("bytes=" + big + "-" + big, kMax).verdict == Verdict::kUnsatisfiable, << big);
        const RangeChoice to_end = choose("bytes=10-" + big, 100);
        LAW(to_end.verdict == Verdict::kPart && to_end.first == 10 && to_end.size == 90, << big);
        const RangeChoice all = choose("bytes=-" + big, 100);
        LAW(all.verdict == Verdict::kPart && all.first == 0 && all.size == 100, << big);
        LAW(choose("bytes=1" + big + "-" + big, 100).verdict == Verdict::kWhole, << big);
        LAW(choose("bytes=0000000000000000000000000000000000005-" + big, 9).first == 5);
    }
    const RangeChoice last = choose("bytes=18446744073709551614-", kMax);
    LAW(last.verdict == Verdict::kPart && last.first == kMax - 1 && last.size == 1);
}

TEST(Ranges, a_thousand_ranges_are_none) {
    std::string value = "bytes=0-";
    for (std::size_t i = 1; i < kRangesMax; ++i) value += ",0-";
    LAW(choose(value, 9).verdict == Verdict::kPart);
    LAW(choose(value + ",0-", 9).verdict == Verdict::kWhole);
    for (unsigned i = 0; i < 1000; ++i) value += ",0-";
    LAW(choose(value, 9).verdict == Verdict::kWhole);
}

TEST(Ranges, content_range) {
    const auto text = [](const RangeChoice& choice, std::uint64_t size) {
        return std::string(ContentRange(choice, size).text());
    };
    LAW(text({Verdict::kPart, 0, 1}, 12) == "bytes 0-0/12");
    LAW(text({Verdict::kUnsatisfiable, 0, 0}, 12) == "bytes */12");
    LAW(text({Verdict::kUnsatisfiable, 0, 0}, 0) == "bytes */0");
    LAW(text({Verdict::kPart, UINT64_MAX - 2, 2}, UINT64_MAX) ==
        "bytes 18446744073709551613-18446744073709551614/18446744073709551615");
    for (std::uint64_t size = 1; size < 200; ++size) {
        for (std::uint64_t first = 0; first < size; ++first) {
            const std::uint64_t part = 1 + (first * 7) % (size - first);
            LAW(text({Verdict::kPart, first, part}, size) ==
                "bytes " + std::to_string(first) + "-" + std::to_string(first + part - 1) + "/" +
                    std::to_string(size));
        }
    }
}

}  // namespace
}  // namespace httpmark
