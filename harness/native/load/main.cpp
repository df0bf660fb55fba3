// httpmark-load: the load generator. Every response is verified; see load/response.hpp.
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <fstream>
#include <optional>

#include "load/plan.hpp"
#include "load/process_cost.hpp"
#include "load/processes.hpp"
#include "load/report.hpp"
#include "load/response.hpp"
#include "load/url.hpp"
#include "shared/flags.hpp"
#include "shared/tls.hpp"

namespace {

using namespace httpmark;

constexpr const char* kUsage =
    "usage: httpmark-load [options] URL\n"
    "HTTP/1.1 load; every response is verified against the first: status, framing,\n"
    "content, order; the Date is free but well formed and near the clock.\n"
    "  --connections N     (1)\n"
    "  --depth N           requests under way on each connection (1)\n"
    "  --duration-s N      of the measured window (10)\n"
    "  --warmup-s N        before it (0)\n"
    "  --drain-s N         wait for the last answers until none has come for so long (2)\n"
    "  --drain-max-s N     and so long at most (30)\n"
    "  --split N           send N octets at a time, cutting requests wherever that falls\n"
    "  --threads N         of each process (1)\n"
    "  --procs N           where one process may not have enough descriptors (1)\n"
    "  --mode WORD         closed: connections x depth requests always under way (default)\n"
    "                      open: --rate requests a second, latency from when each was due\n"
    "                      idle: one request on each connection, then hold it\n"
    "                      churn: each connection ends after depth requests, another opens\n"
    "                      slow: send as long as the server takes it, and never read\n"
    "  --rate N            with --mode open; --rate connections/T on idle connections is a\n"
    "                      trickle of one request on each in T seconds\n"
    "  --arrivals WORD     constant or poisson (constant), --seed N (1)\n"
    "  --backlog-max N     open: due requests that may wait for a free connection (1000000)\n"
    "  --bind CIDR         source addresses, IPv4 or IPv6, 10,000 connections from each\n"
    "  --connect-rate N    connections opened a second (20000)\n"
    "  --refill WORD       batch: the next requests go out when all answers are in; window: one\n"
    "                      for each answer (batch)\n"
    "  --header LINE       one more field line, repeatable\n"
    "  --request-file F    the octets of one request instead of a GET of the URL; repeatable, "
    "sent\n"
    "                      in turn\n"
    "  --expect-status N   instead of the first response's, which has to be 2xx\n"
    "  --server-pid PID    charge the CPU time of this process and of all below it to the server,\n"
    "                      repeatable\n"
    "  --tls               https without saying so in the URL\n"
    "  --tls-version V     1.2 or 1.3, and no other\n"
    "  --tls-ciphers LIST  as OpenSSL names them\n"
    "  --cacert FILE       verify the server's certificate against it\n"
    "  --json              one JSON object on standard output\n"
    "Exit code: 0 no errors, 1 errors, 2 usage, 3 the target cannot be reached.\n";

constexpr std::uint64_t kConnectionsMax = 1'000'000;
constexpr std::uint64_t kDepthMax = 4096;
constexpr std::size_t kRequestBytesMax = std::size_t{16} << 20;
constexpr std::uint64_t kDescriptorsKept = 32;
constexpr time_t kLearnSecondsMax = 10;
constexpr std::uint64_t kProcsMax = 256;

struct Arguments {
  LoadPlan plan;
  std::string url;
  std::vector<int> server_pids;
  std::optional<TlsContext> tls;
  std::size_t procs = 1;
  bool is_json = false;
};

// The octets of a file; nothing when it cannot be read, is empty or too large.
std::optional<std::string> read_request(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::string octets;
  std::vector<char> buffer(64 * 1024);
  // Not by iterators: of a folder they throw.
  while (in && octets.size() <= kRequestBytesMax) {
    in.read(buffer.data(), static_cast<std::streamsize>(buffer.size()));
    octets.append(buffer.data(), static_cast<std::size_t>(in.gcount()));
  }
  if (in.bad() || octets.empty() || octets.size() > kRequestBytesMax) return std::nullopt;
  return octets;
}

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
  plan.drain_max_s = flags.take_decimal("--drain-max-s", 30, 0, 600);
  plan.threads = flags.take_number("--threads", 1, 1, 1024);
  plan.refill = flags.take_word("--refill", {"batch", "window"}) == "batch" ? Refill::kBatch
                                                                            : Refill::kWindow;
  const std::string mode = flags.take_word("--mode", {"closed", "open", "idle", "churn", "slow"});
  plan.mode = mode == "closed"  ? LoadMode::kClosed
              : mode == "open"  ? LoadMode::kOpen
              : mode == "idle"  ? LoadMode::kIdle
              : mode == "churn" ? LoadMode::kChurn
                                : LoadMode::kSlow;
  plan.split_bytes = flags.take_number("--split", 0, 0, kRequestBytesMax);
  plan.rate = flags.take_decimal("--rate", 0, 0.001, 1e9);
  plan.arrivals = flags.take_word("--arrivals", {"constant", "poisson"}) == "constant"
                      ? Arrivals::kConstant
                      : Arrivals::kPoisson;
  plan.seed = flags.take_number("--seed", 1, 0, 1'000'000'000);
  plan.backlog_max = flags.take_number("--backlog-max", 1'000'000, 0, 100'000'000);
  const std::string bind = flags.take_string("--bind", "");
  if (!bind.empty()) {
    const auto range = parse_source_range(bind);
    if (!range) {
      die(kExitUsage,
          "--bind takes an address range like 127.0.0.0/8 (8 to 32 bits) or fd00::/64 " +
              std::string("(8 to 128 bits), not '") + bind + "'");
    }
    plan.source = *range;
    plan.source.begin = static_cast<std::uint32_t>(getpid()) % plan.source.count;
  }
  arguments.procs = flags.take_number("--procs", 1, 1, kProcsMax);
  plan.expected_status = static_cast<int>(flags.take_number("--expect-status", 0, 100, 599));
  plan.connect_rate = flags.take_decimal("--connect-rate", 20'000, 1, 1e7);
  arguments.is_json = flags.take_switch("--json");
  const bool wants_tls = flags.take_switch("--tls");
  TlsClientOptions tls;
  tls.version = flags.take_word("--tls-version", {"", "1.2", "1.3"});
  tls.ciphers = flags.take_string("--tls-ciphers", "");
  tls.ca_file = flags.take_string("--cacert", "");
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
  if (url->is_tls || wants_tls) {
    tls.host = url->host;
    std::string complaint;
    arguments.tls = TlsContext::client(tls, &complaint);
    if (!arguments.tls) die(kExitUsage, complaint);
  } else if (!tls.version.empty() || !tls.ciphers.empty() || !tls.ca_file.empty()) {
    die(kExitUsage, "TLS options need https or --tls");
  }
  const auto server = parse_endpoint(url->host, url->port);
  if (!server) die(kExitUsage, "the URL's host has to be an IP address, not '" + url->host + "'");
  plan.server = *server;
  arguments.procs = std::min(arguments.procs, plan.connections);
  plan.threads = std::min(plan.threads, plan.connections / arguments.procs);
  if ((plan.mode == LoadMode::kOpen) != (plan.rate > 0)) {
    die(kExitUsage, "--rate belongs to --mode open, and that needs one");
  }
  if (plan.source.count != 0 && plan.source.first.family() != server->family()) {
    die(kExitUsage, "--bind: IPv4 sources reach no IPv6 target, and the other way round");
  }

  for (const std::string& file : files) {
    const auto octets = read_request(file);
    if (!octets)
      die(kExitUsage, "--request-file '" + file + "': cannot be read, empty or too large");
    LoadRequest request;
    request.octets = *octets;
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
  const std::size_t each = (plan.connections + arguments.procs - 1) / arguments.procs;
  if (each + kDescriptorsKept > descriptors) {
    die(kExitEnvironment, "only " + std::to_string(descriptors) + " descriptors for " +
                              std::to_string(each) + " connections in one process; see --procs");
  }
  return arguments;
}

// Sends each request once, each on a connection of its own, and acquaints its verifier with the
// answer. False when the target cannot be reached; what is wrong with an answer is in `counts`.
bool learn(const LoadPlan& plan, std::vector<ResponseVerifier>* verifiers, LoadReport* report) {
  LoadCounts* counts = &report->counts;
  std::string* failure = &report->failure;
  for (const LoadRequest& request : plan.requests) {
    ResponseVerifier verifier(plan.expected_status, request.is_head);
    const int fd = socket(plan.server.family(), SOCK_STREAM | SOCK_CLOEXEC, 0);
    const timeval limit = {kLearnSecondsMax, 0};
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    if (fd < 0 || connect(fd, plan.server.sockaddr_ptr(), plan.server.length) != 0) {
      *failure = "cannot connect to " + plan.server.text() + ": " + std::strerror(errno);
      if (fd >= 0) close(fd);
      return false;
    }
    TlsStream tls;
    std::string complaint;
    if (plan.tls != nullptr) {
      if (!tls.connect(*plan.tls, fd, &complaint)) {
        *failure = "no TLS with " + plan.server.text() + ": " + complaint;
        close(fd);
        return false;
      }
      report->tls_version = tls.version();
      report->tls_cipher = tls.cipher();
    }
    timespec asked = {};
    clock_gettime(CLOCK_REALTIME, &asked);
    std::size_t sent = 0;
    while (sent < request.octets.size()) {
      const ssize_t part =
          tls.is_open()
              ? tls.send(request.octets.data() + sent, request.octets.size() - sent)
              : send(fd, request.octets.data() + sent, request.octets.size() - sent, MSG_NOSIGNAL);
      if (part <= 0) break;
      sent += static_cast<std::size_t>(part);
    }
    std::string octets;
    std::vector<char> buffer(64 * 1024);
    CheckResult result;
    LoadErrors& errors = counts->errors;
    for (;;) {
      // A TLS stream on a blocking socket waits until it has all it was asked for.
      const ssize_t got =
          tls.is_open() ? tls.receive(buffer.data(), 1) : recv(fd, buffer.data(), buffer.size(), 0);
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
      timespec wall = {};
      clock_gettime(CLOCK_REALTIME, &wall);  // now: a first answer may take its time
      verifier.set_wall_clock(wall.tv_sec, asked.tv_sec);
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

int run(const Arguments& arguments) {
  const LoadPlan& plan = arguments.plan;
  LoadReport report;
  report.url = arguments.url;
  report.connections = plan.connections;
  report.depth = plan.depth;
  report.threads = plan.threads;
  report.procs = arguments.procs;
  report.mode = plan.mode;
  report.rate = plan.rate;
  report.arrivals = plan.arrivals;
  report.refill = plan.refill;
  report.slice_s = plan.slice_s();

  const auto publish = [&] {
    const std::string text = arguments.is_json ? report_json(report) : report_text(report);
    std::fwrite(text.data(), 1, text.size(), stdout);
  };

  std::vector<ResponseVerifier> verifiers;
  if (!learn(plan, &verifiers, &report)) {
    die(kExitEnvironment, report.failure);
  }
  if (!report.failure.empty()) {
    report.client_threads.resize(plan.threads);
    publish();
    std::fprintf(stderr, "httpmark-load: %s\n", report.failure.c_str());
    return kExitMismatch;
  }
  report.status = verifiers.front().status();
  report.has_date = verifiers.front().has_date();

  std::vector<int> server_pids;
  Books server_before;
  Books server_after;
  ProcessResult result;
  // Counted from the start of the window; threads and processes begun from here on are ours.
  const std::optional<EventCounter> own_events = EventCounter::instructions_of_self();
  std::optional<EventCounter> server_events;
  std::uint64_t own_before = 0;
  const bool has_server = !arguments.server_pids.empty();
  Hooks hooks;
  hooks.connected = [&](std::size_t established) {
    if (plan.mode == LoadMode::kClosed || plan.mode == LoadMode::kOpen) return;
    // Whoever samples the server's memory wants to know when to begin.
    std::fprintf(stderr, "httpmark-load: %zu connections established\n", established);
  };
  hooks.before_window = [&] {
    if (has_server) server_pids = process_tree(arguments.server_pids);
  };
  hooks.window = [&] {
    server_before = read_books(server_pids);
    server_events = EventCounter::instructions_of_processes(server_pids);
    if (own_events) own_before = own_events->read().value_or(0);
  };
  // While the connections are open: a thread or a process that a server has for one is still there.
  hooks.drained = [&] {
    if (own_events) report.client_instructions = own_events->read();
    if (server_events) report.server_instructions = server_events->read();
    if (has_server) server_after = read_books_again(arguments.server_pids, server_before);
  };
  const bool is_run = run_processes(plan, arguments.procs, verifiers, hooks, &result);
  if (report.client_instructions) *report.client_instructions -= own_before;
  if (!is_run) die(kExitEnvironment, "a process of the generator could not be run to its end");
  report.counts = std::move(result.counts);
  report.established = result.established;
  report.client_cpu_ns = result.cpu_ns;
  report.client_context_switches = result.context_switches;
  report.client_threads = std::move(result.threads);
  report.seconds = result.seconds;
  report.drain_seconds = result.drain_seconds;
  if (has_server) {
    // No cost is better than half of it.
    std::string complaint;
    report.server = cost_between(server_before, server_after, arguments.server_pids, &complaint);
    if (!report.server) report.counts.complaints.push_back(complaint);
  }
  if (report.established == 0) {
    die(kExitEnvironment, "no connection to " + plan.server.text() + " could be opened");
  }
  publish();
  return report.counts.errors.sum() == 0 ? kExitOk : kExitMismatch;
}

}  // namespace

int main(int argc, char** argv) {
  Arguments arguments = parse_arguments(argc, argv);
  if (arguments.tls) arguments.plan.tls = &*arguments.tls;
  signal(SIGPIPE, SIG_IGN);
  return run(arguments);
}
