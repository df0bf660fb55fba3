#include "content/fault.hpp"

#include <set>
#include <string>

#include "laws.hpp"

namespace httpmark {
namespace {

TEST(ContentFault, every_fault_has_one_row_with_a_name_a_status_and_a_clause) {
    std::set<std::string> names;
    for (unsigned i = 0; i < static_cast<unsigned>(ContentFault::kCount); ++i) {
        const ContentFaultRow& row = content_fault_row(static_cast<ContentFault>(i));
        LAW(static_cast<unsigned>(row.fault) == i);
        LAW(names.insert(row.name).second, << row.name);
        const std::string_view clause = row.clause;
        const bool is_none = row.fault == ContentFault::kNone;
        LAW(is_none == clause.empty(), << row.name);
        LAW(is_none || clause.starts_with("RFC ") || clause.starts_with("WHATWG "), << row.name);
        LAW(is_none ? row.status == 200 : row.status >= 400 && row.status <= 503, << row.name);
    }
}

}  // namespace
}  // namespace httpmark
