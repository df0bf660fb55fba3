// What is still awaited when the window is over.
#include <gtest/gtest.h>

#include <atomic>
#include <string>

#include "tests/load/loading.hpp"

namespace httpmark {
namespace {

TEST(Drain, goes_on_while_answers_come_and_what_it_leaves_is_no_error) {
    LoadPlan plan;
    plan.depth = 8;
    plan.connections = 2;
    plan.duration_s = 0.1;
    plan.drain_s = 0.7;
    // Eight answers take 1.2 s on each connection, longer than anyone is waited for.
    const auto serve = [](int fd) {
        std::string heard;
        char buffer[4096];
        for (;;) {
            const ssize_t got = recv(fd, buffer, sizeof buffer, 0);
            if (got <= 0) return;
            heard.append(buffer, static_cast<std::size_t>(got));
            for (std::size_t end = heard.find("\r\n\r\n"); end != std::string::npos;
                 end = heard.find("\r\n\r\n")) {
                heard.erase(0, end + 4);
                usleep(150'000);
                say(fd, reply());
            }
        }
    };
    {
        const ScriptedServer server(serve);
        const LoadCounts counts = load_at(server, plan);
        EXPECT_EQ(counts.errors.sum(), 0u);
        EXPECT_EQ(counts.unanswered, 0u);
        EXPECT_EQ(counts.responses, counts.requests_sent);
    }
    plan.drain_max_s = 0.2;
    {
        const ScriptedServer server(serve);
        const LoadCounts counts = load_at(server, plan);
        EXPECT_EQ(counts.errors.sum(), 0u);
        EXPECT_GT(counts.unanswered, 4u);
        EXPECT_EQ(counts.responses + counts.unanswered, counts.requests_sent);
    }
    // An open loop has the time of all of them, and did not serve its rate.
    plan.mode = LoadMode::kOpen;
    plan.rate = 200;
    {
        const ScriptedServer server(serve);
        const LoadCounts counts = load_at(server, plan);
        EXPECT_EQ(counts.errors.sum(), 0u);
        EXPECT_GT(counts.unanswered, 0u);
        EXPECT_EQ(counts.response.total(), counts.responses + counts.unanswered + counts.unsent);
        EXPECT_TRUE(report_of(plan, counts).is_saturated());
    }
}

TEST(Drain, a_mute_connection_is_an_error_beside_slow_ones) {
    std::atomic<int> number = 0;
    ScriptedServer server([&](int fd) {
        const bool is_mute = ++number == 2;
        hear_heads(fd, 1);
        if (is_mute) {
            hear_heads(fd, 1000);
            return;
        }
        for (;;) {
            say(fd, reply());
            if (hear_heads(fd, 1).empty()) return;
            usleep(1'000);
        }
    });
    LoadPlan plan;
    plan.connections = 3;
    plan.duration_s = 0.1;
    plan.drain_s = 0.3;
    const LoadCounts counts = load_at(server, plan);
    EXPECT_EQ(counts.errors.timeout, 1u);
    EXPECT_EQ(counts.errors.sum(), 1u);
    EXPECT_EQ(counts.unanswered, 0u);
}

}  // namespace
}  // namespace httpmark
