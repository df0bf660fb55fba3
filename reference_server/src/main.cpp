#include <arpa/inet.h>
#include <malloc.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <algorithm>
#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "check.hpp"
#include "limits.hpp"
#include "scan.hpp"
#include "worker.hpp"

#ifndef HTTPMARK_VERSION
#define HTTPMARK_VERSION "0.0.0"
#endif

namespace httpmark {

namespace {

constexpr int kExitUsage = 2;
constexpr int kExitEnvironment = 3;

struct Options {
    std::string address = "127.0.0.1";
    int port = 8080;
    unsigned workers = 0;
    Engine engine = Engine::kEpoll;
    bool print_limits = false;
    bool stats = false;
    bool help = false;
    bool version = false;
    ServerSettings settings;
};

[[gnu::format(printf, 1, 2)]] bool complain(const char* format, ...) {
    va_list arguments;
    va_start(arguments, format);
    std::fputs("httpmark-server: ", stderr);
    std::vfprintf(stderr, format, arguments);
    std::fputc('\n', stderr);
    va_end(arguments);
    return false;
}

bool parse_number(std::string_view text, std::uint64_t& number) {
    if (text.empty() || text.size() > 19) return false;
    number = 0;
    for (const char c : text) {
        if (c < '0' || c > '9') return false;
        number = number * 10 + static_cast<std::uint64_t>(c - '0');
    }
    return true;
}

bool parse_bounded(const char* flag, std::string_view text, std::uint64_t lowest,
                   std::uint64_t highest, std::uint64_t& number) {
    if (parse_number(text, number) && number >= lowest && number <= highest) return true;
    return complain("--%s takes a number from %llu to %llu, not '%.*s'", flag,
                    static_cast<unsigned long long>(lowest),
                    static_cast<unsigned long long>(highest), static_cast<int>(text.size()),
                    text.data());
}

constexpr struct {
    const char* flag;
    std::uint64_t Limits::*first;
    std::uint64_t Limits::*second;
    const char* meaning;
} kSecondsFlags[] = {
    {"request-timeout-s", &Limits::head_timeout_ms, &Limits::body_timeout_ms,
     "sets head-timeout-ms and body-timeout-ms"},
    {"idle-timeout-s", &Limits::idle_timeout_ms, &Limits::idle_timeout_ms, "sets idle-timeout-ms"},
};

void print_help() {
    std::printf(
        "httpmark-server %s: a strict HTTP/1.1 server\n\n"
        "  --address A           IPv4 or IPv6 address to listen on (127.0.0.1)\n"
        "  --port P              port, 0 for a free one (8080)\n"
        "  --workers N           threads, each with its own listener (number of CPUs)\n"
        "  --engine epoll        the event engine\n"
        "  --strictness LEVEL    strict: the strictest legal reading (default)\n"
        "                        rfc: also empty lines before a request, an empty Host, and\n"
        "                        Content-Length repeated with equal values\n"
        "                        browser: as rfc, and [ ] \\ ^ ` { | } raw in a query\n"
        "  --print-limits        print every limit and timeout and leave\n"
        "  --stats               print counters when stopped\n"
        "  --help, --version\n\n"
        "  HTTPMARK_SIMD=scalar|sse42|avx2|avx512 forces a scan kernel\n\n"
        "limits and timeouts, with what exceeding them leads to (0 switches a timeout off):\n",
        HTTPMARK_VERSION);
    const Limits defaults;
    for (const LimitRow& row : kLimitTable) {
        std::printf("  --%-24s %-12llu %-6s %s\n", row.flag,
                    static_cast<unsigned long long>(defaults.*row.value), row.outcome,
                    row.meaning);
    }
    for (const auto& row : kSecondsFlags) std::printf("  --%-24s %-19s %s\n", row.flag, "", row.meaning);
}

bool parse_options(int argc, char** argv, Options& options) {
    for (int i = 1; i < argc; ++i) {
        std::string_view argument(argv[i]);
        if (argument == "--help") {
            options.help = true;
            continue;
        }
        if (argument == "--version") {
            options.version = true;
            continue;
        }
        if (argument == "--print-limits") {
            options.print_limits = true;
            continue;
        }
        if (argument == "--stats") {
            options.stats = true;
            continue;
        }
        if (!argument.starts_with("--")) return complain("unknown argument '%s'", argv[i]);
        argument.remove_prefix(2);
        std::string_view value;
        const std::size_t equals = argument.find('=');
        const std::string flag(argument.substr(0, equals));
        bool known = flag == "address" || flag == "port" || flag == "workers" ||
                     flag == "engine" || flag == "strictness";
        for (const LimitRow& row : kLimitTable) known = known || flag == row.flag;
        for (const auto& row : kSecondsFlags) known = known || flag == row.flag;
        if (!known) return complain("unknown flag '--%s' (see --help)", flag.c_str());
        if (equals != std::string_view::npos) {
            value = argument.substr(equals + 1);
        } else if (++i < argc) {
            value = argv[i];
        } else {
            return complain("--%s needs a value", flag.c_str());
        }
        std::uint64_t number = 0;
        if (flag == "address") {
            options.address = value;
        } else if (flag == "port") {
            if (!parse_bounded("port", value, 0, 65535, number)) return false;
            options.port = static_cast<int>(number);
        } else if (flag == "workers") {
            if (!parse_bounded("workers", value, 1, kWorkersMax, number)) return false;
            options.workers = static_cast<unsigned>(number);
        } else if (flag == "engine") {
            if (value != "epoll") return complain("unknown engine '%s'", std::string(value).c_str());
        } else if (flag == "strictness") {
            if (value == "strict") {
                options.settings.strictness = Strictness::kStrict;
            } else if (value == "rfc") {
                options.settings.strictness = Strictness::kRfc;
            } else if (value == "browser") {
                options.settings.strictness = Strictness::kBrowser;
            } else {
                return complain("--strictness is strict, rfc or browser, not '%s'",
                                std::string(value).c_str());
            }
        } else {
            Limits& limits = options.settings.limits;
            for (const LimitRow& row : kLimitTable) {
                if (flag != row.flag) continue;
                if (!parse_bounded(row.flag, value, row.lowest, row.highest, limits.*row.value)) {
                    return false;
                }
            }
            for (const auto& row : kSecondsFlags) {
                if (flag != row.flag) continue;
                if (!parse_bounded(row.flag, value, 0, kMilliseconds / 1000, number)) return false;
                limits.*row.first = limits.*row.second = number * 1000;
            }
        }
    }
    return true;
}

bool choose_kernel(ServerSettings& settings) {
    const char* const name = std::getenv("HTTPMARK_SIMD");
    const ScanKernel* const kernel =
        name == nullptr || *name == '\0' ? best_scan_kernel() : find_scan_kernel(name);
    if (kernel == nullptr) {
        return complain("HTTPMARK_SIMD=%s is no kernel that this machine runs", name);
    }
    settings.kernel = kernel;
    return true;
}

struct Address {
    sockaddr_storage storage{};
    socklen_t size = 0;
};

bool parse_address(const std::string& text, int port, Address& address) {
    auto* const v4 = reinterpret_cast<sockaddr_in*>(&address.storage);
    auto* const v6 = reinterpret_cast<sockaddr_in6*>(&address.storage);
    if (inet_pton(AF_INET, text.c_str(), &v4->sin_addr) == 1) {
        v4->sin_family = AF_INET;
        v4->sin_port = htons(static_cast<std::uint16_t>(port));
        address.size = sizeof *v4;
        return true;
    }
    if (inet_pton(AF_INET6, text.c_str(), &v6->sin6_addr) == 1) {
        v6->sin6_family = AF_INET6;
        v6->sin6_port = htons(static_cast<std::uint16_t>(port));
        address.size = sizeof *v6;
        return true;
    }
    return complain("'%s' is no IPv4 or IPv6 address", text.c_str());
}

int bound_port(int socket) {
    sockaddr_storage storage{};
    socklen_t size = sizeof storage;
    CHECK(getsockname(socket, reinterpret_cast<sockaddr*>(&storage), &size) == 0);
    if (storage.ss_family == AF_INET) {
        return ntohs(reinterpret_cast<sockaddr_in*>(&storage)->sin_port);
    }
    return ntohs(reinterpret_cast<sockaddr_in6*>(&storage)->sin6_port);
}

// A listening socket, or -1 with the complaint made. With `shared` other workers may bind too.
int listen_on(const Options& options, int port, bool shared) {
    Address address;
    if (!parse_address(options.address, port, address)) return -1;
    const int fd = socket(address.storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    const int on = 1;
    bool ok = fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0 &&
              setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) == 0;
    if (ok && shared) ok = setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof on) == 0;
    ok = ok && bind(fd, reinterpret_cast<sockaddr*>(&address.storage), address.size) == 0 &&
         listen(fd, static_cast<int>(options.settings.limits.backlog)) == 0;
    if (ok) return fd;
    complain("cannot listen on %s port %d: %s", options.address.c_str(), port,
             std::strerror(errno));
    if (fd >= 0) close(fd);
    return -1;
}

void* run_worker(void* worker) {
    static_cast<Worker*>(worker)->run();
    return nullptr;
}

void raise_descriptor_limit() {
    rlimit limit{};
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
}

int serve(Options& options) {
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &signals, nullptr);
    raise_descriptor_limit();
    if (options.workers == 0) {
        options.workers = static_cast<unsigned>(
            std::clamp(sysconf(_SC_NPROCESSORS_ONLN), 1L, static_cast<long>(kWorkersMax)));
    }
    // Each worker is given its share, so that no counter is shared on the way of a request.
    options.settings.limits.memory_max /= options.workers;

    // SO_REUSEPORT would let another process of this user share the port in silence: the first
    // socket is bound without it to find out, then the group is made.
    const int trial = listen_on(options, options.port, false);
    if (trial < 0) return kExitEnvironment;
    const int port = bound_port(trial);
    close(trial);

    SharedState shared;
    std::vector<std::unique_ptr<Worker>> workers;
    for (unsigned i = 0; i < options.workers; ++i) {
        const int fd = listen_on(options, port, true);
        if (fd < 0) return kExitEnvironment;
        workers.push_back(std::make_unique<Worker>(options.settings, options.engine, shared));
        std::string error;
        if (!workers.back()->start(fd, -1, error)) {
            complain("%s", error.c_str());
            return kExitEnvironment;
        }
    }
    std::vector<pthread_t> threads;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, kWorkerStackSize);
    for (const auto& worker : workers) {
        pthread_t thread{};
        if (pthread_create(&thread, &attributes, run_worker, worker.get()) != 0) {
            complain("cannot start a thread: %s", std::strerror(errno));
            std::_Exit(kExitEnvironment);
        }
        threads.push_back(thread);
    }
    pthread_attr_destroy(&attributes);
    const bool v6 = options.address.find(':') != std::string::npos;
    std::printf("listening on %s%s%s:%d\n", v6 ? "[" : "", options.address.c_str(), v6 ? "]" : "",
                port);
    std::fflush(stdout);

    bool at_once = false;
    int signal = 0;
    sigwait(&signals, &signal);
    for (const auto& worker : workers) worker->request_stop(at_once);
    for (const pthread_t thread : threads) pthread_join(thread, nullptr);
    if (options.stats) {
        const auto sum = [&](std::atomic<std::uint64_t> Counters::*counter) {
            std::uint64_t total = 0;
            for (const auto& worker : workers) total += (worker->counters().*counter).load();
            return static_cast<unsigned long long>(total);
        };
        std::printf("accepted %llu closed %llu requests %llu refused %llu timeouts %llu "
                    "bytes_in %llu bytes_out %llu\n",
                    sum(&Counters::accepted), sum(&Counters::closed), sum(&Counters::requests),
                    sum(&Counters::refused), sum(&Counters::timeouts), sum(&Counters::bytes_in),
                    sum(&Counters::bytes_out));
    }
    return 0;
}

}  // namespace

}  // namespace httpmark

int main(int argc, char** argv) {
    using namespace httpmark;
    mallopt(M_ARENA_MAX, 1);
    Options options;
    if (!parse_options(argc, argv, options) || !choose_kernel(options.settings)) return kExitUsage;
    if (options.help) {
        print_help();
        return 0;
    }
    if (options.version) {
        std::printf("httpmark-server %s\n", HTTPMARK_VERSION);
        return 0;
    }
    if (options.print_limits) {
        for (const LimitRow& row : kLimitTable) {
            std::printf("%-24s %llu\n", row.flag,
                        static_cast<unsigned long long>(options.settings.limits.*row.value));
        }
        return 0;
    }
    Address address;
    if (!parse_address(options.address, options.port, address)) return kExitUsage;
    return serve(options);
}
