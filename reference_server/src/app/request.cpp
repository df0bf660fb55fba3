#include "app/request.hpp"

#include "app/router.hpp"
#include "content/cookies.hpp"
#include "content/form.hpp"
#include "http/chunked.hpp"
#include "http/uri.hpp"

namespace httpmark {

Target split_target(std::string_view target, TargetForm form) {
    if (form == TargetForm::kAbsolute) {
        const std::size_t authority = target.find("//") + 2;
        const std::size_t end = target.find_first_of("/?", authority);
        if (end == std::string_view::npos) return {"/", {}, false};
        target.remove_prefix(end);
        if (target.front() == '?') return {"/", target.substr(1), true};
    }
    const std::size_t mark = target.find('?');
    if (mark == std::string_view::npos) return {target, {}, false};
    return {target.substr(0, mark), target.substr(mark + 1), true};
}

bool TrailerReader::next(std::string_view& name, std::string_view& value) {
    while (reader_.next(name, value)) {
        if (!is_forbidden_trailer(name)) return true;
    }
    return false;
}

// The path is known to fit the pattern, so the value is found by counting segments.
std::string_view Request::value(std::string_view name) const {
    for (const PathParameter& parameter : route.parameters) {
        if (parameter.name != name) continue;
        std::string_view rest = target.path;
        for (std::uint32_t i = 0; i <= parameter.segment; ++i) {
            const std::size_t slash = segment_size(rest);
            if (slash == rest.size()) return {};
            rest.remove_prefix(slash + 1);
        }
        return parameter.takes_rest ? rest : std::string_view(rest.data(), segment_size(rest));
    }
    return {};
}

std::string Request::decoded_value(std::string_view name) const {
    std::string text(value(name));
    // The parser has seen every pair.
    text.resize(percent_decode(text, text.data()).value_or(std::string_view()).size());
    return text;
}

std::optional<std::string> Request::parameter(std::string_view name) const {
    const auto found = find_form_value(target.query, name);
    if (!found) return std::nullopt;
    std::string text(*found);
    if (!form_text_means_itself(*found)) text.resize(decode_form(text, text.data()).size());
    return text;
}

std::optional<std::string_view> Request::field(std::string_view wanted) const {
    FieldReader reader(fields());
    std::string_view name;
    std::string_view value;
    while (reader.next(name, value)) {
        if (same_ignoring_case(name, wanted)) return value;
    }
    return std::nullopt;
}

std::optional<std::string_view> Request::cookie(std::string_view name) const {
    FieldReader reader(fields());
    std::string_view field_name;
    std::string_view pairs;
    while (reader.next(field_name, pairs)) {
        if (!equals_ignoring_case(field_name, "cookie")) continue;
        if (const auto found = find_cookie(pairs, name)) return found;
    }
    return std::nullopt;
}

}  // namespace httpmark
