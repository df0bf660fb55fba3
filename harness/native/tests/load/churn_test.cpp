// Connections that end after a few requests, one after the other.
#include <gtest/gtest.h>
#include <poll.h>

#include <atomic>
#include <cstdlib>
#include <string>
#include <thread>

#include "tests/load/loading.hpp"

namespace httpmark {
namespace {

TEST(ChurnLoad, every_connection_is_a_new_one) {
    LoadPlan plan;
    plan.mode = LoadMode::kChurn;
    plan.connections = 4;
    plan.depth = 2;
    plan.duration_s = 0.2;
    const LoadCounts counts = load_plan(plan, [](int n, const std::string&) {
        return n <= 2 ? reply() : std::string("a third request on one connection\r\n\r\n");
    });
    EXPECT_EQ(counts.errors.sum(), 0u);
    EXPECT_GT(counts.reconnects, 20u);
    EXPECT_NEAR(static_cast<double>(counts.responses), 2.0 * static_cast<double>(counts.reconnects),
                16);
    EXPECT_GE(counts.connect.total(), counts.reconnects);
}

TEST(ChurnLoad, a_server_that_is_away_for_a_moment_is_asked_again) {
    const Endpoint any = *parse_endpoint("127.0.0.1", 0);
    const auto listen_at = [](const Endpoint& endpoint) {
        const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        const int on = 1;
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
        if (bind(fd, endpoint.sockaddr_ptr(), endpoint.length) != 0 || listen(fd, 16) != 0) {
            std::abort();
        }
        return fd;
    };
    int listener = listen_at(any);
    const Endpoint endpoint = *bound_endpoint(listener);
    std::atomic<bool> stopping = false;
    std::thread server([&] {
        for (int number = 1; !stopping; ++number) {
            pollfd waiting = {listener, POLLIN, 0};
            while (!stopping && poll(&waiting, 1, 20) <= 0) {
            }
            const int fd = stopping ? -1 : accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
            if (fd < 0) break;
            hear_heads(fd, 1);
            if (number ==
                5) {  // away before the answer is out, so that the next connect is refused
                close(listener);
                say(fd, reply());
                usleep(150'000);
                listener = listen_at(endpoint);
            } else {
                say(fd, reply());
            }
            close(fd);
        }
        close(listener);
    });
    LoadPlan plan;
    plan.mode = LoadMode::kChurn;
    plan.duration_s = 0.6;
    plan = asking(endpoint, plan);
    LoadWorker worker(plan, plan.connections, {verifier_of_reply()});
    worker.connect_all();
    worker.run(monotonic_ns());
    worker.close_all();
    stopping = true;
    server.join();
    const LoadCounts& counts = worker.result().counts;
    EXPECT_GE(counts.errors.connect, 1u);  // seen, though it went on
    EXPECT_LT(counts.errors.connect, 3u);
    EXPECT_EQ(counts.errors.sum(), counts.errors.connect);
    EXPECT_GT(counts.responses, 20u);
}

}  // namespace
}  // namespace httpmark
