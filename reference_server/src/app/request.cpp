#include "app/request.hpp"

#include "app/router.hpp"
#include "http/chunked.hpp"

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

}  // namespace httpmark
