// Faults planted in a server; the load generator has to see each.
#include "load/worker.hpp"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <ctime>
#include <functional>
#include <mutex>
#include <set>
#include <string>

#include "load/processes.hpp"
#include "load/report.hpp"
#include "shared/clock.hpp"
#include "shared/http_date.hpp"
#include "tests/shared/scripted_server.hpp"

namespace httpmark {
namespace {

std::string date_of(std::int64_t seconds) {
  char date[kImfFixdateSize];
  format_imf_fixdate(seconds, date);
  return std::string(date, sizeof date);
}

std::string reply(const std::string& body = "Hello World!", std::int64_t date_shift = 0) {
  return "HTTP/1.1 200 OK\r\nDate: " + date_of(std::time(nullptr) + date_shift) +
         "\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
}

std::string last_reply() {
  std::string octets = reply();
  return octets.insert(octets.find("Content"), "Connection: close\r\n");
}

// Answers each request with answer(n, request line), n counting from 1 on each connection.
// An empty answer ends the connection.
using Answer = std::function<std::string(int n, const std::string& request)>;
ScriptedServer::Play answering(Answer answer) {
  return [answer](int fd) {
    std::string heard;
    char buffer[16384];
    int n = 0;
    for (;;) {
      const ssize_t got = recv(fd, buffer, sizeof buffer, 0);
      if (got <= 0) return;
      heard.append(buffer, static_cast<std::size_t>(got));
      std::string out;
      std::size_t at = 0;
      for (std::size_t end = heard.find("\r\n\r\n"); end != std::string::npos;
           end = heard.find("\r\n\r\n", at)) {
        const std::string next = answer(++n, heard.substr(at, heard.find('\r', at) - at));
        at = end + 4;
        if (next == "END") {
          say(fd, out);
          return;
        }
        out += next;
      }
      heard.erase(0, at);
      say(fd, out);
    }
  };
}

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

// Acquainted with reply().
ResponseVerifier verifier_of_reply() {
  ResponseVerifier verifier(0, false);
  verifier.set_wall_clock(std::time(nullptr), std::time(nullptr));
  EXPECT_EQ(verifier.check(reply()).kind, CheckKind::kVerified);
  return verifier;
}

LoadPlan asking(const Endpoint& server, LoadPlan plan) {
  plan.server = server;
  if (plan.requests.empty()) {
    plan.requests.push_back({"GET /hello HTTP/1.1\r\nHost: a\r\n\r\n", false});
  }
  return plan;
}

// One worker with its own plan against a scripted server.
LoadCounts load_at(const ScriptedServer& server, const LoadPlan& wanted) {
  const LoadPlan plan = asking(server.endpoint(), wanted);
  LoadWorker worker(plan, plan.connections, {verifier_of_reply()});
  worker.connect_all();
  worker.run(monotonic_ns());
  return worker.result().counts;
}

LoadCounts load_plan(const LoadPlan& plan, Answer answer) {
  const ScriptedServer server(answering(answer));
  return load_at(server, plan);
}

TEST(LoadWorker, a_good_server_gives_no_errors_and_every_request_is_accounted_for) {
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

TEST(LoadWorker, the_seventh_response_is_missing) {
  for (const Refill refill : {Refill::kBatch, Refill::kWindow}) {
    const LoadCounts counts =
        load([](int n, const std::string&) { return n == 7 ? std::string() : reply(); }, refill);
    EXPECT_EQ(counts.errors.timeout, 4u);  // one on each connection
    EXPECT_EQ(counts.errors.sum(), 4u);
  }
}

TEST(LoadWorker, a_lie_about_content_length) {
  const LoadCounts counts = load([](int n, const std::string&) {
    std::string octets = reply();
    if (n == 7) octets.replace(octets.find("Length: 12"), 10, "Length: 11");
    return octets;
  });
  EXPECT_GT(counts.errors.body, 0u);
  EXPECT_GT(counts.errors.framing, 0u);
}

TEST(LoadWorker, a_changed_body) {
  const LoadCounts counts = load(
      [](int n, const std::string&) { return reply(n == 7 ? "Hello world!" : "Hello World!"); });
  EXPECT_EQ(counts.errors.body, 4u);
  EXPECT_EQ(counts.errors.sum(), 4u);
  ASSERT_FALSE(counts.complaints.empty());
  EXPECT_NE(counts.complaints[0].find("content"), std::string::npos);
}

TEST(LoadWorker, answers_out_of_order) {
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

TEST(LoadWorker, a_changed_body_beside_a_head_is_no_matter_of_order) {
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
  std::vector<ResponseVerifier> verifiers = {ResponseVerifier(0, false), ResponseVerifier(0, true)};
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

TEST(LoadWorker, requests_in_turn_are_each_compared_with_their_own) {
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

TEST(LoadWorker, a_date_from_a_cache) {
  const LoadCounts counts = load(
      [](int n, const std::string&) { return n == 7 ? reply("Hello World!", -3600) : reply(); });
  EXPECT_EQ(counts.errors.date, 4u);
  EXPECT_EQ(counts.errors.sum(), 4u);
}

TEST(LoadWorker, a_date_that_stands_still_near_the_clock) {
  LoadPlan plan;
  plan.duration_s = 2.3;
  const std::string first = reply("Hello World!", 2);
  const LoadCounts counts = load_plan(plan, [&](int, const std::string&) { return first; });
  EXPECT_EQ(counts.errors.date, 1u);
  EXPECT_EQ(counts.errors.sum(), 1u);
  ASSERT_FALSE(counts.complaints.empty());
  EXPECT_NE(counts.complaints[0].find("not moved"), std::string::npos);
  const LoadCounts good = load_plan(plan, [](int, const std::string&) { return reply(); });
  EXPECT_EQ(good.errors.sum(), 0u);
}

// As of a server that dates all it answers in one turn when it begins the turn, and is slow.
TEST(LoadWorker, a_date_that_is_as_old_as_its_request) {
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

TEST(LoadWorker, another_status) {
  const LoadCounts counts = load([](int n, const std::string&) {
    return n == 7 ? std::string("HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n") : reply();
  });
  EXPECT_EQ(counts.errors.status, 4u);
  EXPECT_EQ(counts.errors.sum(), 4u);
}

TEST(LoadWorker, octets_nobody_asked_for) {
  const LoadCounts counts =
      load([](int n, const std::string&) { return n == 16 ? reply() + reply() : reply(); });
  EXPECT_GT(counts.errors.surplus, 0u);
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

TEST(LoadWorker, answers_to_requests_that_are_not_out_are_no_answers) {
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

TEST(LoadWorker, an_answer_before_all_of_the_request_is_one) {
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

TEST(LoadWorker, garbage) {
  const LoadCounts counts =
      load([](int n, const std::string&) { return n == 7 ? "garbage\r\n\r\n" : reply(); });
  EXPECT_GT(counts.errors.framing, 0u);
}

TEST(LoadWorker, a_close_in_the_middle) {
  const LoadCounts counts =
      load([](int n, const std::string&) { return n == 7 ? "END" : reply(); });
  EXPECT_GT(counts.errors.closed + counts.errors.reset, 0u);
  EXPECT_GT(counts.reconnects, 0u);
  EXPECT_GT(counts.errors.lost, 0u);
  EXPECT_EQ(counts.requests_sent, counts.responses + counts.errors.lost);
}

TEST(LoadWorker, an_announced_close_is_no_error) {
  const LoadCounts counts =
      load([](int n, const std::string&) { return n < 16 ? reply() : last_reply(); });
  EXPECT_EQ(counts.errors.sum(), 0u) << (counts.complaints.empty() ? "" : counts.complaints[0]);
  EXPECT_GT(counts.reconnects, 0u);
}

TEST(LoadWorker, what_an_announced_close_leaves_unanswered_is_sent_again) {
  for (const Refill refill : {Refill::kBatch, Refill::kWindow}) {
    // The server ends the connection behind its tenth answer, whatever else it was sent.
    std::atomic<int> answers = 0;
    const LoadCounts counts = load(
        [&](int n, const std::string&) {
          if (n > 10) return std::string("END");
          ++answers;
          return n == 10 ? last_reply() : reply();
        },
        refill);
    EXPECT_EQ(counts.errors.sum(), 0u) << (counts.complaints.empty() ? "" : counts.complaints[0]);
    EXPECT_GT(counts.responses, 100u);
    EXPECT_GT(counts.resent, 10u);
    EXPECT_EQ(counts.responses, static_cast<std::uint64_t>(answers));
    EXPECT_EQ(counts.requests_sent, counts.responses + counts.resent);
    EXPECT_EQ(counts.response.total(), counts.responses);
  }
}

TEST(LoadWorker, requests_that_are_sent_again_are_the_same_ones) {
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

TEST(LoadWorker, a_head_that_changes_is_a_variant) {
  const LoadCounts counts = load([](int n, const std::string&) {
    std::string octets = reply();
    return octets.insert(octets.find("Content"), "X-Number: " + std::to_string(n) + "\r\n");
  });
  EXPECT_EQ(counts.errors.sum(), 0u);
  EXPECT_GT(counts.variants, 100u);
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

LoadPlan open_plan(double rate, Arrivals arrivals) {
  LoadPlan plan;
  plan.mode = LoadMode::kOpen;
  plan.connections = 8;
  plan.depth = 4;
  plan.rate = rate;
  plan.arrivals = arrivals;
  plan.warmup_s = 0.1;
  plan.duration_s = 0.4;
  plan.drain_s = 1;
  return plan;
}

TEST(OpenLoop, the_rate_is_as_exact_on_a_machine_that_has_been_up_for_years) {
  constexpr std::uint64_t kSecond = 1'000'000'000;
  for (const std::uint64_t start : {kSecond, 100'000'000 * kSecond}) {
    // The second of three workers, 2,200,000 a second in all.
    constexpr double kEach = 1e9 / 2'200'000;
    ArrivalSchedule constant(start, Arrivals::kConstant, kEach, 3 * kEach, 1);
    EXPECT_EQ(constant.due_ns(), start + 455);
    for (int i = 0; i < 2'200'000; ++i) constant.advance();
    EXPECT_EQ(constant.due_ns(), start + 3 * kSecond + 455);
    ArrivalSchedule poisson(start, Arrivals::kPoisson, kEach, kEach, 1);
    EXPECT_GT(poisson.due_ns(), start);
    for (int i = 0; i < 2'200'000; ++i) poisson.advance();
    EXPECT_NEAR(static_cast<double>(poisson.due_ns() - start), 1e9, 5e6);  // over five sigma
  }
}

TEST(OpenLoop, as_many_are_due_in_a_window_as_its_rate_and_length_say) {
  for (const double seconds : {0.3, 0.7, 1.1, 2.0, 3.0}) {
    for (int count = 1; count < 2000; ++count) {
      const double rate = count / seconds;
      ArrivalSchedule schedule(5, Arrivals::kConstant, 0, 1e9 / rate, 1);
      for (int i = 1; i < count; ++i) schedule.advance();
      const auto end = static_cast<std::uint64_t>(5 + seconds * 1e9);
      EXPECT_LT(schedule.due_ns(), end) << count;
      schedule.advance();
      EXPECT_GE(schedule.due_ns(), end) << count;
    }
  }
}

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

LoadReport report_of(const LoadPlan& plan, const LoadCounts& counts) {
  LoadReport report;
  report.mode = plan.mode;
  report.connections = plan.connections;
  report.depth = plan.depth;
  report.counts = counts;
  return report;
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

TEST(WaitForEvents, waits_as_long_as_it_is_asked_to_with_and_without_nanoseconds) {
  const int epoll_fd = epoll_create1(EPOLL_CLOEXEC);
  epoll_event event = {};
  for (bool has_ns : {true, false}) {
    const std::uint64_t begun = monotonic_ns();
    EXPECT_EQ(wait_for_events(epoll_fd, &event, 1, 1'500'000, &has_ns), 0);
    const std::uint64_t waited = monotonic_ns() - begun;
    EXPECT_GE(waited, 1'500'000u);
    EXPECT_LT(waited, 500'000'000u);
  }
  close(epoll_fd);
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
      if (number == 5) {  // away before the answer is out, so that the next connect is refused
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

TEST(Processes, results_come_together_whole) {
  ProcessResult one;
  one.counts.responses = 7;
  one.counts.errors.order = 3;
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
  GTEST_SKIP() << "ThreadSanitizer cannot follow a fork of a process with threads, which only the "
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

TEST(LoadWorker, a_stall_is_in_the_latency) {
  const LoadCounts counts = load([](int n, const std::string&) {
    if (n == 7) usleep(50'000);
    return reply();
  });
  EXPECT_EQ(counts.errors.sum(), 0u);
  EXPECT_GT(counts.response.max(), 50'000'000u);
}

}  // namespace
}  // namespace httpmark
