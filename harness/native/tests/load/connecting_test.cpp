// How connections are opened, at what pace and from where.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>

#include <cstdint>
#include <ctime>
#include <mutex>
#include <set>
#include <string>

#include "tests/load/loading.hpp"

namespace httpmark {
namespace {

TEST(Connecting, what_a_server_says_first_keeps_nobody_busy) {
    ScriptedServer server([](int fd) {
        say(fd, "early");
        hear_heads(fd, 1);
    });
    LoadPlan plan;
    plan.connections = 65;
    plan.connect_rate = 160;  // the last is due 0.4 s after the others
    plan = asking(server.endpoint(), plan);
    LoadWorker worker(plan, plan.connections, {verifier_of_reply()});
    timespec before = {};
    timespec after = {};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &before);
    worker.connect_all();
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &after);
    EXPECT_LT((after.tv_sec - before.tv_sec) * 1000 + (after.tv_nsec - before.tv_nsec) / 1'000'000,
              60);
    EXPECT_EQ(worker.result().established, 65u);
    // It is heard when the load begins.
    worker.run(monotonic_ns());
    EXPECT_GE(worker.result().counts.errors.surplus + worker.result().counts.errors.framing, 65u);
}

TEST(ConnectPace, a_full_listen_queue_halves_it_and_nothing_is_made_up_for) {
    constexpr std::uint64_t kSecond = 1'000'000'000;
    ConnectPace pace(1000, 5 * kSecond);
    EXPECT_EQ(pace.next_due_ns(), 5 * kSecond);
    for (int i = 0; i < 640; ++i) {
        pace.begun();
        pace.opened(5 * kSecond, 5 * kSecond + 1000);
    }
    EXPECT_EQ(pace.next_due_ns(), 5 * kSecond + 640'000'000);
    EXPECT_EQ(pace.rate(), 1000);
    pace.opened(6 * kSecond, 7 * kSecond + 20'000'000);  // a SYN was lost
    EXPECT_EQ(pace.rate(), 500);
    EXPECT_EQ(pace.next_due_ns(), 7 * kSecond + 20'000'000);
    pace.opened(6 * kSecond, 7 * kSecond + 30'000'000);  // another of the same bunch
    EXPECT_EQ(pace.rate(), 500);
    EXPECT_EQ(pace.next_due_ns(), 7 * kSecond + 20'000'000);
    for (int i = 0; i < 64; ++i) pace.begun();
    EXPECT_EQ(pace.next_due_ns(), 7 * kSecond + 20'000'000 + 128'000'000);
    pace.opened(8 * kSecond, 10 * kSecond);
    EXPECT_EQ(pace.rate(), 500);  // slower would never end
    ConnectPace slow(10, 0);
    slow.opened(0, 2 * kSecond);
    EXPECT_EQ(slow.rate(), 10);  // who asks for less gets it
}

TEST(Sources, connections_come_from_the_range_and_begin_where_they_are_told) {
    std::mutex mutex;
    std::set<std::uint32_t> seen;
    ScriptedServer server([&](int fd) {
        sockaddr_in peer = {};
        socklen_t size = sizeof peer;
        getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &size);
        {
            const std::lock_guard<std::mutex> lock(mutex);
            seen.insert(ntohl(peer.sin_addr.s_addr));
        }
        answering([](int, const std::string&) { return reply(); })(fd);
    });
    LoadPlan plan;
    plan.connections = 3;
    plan.duration_s = 0.1;
    plan.source = *parse_source_range("127.0.0.0/29");
    plan.source.count = 5;
    plan.source.begin = 7;                         // the third of five addresses, one turn on
    plan.first_index = kConnectionsPerSource - 1;  // its last connection, and two of the next
    const LoadCounts counts = load_at(server, plan);
    EXPECT_EQ(counts.errors.sum(), 0u);
    const std::lock_guard<std::mutex> lock(mutex);
    EXPECT_EQ(seen, (std::set<std::uint32_t>{0x7f000003, 0x7f000004}));
}

}  // namespace
}  // namespace httpmark
