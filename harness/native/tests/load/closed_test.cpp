// Faults that a server is given; the load generator has to see each.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <ctime>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "tests/load/loading.hpp"

namespace httpmark {
namespace {

LoadCounts load(Answer answer, Refill refill = Refill::kBatch,
                const std::vector<std::string>& paths = {"/hello"}) {
    ScriptedServer server(answering(answer));
    LoadPlan plan;
    plan.server = server.endpoint();
    plan.connections = 4;
    plan.depth = 16;
    plan.refill = refill;
    // A sanitizer beside other work is slow: long enough for that, and over once all is answered.
    plan.duration_s = 0.3;
    plan.drain_s = 2.0;
    std::vector<ResponseVerifier> verifiers;
    for (const std::string& path : paths) {
        plan.requests.push_back({"GET " + path + " HTTP/1.1\r\nHost: a\r\n\r\n", false});
        ResponseVerifier verifier(0, false);
        verifier.set_wall_clock(std::time(nullptr), std::time(nullptr));
        EXPECT_EQ(verifier.check(reply(path == "/hello" ? "Hello World!" : path)).kind,
                  CheckKind::kVerified);
        verifiers.push_back(verifier);
    }
    LoadWorker worker(plan, plan.connections, verifiers);
    worker.connect_all();
    worker.run(monotonic_ns());
    return worker.result().counts;
}

TEST(ClosedLoad, a_good_server_gives_no_errors_and_every_request_is_accounted_for) {
    for (const Refill refill : {Refill::kBatch, Refill::kWindow}) {
        const LoadCounts counts = load([](int, const std::string&) { return reply(); }, refill);
        EXPECT_EQ(counts.errors.sum(), 0u);
        EXPECT_GT(counts.responses, 100u);
        EXPECT_EQ(counts.responses, counts.requests_sent);
        EXPECT_EQ(counts.response.total(), counts.responses);
        EXPECT_LE(counts.responses_in_window, counts.responses);
        EXPECT_EQ(counts.reconnects, 0u);
        EXPECT_GT(counts.response.mean(), 0);
        EXPECT_EQ(counts.balance.connections, 4u);
        EXPECT_GT(counts.balance.least, 0u);
        EXPECT_DOUBLE_EQ(counts.balance.sum, static_cast<double>(counts.responses));
    }
}

TEST(ClosedLoad, the_seventh_response_is_missing) {
    for (const Refill refill : {Refill::kBatch, Refill::kWindow}) {
        const LoadCounts counts = load(
            [](int n, const std::string&) { return n == 7 ? std::string() : reply(); }, refill);
        EXPECT_EQ(counts.errors.timeout, 4u);  // one on each connection
        EXPECT_EQ(counts.errors.sum(), 4u);
    }
}

TEST(ClosedLoad, a_lie_about_content_length) {
    const LoadCounts counts = load([](int n, const std::string&) {
        std::string octets = reply();
        if (n == 7) octets.replace(octets.find("Length: 12"), 10, "Length: 11");
        return octets;
    });
    EXPECT_GT(counts.errors.body, 0u);
    EXPECT_GT(counts.errors.framing, 0u);
}

TEST(ClosedLoad, a_changed_body) {
    const LoadCounts counts = load(
        [](int n, const std::string&) { return reply(n == 7 ? "Hello world!" : "Hello World!"); });
    EXPECT_EQ(counts.errors.body, 4u);
    EXPECT_EQ(counts.errors.sum(), 4u);
    ASSERT_FALSE(counts.complaints.empty());
    EXPECT_NE(counts.complaints[0].find("content"), std::string::npos);
}

TEST(ClosedLoad, answers_out_of_order) {
    // Answers the seventh and the eighth request the wrong way round.
    const LoadCounts counts = load(
        [](int n, const std::string& request) {
            std::string path = request.substr(4, request.find(' ', 4) - 4);
            if (n == 7 || n == 8) path = path == "/one" ? "/two" : "/one";
            return reply(path);
        },
        Refill::kBatch, {"/one", "/two"});
    EXPECT_EQ(counts.errors.order, 8u);
    EXPECT_EQ(counts.errors.sum(), 8u);
}

TEST(ClosedLoad, a_changed_body_beside_a_head_is_no_matter_of_order) {
    const std::string empty = "HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\n";
    ScriptedServer server(answering([&](int n, const std::string& request) {
        if (request.starts_with("HEAD")) return empty;
        return reply(n == 7 ? "Hello world!" : "Hello World!");
    }));
    LoadPlan plan;
    plan.server = server.endpoint();
    plan.depth = 16;
    plan.duration_s = 0.1;
    plan.requests = {{"GET / HTTP/1.1\r\nHost: a\r\n\r\n", false},
                     {"HEAD / HTTP/1.1\r\nHost: a\r\n\r\n", true}};
    std::vector<ResponseVerifier> verifiers = {ResponseVerifier(0, false),
                                               ResponseVerifier(0, true)};
    for (ResponseVerifier& verifier : verifiers)
        verifier.set_wall_clock(std::time(nullptr), std::time(nullptr));
    EXPECT_EQ(verifiers[0].check(reply()).kind, CheckKind::kVerified);
    EXPECT_EQ(verifiers[1].check(empty).kind, CheckKind::kVerified);
    LoadWorker worker(plan, plan.connections, verifiers);
    worker.connect_all();
    worker.run(monotonic_ns());
    const LoadErrors& errors = worker.result().counts.errors;
    EXPECT_EQ(errors.body, 1u);
    EXPECT_EQ(errors.order, 0u);
    EXPECT_EQ(errors.sum(), 1u);
}

TEST(ClosedLoad, requests_in_turn_are_each_compared_with_their_own) {
    for (const Refill refill : {Refill::kBatch, Refill::kWindow}) {
        const LoadCounts counts = load(
            [](int, const std::string& request) {
                return reply(request.substr(4, request.find(' ', 4) - 4));
            },
            refill, {"/one", "/two", "/three"});
        EXPECT_EQ(counts.errors.sum(), 0u);
        EXPECT_GT(counts.responses, 100u);
    }
}

TEST(ClosedLoad, a_date_from_a_cache) {
    const LoadCounts counts = load(
        [](int n, const std::string&) { return n == 7 ? reply("Hello World!", -3600) : reply(); });
    EXPECT_EQ(counts.errors.date, 4u);
    EXPECT_EQ(counts.errors.sum(), 4u);
    EXPECT_EQ(counts.late_dates, 0u);  // it was made before the load began
}

TEST(ClosedLoad, a_date_that_stands_still_near_the_clock) {
    LoadPlan plan;
    plan.duration_s = 2.3;
    const std::string first = reply("Hello World!", 2);
    const LoadCounts counts = load_plan(plan, [&](int, const std::string&) { return first; });
    EXPECT_EQ(counts.errors.date, 1u);
    EXPECT_EQ(counts.errors.sum(), 1u);
    ASSERT_FALSE(counts.complaints.empty());
    EXPECT_NE(counts.complaints[0].find("not moved"), std::string::npos);
    EXPECT_EQ(counts.late_dates, 1u);
    const LoadCounts good = load_plan(plan, [](int, const std::string&) { return reply(); });
    EXPECT_EQ(good.errors.sum(), 0u);
}

// As of a server whose clock gets no CPU time: the answers are right but for the Date.
TEST(ClosedLoad, a_date_that_is_not_renewed_in_time) {
    LoadPlan plan;
    plan.connections = 2;
    plan.duration_s = 4.1;
    const std::string first = reply();
    std::uint64_t answers = 0;
    std::mutex guard;
    const LoadCounts counts = load_plan(plan, [&](int, const std::string&) {
        const std::scoped_lock locked(guard);
        ++answers;
        return first;
    });
    EXPECT_GT(counts.errors.date, 1u);
    EXPECT_EQ(counts.late_dates, counts.errors.date);
    EXPECT_EQ(counts.errors.sum(), counts.errors.date);
    EXPECT_EQ(counts.responses, answers);
}

// As of a server that dates all it answers in one turn when it begins the turn, and is slow.
TEST(ClosedLoad, a_date_that_is_as_old_as_its_request) {
    LoadPlan plan;
    plan.connections = 2;
    plan.duration_s = 0.1;
    plan.drain_s = 10.0;
    const LoadCounts counts = load_plan(plan, [](int n, const std::string&) {
        const std::string begun = reply();
        if (n == 2) std::this_thread::sleep_for(std::chrono::seconds(kDateSkewSecondsMax + 2));
        return begun;
    });
    EXPECT_EQ(counts.errors.sum(), 0u);
    EXPECT_EQ(counts.responses, 4u);
}

TEST(ClosedLoad, another_status) {
    const LoadCounts counts = load([](int n, const std::string&) {
        return n == 7 ? std::string("HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n") : reply();
    });
    EXPECT_EQ(counts.errors.status, 4u);
    EXPECT_EQ(counts.errors.sum(), 4u);
    EXPECT_EQ(counts.statuses, (std::map<int, std::uint64_t>{{503, 4}}));
}

TEST(ClosedLoad, octets_nobody_asked_for) {
    const LoadCounts counts =
        load([](int n, const std::string&) { return n == 16 ? reply() + reply() : reply(); });
    EXPECT_GT(counts.errors.surplus, 0u);
}

TEST(ClosedLoad, garbage) {
    const LoadCounts counts =
        load([](int n, const std::string&) { return n == 7 ? "garbage\r\n\r\n" : reply(); });
    EXPECT_GT(counts.errors.framing, 0u);
}

TEST(ClosedLoad, a_close_in_the_middle) {
    const LoadCounts counts =
        load([](int n, const std::string&) { return n == 7 ? "END" : reply(); });
    EXPECT_GT(counts.errors.closed + counts.errors.reset, 0u);
    EXPECT_GT(counts.reconnects, 0u);
    EXPECT_GT(counts.errors.lost, 0u);
    EXPECT_EQ(counts.requests_sent, counts.responses + counts.errors.lost);
}

TEST(ClosedLoad, an_announced_close_is_no_error) {
    const LoadCounts counts =
        load([](int n, const std::string&) { return n < 16 ? reply() : last_reply(); });
    EXPECT_EQ(counts.errors.sum(), 0u) << (counts.complaints.empty() ? "" : counts.complaints[0]);
    EXPECT_GT(counts.reconnects, 0u);
}

TEST(ClosedLoad, what_an_announced_close_leaves_unanswered_is_sent_again) {
    for (const Refill refill : {Refill::kBatch, Refill::kWindow}) {
        // The server ends the connection after its tenth answer, whatever else it was sent.
        std::atomic<int> answers = 0;
        const LoadCounts counts = load(
            [&](int n, const std::string&) {
                if (n > 10) return std::string("END");
                ++answers;
                return n == 10 ? last_reply() : reply();
            },
            refill);
        EXPECT_EQ(counts.errors.sum(), 0u)
            << (counts.complaints.empty() ? "" : counts.complaints[0]);
        EXPECT_GT(counts.responses, 100u);
        EXPECT_GT(counts.resent, 10u);
        EXPECT_EQ(counts.responses, static_cast<std::uint64_t>(answers));
        EXPECT_EQ(counts.requests_sent, counts.responses + counts.resent);
        EXPECT_EQ(counts.response.total(), counts.responses);
    }
}

TEST(ClosedLoad, requests_that_are_sent_again_are_the_same_ones) {
    const LoadCounts counts = load(
        [](int n, const std::string& request) {
            std::string octets = reply(request.substr(4, request.find(' ', 4) - 4));
            if (n > 10) return std::string("END");
            if (n == 10) octets.insert(octets.find("Content"), "Connection: close\r\n");
            return octets;
        },
        Refill::kWindow, {"/one", "/two", "/three"});
    EXPECT_EQ(counts.errors.sum(), 0u) << (counts.complaints.empty() ? "" : counts.complaints[0]);
    EXPECT_GT(counts.resent, 10u);
    EXPECT_EQ(counts.requests_sent, counts.responses + counts.resent);
}

TEST(ClosedLoad, a_head_that_changes_is_a_variant) {
    const LoadCounts counts = load([](int n, const std::string&) {
        std::string octets = reply();
        return octets.insert(octets.find("Content"), "X-Number: " + std::to_string(n) + "\r\n");
    });
    EXPECT_EQ(counts.errors.sum(), 0u);
    EXPECT_GT(counts.variants, 100u);
}

TEST(ClosedLoad, a_stall_is_in_the_latency) {
    const LoadCounts counts = load([](int n, const std::string&) {
        if (n == 7) usleep(50'000);
        return reply();
    });
    EXPECT_EQ(counts.errors.sum(), 0u);
    EXPECT_GT(counts.response.max(), 50'000'000u);
}

// So large that no socket takes all of it while the server does not read.
const std::string& large_request() {
    static const std::string octets =
        "POST /hello HTTP/1.1\r\nHost: a\r\nContent-Length: 8000000\r\n\r\n" +
        std::string(8'000'000, 'a');
    return octets;
}

LoadPlan plan_of_large_requests(std::size_t depth) {
    LoadPlan plan;
    plan.depth = depth;
    plan.duration_s = 0.2;
    plan.requests.push_back({large_request(), false});
    return plan;
}

TEST(ClosedLoad, answers_to_requests_that_are_not_out_are_no_answers) {
    ScriptedServer server([](int fd) {
        hear_heads(fd, 1);
        for (int i = 0; i < 4; ++i) say(fd, reply());
        usleep(50'000);
    });
    const LoadCounts counts = load_at(server, plan_of_large_requests(4));
    EXPECT_GT(counts.errors.surplus, 0u);
    // One on each connection: the request that was half out may have its answer.
    EXPECT_LE(counts.responses, counts.reconnects + 1);
    EXPECT_EQ(counts.response.total(), counts.responses);
    EXPECT_EQ(counts.requests_sent, counts.responses + counts.errors.lost);
}

TEST(ClosedLoad, an_answer_before_all_of_the_request_is_one) {
    for (const bool is_last : {true, false}) {
        ScriptedServer server([&](int fd) {
            std::string buffer(1 << 20, 0);
            std::size_t left = 0;
            for (;;) {
                const bool is_new = left == 0;
                if (is_new) left = large_request().size();
                const ssize_t got =
                    recv(fd, buffer.data(), is_new ? 100 : std::min(left, buffer.size()), 0);
                if (got <= 0) return;
                left -= static_cast<std::size_t>(got);
                if (is_new) say(fd, is_last ? last_reply() : reply());
            }
        });
        const LoadCounts counts = load_at(server, plan_of_large_requests(1));
        EXPECT_EQ(counts.errors.sum(), 0u) << counts.complaints[0];
        EXPECT_GT(counts.responses, 1u);
        EXPECT_EQ(counts.resent, 0u);
        // The last one may still be half out when all is over.
        EXPECT_LE(counts.responses - counts.requests_sent, is_last ? 0u : 1u);
    }
}

TEST(Slices, a_server_that_becomes_slow_is_seen_in_the_second_it_does) {
    LoadPlan plan;
    plan.connections = 2;
    plan.duration_s = 2.5;
    const std::uint64_t begun = monotonic_ns();
    const LoadCounts counts = load_plan(plan, [&](int, const std::string&) {
        usleep(monotonic_ns() - begun < 1'100'000'000 ? 1'000 : 50'000);
        return reply();
    });
    EXPECT_EQ(counts.errors.sum(), 0u);
    ASSERT_EQ(counts.slices.size(), 3u);
    EXPECT_GT(counts.slices[0].total(), 3 * counts.slices[1].total());
    EXPECT_LT(counts.slices[0].percentile(50), 50'000'000u);
    EXPECT_GE(counts.slices[2].percentile(50), 50'000'000u);
    EXPECT_EQ(counts.slices[0].total() + counts.slices[1].total() + counts.slices[2].total(),
              counts.responses_in_window);
}

TEST(Slices, a_window_of_hours_has_longer_ones) {
    LoadPlan plan;
    plan.duration_s = 0.01;
    EXPECT_EQ(plan.slices(), 1u);
    plan.duration_s = 120;
    EXPECT_EQ(plan.slice_s(), 1);
    EXPECT_EQ(plan.slices(), 120u);
    plan.duration_s = 86'400;
    EXPECT_EQ(plan.slice_s(), 720);
    EXPECT_EQ(plan.slices(), 120u);
}

TEST(SplitLoad, pieces_of_requests_are_still_requests) {
    LoadPlan plan;
    plan.connections = 3;
    plan.depth = 5;
    plan.duration_s = 0.2;
    plan.split_bytes = 7;
    const LoadCounts counts = load_plan(plan, [](int, const std::string&) { return reply(); });
    EXPECT_EQ(counts.errors.sum(), 0u);
    EXPECT_GT(counts.responses, 30u);
    EXPECT_EQ(counts.responses, counts.requests_sent);
    EXPECT_GE(counts.writes, counts.bytes_sent / 7);
}

}  // namespace
}  // namespace httpmark
