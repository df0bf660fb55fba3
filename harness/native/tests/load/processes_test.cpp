// A load run of several processes and threads.
#include "load/processes.hpp"

#include <gtest/gtest.h>

#include <string>

#include "tests/load/loading.hpp"

namespace httpmark {
namespace {

TEST(Processes, results_come_together_whole) {
    ProcessResult one;
    one.counts.responses = 7;
    one.counts.errors.order = 3;
    one.counts.late_dates = 5;
    one.counts.statuses = {{404, 2}, {503, 9}};
    one.counts.response.add(1234, 5);
    one.counts.complaints = {"a", ""};
    one.counts.slices.assign(2, Histogram(kSliceCoarseBits));
    one.counts.slices[1].add(1234, 5);
    one.cpu_ns = 99;
    one.seconds = 1.5;
    one.counts.balance.add(3);
    one.counts.balance.add(1);
    one.threads = {{1, 2, 3}};
    ProcessResult two;
    const std::string octets = pack(one);
    ASSERT_TRUE(unpack(octets, &two));
    EXPECT_EQ(two.counts.responses, 7u);
    EXPECT_EQ(two.counts.errors.order, 3u);
    EXPECT_EQ(two.counts.late_dates, 5u);
    EXPECT_EQ(two.counts.statuses, one.counts.statuses);
    EXPECT_EQ(two.counts.response.total(), 5u);
    EXPECT_EQ(two.counts.response.max(), 1234u);
    EXPECT_EQ(two.counts.complaints, one.counts.complaints);
    ASSERT_EQ(two.counts.slices.size(), 2u);
    EXPECT_EQ(two.counts.slices[0].total(), 0u);
    EXPECT_EQ(two.counts.slices[1].total(), 5u);
    EXPECT_EQ(two.cpu_ns, 99u);
    EXPECT_EQ(two.seconds, 1.5);
    EXPECT_EQ(two.counts.balance.least, 1u);
    EXPECT_EQ(two.counts.balance.most, 3u);
    EXPECT_DOUBLE_EQ(two.counts.balance.jain_index(), 0.8);
    ASSERT_EQ(two.threads.size(), 1u);
    EXPECT_EQ(two.threads[0].run_delay_ns, 2u);
    for (std::size_t size = 0; size < octets.size(); ++size) {
        EXPECT_FALSE(unpack(std::string_view(octets).substr(0, size), &two)) << size;
    }
}

TEST(Processes, connections_and_rate_are_shared_out) {
#if defined(__SANITIZE_THREAD__)
    GTEST_SKIP()
        << "ThreadSanitizer cannot follow a fork of a process with threads, which only the "
           "test is; command_line_check.py runs the executable with --procs";
#endif
    ScriptedServer server(answering([](int, const std::string&) { return reply(); }));
    LoadPlan plan = open_plan(1500, Arrivals::kConstant);
    plan.connections = 7;
    plan.threads = 2;
    plan.source = *parse_source_range("127.0.0.0/25");
    plan = asking(server.endpoint(), plan);
    std::size_t connected = 0;
    int windows = 0;
    ProcessResult result;
    Hooks hooks;
    hooks.connected = [&](std::size_t count) { connected = count; };
    hooks.window = [&] { ++windows; };
    ASSERT_TRUE(run_processes(plan, 3, {verifier_of_reply()}, hooks, &result));
    EXPECT_EQ(connected, 7u);
    EXPECT_EQ(windows, 1);
    EXPECT_EQ(result.established, 7u);
    EXPECT_EQ(result.counts.errors.sum(), 0u);
    EXPECT_NEAR(static_cast<double>(result.counts.responses), 600, 8);
    EXPECT_EQ(result.threads.size(), 6u);
    EXPECT_GT(result.cpu_ns, 0u);
}

TEST(Processes, what_the_harness_does_meanwhile_is_no_gap_in_the_cost) {
    ScriptedServer server(answering([](int, const std::string&) { return reply(); }));
    LoadPlan plan;
    plan.connections = 2;
    plan.depth = 16;
    plan.warmup_s = 0.05;
    plan.duration_s = 0.4;
    plan = asking(server.endpoint(), plan);
    Hooks hooks;
    hooks.window = [] { usleep(300'000); };  // a look at a server of many threads
    ProcessResult result;
    ASSERT_TRUE(run_processes(plan, 1, {verifier_of_reply()}, hooks, &result));
    ASSERT_EQ(result.threads.size(), 1u);
    EXPECT_GT(result.cpu_ns, 0u);
    EXPECT_EQ(result.cpu_ns, result.threads[0].on_cpu_ns);
    EXPECT_EQ(result.context_switches, result.threads[0].context_switches);
}

}  // namespace
}  // namespace httpmark
