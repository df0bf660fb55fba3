// Connections that are asked once and then held.
#include <gtest/gtest.h>

#include <atomic>

#include "tests/load/loading.hpp"

namespace httpmark {
namespace {

TEST(IdleLoad, asks_once_holds_and_sees_who_closes) {
    LoadPlan plan;
    plan.mode = LoadMode::kIdle;
    plan.connections = 8;
    plan.duration_s = 0.3;
    // Three of the eight servers' connections end after a while.
    std::atomic<int> number = 0;
    ScriptedServer server([&](int fd) {
        const bool ends = ++number <= 3;
        hear_heads(fd, 1);
        say(fd, reply());
        if (ends) {
            usleep(100'000);
            return;
        }
        hear_heads(fd, 1);
    });
    const LoadCounts counts = load_at(server, plan);
    EXPECT_EQ(counts.responses, 8u);
    EXPECT_EQ(counts.closes_seen, 3u);
    EXPECT_EQ(counts.errors.sum(), 0u);
}

}  // namespace
}  // namespace httpmark
