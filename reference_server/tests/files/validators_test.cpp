#include "files/validators.hpp"

#include <set>
#include <string>

#include "laws.hpp"

namespace httpmark {
namespace {

constexpr std::int64_t kNow = 1795312800;

FileFacts facts_of(std::uint64_t size, std::uint64_t inode, FileTime modified, FileTime changed) {
    return {size, inode, modified, changed};
}
const FileFacts kOld = facts_of(12, 7, {784111777, 5}, {kNow - 1000, 9});

TEST(Validators, any_fact_that_changes_changes_the_tag) {
    std::set<std::string> tags;
    std::size_t count = 0;
    const FileTime times[] = {{0, 0}, {0, 1}, {1, 0}, {-1, 0}, {16, 1}, {1, 999999999}};
    for (const std::uint64_t size : {0ULL, 1ULL, 16ULL, 17ULL, ~0ULL}) {
        for (const std::uint64_t inode : {0ULL, 1ULL, 16ULL, 17ULL, ~0ULL}) {
            for (const FileTime& modified : times) {
                for (const FileTime& changed : times) {
                    const Validators one(facts_of(size, inode, modified, changed), kNow);
                    LAW(!one.is_weak());
                    tags.emplace(one.entity_tag());
                    ++count;
                }
            }
        }
    }
    LAW(tags.size() == count, << tags.size() << " of " << count);
}

TEST(Validators, equal_facts_have_one_tag_at_any_time) {
    const std::string tag(Validators(kOld, kNow).entity_tag());
    LAW(Validators(kOld, kNow + 100000).entity_tag() == tag);
}

// RFC 9110 8.8.3: DQUOTE *etagc DQUOTE
bool is_opaque_tag(std::string_view text) {
    if (text.size() < 2 || !text.starts_with('"') || !text.ends_with('"')) return false;
    for (const char c : text.substr(1, text.size() - 2)) {
        if (c < 0x21 || c > 0x7E || c == '"') return false;
    }
    return true;
}

TEST(Validators, the_tag_fits_the_grammar_whatever_the_facts) {
    for (const std::int64_t second : {std::int64_t{0}, kNow, std::int64_t{INT64_MIN}, INT64_MAX}) {
        const Validators widest(facts_of(~0ULL, ~0ULL, {second, 999999999}, {second, 999999999}),
                                kNow);
        LAW(is_opaque_tag(widest.opaque_tag()), << widest.opaque_tag());
        LAW(widest.is_weak() == widest.entity_tag().starts_with("W/"));
        LAW(widest.entity_tag().substr(widest.is_weak() ? 2 : 0) == widest.opaque_tag());
    }
}

TEST(Validators, a_tag_is_weak_until_the_last_change_has_settled) {
    for (std::int64_t age = -10; age < 10; ++age) {
        FileFacts facts = kOld;
        facts.changed.seconds = kNow - age;
        const Validators validators(facts, kNow);
        LAW(validators.is_weak() == (age <= kSettledSeconds), << age);
        LAW(!validators.date_is_strong() || !validators.is_weak(), << age);
        // A program that sets the modification time back does not make it strong.
        facts.modified.seconds = kNow - 100000;
        LAW(Validators(facts, kNow).is_weak() == (age <= kSettledSeconds), << age);
    }
}

TEST(Validators, last_modified_is_never_later_than_now) {
    for (std::int64_t ahead = -5; ahead < 5; ++ahead) {
        FileFacts facts = kOld;
        facts.modified.seconds = kNow + ahead;
        const Validators validators(facts, kNow);
        LAW(validators.modified() == std::min(kNow, kNow + ahead));
        LAW(parse_http_date(validators.last_modified(), kNow) == validators.modified());
        LAW(validators.date_is_strong() == (ahead < 0), << ahead);
    }
    LAW(Validators(kOld, kNow).last_modified() == "Sun, 06 Nov 1994 08:49:37 GMT");
}

TEST(Validators, a_date_without_a_text_is_left_out) {
    FileFacts facts = kOld;
    facts.modified.seconds = -62167219201;  // before the year 0
    const Validators validators(facts, kNow);
    LAW(validators.last_modified().empty() && !validators.date_is_strong());
    LAW(!validators.is_weak() && !validators.entity_tag().empty());
}

}  // namespace
}  // namespace httpmark
