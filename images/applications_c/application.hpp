// What images/README.md asks of a server, for all servers in C and C++: the words of the command
// line, the answer to a request, and what their threads and processes have in common. It repairs
// nothing and refuses nothing: what the mirror tells is what the server gave to its handler.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace application {

constexpr int SLOW_MS = 500;
constexpr int BACKLOG = 4096;

using Field = std::pair<std::string, std::string>;
using Fields = std::vector<Field>;

// What a server understood of a request. What it does not show to a handler stays empty here, and
// is null in the mirror.
struct Request {
    std::string method;
    std::string path;
    std::string query;
    std::string content;
    std::optional<std::string> target;
    std::optional<std::string> authority;
    std::optional<std::string> version;
    std::optional<Fields> fields;
    std::optional<Fields> trailers;
};

struct Answer {
    int status = 200;
    std::string content = "Hello World!";
    Fields fields = {{"Content-Type", "text/plain"}};
    bool is_slow = false;  // to be sent after SLOW_MS
};

// Path and query of a target, for servers that do not part them.
inline void split(std::string_view target, Request& request) {
    const auto mark = target.find('?');
    request.path = target.substr(0, mark);
    if (mark != std::string_view::npos) request.query = target.substr(mark + 1);
}

inline std::string base64(std::string_view bytes) {
    constexpr char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    std::string text;
    for (std::size_t at = 0; at < bytes.size(); at += 3) {
        const auto piece = bytes.substr(at, 3);
        unsigned bits = 0;
        for (std::size_t i = 0; i < 3; ++i) {
            bits = bits << 8 | (i < piece.size() ? static_cast<unsigned char>(piece[i]) : 0U);
        }
        for (std::size_t i = 0; i < 4; ++i) {
            text += i <= piece.size() ? digits[bits >> (18 - 6 * i) & 63] : '=';
        }
    }
    return text;
}

inline std::string json_text(std::string_view text) {
    std::string json = "\"";
    for (const char one : text) {
        if (one == '"' || one == '\\') {
            (json += '\\') += one;
        } else if (static_cast<unsigned char>(one) < 0x20) {
            char escaped[8];
            std::snprintf(escaped, sizeof escaped, "\\u%04x", static_cast<unsigned char>(one));
            json += escaped;
        } else {
            json += one;
        }
    }
    return json + '"';
}

inline std::string json_octets(const std::optional<std::string>& value) {
    return value ? '"' + base64(*value) + '"' : "null";
}

inline std::string json_fields(const std::optional<Fields>& fields) {
    if (!fields) return "null";
    std::string json;
    for (const auto& [name, value] : *fields) {
        json += json.empty() ? "[" : ",[";
        json += json_octets(name) + ',' + json_octets(value) + ']';
    }
    return '[' + json + ']';
}

inline std::string mirrored(const Request& request) {
    return "{\"method\":" + json_octets(request.method) +
           ",\"target\":" + json_octets(request.target) +
           ",\"authority\":" + json_octets(request.authority) +
           ",\"version\":" + json_octets(request.version) +
           ",\"content\":" + json_octets(request.content) +
           ",\"fields\":" + json_fields(request.fields) +
           ",\"trailers\":" + json_fields(request.trailers) + ",\"request_number\":null}";
}

inline int hex(char digit) {
    if (digit >= '0' && digit <= '9') return digit - '0';
    const int letter = (digit | 0x20) - 'a';
    return letter >= 0 && letter < 6 ? letter + 10 : -1;
}

// A name or value of a query: + is a space, and %41 is A.
inline std::string decoded(std::string_view text) {
    std::string plain;
    for (std::size_t at = 0; at < text.size(); ++at) {
        const bool is_escape = text[at] == '%' && at + 2 < text.size() && hex(text[at + 1]) >= 0 &&
                               hex(text[at + 2]) >= 0;
        if (is_escape) {
            plain += static_cast<char>(hex(text[at + 1]) * 16 + hex(text[at + 2]));
            at += 2;
        } else {
            plain += text[at] == '+' ? ' ' : text[at];
        }
    }
    return plain;
}

inline std::string echoed(std::string_view query) {
    std::map<std::string, std::string> parameters;
    while (!query.empty()) {
        const auto one = query.substr(0, query.find('&'));
        query.remove_prefix(one.size() == query.size() ? one.size() : one.size() + 1);
        const auto sign = one.find('=');
        const auto value = sign == std::string_view::npos ? "" : one.substr(sign + 1);
        if (!one.empty()) parameters[decoded(one.substr(0, sign))] = decoded(value);
    }
    std::string json;
    for (const auto& [name, value] : parameters) {
        json += json.empty() ? "" : ",";
        json += json_text(name) + ':' + json_text(value);
    }
    return '{' + json + '}';
}

inline Answer answer(const Request& request) {
    const auto& path = request.path;
    const Field plain = {"Content-Type", "text/plain"};
    const Field json = {"Content-Type", "application/json"};
    if (path == "/body") return {.content = request.content};
    if (path == "/echo") return {.content = echoed(request.query), .fields = {json}};
    if (path == "/mirror") return {.content = mirrored(request), .fields = {json}};
    if (path == "/slow") return {.is_slow = true};
    if (path == "/204") return {.status = 204, .content = "", .fields = {}};
    if (path == "/304") return {.status = 304, .content = "", .fields = {{"ETag", "\"httpmark\""}}};
    if (path == "/redirect") {
        return {.status = 302, .content = "", .fields = {{"Location", "/hello"}}};
    }
    if (path == "/big") return {.content = std::string(1 << 20, 'a')};
    if (path == "/404") return {.status = 404, .content = "Not Found"};
    if (path == "/get-only" && request.method != "GET" && request.method != "HEAD") {
        return {.status = 405,
                .content = "Method Not Allowed",
                .fields = {plain, {"Allow", "GET, HEAD"}}};
    }
    return {};
}

struct Options {
    std::string address = "127.0.0.1";
    int port = 8080;
    int workers = 1;
    int tls_port = 0;  // 0: no TLS
    std::string tls_cert;
    std::string tls_key;
    int timeout_s = 0;  // 0: what the server itself has
};

[[noreturn]] inline void fail(const std::string& complaint) {
    std::fprintf(stderr, "server: %s\n", complaint.c_str());
    std::exit(1);
}

// The words of the command line; --version prints the library's version and ends.
inline Options options(int argc, char** argv, const std::string& version) {
    Options given;
    for (int at = 1; at < argc; at += 2) {
        const std::string word = argv[at];
        if (word == "--version") {
            std::printf("%s\n", version.c_str());
            std::exit(0);
        }
        if (at + 1 == argc) fail(word + " needs a value");
        const std::string value = argv[at + 1];
        const std::map<std::string, std::string*> texts = {{"--address", &given.address},
                                                           {"--tls-cert", &given.tls_cert},
                                                           {"--tls-key", &given.tls_key}};
        const std::map<std::string, int*> numbers = {{"--port", &given.port},
                                                     {"--workers", &given.workers},
                                                     {"--tls-port", &given.tls_port},
                                                     {"--timeout-s", &given.timeout_s}};
        if (const auto text = texts.find(word); text != texts.end()) {
            *text->second = value;
        } else if (const auto number = numbers.find(word); number != numbers.end()) {
            *number->second = std::atoi(value.c_str());
        } else {
            fail("unknown option " + word);
        }
    }
    return given;
}

inline std::string file(const std::string& path) {
    std::ifstream stream(path, std::ios::binary);
    if (!stream) fail("cannot read " + path);
    return {std::istreambuf_iterator<char>(stream), {}};
}

// A listener of its own for each worker: the kernel spreads connections over them.
inline int listener(const std::string& address, int port) {
    const bool is_six = address.find(':') != std::string::npos;
    sockaddr_in6 six{};
    sockaddr_in four{};
    six.sin6_family = AF_INET6;
    four.sin_family = AF_INET;
    six.sin6_port = four.sin_port = htons(static_cast<std::uint16_t>(port));
    const bool is_address = is_six ? inet_pton(AF_INET6, address.c_str(), &six.sin6_addr) == 1
                                   : inet_pton(AF_INET, address.c_str(), &four.sin_addr) == 1;
    if (!is_address) fail("no address: " + address);
    const auto* to =
        is_six ? reinterpret_cast<sockaddr*>(&six) : reinterpret_cast<sockaddr*>(&four);
    const socklen_t size = is_six ? sizeof six : sizeof four;
    const int family = is_six ? AF_INET6 : AF_INET;
    const int fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    const int on = 1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof on);
    if (fd < 0 || bind(fd, to, size) != 0 || listen(fd, BACKLOG) != 0) {
        fail("cannot listen on " + address + " port " + std::to_string(port) + ": " +
             std::strerror(errno));
    }
    return fd;
}

// Said by each process: as the first one of a container it would not end without a handler.
inline void end_at_sigterm() {
    signal(SIGTERM, [](int) { _exit(0); });
    signal(SIGPIPE, SIG_IGN);
}

// For servers whose workers are processes: returns in each worker. The first process waits, and
// ends the workers where it is told to end, or one of them has ended.
inline void fork_workers(int workers) {
    end_at_sigterm();
    if (workers < 2) return;
    sigset_t awaited;
    sigset_t before;
    sigemptyset(&awaited);
    sigaddset(&awaited, SIGTERM);
    sigaddset(&awaited, SIGCHLD);
    sigprocmask(SIG_BLOCK, &awaited, &before);
    std::vector<pid_t> pids;
    for (int i = 0; i < workers; ++i) {
        const pid_t pid = fork();
        if (pid == 0) {
            sigprocmask(SIG_SETMASK, &before, nullptr);
            return;
        }
        pids.push_back(pid);
    }
    int seen = 0;
    sigwait(&awaited, &seen);
    for (const pid_t pid : pids) kill(pid, SIGTERM);
    for (const pid_t pid : pids) waitpid(pid, nullptr, 0);
    std::exit(seen == SIGTERM ? 0 : 1);
}

}  // namespace application
