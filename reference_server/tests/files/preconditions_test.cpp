#include "files/preconditions.hpp"

#include <string>
#include <vector>

#include "guard_page.hpp"
#include "laws.hpp"

namespace httpmark {
namespace {

using Outcome = Preconditions::Outcome;

constexpr std::int64_t kNow = 1795312800;
constexpr std::int64_t kModified = 784111777;  // Sun, 06 Nov 1994 08:49:37 GMT
const std::string kBefore = "Sun, 06 Nov 1994 08:49:36 GMT";
const std::string kEqual = "Sunday, 06-Nov-94 08:49:37 GMT";
const std::string kAfter = "Sun Nov  6 08:49:38 1994";

FileFacts facts_that_are(bool weak) {
    return {12, 7, {kModified, 5}, {weak ? kNow : kNow - 1000, 9}};
}

// What a field says, and what that means; the oracle sees the meaning alone.
struct TagRow {
    std::vector<std::string> lines;
    bool there = true;
    bool any = false;
    bool listed = false;           // the current tag, marked weak or not
    bool listed_strongly = false;  // not marked weak
};
enum class DateMeans { kNothing, kBefore, kEqual, kAfter };
struct DateRow {
    std::vector<std::string> lines;
    DateMeans means = DateMeans::kNothing;
};
struct IfRangeRow {
    std::vector<std::string> lines;
    bool there = true;
    bool is_tag = false;   // the current one, not marked weak
    bool is_date = false;  // the current one
};

std::vector<TagRow> tag_rows(const std::string& tag) {
    return {{{}, false},
            {{"*"}, true, true},
            {{tag}, true, false, true, true},
            {{"W/" + tag}, true, false, true, false},
            {{"\"x\""}},
            {{""}},
            {{"\"x\", \"y,\" ,, " + tag}, true, false, true, true},
            {{"\"x\"", "W/" + tag}, true, false, true, false},
            {{tag, "x"}},
            {{tag, "*"}},
            {{tag + " " + tag}},
            {{"w/" + tag}}};
}
std::vector<DateRow> date_rows() {
    return {{{}},
            {{kBefore}, DateMeans::kBefore},
            {{kEqual}, DateMeans::kEqual},
            {{kAfter}, DateMeans::kAfter},
            {{"nonsense"}},
            {{kEqual + ", " + kEqual}},
            {{kBefore, kBefore}}};
}
std::vector<IfRangeRow> if_range_rows(const std::string& tag) {
    return {{{}, false},
            {{tag}, true, true},
            {{"W/" + tag}},
            {{"\"x\""}},
            {{kBefore}},
            {{kAfter}},
            {{kEqual}, true, false, true},
            {{"nonsense"}},
            {{tag, tag}},
            {{tag + ", \"x\""}},
            {{"*"}},
            {{""}}};
}

std::string section_of(const std::string& name, const std::vector<std::string>& lines) {
    std::string out;
    for (const std::string& line : lines) out += name + ": " + line + "\r\n";
    return out;
}

// RFC 9110 13.2.2, step by step.
Outcome due(const TagRow& match, const DateRow& unmodified, const TagRow& none_match,
            const DateRow& modified, bool weak, bool reads) {
    if (match.there) {  // 1
        const bool holds = match.any || (match.listed_strongly && !weak);
        if (!holds) return Outcome::kFailed;
    }
    if (!match.there && unmodified.means == DateMeans::kBefore) return Outcome::kFailed;  // 2
    if (none_match.there && (none_match.any || none_match.listed)) {                      // 3
        return reads ? Outcome::kNotModified : Outcome::kFailed;
    }
    if (reads && !none_match.there &&
        (modified.means == DateMeans::kEqual || modified.means == DateMeans::kAfter)) {  // 4
        return Outcome::kNotModified;
    }
    return Outcome::kMet;
}

TEST(Preconditions, every_combination_is_evaluated_in_the_order_of_the_rfc) {
    for (const bool weak : {false, true}) {
        const Validators validators(facts_that_are(weak), kNow);
        LAW(validators.is_weak() == weak);
        const std::vector<TagRow> tags = tag_rows(std::string(validators.opaque_tag()));
        const std::vector<DateRow> dates = date_rows();
        for (const TagRow& match : tags) {
            for (const DateRow& unmodified : dates) {
                for (const TagRow& none_match : tags) {
                    for (const DateRow& modified : dates) {
                        const std::string section =
                            section_of("IF-none-match", none_match.lines) +
                            section_of("If-Modified-Since", modified.lines) +
                            section_of("Accept", {"*/*"}) + section_of("if-match", match.lines) +
                            section_of("If-Unmodified-Since", unmodified.lines) + "\r\n";
                        const Preconditions got(section, validators, kNow);
                        for (const Method method : {Method::kGet, Method::kHead, Method::kPut}) {
                            LAW(got.outcome(method) == due(match, unmodified, none_match, modified,
                                                           weak, method != Method::kPut),
                                << visible(section));
                        }
                    }
                }
            }
        }
    }
}

TEST(Preconditions, a_range_counts_once_and_with_a_true_if_range) {
    for (const bool weak : {false, true}) {
        const Validators validators(facts_that_are(weak), kNow);
        for (const IfRangeRow& row : if_range_rows(std::string(validators.opaque_tag()))) {
            for (unsigned ranges = 0; ranges < 3; ++ranges) {
                std::string section = section_of("If-Range", row.lines);
                for (unsigned i = 0; i < ranges; ++i) section += "Range:  bytes=0-1 \r\n";
                const Preconditions got(section, validators, kNow);
                const bool counts =
                    ranges == 1 && (!row.there || ((row.is_tag || row.is_date) && !weak));
                LAW(got.range().has_value() == counts, << visible(section) << weak);
                LAW(!counts || *got.range() == "bytes=0-1", << visible(section));
                LAW(got.has_if_range() == row.there, << visible(section));
            }
        }
    }
}

TEST(Preconditions, a_date_of_this_second_is_no_reason_for_a_part) {
    FileFacts facts = facts_that_are(false);
    facts.modified.seconds = kNow + 50;  // ahead: Last-Modified is what Date is
    const Validators validators(facts, kNow);
    const std::string date(validators.last_modified());
    const std::string section = "If-Range: " + date + "\r\nRange: bytes=0-1\r\n\r\n";
    LAW(!Preconditions(section, validators, kNow).range());
    // Later, its Last-Modified is another: nobody is told that nothing has changed.
    const std::string since = "If-Modified-Since: " + date + "\r\n\r\n";
    const Validators later(facts, kNow + 1);
    LAW(Preconditions(since, later, kNow + 1).outcome(Method::kGet) == Outcome::kMet);
}

TEST(Preconditions, without_last_modified_no_date_counts) {
    FileFacts facts = facts_that_are(false);
    facts.modified.seconds = -62167219201;
    const Validators validators(facts, kNow);
    for (const char* name : {"If-Modified-Since", "If-Unmodified-Since"}) {
        for (const std::string& date : {kBefore, kAfter}) {
            const std::string section = section_of(name, {date}) + "\r\n";
            LAW(Preconditions(section, validators, kNow).outcome(Method::kGet) == Outcome::kMet);
        }
    }
}

// #entity-tag by putting a letter in the place of each opaque-tag: then a list is letters and
// commas.
struct ListOracle {
    bool any = false;
    bool listed = false;
    bool listed_strongly = false;
};
ListOracle judge_list(const std::string& value) {
    std::string plain;
    for (std::size_t i = 0; i < value.size(); ++i) {
        if (value[i] != '"') {
            plain += value[i] == 'C' || value[i] == 'O' ? '?' : value[i];
            continue;
        }
        const std::size_t end = value.find('"', i + 1);
        if (end == value.npos) return {};
        const std::string opaque = value.substr(i + 1, end - i - 1);
        if (opaque.find_first_of(" \t") != opaque.npos) return {};
        plain += opaque == "@" ? 'C' : 'O';  // the current one, another
        i = end;
    }
    ListOracle out;
    std::string rest = plain + ",";
    for (std::size_t comma; (comma = rest.find(',')) != rest.npos; rest.erase(0, comma + 1)) {
        std::string member = rest.substr(0, comma);
        while (member.ends_with(' ') || member.ends_with('\t')) member.pop_back();
        while (member.starts_with(' ') || member.starts_with('\t')) member.erase(0, 1);
        if (member == "*" && rest.size() == plain.size() + 1 && comma == plain.size()) {
            return {true};
        }
        if (member == "C") out.listed_strongly = true;
        if (member == "C" || member == "W/C") out.listed = true;
        if (!member.empty() && member != "C" && member != "O" && member != "W/C" &&
            member != "W/O") {
            return {};
        }
    }
    return out;
}

TEST(Preconditions, every_list_of_six_pieces) {
    GuardPage guard;
    const Validators validators(facts_that_are(false), kNow);
    const std::string tag(validators.opaque_tag());
    const std::vector<std::string> pieces = {"W/", "\"@\"", "\"", "a", ",", " \t", "*", "\x80"};
    std::vector<std::string> values = {""};
    for (unsigned length = 0; length <= 6; ++length) {
        std::vector<std::string> longer;
        for (const std::string& value : values) {
            const ListOracle due = judge_list(value);
            std::string text = value;
            for (std::size_t at; (at = text.find("\"@\"")) != text.npos;) text.replace(at, 3, tag);
            for (const bool match : {true, false}) {
                const std::string section =
                    (match ? "If-Match:" : "If-None-Match:") + text + "\r\n";
                const Preconditions got({guard.place(section), section.size()}, validators, kNow);
                const bool holds = due.any || (match ? due.listed_strongly : due.listed);
                const Outcome yes = match ? Outcome::kMet : Outcome::kNotModified;
                const Outcome no = match ? Outcome::kFailed : Outcome::kMet;
                LAW(got.outcome(Method::kGet) == (holds ? yes : no), << visible(section));
            }
            if (length == 6) continue;
            for (const std::string& piece : pieces) longer.push_back(value + piece);
        }
        values = std::move(longer);
    }
}

TEST(Preconditions, which_bytes_a_tag_holds) {
    const Validators validators(facts_that_are(false), kNow);
    const std::string tag(validators.opaque_tag());
    for (int c = 1; c < 256; ++c) {
        if (c == '\r' || c == '\n') continue;  // no value holds them
        const std::string other = "\"a" + std::string(1, static_cast<char>(c)) + "b\"";
        const std::string section = "If-None-Match: " + other + ", " + tag + "\r\n\r\n";
        const bool is_etagc = c == 0x21 || (c >= 0x23 && c <= 0x7E) || c >= 0x80;
        const Outcome due = is_etagc ? Outcome::kNotModified : Outcome::kMet;
        LAW(Preconditions(section, validators, kNow).outcome(Method::kGet) == due,
            << visible(section));
    }
}

}  // namespace
}  // namespace httpmark
