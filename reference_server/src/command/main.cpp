#include <arpa/inet.h>
#include <linux/filter.h>
#include <malloc.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "check.hpp"
#include "http/syntax.hpp"
#include "limits.hpp"
#include "net/log.hpp"
#include "net/worker.hpp"
#include "scan/scan.hpp"

#ifndef HTTPMARK_VERSION
#define HTTPMARK_VERSION "0.0.0"
#endif

namespace httpmark {

namespace {

constexpr int kExitUsage = 2;
constexpr int kExitEnvironment = 3;

struct Options {
    std::vector<std::string> addresses;
    std::vector<std::string> unix_paths;
    int port = 8080;
    int tls_port = -1;
    std::string tls_flag;  // the first of those that only a --tls-port gives a meaning
    bool client_verify_said = false;
    bool pin = false;
    bool steer = false;
    bool metrics = false;
    std::string access_log;
    std::string server_name;
    std::deque<std::string> route_texts;  // what the routes' views refer to
    TlsSettings tls;
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
        "  --address A           IPv4 or IPv6 address to listen on, may be repeated (127.0.0.1)\n"
        "  --port P              port, 0 for a free one (8080)\n"
        "  --unix PATH           listen on a Unix socket too, may be repeated\n"
        "  --workers N           threads, each with its own listener (number of CPUs)\n"
        "  --pin                 keep worker N on CPU N\n"
        "  --steer               worker N takes the connections that arrive on CPU N\n"
        "  --engine epoll|uring|uring-direct\n"
        "                        the event engine (epoll); with uring-direct connections take no\n"
        "                        descriptor of the process\n"
        "  --tls-port P          port for TLS, 0 for a free one\n"
        "  --tls-cert F          certificate chain, PEM; with --tls-key, may be repeated: the "
        "host\n"
        "                        name that a client asks for (SNI) chooses\n"
        "  --tls-key F           its private key\n"
        "  --tls-key-password-file F\n"
        "  --tls-min, --tls-max  1.2 or 1.3\n"
        "  --tls-ciphers LIST    for TLS 1.2;  --tls-ciphersuites LIST  for TLS 1.3\n"
        "  --tls-groups LIST     (X25519:P-256:P-384:P-521)\n"
        "  --tls-client-ca F     authority of client certificates\n"
        "  --tls-client-verify off|optional|required\n"
        "  --tls-tickets N       session tickets of TLS 1.3 (0)\n"
        "  --strictness LEVEL    strict: the strictest legal reading (default)\n"
        "                        rfc: also empty lines before a request, an empty Host, and\n"
        "                        Content-Length repeated with equal values\n"
        "                        browser: as rfc, and [ ] \\ ^ ` { | } raw in a query\n"
        "  --refuse WHAT         with 400, what else would pass; may be repeated:\n"
        "                        empty-codings: empty members of Transfer-Encoding\n"
        "                        framing-trailers: trailers that frame or route, else dropped\n"
        "                        repeated-fields: fields that a message holds once, sent twice\n"
        "  --trace               answer TRACE with the request, else 501\n"
        "  --idle-408            tell an idle timeout by a 408 before the close\n"
        "  --connections-over 503|wait\n"
        "                        what connections above connections-max get: a 503 (default), or\n"
        "                        their turn when another has closed\n"
        "  --route PATH,OPTION...\n"
        "                        what a path asks of content, may be repeated: body-max=N (413),\n"
        "                        length (411 without Content-Length), type=T (415)\n"
        "  --server-name NAME    send a Server field\n"
        "  --access-log FILE     a line for each answer, appended; opened again after SIGHUP\n"
        "  --metrics             counters at /metrics, for Prometheus\n"
        "  --print-limits        print every limit and timeout and leave\n"
        "  --stats               print counters when stopped\n"
        "  --help, --version\n\n"
        "  SIGTERM, SIGINT: answer what is under way, then leave; a second one: leave now\n"
        "  SIGHUP: read certificates and keys again, open the access log again\n"
        "  SIGUSR1: print counters\n\n"
        "  HTTPMARK_SIMD=scalar|sse42|avx2|avx512 forces a scan kernel\n\n"
        "limits and timeouts, with what exceeding them leads to (0 switches a timeout off):\n",
        HTTPMARK_VERSION);
    const Limits defaults;
    for (const LimitRow& row : kLimitTable) {
        std::printf("  --%-24s %-12llu %-6s %s\n", row.flag,
                    static_cast<unsigned long long>(defaults.*row.value), row.outcome, row.meaning);
    }
    for (const auto& row : kSecondsFlags)
        std::printf("  --%-24s %-19s %s\n", row.flag, "", row.meaning);
}

constexpr std::string_view kValueFlags[] = {
    "address",
    "port",
    "unix",
    "workers",
    "engine",
    "strictness",
    "refuse",
    "connections-over",
    "route",
    "server-name",
    "access-log",
    "tls-port",
    "tls-cert",
    "tls-key",
    "tls-key-password-file",
    "tls-min",
    "tls-max",
    "tls-ciphers",
    "tls-ciphersuites",
    "tls-groups",
    "tls-client-ca",
    "tls-client-verify",
    "tls-tickets",
};

bool parse_tls_version(const char* flag, std::string_view value, int& version) {
    if (value == "1.2") {
        version = 0x0303;
    } else if (value == "1.3") {
        version = 0x0304;
    } else {
        return complain("--%s is 1.2 or 1.3, not '%s'", flag, std::string(value).c_str());
    }
    return true;
}

// PATH,OPTION...: the example's route of that path, with more to ask of content.
bool parse_route(std::string_view text, Options& options) {
    const std::string shown(text);
    const std::string_view whole = options.route_texts.emplace_back(text);
    std::string_view rest = whole;
    const auto next = [&] {
        const std::size_t comma = std::min(rest.find(','), rest.size());
        const std::string_view word = rest.substr(0, comma);
        rest.remove_prefix(std::min(comma + 1, rest.size()));
        return word;
    };
    const std::string_view path = next();
    if (!path.starts_with('/') || rest.empty()) {
        return complain("--route takes PATH,OPTION..., not '%s'", shown.c_str());
    }
    Route route = find_route(path);
    route.path = path;
    while (!rest.empty()) {
        const std::string_view word = next();
        std::uint64_t number = 0;
        if (word == "length") {
            route.wants_length = true;
        } else if (word.starts_with("type=") && word.find('/') != std::string_view::npos) {
            route.media_type = word.substr(5);
        } else if (word.starts_with("body-max=") && parse_number(word.substr(9), number)) {
            route.body_max = number;
        } else {
            return complain("--route %s: '%s' is none of body-max=N, length, type=T", shown.c_str(),
                            std::string(word).c_str());
        }
    }
    // Compared without regard to case, against lower case.
    if (!route.media_type.empty()) {
        std::string lower(route.media_type);
        for (char& c : lower) c = to_lower(c);
        route.media_type = options.route_texts.emplace_back(std::move(lower));
    }
    options.settings.routes.push_back(route);
    return true;
}

bool parse_refusal(std::string_view what, Choices& choices) {
    if (what == "empty-codings") {
        choices.refuse_empty_codings = true;
    } else if (what == "framing-trailers") {
        choices.refuse_framing_trailers = true;
    } else if (what == "repeated-fields") {
        choices.refuse_repeated_fields = true;
    } else {
        return complain("--refuse is empty-codings, framing-trailers or repeated-fields, not '%s'",
                        std::string(what).c_str());
    }
    return true;
}

bool parse_options(int argc, char** argv, Options& options) {
    for (int i = 1; i < argc; ++i) {
        std::string_view argument(argv[i]);
        const struct {
            std::string_view word;
            bool& value;
        } switches[] = {
            {"--help", options.help},
            {"--version", options.version},
            {"--print-limits", options.print_limits},
            {"--pin", options.pin},
            {"--steer", options.steer},
            {"--stats", options.stats},
            {"--metrics", options.metrics},
            {"--trace", options.settings.choices.answer_trace},
            {"--idle-408", options.settings.choices.answer_idle},
        };
        const auto* const on = std::find_if(std::begin(switches), std::end(switches),
                                            [&](const auto& row) { return argument == row.word; });
        if (on != std::end(switches)) {
            on->value = true;
            continue;
        }
        if (!argument.starts_with("--")) return complain("unknown argument '%s'", argv[i]);
        argument.remove_prefix(2);
        std::string_view value;
        const std::size_t equals = argument.find('=');
        const std::string flag(argument.substr(0, equals));
        bool known = std::find(std::begin(kValueFlags), std::end(kValueFlags), flag) !=
                     std::end(kValueFlags);
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
        if (flag.starts_with("tls-") && flag != "tls-port" && options.tls_flag.empty()) {
            options.tls_flag = flag;
        }
        std::uint64_t number = 0;
        if (flag == "address") {
            options.addresses.emplace_back(value);
        } else if (flag == "unix") {
            options.unix_paths.emplace_back(value);
        } else if (flag == "tls-port") {
            if (!parse_bounded("tls-port", value, 0, 65535, number)) return false;
            options.tls_port = static_cast<int>(number);
        } else if (flag == "tls-cert") {
            options.tls.pairs.push_back({std::string(value), {}});
        } else if (flag == "tls-key") {
            const auto open = std::find_if(options.tls.pairs.begin(), options.tls.pairs.end(),
                                           [](const auto& pair) { return pair.key.empty(); });
            if (open == options.tls.pairs.end()) {
                return complain("--tls-key follows the --tls-cert it belongs to");
            }
            open->key = value;
        } else if (flag == "tls-key-password-file") {
            options.tls.key_password_file = value;
        } else if (flag == "tls-min") {
            if (!parse_tls_version("tls-min", value, options.tls.version_min)) return false;
        } else if (flag == "tls-max") {
            if (!parse_tls_version("tls-max", value, options.tls.version_max)) return false;
        } else if (flag == "tls-ciphers") {
            options.tls.ciphers = value;
        } else if (flag == "tls-ciphersuites") {
            options.tls.ciphersuites = value;
        } else if (flag == "tls-groups") {
            options.tls.groups = value;
        } else if (flag == "tls-client-ca") {
            options.tls.client_ca = value;
        } else if (flag == "tls-client-verify") {
            options.client_verify_said = true;
            if (value == "off") {
                options.tls.client_verify = ClientVerify::kOff;
            } else if (value == "optional") {
                options.tls.client_verify = ClientVerify::kOptional;
            } else if (value == "required") {
                options.tls.client_verify = ClientVerify::kRequired;
            } else {
                return complain("--tls-client-verify is off, optional or required, not '%s'",
                                std::string(value).c_str());
            }
        } else if (flag == "tls-tickets") {
            if (!parse_bounded("tls-tickets", value, 0, 16, number)) return false;
            options.tls.tickets = static_cast<unsigned>(number);
        } else if (flag == "port") {
            if (!parse_bounded("port", value, 0, 65535, number)) return false;
            options.port = static_cast<int>(number);
        } else if (flag == "workers") {
            if (!parse_bounded("workers", value, 1, kWorkersMax, number)) return false;
            options.workers = static_cast<unsigned>(number);
        } else if (flag == "engine") {
            if (value == "epoll") {
                options.engine = Engine::kEpoll;
            } else if (value == "uring") {
                options.engine = Engine::kUring;
            } else if (value == "uring-direct") {
                options.engine = Engine::kUringDirect;
            } else {
                return complain("--engine is epoll, uring or uring-direct, not '%s'",
                                std::string(value).c_str());
            }
            if (!engine_is_built(options.engine)) return complain("this build has no io_uring");
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
        } else if (flag == "refuse") {
            if (!parse_refusal(value, options.settings.choices)) return false;
        } else if (flag == "connections-over") {
            if (value != "503" && value != "wait") {
                return complain("--connections-over is 503 or wait, not '%s'",
                                std::string(value).c_str());
            }
            options.settings.wait_over_connections = value == "wait";
        } else if (flag == "route") {
            if (!parse_route(value, options)) return false;
        } else if (flag == "server-name") {
            if (value.empty() || value.size() > DateLine::kServerNameMax ||
                !field_is_safe({"Server", value})) {
                return complain("--server-name takes up to %zu visible octets",
                                DateLine::kServerNameMax);
            }
            options.server_name = value;
        } else if (flag == "access-log") {
            options.access_log = value;
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
    if (options.addresses.empty()) options.addresses.emplace_back("127.0.0.1");
    for (const TlsSettings::Pair& pair : options.tls.pairs) {
        if (pair.key.empty())
            return complain("--tls-cert %s has no --tls-key", pair.certificate.c_str());
    }
    if (options.tls_port >= 0 && options.tls.pairs.empty()) {
        return complain("--tls-port needs --tls-cert and --tls-key");
    }
    if (options.tls.client_verify != ClientVerify::kOff && options.tls.client_ca.empty()) {
        return complain("--tls-client-verify needs --tls-client-ca");
    }
    if (!options.tls.client_ca.empty() && !options.client_verify_said) {
        return complain("--tls-client-ca does nothing without --tls-client-verify");
    }
    if (options.tls.version_min > options.tls.version_max) {
        return complain("--tls-min must not be above --tls-max");
    }
    if (options.tls_port < 0 && !options.tls_flag.empty()) {
        return complain("--%s does nothing without --tls-port", options.tls_flag.c_str());
    }
    if (options.settings.limits.head_max < options.settings.limits.target_max) {
        return complain("--head-max must not be less than --target-max");
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
int listen_on(const std::string& text, int port, bool shared, std::uint64_t backlog) {
    Address address;
    if (!parse_address(text, port, address)) return -1;
    const int fd = socket(address.storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    const int on = 1;
    bool ok = fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0 &&
              setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) == 0;
    if (ok && address.storage.ss_family == AF_INET6) {
        ok = setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on) == 0;
    }
    if (ok && shared) ok = setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof on) == 0;
    ok = ok && bind(fd, reinterpret_cast<sockaddr*>(&address.storage), address.size) == 0 &&
         listen(fd, static_cast<int>(backlog)) == 0;
    if (ok) return fd;
    complain("cannot listen on %s port %d: %s", text.c_str(), port, std::strerror(errno));
    if (fd >= 0) close(fd);
    return -1;
}

// Which socket of a SO_REUSEPORT group a connection goes to: the one numbered as the CPU it arrives
// on (counted round where there are fewer workers).
bool steer_by_cpu(int socket, unsigned workers) {
    sock_filter program[] = {
        {BPF_LD | BPF_W | BPF_ABS, 0, 0, static_cast<std::uint32_t>(SKF_AD_OFF + SKF_AD_CPU)},
        {BPF_ALU | BPF_MOD | BPF_K, 0, 0, workers},
        {BPF_RET | BPF_A, 0, 0, 0},
    };
    const sock_fprog whole{std::size(program), program};
    if (setsockopt(socket, SOL_SOCKET, SO_ATTACH_REUSEPORT_CBPF, &whole, sizeof whole) == 0) {
        return true;
    }
    return complain("--steer: %s", std::strerror(errno));
}

int listen_on_unix(const std::string& path, std::uint64_t backlog) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (path.empty() || path.size() >= sizeof address.sun_path) {
        complain("'%s' is no path for a Unix socket", path.c_str());
        return -1;
    }
    std::memcpy(address.sun_path, path.data(), path.size());
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    const bool bound =
        fd >= 0 && bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
    if (bound && listen(fd, static_cast<int>(backlog)) == 0) return fd;
    complain("cannot listen on %s: %s", path.c_str(), std::strerror(errno));
    if (bound) unlink(path.c_str());
    if (fd >= 0) close(fd);
    return -1;
}

// The files of the Unix sockets that are ours: gone when we are.
struct UnixSockets {
    std::vector<std::string> paths;
    void remove() {
        for (const std::string& path : paths) unlink(path.c_str());
        paths.clear();
    }
    ~UnixSockets() { remove(); }
};

// Where to listen: found out once, then done by each worker.
struct Place {
    std::string address;
    int port;
    bool tls;
};

// Whether a connection could be meant for either, as both would take what is sent to the port.
bool overlap(const Place& one, const Place& other) {
    Address a;
    Address b;
    if (one.port != other.port || !parse_address(one.address, one.port, a) ||
        !parse_address(other.address, other.port, b)) {
        return false;
    }
    const auto is_any = [](const Address& address) {
        const auto& v6 = reinterpret_cast<const sockaddr_in6&>(address.storage);
        return address.storage.ss_family == AF_INET6
                   ? IN6_IS_ADDR_UNSPECIFIED(&v6.sin6_addr) != 0
                   : reinterpret_cast<const sockaddr_in&>(address.storage).sin_addr.s_addr == 0;
    };
    return a.storage.ss_family == b.storage.ss_family &&
           (is_any(a) || is_any(b) || std::memcmp(&a.storage, &b.storage, a.size) == 0);
}

// SO_REUSEPORT would let another process of this user share the port in silence: the first socket
// is bound without it to find out, and to learn which port 0 has become. 0, or the exit code with
// the complaint made.
int find_places(const Options& options, std::vector<Place>& places) {
    int free_ports[2] = {-1, -1};
    struct Trials {
        std::vector<int> sockets;
        ~Trials() {
            for (const int fd : sockets) close(fd);
        }
    } trials;  // open until all are found: port 0 never becomes the same port twice
    for (const std::string& address : options.addresses) {
        for (const bool tls : {false, true}) {
            int port = tls ? options.tls_port : options.port;
            if (port < 0) continue;
            if (port == 0 && free_ports[tls] > 0) port = free_ports[tls];
            for (const Place& place : places) {
                if (!overlap(place, {address, port, tls})) continue;
                complain("%s port %d%s and %s port %d%s are one place: give each a port of its own",
                         place.address.c_str(), port, place.tls ? " (tls)" : "", address.c_str(),
                         port, tls ? " (tls)" : "");
                return kExitUsage;
            }
            const int trial = listen_on(address, port, false, options.settings.limits.backlog);
            if (trial < 0) return kExitEnvironment;
            trials.sockets.push_back(trial);
            port = free_ports[tls] = bound_port(trial);
            places.push_back({address, port, tls});
        }
    }
    return 0;
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

void print_counters(const std::vector<std::unique_ptr<Worker>>& workers,
                    const std::vector<std::unique_ptr<AccessLog>>& logs) {
    const auto sum = [&](std::atomic<std::uint64_t> Counters::*counter) {
        std::uint64_t total = 0;
        for (const auto& worker : workers) {
            total += (worker->counters().*counter).load(std::memory_order_relaxed);
        }
        return static_cast<unsigned long long>(total);
    };
    unsigned long long lost = 0;
    for (const auto& log : logs) lost += log->lost();
    std::printf(
        "accepted %llu closed %llu requests %llu refused %llu timeouts %llu bytes_in %llu "
        "bytes_out %llu log_lines_lost %llu\n",
        sum(&Counters::accepted), sum(&Counters::closed), sum(&Counters::requests),
        sum(&Counters::refused), sum(&Counters::timeouts), sum(&Counters::bytes_in),
        sum(&Counters::bytes_out), lost);
    for (std::size_t reason = 1; reason < static_cast<std::size_t>(Reason::kCount); ++reason) {
        unsigned long long count = 0;
        for (const auto& worker : workers) {
            count += worker->counters().errors[reason].load(std::memory_order_relaxed);
        }
        if (count != 0) {
            std::printf("error %s %llu\n", error_row(static_cast<Reason>(reason)).name, count);
        }
    }
    std::fflush(stdout);
}

int serve(Options& options) {
    sigset_t signals;
    sigemptyset(&signals);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGUSR1}) sigaddset(&signals, signal);
    pthread_sigmask(SIG_BLOCK, &signals, nullptr);
    raise_descriptor_limit();
    if (options.workers == 0) {
        options.workers = static_cast<unsigned>(
            std::clamp(sysconf(_SC_NPROCESSORS_ONLN), 1L, static_cast<long>(kWorkersMax)));
    }
    // Each worker is given its share, so that no counter is shared on the way of a request.
    options.settings.limits.memory_max /= options.workers;

    std::string error;
    std::shared_ptr<const TlsContext> context;
    if (options.tls_port >= 0) {
        context = TlsContext::load(options.tls, error);
        if (context == nullptr) {
            complain("%s", error.c_str());
            return kExitUsage;
        }
    }
    std::vector<Place> places;
    if (const int fault = find_places(options, places); fault != 0) return fault;
    std::vector<int> unix_sockets;
    UnixSockets ours;
    for (const std::string& path : options.unix_paths) {
        unix_sockets.push_back(listen_on_unix(path, options.settings.limits.backlog));
        if (unix_sockets.back() < 0) return kExitEnvironment;
        ours.paths.push_back(path);
    }

    options.settings.server_name = options.server_name;
    std::vector<const Counters*> counters;
    if (options.metrics) {
        options.settings.metrics = &counters;
        options.settings.routes.push_back(
            {"/metrics", Handler::kMetrics, false, false, false,
             static_cast<std::uint16_t>(method_bit(Method::kGet) | method_bit(Method::kHead)),
             "GET, HEAD"});
    }

    SharedState shared;
    std::vector<std::unique_ptr<AccessLog>> logs;  // outlives the workers
    std::vector<std::unique_ptr<Worker>> workers;
    for (unsigned i = 0; i < options.workers; ++i) {
        std::vector<Worker::Listener> listeners;
        for (const Place& place : places) {
            const int fd =
                listen_on(place.address, place.port, true, options.settings.limits.backlog);
            if (fd < 0) return kExitEnvironment;
            listeners.push_back({fd, place.tls});
            const bool last = i + 1 == options.workers;
            if (options.steer && last && !steer_by_cpu(fd, options.workers)) {
                return kExitEnvironment;
            }
        }
        for (const int fd : unix_sockets) listeners.push_back({dup(fd), false});
        workers.push_back(std::make_unique<Worker>(options.settings, options.engine, shared));
        if (!workers.back()->start(std::move(listeners), context, error)) {
            complain("%s", error.c_str());
            return kExitEnvironment;
        }
        counters.push_back(&workers.back()->counters());
        if (!options.access_log.empty()) {
            logs.push_back(std::make_unique<AccessLog>(i));
            workers.back()->set_observer(logs.back().get());
        }
    }
    for (const int fd : unix_sockets) close(fd);
    std::unique_ptr<LogWriter> log_writer;
    if (!logs.empty()) {
        std::vector<AccessLog*> all;
        for (const auto& log : logs) all.push_back(log.get());
        log_writer = LogWriter::start(options.access_log, std::move(all), error);
        if (log_writer == nullptr) {
            complain("%s", error.c_str());
            return kExitEnvironment;
        }
    }
    std::vector<pthread_t> threads;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, kWorkerStackSize);
    for (unsigned i = 0; i < options.workers; ++i) {
        cpu_set_t cpus;
        CPU_ZERO(&cpus);
        CPU_SET(i % static_cast<unsigned>(std::max(sysconf(_SC_NPROCESSORS_ONLN), 1L)), &cpus);
        if (options.pin) pthread_attr_setaffinity_np(&attributes, sizeof cpus, &cpus);
        pthread_t thread{};
        const int fault = pthread_create(&thread, &attributes, run_worker, workers[i].get());
        if (fault != 0) {
            complain("cannot start a thread: %s", std::strerror(fault));
            ours.remove();
            std::_Exit(kExitEnvironment);
        }
        threads.push_back(thread);
    }
    pthread_attr_destroy(&attributes);
    for (const Place& place : places) {
        const bool v6 = place.address.find(':') != std::string::npos;
        std::printf("listening on %s%s%s:%d%s\n", v6 ? "[" : "", place.address.c_str(),
                    v6 ? "]" : "", place.port, place.tls ? " (tls)" : "");
    }
    for (const std::string& path : options.unix_paths) {
        std::printf("listening on unix:%s\n", path.c_str());
    }
    std::fflush(stdout);

    bool stopping = false;
    std::atomic<bool> joined = false;
    std::thread joiner;
    while (true) {
        int signal = 0;
        sigwait(&signals, &signal);
        if (signal == SIGUSR1) {
            if (joined) break;  // sent by the joiner below: all workers have left
            print_counters(workers, logs);
        } else if (signal == SIGHUP) {
            if (log_writer != nullptr) log_writer->reopen();
            if (context == nullptr || stopping) continue;
            // A new pair that cannot be used leaves the old one in service.
            std::shared_ptr<const TlsContext> fresh = TlsContext::load(options.tls, error);
            if (fresh == nullptr) {
                complain("certificates are kept as they are: %s", error.c_str());
                continue;
            }
            context = fresh;
            for (const auto& worker : workers) worker->request_tls(fresh);
            std::printf("certificates read again\n");
            std::fflush(stdout);
        } else {
            for (const auto& worker : workers) worker->request_stop(stopping);
            if (stopping) continue;
            stopping = true;
            joiner = std::thread([&threads, &joined, main = pthread_self()] {
                for (const pthread_t thread : threads) pthread_join(thread, nullptr);
                joined = true;
                pthread_kill(main, SIGUSR1);
            });
        }
    }
    joiner.join();
    ours.remove();
    log_writer = nullptr;  // the last lines first
    if (options.stats) print_counters(workers, logs);
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
    for (const std::string& text : options.addresses) {
        Address address;
        if (!parse_address(text, options.port, address)) return kExitUsage;
    }
    return serve(options);
}
