#include "http/error.hpp"

#include <set>
#include <string>

#include "laws.hpp"

namespace httpmark {
namespace {

TEST(Error, every_reason_has_a_name_a_status_with_a_phrase_and_a_clause) {
    std::set<std::string> names;
    for (unsigned i = 1; i < static_cast<unsigned>(Reason::kCount); ++i) {
        const ErrorRow& row = error_row(static_cast<Reason>(i));
        LAW(names.insert(row.name).second, << row.name);
        LAW(row.status >= 400 && row.status < 600, << row.name);
        LAW(status_phrase(row.status) != "Unknown", << row.name);
        LAW(std::string_view(row.clause).starts_with("RFC "), << row.name);
    }
    LAW(names.size() >= 60);
}

TEST(Error, the_connection_lives_on_only_where_the_framing_is_known) {
    for (unsigned i = 1; i < static_cast<unsigned>(Reason::kCount); ++i) {
        const ErrorRow& row = error_row(static_cast<Reason>(i));
        if (row.status == 400 || row.status == 414 || row.status == 431 || row.status == 408 ||
            row.status == 413 || row.status == 505) {
            LAW(!row.connection_lives, << row.name);
        }
    }
    LAW(error_row(Reason::kNotFound).connection_lives);
    LAW(error_row(Reason::kMethodNotAllowed).connection_lives);
    LAW(error_row(Reason::kMethodUnknown).connection_lives);
}

}  // namespace
}  // namespace httpmark
