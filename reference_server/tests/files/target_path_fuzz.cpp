// Whatever the path, what is taken of it names something beneath, and a redirect leads to a path
// that is taken.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "check.hpp"
#include "files/target_path.hpp"

namespace {

using namespace httpmark;

void check_name(std::string_view name, bool hidden_too) {
    CHECK(name.size() <= TargetPath::kNameMax && name.find('\0') == name.npos);
    CHECK(name.find('\\') == name.npos);
    while (!name.empty()) {
        const std::size_t slash = name.find('/');
        const std::string_view segment = name.substr(0, slash);
        CHECK(!segment.empty() && segment != "." && segment != "..");
        CHECK(hidden_too || segment.front() != '.');
        if (slash == name.npos) return;
        name.remove_prefix(slash + 1);
        CHECK(!name.empty());
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* octets, std::size_t size) {
    if (size < 1) return 0;
    const TargetPath::Options options{(octets[0] & 1) != 0, "index.html"};
    const std::string_view path(reinterpret_cast<const char*>(octets + 1), size - 1);
    const TargetPath target(path, options);
    CHECK(std::string_view(target.name()) == target.name_view());
    if (target.fault() == PathFault::kNone) {
        check_name(target.name_view(), options.hidden_too);
        CHECK(path.empty() == target.name_view().empty());
    } else {
        CHECK(target.name_view().empty());
    }
    if (target.fault() == PathFault::kDotSegment) {
        const std::string plain = without_dot_segments(path);
        CHECK(plain.starts_with('/') && !plain.starts_with("//") && plain.size() <= path.size());
        CHECK(TargetPath(plain, options).fault() == PathFault::kNone);
    }
    return 0;
}
