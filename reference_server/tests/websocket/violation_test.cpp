#include "websocket/violation.hpp"

#include <set>
#include <string>

#include "laws.hpp"

namespace httpmark::websocket {
namespace {

TEST(Violation, every_one_has_a_name_a_code_that_may_be_sent_and_a_clause) {
    std::set<std::string> names;
    for (unsigned i = 1; i < static_cast<unsigned>(Violation::kCount); ++i) {
        const ViolationRow& row = violation_row(static_cast<Violation>(i));
        LAW(names.insert(row.name).second, << row.name);
        LAW(row.code == 1002 || row.code == 1007 || row.code == 1009 || row.code == 1011,
            << row.name);
        LAW(may_be_sent(row.code), << row.name);
        LAW(std::string_view(row.clause).starts_with("RFC "), << row.name);
        // It is the reason of a Close frame, which has 123 bytes.
        LAW(std::string_view(row.name).size() <= 123, << row.name);
    }
}

// RFC 6455 7.4.1 and 7.4.2, number by number.
TEST(Violation, codes_of_close_frames) {
    const std::set<unsigned> defined = {1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011};
    for (unsigned code = 0; code < 65536; ++code) {
        const bool is_free = code >= 3000 && code < 5000;
        LAW(may_be_received(code) == (is_free || defined.contains(code)), << code);
        LAW(may_be_sent(code) == (may_be_received(code) && code != 1010), << code);
    }
}

}  // namespace
}  // namespace httpmark::websocket
