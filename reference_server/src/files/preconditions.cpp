#include "files/preconditions.hpp"

#include <algorithm>

#include "http/syntax.hpp"

namespace httpmark {

namespace {

// RFC 9110 8.8.3
bool is_etagc(unsigned char c) {
    return c > 0x20 && c != '"' && c != 0x7F;
}

struct EntityTag {
    bool weak = false;
    std::string_view opaque;  // with its quotes; empty where there is no tag
};

// entity-tag = [ "W/" ] DQUOTE *etagc DQUOTE at the front of the text.
EntityTag take_entity_tag(std::string_view& text) {
    const bool weak = text.starts_with("W/");
    const std::string_view rest = text.substr(weak ? 2 : 0);
    if (!rest.starts_with('"')) return {};
    std::size_t end = 1;
    while (end < rest.size() && is_etagc(octet(rest[end]))) ++end;
    if (end == rest.size() || rest[end] != '"') return {};
    text = rest.substr(end + 1);
    return {weak, rest.substr(0, end + 1)};
}

}  // namespace

Preconditions::Preconditions(std::string_view section, const Validators& validators,
                             std::int64_t now)
    : validators_(validators), now_(now) {
    FieldReader reader(section);
    std::string_view name;
    std::string_view value;
    while (reader.next(name, value)) take(name, trim_ows(value));
}

void Preconditions::take(std::string_view name, std::string_view value) {
    if (equals_ignoring_case(name, "range")) range_.take(value);
    if (name.size() < 3 || !equals_ignoring_case(name.substr(0, 3), "if-")) return;
    if (equals_ignoring_case(name, "if-match")) take_tags(if_match_, value, true);
    if (equals_ignoring_case(name, "if-none-match")) take_tags(if_none_match_, value, false);
    if (equals_ignoring_case(name, "if-modified-since")) if_modified_since_.take(value);
    if (equals_ignoring_case(name, "if-unmodified-since")) if_unmodified_since_.take(value);
    if (equals_ignoring_case(name, "if-range")) if_range_.take(value);
}

// "*" / #entity-tag, RFC 9110 13.1.1; empty members are ignored (5.6.1.2).
void Preconditions::take_tags(TagList& list, std::string_view value, bool strongly) const {
    ++list.lines;
    if (value == "*") {
        list.any = true;
        return;
    }
    for (bool member_due = true; !value.empty();) {
        if (is_ows(octet(value.front()))) {
            value.remove_prefix(1);
            continue;
        }
        if (value.front() == ',') {
            value.remove_prefix(1);
            member_due = true;
            continue;
        }
        const EntityTag tag = take_entity_tag(value);
        if (!member_due || tag.opaque.empty()) {
            list.broken = true;
            return;
        }
        member_due = false;
        if (strongly ? is_same_strongly(tag.weak, tag.opaque)
                     : tag.opaque == validators_.opaque_tag()) {
            list.matched = true;
        }
    }
}

// RFC 9110 8.8.3.2
bool Preconditions::is_same_strongly(bool weak, std::string_view opaque) const {
    return !weak && !validators_.is_weak() && opaque == validators_.opaque_tag();
}

std::optional<std::int64_t> Preconditions::date_of(const Singleton& field) const {
    if (field.count != 1 || validators_.last_modified().empty()) return std::nullopt;
    return parse_http_date(field.value, now_);
}

Preconditions::Outcome Preconditions::outcome(Method method) const {
    const bool reads = method == Method::kGet || method == Method::kHead;
    if (if_match_.is_there()) {
        if (!if_match_.holds()) return Outcome::kFailed;
    } else if (const auto date = date_of(if_unmodified_since_);
               date && validators_.modified() > *date) {
        return Outcome::kFailed;
    }
    if (if_none_match_.is_there()) {
        if (!if_none_match_.holds()) return Outcome::kMet;
        return reads ? Outcome::kNotModified : Outcome::kFailed;
    }
    if (const auto date = date_of(if_modified_since_);
        reads && date && validators_.modified() <= *date) {
        return Outcome::kNotModified;
    }
    return Outcome::kMet;
}

// RFC 9110 13.1.5: an entity tag or a date, and both compared strongly.
bool Preconditions::if_range_is_true() const {
    if (if_range_.count != 1) return false;
    std::string_view rest = if_range_.value;
    if (const EntityTag tag = take_entity_tag(rest); !tag.opaque.empty()) {
        return rest.empty() && is_same_strongly(tag.weak, tag.opaque);
    }
    return validators_.date_is_strong() && date_of(if_range_) == validators_.modified();
}

std::optional<std::string_view> Preconditions::range() const {
    if (range_.count != 1 || (has_if_range() && !if_range_is_true())) return std::nullopt;
    return range_.value;
}

}  // namespace httpmark
