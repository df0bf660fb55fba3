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

constexpr char kEnd[] = "\r\n\r\n";

// Answers each so many microseconds; of the second connection none.
void serve_slowly(std::atomic<int>* number, useconds_t pause, int fd) {
    const bool is_mute = ++*number == 2;
    for (;;) {
        const std::string heads = hear_heads(fd, 1);
        if (heads.empty()) return;
        for (std::size_t at = heads.find(kEnd); at != std::string::npos;
             at = heads.find(kEnd, at + 1)) {
            usleep(pause);
            if (!is_mute) say(fd, reply());
        }
    }
}

LoadPlan drained(double drain_s, double drain_slow_s) {
    LoadPlan plan;
    plan.connections = 2;
    plan.duration_s = 0.1;
    plan.drain_s = drain_s;
    plan.drain_slow_s = drain_slow_s;
    return plan;
}

TEST(Drain, is_cut_short_where_answers_still_come) {
    std::atomic<int> number = 2;
    const ScriptedServer server([&](int fd) { serve_slowly(&number, 100'000, fd); });
    LoadPlan plan = drained(0.7, 0.2);
    plan.depth = 16;
    const LoadCounts counts = load_at(server, plan);
    EXPECT_EQ(counts.errors.sum(), 0u);
    EXPECT_EQ(counts.unanswered, 0u);
    EXPECT_GT(counts.not_waited_for, 16u);
    EXPECT_EQ(counts.responses + counts.not_waited_for, counts.requests_sent);
}

TEST(Drain, is_not_cut_short_for_a_server_that_has_fallen_silent) {
    std::atomic<int> number = 0;
    const ScriptedServer server([&](int fd) { serve_slowly(&number, 1'000, fd); });
    const LoadCounts counts = load_at(server, drained(0.9, 0.6));
    EXPECT_EQ(counts.errors.timeout, 1u);
    EXPECT_EQ(counts.not_waited_for, 0u);
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
