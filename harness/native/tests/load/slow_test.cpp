// A client that sends and never reads.
#include <gtest/gtest.h>

#include <string>

#include "tests/load/loading.hpp"

namespace httpmark {
namespace {

TEST(SlowLoad, sends_until_the_server_takes_no_more) {
    LoadPlan plan;
    plan.mode = LoadMode::kSlow;
    plan.connections = 1;
    plan.depth = 64;
    plan.duration_s = 0.3;
    const LoadCounts counts = load_plan(plan, [](int, const std::string&) { return reply(); });
    EXPECT_GT(counts.bytes_sent, 100'000u);
    EXPECT_EQ(counts.reads, 0u);
    EXPECT_EQ(counts.errors.sum(), 0u);
}

}  // namespace
}  // namespace httpmark
