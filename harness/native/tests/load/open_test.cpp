// Requests that are due whatever becomes of those before.
#include <gtest/gtest.h>

#include <mutex>
#include <string>

#include "tests/load/loading.hpp"

namespace httpmark {
namespace {

TEST(OpenLoop, sends_what_is_due_and_accounts_for_all_of_it) {
    const LoadCounts counts = load_plan(open_plan(2000, Arrivals::kConstant),
                                        [](int, const std::string&) { return reply(); });
    EXPECT_EQ(counts.errors.sum(), 0u);
    EXPECT_NEAR(static_cast<double>(counts.responses), 800, 2);
    EXPECT_EQ(counts.response.total(), counts.responses);
    EXPECT_EQ(counts.service.total(), counts.responses);
    EXPECT_EQ(counts.unsent + counts.dropped, 0u);
}

TEST(OpenLoop, a_trickle_asks_on_every_connection_in_turn) {
    LoadPlan plan = open_plan(100, Arrivals::kConstant);
    plan.connections = 20;  // each is asked once in 0.2 s
    plan.depth = 1;
    plan.warmup_s = 0;
    plan.duration_s = 0.4;
    const LoadCounts counts = load_plan(plan, [](int, const std::string&) { return reply(); });
    EXPECT_EQ(counts.errors.sum(), 0u);
    EXPECT_EQ(counts.unsent + counts.dropped, 0u);
    EXPECT_EQ(counts.balance.connections, 20u);
    EXPECT_GE(counts.balance.least, 1u);  // not the same few again and again
    EXPECT_LE(counts.balance.most, 3u);
    EXPECT_NEAR(static_cast<double>(counts.responses), 40, 1);
}

TEST(OpenLoop, poisson_arrivals_have_the_rate_and_no_metronome) {
    const LoadCounts counts = load_plan(open_plan(2000, Arrivals::kPoisson),
                                        [](int, const std::string&) { return reply(); });
    EXPECT_EQ(counts.errors.sum(), 0u);
    EXPECT_NEAR(static_cast<double>(counts.responses), 800, 150);  // over five sigma
}

TEST(OpenLoop, a_stalled_server_is_in_the_latency_of_all_who_waited) {
    LoadPlan plan = open_plan(1000, Arrivals::kConstant);
    plan.connections = 1;
    plan.depth = 1;
    const LoadCounts counts = load_plan(plan, [](int n, const std::string&) {
        if (n == 200) usleep(100'000);
        return reply();
    });
    EXPECT_EQ(counts.errors.sum(), 0u);
    EXPECT_NEAR(static_cast<double>(counts.responses), 400, 2);
    // A hundred requests were due in the stall; a closed loop would have seen one of them wait.
    EXPECT_GT(counts.response.percentile(90), 40'000'000u);
    EXPECT_LT(counts.service.percentile(90), 40'000'000u);
    EXPECT_GT(counts.backlog_peak, 50u);
}

TEST(OpenLoop, what_a_server_cannot_serve_is_not_kept_quiet) {
    LoadPlan plan = open_plan(2000, Arrivals::kConstant);
    plan.connections = 1;
    plan.depth = 1;
    plan.drain_max_s = 0.1;
    const LoadCounts counts = load_plan(plan, [](int, const std::string&) {
        usleep(5'000);
        return reply();
    });
    EXPECT_GT(counts.unsent, 300u);
    EXPECT_GE(counts.response.total(), counts.responses + counts.unsent - 1);
    EXPECT_GT(counts.response.percentile(50), 100'000'000u);
}

TEST(OpenLoop, a_rate_that_was_only_served_in_the_drain_was_not_served) {
    // In the backlog of the generator, and in the queue of the server.
    for (const std::size_t connections : {std::size_t{1}, std::size_t{64}}) {
        LoadPlan plan = open_plan(350, Arrivals::kConstant);
        plan.connections = connections;
        plan.depth = connections == 1 ? 1 : 16;
        plan.duration_s = 1;
        plan.drain_s = 10;
        std::mutex one_at_a_time;
        const LoadCounts counts = load_plan(plan, [&](int, const std::string&) {
            const std::lock_guard<std::mutex> lock(one_at_a_time);
            usleep(5'000);
            return reply();
        });
        EXPECT_EQ(counts.errors.sum(), 0u);
        EXPECT_EQ(counts.unsent + counts.dropped, 0u);  // all was answered in the end
        EXPECT_EQ(counts.responses, counts.due);
        EXPECT_GT(counts.outstanding_end, counts.outstanding_middle);
        EXPECT_TRUE(report_of(plan, counts).is_saturated());
    }
}

TEST(OpenLoop, a_slow_server_that_keeps_up_has_served_the_rate) {
    LoadPlan plan = open_plan(200, Arrivals::kConstant);
    plan.connections = 64;
    plan.depth = 1;
    plan.warmup_s = 0;  // nothing is under way at first
    plan.duration_s = 1;
    // A machine that is busy with other things may stand still for longer than the server does.
    bool is_saturated = true;
    for (int trial = 0; trial < 3 && is_saturated; ++trial) {
        const LoadCounts counts = load_plan(plan, [](int, const std::string&) {
            usleep(100'000);
            return reply();
        });
        EXPECT_EQ(counts.errors.sum(), 0u);
        EXPECT_GT(counts.outstanding_end, 10u);  // of 200
        is_saturated = report_of(plan, counts).is_saturated();
    }
    EXPECT_FALSE(is_saturated);
    const LoadPlan few = open_plan(30, Arrivals::kPoisson);
    const LoadCounts answered = load_plan(few, [](int, const std::string&) { return reply(); });
    EXPECT_FALSE(report_of(few, answered).is_saturated());
}

TEST(OpenLoop, no_request_gets_lost_where_connections_end) {
    LoadPlan plan = open_plan(600, Arrivals::kConstant);
    plan.connections = 2;
    plan.depth = 8;
    plan.duration_s = 0.5;
    plan.drain_s = 5;
    plan.warmup_s = 0;
    for (const bool is_announced : {true, false}) {
        const LoadCounts counts = load_plan(plan, [&](int n, const std::string&) {
            usleep(5'000);  // more come meanwhile
            if (n > 10) return std::string("END");
            return n == 10 && is_announced ? last_reply() : reply();
        });
        EXPECT_NEAR(static_cast<double>(counts.due), 300, 1);
        // Each has a time, answered or not.
        EXPECT_EQ(counts.response.total(), counts.due - counts.dropped);
        EXPECT_EQ(counts.service.total(), counts.response.total());
        if (is_announced) {
            EXPECT_EQ(counts.errors.sum(), 0u) << counts.complaints[0];
            EXPECT_EQ(counts.responses, counts.due);
            EXPECT_GT(counts.resent, 0u);
        } else {
            EXPECT_GT(counts.errors.closed + counts.errors.reset, 0u);
            EXPECT_GT(counts.errors.lost, 0u);
            EXPECT_EQ(counts.requests_sent, counts.due);
            EXPECT_EQ(counts.responses + counts.errors.lost, counts.due);
        }
    }
}

TEST(OpenLoop, the_generators_lag_lasts_until_the_send_and_is_no_wait_for_a_connection) {
    // Several are due at each turn, and each send takes its time.
    LoadPlan plan = open_plan(100'000, Arrivals::kConstant);
    plan.connections = 16;
    plan.depth = 4096;  // there is always room
    plan.duration_s = 0.2;
    plan.warmup_s = 0;
    plan.drain_s = 10;
    const LoadCounts many = load_plan(plan, [](int, const std::string&) { return reply(); });
    EXPECT_EQ(many.errors.sum(), 0u);
    EXPECT_EQ(many.lag.total(), many.due);
    // From due to sent, and from there to the answer: that is all.
    EXPECT_NEAR(many.lag.mean() + many.service.mean(), many.response.mean(),
                0.002 * many.response.mean());
    plan = open_plan(1000, Arrivals::kConstant);
    plan.connections = 1;
    plan.depth = 1;
    const LoadCounts stalled = load_plan(plan, [](int n, const std::string&) {
        if (n == 200) usleep(200'000);
        return reply();
    });
    EXPECT_EQ(stalled.lag.total(), stalled.due);
    EXPECT_GT(stalled.response.percentile(75), 50'000'000u);
    EXPECT_LT(stalled.lag.percentile(75), 20'000'000u);
}

}  // namespace
}  // namespace httpmark
