#include "load/options.hpp"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "load/url.hpp"
#include "shared/flags.hpp"

namespace httpmark {
namespace {

constexpr const char* kUsage =
    "usage: httpmark-load [options] URL\n"
    "HTTP/1.1 load; every response is verified against the first: status, framing,\n"
    "content, order; the Date is free but well formed and near the clock.\n"
    "  --connections N     (1)\n"
    "  --depth N           requests under way on each connection (1)\n"
    "  --duration-s N      of the measured window (10)\n"
    "  --warmup-s N        before it (0)\n"
    "  --first-answer-s N  wait this long for the first answer to each request (10)\n"
    "  --drain-s N         wait for the last answers until none has come for this long (2)\n"
    "  --drain-max-s N     and this long at most (30)\n"
    "  --drain-slow-s N    and this long where answers still come: the rest is not waited for "
    "(600)\n"
    "  --split N           send N bytes at a time, cutting requests wherever that falls\n"
    "  --threads N         of each process (1)\n"
    "  --procs N           where one process may not have enough descriptors (1)\n"
    "  --mode WORD         closed: connections x depth requests always under way (default)\n"
    "                      open: --rate requests a second, latency from when each was due\n"
    "                      idle: one request on each connection, then hold it\n"
    "                      churn: each connection ends after depth requests, another opens\n"
    "                      slow: send as long as the server takes it, and never read\n"
    "  --rate N            with --mode open; --rate connections/T on idle connections is a\n"
    "                      trickle of one request on each in T seconds\n"
    "  --phase N           open: where in the turn of several generators, 0 to 1 (0)\n"
    "  --arrivals WORD     constant or poisson (constant), --seed N (1)\n"
    "  --backlog-max N     open: due requests that may wait for a free connection (1000000)\n"
    "  --bind CIDR         source addresses, IPv4 or IPv6, 10,000 connections from each\n"
    "  --connect-rate N    connections opened a second (20000)\n"
    "  --refill WORD       batch: the next requests go out when all answers are in; window: one\n"
    "                      for each answer (batch)\n"
    "  --header LINE       one more field line, repeatable\n"
    "  --request-file F    the bytes of one request instead of a GET of the URL; repeatable, sent\n"
    "                      in turn\n"
    "  --expect-status N   instead of the first response's, which has to be 2xx\n"
    "  --server-pid PID    charge the CPU time of this process and of its descendants to the "
    "server,\n"
    "                      repeatable\n"
    "  --tls               https without saying so in the URL\n"
    "  --tls-version V     1.2 or 1.3, and no other\n"
    "  --tls-ciphers LIST  as OpenSSL names them\n"
    "  --cacert FILE       verify the server's certificate against it\n"
    "  --start-fd FD       write the number of open connections there, and wait for a line that\n"
    "                      says when to begin: nanoseconds since the epoch\n"
    "  --json              one JSON object on standard output\n"
    "Exit code: 0 no errors, 1 errors, 2 usage, 3 the target cannot be reached.\n";

constexpr std::uint64_t kConnectionsMax = 1'000'000;
constexpr std::uint64_t kDepthMax = 4096;
constexpr std::size_t kRequestBytesMax = std::size_t{16} << 20;
constexpr std::uint64_t kDescriptorsKept = 32;
constexpr std::uint64_t kDescriptorsMax = 1'000'000;
constexpr std::uint64_t kProcsMax = 256;

// The bytes of a file; nothing when it cannot be read, is empty or too large.
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

LoadMode take_mode(Flags* flags) {
    const std::string mode =
        flags->take_word("--mode", {"closed", "open", "idle", "churn", "slow"});
    return mode == "closed"  ? LoadMode::kClosed
           : mode == "open"  ? LoadMode::kOpen
           : mode == "idle"  ? LoadMode::kIdle
           : mode == "churn" ? LoadMode::kChurn
                             : LoadMode::kSlow;
}

SourceRange take_source(Flags* flags) {
    const std::string bind = flags->take_string("--bind", "");
    if (bind.empty()) return {};
    auto range = parse_source_range(bind);
    if (!range) {
        die(kExitUsage,
            "--bind takes an address range like 127.0.0.0/8 (8 to 32 bits) or fd00::/64 " +
                std::string("(8 to 128 bits), not '") + bind + "'");
    }
    range->begin = static_cast<std::uint32_t>(getpid()) % range->count;
    return *range;
}

void take_plan(Flags* flags, LoadPlan* plan) {
    plan->connections = flags->take_number("--connections", 1, 1, kConnectionsMax);
    plan->depth = flags->take_number("--depth", 1, 1, kDepthMax);
    plan->duration_s = flags->take_decimal("--duration-s", 10, 0.01, 86400);
    plan->warmup_s = flags->take_decimal("--warmup-s", 0, 0, 86400);
    plan->first_answer_s = flags->take_decimal("--first-answer-s", 10, 0.1, 600);
    plan->drain_s = flags->take_decimal("--drain-s", 2, 0, 600);
    plan->drain_max_s = flags->take_decimal("--drain-max-s", 30, 0, 600);
    plan->drain_slow_s = flags->take_decimal("--drain-slow-s", 600, 0, 600);
    plan->threads = flags->take_number("--threads", 1, 1, 1024);
    plan->refill = flags->take_word("--refill", {"batch", "window"}) == "batch" ? Refill::kBatch
                                                                                : Refill::kWindow;
    plan->mode = take_mode(flags);
    plan->split_bytes = flags->take_number("--split", 0, 0, kRequestBytesMax);
    plan->rate = flags->take_decimal("--rate", 0, 0.001, 1e9);
    plan->phase = flags->take_decimal("--phase", 0, 0, 1);
    plan->arrivals = flags->take_word("--arrivals", {"constant", "poisson"}) == "constant"
                         ? Arrivals::kConstant
                         : Arrivals::kPoisson;
    plan->seed = flags->take_number("--seed", 1, 0, 1'000'000'000);
    plan->backlog_max = flags->take_number("--backlog-max", 1'000'000, 0, 100'000'000);
    plan->source = take_source(flags);
}

std::vector<int> take_server_pids(Flags* flags) {
    std::vector<int> pids;
    for (const std::string& pid : flags->take_all("--server-pid")) {
        const int number = std::atoi(pid.c_str());
        if (number <= 0 || (kill(number, 0) != 0 && errno != EPERM)) {
            die(kExitUsage, "--server-pid: there is no process '" + pid + "'");
        }
        pids.push_back(number);
    }
    return pids;
}

// What the requests of a plan are made of.
struct RequestWords {
    std::vector<std::string> headers;
    std::vector<std::string> files;
};

std::vector<LoadRequest> requests_of(const RequestWords& words, const LoadUrl& url) {
    std::vector<LoadRequest> requests;
    for (const std::string& file : words.files) {
        const auto octets = read_request(file);
        if (!octets)
            die(kExitUsage, "--request-file '" + file + "': cannot be read, empty or too large");
        requests.push_back({*octets, octets->starts_with("HEAD ")});
    }
    if (!words.files.empty()) {
        if (!words.headers.empty()) {
            die(kExitUsage, "--header and --request-file exclude each other");
        }
        return requests;
    }
    LoadRequest request;
    request.octets = "GET " + url.target + " HTTP/1.1\r\nHost: " + url.authority + "\r\n";
    for (const std::string& header : words.headers) {
        if (header.find(':') == std::string::npos ||
            header.find_first_of("\r\n") != std::string::npos) {
            die(kExitUsage, "--header takes 'Name: value', not '" + header + "'");
        }
        request.octets += header + "\r\n";
    }
    request.octets += "\r\n";
    requests.push_back(request);
    return requests;
}

std::optional<TlsContext> tls_of(TlsClientOptions tls, bool is_wanted, const LoadUrl& url) {
    if (url.is_tls || is_wanted) {
        tls.host = url.host;
        std::string complaint;
        auto context = TlsContext::client(tls, &complaint);
        if (!context) die(kExitUsage, complaint);
        return context;
    }
    if (!tls.version.empty() || !tls.ciphers.empty() || !tls.ca_file.empty()) {
        die(kExitUsage, "TLS options need https or --tls");
    }
    return std::nullopt;
}

void need_descriptors(const LoadPlan& plan, std::size_t procs) {
    const std::uint64_t descriptors = raise_descriptor_limit();
    const std::size_t each = (plan.connections + procs - 1) / procs;
    if (each + kDescriptorsKept > descriptors) {
        die(kExitEnvironment, "only " + std::to_string(descriptors) + " descriptors for " +
                                  std::to_string(each) +
                                  " connections in one process; see --procs");
    }
}

}  // namespace

LoadOptions parse_load_options(int argc, char** argv) {
    Flags flags(argc, argv);
    if (flags.take_switch("--help")) {
        std::fputs(kUsage, stdout);
        std::exit(kExitOk);
    }
    LoadOptions options;
    LoadPlan& plan = options.plan;
    take_plan(&flags, &plan);
    options.procs = flags.take_number("--procs", 1, 1, kProcsMax);
    plan.expected_status = static_cast<int>(flags.take_number("--expect-status", 0, 100, 599));
    plan.connect_rate = flags.take_decimal("--connect-rate", 20'000, 1, 1e7);
    constexpr std::uint64_t kNoStart = kDescriptorsMax + 1;
    const std::uint64_t start_fd = flags.take_number("--start-fd", kNoStart, 0, kDescriptorsMax);
    if (start_fd != kNoStart) options.start_fd = static_cast<int>(start_fd);
    options.is_json = flags.take_switch("--json");
    const bool wants_tls = flags.take_switch("--tls");
    TlsClientOptions tls;
    tls.version = flags.take_word("--tls-version", {"", "1.2", "1.3"});
    tls.ciphers = flags.take_string("--tls-ciphers", "");
    tls.ca_file = flags.take_string("--cacert", "");
    RequestWords words;
    words.headers = flags.take_all("--header");
    words.files = flags.take_all("--request-file");
    options.server_pids = take_server_pids(&flags);
    options.url = flags.take_positional("URL", true);
    flags.finish();

    const auto url = parse_load_url(options.url);
    if (!url) die(kExitUsage, "'" + options.url + "' is no http URL");
    options.tls = tls_of(tls, wants_tls, *url);
    const auto server = parse_endpoint(url->host, url->port);
    if (!server) die(kExitUsage, "the URL's host has to be an IP address, not '" + url->host + "'");
    plan.server = *server;
    options.procs = std::min(options.procs, plan.connections);
    plan.threads = std::min(plan.threads, plan.connections / options.procs);
    if ((plan.mode == LoadMode::kOpen) != (plan.rate > 0)) {
        die(kExitUsage, "--rate belongs to --mode open, and that needs one");
    }
    if (plan.source.count != 0 && plan.source.first.family() != server->family()) {
        die(kExitUsage, "--bind: IPv4 sources reach no IPv6 target, and the other way round");
    }
    plan.requests = requests_of(words, *url);
    need_descriptors(plan, options.procs);
    return options;
}

}  // namespace httpmark
