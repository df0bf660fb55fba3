#include "limits.hpp"

#include <set>
#include <string>

#include "laws.hpp"

namespace httpmark {
namespace {

TEST(Limits, every_knob_stands_in_the_table_once_with_its_default_inside_its_bounds) {
    const Limits defaults;
    std::set<std::string> flags;
    std::set<const std::uint64_t*> members;
    for (const LimitRow& row : kLimitTable) {
        LAW(flags.insert(row.flag).second, << row.flag);
        LAW(members.insert(&(defaults.*row.value)).second, << row.flag);
        LAW(defaults.*row.value >= row.lowest && defaults.*row.value <= row.highest, << row.flag);
    }
    LAW(members.size() * sizeof(std::uint64_t) == sizeof(Limits));
}

TEST(Limits, defaults_are_the_documented_ones) {
    const Limits limits;
    LAW(limits.target_max == 8192 && limits.field_name_max == 256 &&
        limits.field_value_max == 8192);
    LAW(limits.field_lines_max == 100 && limits.head_max == 32768 && limits.body_max == 33554432);
    LAW(limits.idle_timeout_ms == 60000 && limits.head_timeout_ms == 10000);
    LAW(limits.body_timeout_ms == 30000 && limits.body_rate_min == 1024);
    LAW(limits.write_timeout_ms == 30000 && limits.linger_timeout_ms == 2000);
    LAW(limits.linger_max == 2097152 && limits.handshake_timeout_ms == 10000);
    LAW(limits.drain_timeout_ms == 30000 && limits.pending_output_max == 262144);
}

}  // namespace
}  // namespace httpmark
