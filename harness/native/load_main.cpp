// httpmark-load: the load generator. Every response is verified; see load_response.hpp.
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <barrier>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <fstream>
#include <iterator>
#include <memory>
#include <thread>

#include "clock.hpp"
#include "flags.hpp"
#include "load_plan.hpp"
#include "load_report.hpp"
#include "load_response.hpp"
#include "load_url.hpp"
#include "load_worker.hpp"
#include "process_cost.hpp"

namespace {

using namespace httpmark;

constexpr const char* kUsage =
    "usage: httpmark-load [options] URL\n"
    "Closed-loop HTTP/1.1 load; every response is verified against the first: status, framing,\n"
    "content, order; the Date is free but well formed and near the clock.\n"
    "  --connections N     (1)\n"
    "  --depth N           requests under way on each connection (1)\n"
    "  --duration-s N      of the measured window (10)\n"
    "  --warmup-s N        before it (0)\n"
    "  --drain-s N         wait this long for the last answers (2)\n"
    "  --threads N         (1)\n"
    "  --refill WORD       batch: the next requests go out when all answers are in; window: one\n"
    "                      for each answer (batch)\n"
    "  --header LINE       one more field line, repeatable\n"
    "  --request-file F    the octets of one request instead of a GET of the URL; repeatable, "
    "sent\n"
    "                      in turn\n"
    "  --expect-status N   instead of the first response's, which has to be 2xx\n"
    "  --server-pid PID    charge this process' CPU time to the server, repeatable\n"
    "  --json              one JSON object on standard output\n"
    "Exit code: 0 no errors, 1 errors, 2 usage, 3 the target cannot be reached.\n";

constexpr std::uint64_t kConnectionsMax = 1'000'000;
constexpr std::uint64_t kDepthMax = 4096;
constexpr std::size_t kRequestBytesMax = std::size_t{16} << 20;
constexpr std::uint64_t kDescriptorsKept = 32;
constexpr time_t kLearnSecondsMax = 10;
constexpr std::uint64_t kStartDelayNs = 2'000'000;

struct Arguments {
  LoadPlan plan;
  std::string url;
  std::vector<int> server_pids;
  bool is_json = false;
};

Arguments parse_arguments(int argc, char** argv) {
  Flags flags(argc, argv);
  if (flags.take_switch("--help")) {
    std::fputs(kUsage, stdout);
    std::exit(kExitOk);
  }
  Arguments arguments;
  LoadPlan& plan = arguments.plan;
  plan.connections = flags.take_number("--connections", 1, 1, kConnectionsMax);
  plan.depth = flags.take_number("--depth", 1, 1, kDepthMax);
  plan.duration_s = flags.take_decimal("--duration-s", 10, 0.01, 86400);
  plan.warmup_s = flags.take_decimal("--warmup-s", 0, 0, 86400);
  plan.drain_s = flags.take_decimal("--drain-s", 2, 0, 600);
  plan.threads = flags.take_number("--threads", 1, 1, 1024);
  plan.refill = flags.take_word("--refill", {"batch", "window"}) == "batch" ? Refill::kBatch
                                                                            : Refill::kWindow;
  plan.expected_status = static_cast<int>(flags.take_number("--expect-status", 0, 100, 599));
  plan.connect_rate = flags.take_decimal("--connect-rate", 20'000, 1, 1e7);
  arguments.is_json = flags.take_switch("--json");
  const std::vector<std::string> headers = flags.take_all("--header");
  const std::vector<std::string> files = flags.take_all("--request-file");
  for (const std::string& pid : flags.take_all("--server-pid")) {
    const int number = std::atoi(pid.c_str());
    if (number <= 0 || kill(number, 0) != 0) {
      if (number <= 0 || errno != EPERM) {
        die(kExitUsage, "--server-pid: there is no process '" + pid + "'");
      }
    }
    arguments.server_pids.push_back(number);
  }
  arguments.url = flags.take_positional("URL", true);
  flags.finish();

  const auto url = parse_load_url(arguments.url);
  if (!url) die(kExitUsage, "'" + arguments.url + "' is no http URL");
  if (url->is_tls) die(kExitUsage, "https is not supported yet");
  const auto server = parse_endpoint(url->host, url->port);
  if (!server) die(kExitUsage, "the URL's host has to be an IP address, not '" + url->host + "'");
  plan.server = *server;
  if (plan.threads > plan.connections) plan.threads = plan.connections;

  for (const std::string& file : files) {
    std::ifstream in(file, std::ios::binary);
    LoadRequest request;
    request.octets.assign(std::istreambuf_iterator<char>(in), {});
    if (!in || request.octets.empty() || request.octets.size() > kRequestBytesMax) {
      die(kExitUsage, "--request-file '" + file + "': cannot be read, empty or too large");
    }
    request.is_head = request.octets.starts_with("HEAD ");
    plan.requests.push_back(request);
  }
  if (files.empty()) {
    LoadRequest request;
    request.octets = "GET " + url->target + " HTTP/1.1\r\nHost: " + url->authority + "\r\n";
    for (const std::string& header : headers) {
      if (header.find(':') == std::string::npos ||
          header.find_first_of("\r\n") != std::string::npos) {
        die(kExitUsage, "--header takes 'Name: value', not '" + header + "'");
      }
      request.octets += header + "\r\n";
    }
    request.octets += "\r\n";
    plan.requests.push_back(request);
  } else if (!headers.empty()) {
    die(kExitUsage, "--header and --request-file exclude each other");
  }
  const std::uint64_t descriptors = raise_descriptor_limit();
  if (plan.connections + kDescriptorsKept > descriptors) {
    die(kExitEnvironment, "only " + std::to_string(descriptors) + " descriptors for " +
                              std::to_string(plan.connections) + " connections");
  }
  return arguments;
}

// Sends each request once, each on a connection of its own, and acquaints its verifier with the
// answer. False when the target cannot be reached; what is wrong with an answer is in `counts`.
bool learn(const LoadPlan& plan, std::vector<ResponseVerifier>* verifiers, LoadCounts* counts,
           std::string* failure) {
  timespec wall = {};
  clock_gettime(CLOCK_REALTIME, &wall);
  for (const LoadRequest& request : plan.requests) {
    ResponseVerifier verifier(plan.expected_status, request.is_head);
    verifier.set_wall_clock(wall.tv_sec);
    const int fd = socket(plan.server.family(), SOCK_STREAM | SOCK_CLOEXEC, 0);
    const timeval limit = {kLearnSecondsMax, 0};
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    if (fd < 0 || connect(fd, plan.server.sockaddr_ptr(), plan.server.length) != 0) {
      *failure = "cannot connect to " + plan.server.text() + ": " + std::strerror(errno);
      if (fd >= 0) close(fd);
      return false;
    }
    std::size_t sent = 0;
    while (sent < request.octets.size()) {
      const ssize_t part =
          send(fd, request.octets.data() + sent, request.octets.size() - sent, MSG_NOSIGNAL);
      if (part <= 0) break;
      sent += static_cast<std::size_t>(part);
    }
    std::string octets;
    std::vector<char> buffer(64 * 1024);
    CheckResult result;
    LoadErrors& errors = counts->errors;
    for (;;) {
      const ssize_t got = recv(fd, buffer.data(), buffer.size(), 0);
      if (got <= 0) {
        const bool is_timeout = got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
        ++(got == 0 ? errors.closed : is_timeout ? errors.timeout : errors.reset);
        *failure = got == 0     ? "the server closed before its first answer was whole"
                   : is_timeout ? "no whole first answer in time"
                                : "the server reset the connection before its first answer";
        break;
      }
      octets.append(buffer.data(), static_cast<std::size_t>(got));
      if (octets.size() < result.need) continue;
      result = verifier.check(octets);
      while (result.kind == CheckKind::kInterim) {
        octets.erase(0, result.size);
        result.kind = CheckKind::kNeedMore;
        result.need = 0;
        if (!octets.empty()) result = verifier.check(octets);
      }
      if (result.kind == CheckKind::kNeedMore) continue;
      if (result.kind != CheckKind::kVerified) {
        ++(result.kind == CheckKind::kStatus ? errors.status
           : result.kind == CheckKind::kDate ? errors.date
                                             : errors.framing);
        *failure = std::string("the first answer is no good: ") + result.why + ": " +
                   octets.substr(0, std::min<std::size_t>(octets.find('\r'), 80));
      } else if (octets.size() > result.size) {
        ++errors.surplus;
        *failure = "octets behind the first answer";
      }
      break;
    }
    close(fd);
    if (!failure->empty()) return true;
    verifiers->push_back(verifier);
  }
  return true;
}

std::uint64_t process_cpu_ns() {
  timespec now = {};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(now.tv_nsec);
}

std::uint64_t own_context_switches() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<std::uint64_t>(usage.ru_nvcsw + usage.ru_nivcsw);
}

void sleep_until_ns(std::uint64_t at_ns) {
  timespec at = {};
  at.tv_sec = static_cast<time_t>(at_ns / 1'000'000'000);
  at.tv_nsec = static_cast<long>(at_ns % 1'000'000'000);
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, nullptr) == EINTR) {
  }
}

int run(const Arguments& arguments) {
  const LoadPlan& plan = arguments.plan;
  LoadReport report;
  report.url = arguments.url;
  report.connections = plan.connections;
  report.depth = plan.depth;
  report.threads = plan.threads;
  report.refill = plan.refill;

  const auto publish = [&] {
    const std::string text = arguments.is_json ? report_json(report) : report_text(report);
    std::fwrite(text.data(), 1, text.size(), stdout);
  };

  std::vector<ResponseVerifier> verifiers;
  if (!learn(plan, &verifiers, &report.counts, &report.failure)) {
    die(kExitEnvironment, report.failure);
  }
  if (!report.failure.empty()) {
    publish();
    std::fprintf(stderr, "httpmark-load: %s\n", report.failure.c_str());
    return kExitMismatch;
  }
  report.status = verifiers.front().status();
  report.has_date = verifiers.front().has_date();

  std::vector<std::unique_ptr<LoadWorker>> workers;
  for (std::size_t i = 0; i < plan.threads; ++i) {
    const std::size_t share =
        plan.connections / plan.threads + (i < plan.connections % plan.threads ? 1 : 0);
    workers.push_back(std::make_unique<LoadWorker>(plan, share, verifiers));
  }
  std::uint64_t start_ns = 0;
  std::barrier connected(static_cast<std::ptrdiff_t>(plan.threads + 1),
                         [&]() noexcept { start_ns = monotonic_ns() + kStartDelayNs; });
  std::vector<std::thread> threads;
  for (auto& worker : workers) {
    threads.emplace_back([&worker, &connected, &start_ns] {
      worker->connect_all();
      connected.arrive_and_wait();
      worker->run(start_ns);
    });
  }
  connected.arrive_and_wait();
  sleep_until_ns(start_ns + static_cast<std::uint64_t>(plan.warmup_s * 1e9));
  const std::uint64_t cpu_before = process_cpu_ns();
  const std::uint64_t switches_before = own_context_switches();
  const std::map<int, TaskCost> server_before = read_process_costs(arguments.server_pids);
  for (std::thread& thread : threads) thread.join();
  const std::map<int, TaskCost> server_after = read_process_costs(arguments.server_pids);
  report.client_cpu_ns = process_cpu_ns() - cpu_before;
  report.client_context_switches = own_context_switches() - switches_before;

  double seconds = 0;
  double drain_seconds = 0;
  for (const auto& worker : workers) {
    const WorkerResult& result = worker->result();
    report.counts.add(result.counts);
    report.established += result.established;
    report.client_threads.push_back(result.cost);
    seconds = std::max(seconds, static_cast<double>(result.stopped_ns - result.started_ns) / 1e9);
    drain_seconds =
        std::max(drain_seconds, static_cast<double>(result.drained_ns - result.stopped_ns) / 1e9);
  }
  report.seconds = seconds;
  report.drain_seconds = drain_seconds;
  if (!arguments.server_pids.empty()) {
    std::vector<TaskCost> costs;
    for (const auto& [tid, after] : server_after) {
      TaskCost cost = after;
      if (const auto before = server_before.find(tid); before != server_before.end()) {
        cost.on_cpu_ns -= before->second.on_cpu_ns;
        cost.run_delay_ns -= before->second.run_delay_ns;
        cost.context_switches -= before->second.context_switches;
      }
      costs.push_back(cost);
    }
    report.server_threads = std::move(costs);
  }
  if (report.established == 0) {
    die(kExitEnvironment, "no connection to " + plan.server.text() + " could be opened");
  }
  publish();
  return report.counts.errors.sum() == 0 ? kExitOk : kExitMismatch;
}

}  // namespace

int main(int argc, char** argv) {
  const Arguments arguments = parse_arguments(argc, argv);
  signal(SIGPIPE, SIG_IGN);
  return run(arguments);
}
