// Faults planted in a server; the load generator has to see each.
#include "load_worker.hpp"

#include <gtest/gtest.h>

#include <ctime>
#include <functional>
#include <string>

#include "clock.hpp"
#include "http_date.hpp"
#include "scripted_server.hpp"

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
  plan.duration_s = 0.15;
  plan.drain_s = 0.2;
  std::vector<ResponseVerifier> verifiers;
  for (const std::string& path : paths) {
    plan.requests.push_back({"GET " + path + " HTTP/1.1\r\nHost: a\r\n\r\n", false});
    ResponseVerifier verifier(0, false);
    verifier.set_wall_clock(std::time(nullptr));
    EXPECT_EQ(verifier.check(reply(path == "/hello" ? "Hello World!" : path)).kind,
              CheckKind::kVerified);
    verifiers.push_back(verifier);
  }
  LoadWorker worker(plan, plan.connections, verifiers);
  worker.connect_all();
  worker.run(monotonic_ns());
  return worker.result().counts;
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
  EXPECT_GT(counts.abandoned, 0u);
}

TEST(LoadWorker, an_announced_close_is_no_error) {
  const LoadCounts counts = load([](int n, const std::string&) {
    if (n < 16) return reply();
    std::string octets = reply();
    return octets.insert(octets.find("Content"), "Connection: close\r\n");
  });
  EXPECT_EQ(counts.errors.sum(), 0u) << (counts.complaints.empty() ? "" : counts.complaints[0]);
  EXPECT_GT(counts.reconnects, 0u);
}

TEST(LoadWorker, a_head_that_changes_is_a_variant) {
  const LoadCounts counts = load([](int n, const std::string&) {
    std::string octets = reply();
    return octets.insert(octets.find("Content"), "X-Number: " + std::to_string(n) + "\r\n");
  });
  EXPECT_EQ(counts.errors.sum(), 0u);
  EXPECT_GT(counts.variants, 100u);
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
