// What the tests of the load generator's modes have in common: servers that answer as they are
// told, and one worker that loads them.
#ifndef HTTPMARK_NATIVE_TESTS_LOAD_LOADING_HPP_
#define HTTPMARK_NATIVE_TESTS_LOAD_LOADING_HPP_

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <cstdint>
#include <ctime>
#include <functional>
#include <string>

#include "load/report.hpp"
#include "load/worker.hpp"
#include "shared/clock.hpp"
#include "shared/http_date.hpp"
#include "tests/shared/scripted_server.hpp"

namespace httpmark {

inline std::string date_of(std::int64_t seconds) {
    char date[kImfFixdateSize];
    format_imf_fixdate(seconds, date);
    return std::string(date, sizeof date);
}

inline std::string reply(const std::string& body = "Hello World!", std::int64_t date_shift = 0) {
    return "HTTP/1.1 200 OK\r\nDate: " + date_of(std::time(nullptr) + date_shift) +
           "\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
}

inline std::string last_reply() {
    std::string octets = reply();
    return octets.insert(octets.find("Content"), "Connection: close\r\n");
}

// Answers each request with answer(n, request line), n counting from 1 on each connection.
// An empty answer ends the connection.
using Answer = std::function<std::string(int n, const std::string& request)>;

inline ScriptedServer::Play answering(Answer answer) {
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

// Acquainted with reply().
inline ResponseVerifier verifier_of_reply() {
    ResponseVerifier verifier(0, false);
    verifier.set_wall_clock(std::time(nullptr), std::time(nullptr));
    EXPECT_EQ(verifier.check(reply()).kind, CheckKind::kVerified);
    return verifier;
}

inline LoadPlan asking(const Endpoint& server, LoadPlan plan) {
    plan.server = server;
    if (plan.requests.empty()) {
        plan.requests.push_back({"GET /hello HTTP/1.1\r\nHost: a\r\n\r\n", false});
    }
    return plan;
}

// One worker with its own plan against a scripted server.
inline LoadCounts load_at(const ScriptedServer& server, const LoadPlan& wanted) {
    const LoadPlan plan = asking(server.endpoint(), wanted);
    LoadWorker worker(plan, plan.connections, {verifier_of_reply()});
    worker.connect_all();
    worker.run(monotonic_ns());
    return worker.result().counts;
}

inline LoadCounts load_plan(const LoadPlan& plan, Answer answer) {
    const ScriptedServer server(answering(answer));
    return load_at(server, plan);
}

inline LoadPlan open_plan(double rate, Arrivals arrivals) {
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

inline LoadReport report_of(const LoadPlan& plan, const LoadCounts& counts) {
    LoadReport report;
    report.mode = plan.mode;
    report.connections = plan.connections;
    report.depth = plan.depth;
    report.counts = counts;
    return report;
}

}  // namespace httpmark

#endif  // HTTPMARK_NATIVE_TESTS_LOAD_LOADING_HPP_
