// The running server: where it listens, its log, its signals.
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "check.hpp"
#include "command/certificate_pair.hpp"
#include "command/child.hpp"
#include "laws.hpp"
#include "needs.hpp"

namespace httpmark {
namespace {

TEST(Main, metrics_and_an_access_log) {
    const std::string path = testing::TempDir() + "httpmark-access-" + std::to_string(getpid());
    const auto text_of = [](const std::string& name) {
        std::ifstream file(name);
        return std::string(std::istreambuf_iterator<char>(file), {});
    };
    const auto text_with = [&](const std::string& name, const char* wanted) {
        for (unsigned i = 0; i < 300 && text_of(name).find(wanted) == std::string::npos; ++i) {
            usleep(10000);
        }
        return text_of(name);
    };
    for (const char* engine : {"epoll", "uring", "uring-direct"}) {
        Child child({"--port", "0", "--workers", "2", "--metrics", "--access-log", path, "--stats",
                     "--engine", engine});
        const std::string first = child.line();
        if (lacks_uring(engine, first)) continue;
        const int port = Child::port_of(first);
        if (port == 0) continue;
        LAW(status_of(ask(port, kLastGet)) == 200);
        LAW(status_of(ask(port, request_of("POST /body?x", "Content-Length: 3\r\n", "abc"))) ==
            200);
        LAW(status_of(ask(port, "GET /a%zz HTTP/1.1\r\n")) == 400);
        const std::string metrics = ask(port, request_of("GET /metrics"));
        LAW(metrics.find("\nhttpmark_errors_total{reason=\"target-percent\"} 1\n") !=
                std::string::npos,
            << metrics);
        LAW(metrics.find("\nhttpmark_requests_total{worker=\"1\"} ") != std::string::npos);
        LAW(status_of(ask(port, request_of("POST /metrics"))) == 405);
        const std::string log = text_with(path, "POST /metrics");
        const std::string peer = std::string(engine) == "uring-direct" ? " - " : " 127.0.0.1:";
        LAW(log.find(peer) != std::string::npos, << log);
        LAW(log.find("\"GET /hello HTTP/1.1\" 200 12 -\n") != std::string::npos, << log);
        LAW(log.find("\"POST /body?x HTTP/1.1\" 200 3 -\n") != std::string::npos, << log);
        LAW(log.find("\"-\" 400 15 target-percent@7\n") != std::string::npos, << log);
        LAW(log.find("\"POST /metrics HTTP/1.1\" 405 19 method-not-allowed\n") !=
            std::string::npos);
        CHECK(rename(path.c_str(), (path + ".1").c_str()) == 0);
        kill(child.pid, SIGHUP);
        for (unsigned i = 0; i < 300 && access(path.c_str(), F_OK) != 0; ++i) usleep(10000);
        LAW(status_of(ask(port, request_of("GET /after"))) == 200);
        kill(child.pid, SIGTERM);
        const std::string end = child.rest();
        LAW(end.find("accepted 6 closed 6") != std::string::npos &&
                end.find("log_lines_lost 0\n") != std::string::npos &&
                end.find("error target-percent 1\n") != std::string::npos,
            << end);
        LAW(child.wait() == 0);
        LAW(text_of(path).find("GET /after ") != std::string::npos);
        unlink(path.c_str());
        unlink((path + ".1").c_str());
    }
    // Nobody reads it: it would be waited for, deaf to SIGTERM.
    CHECK(mkfifo(path.c_str(), 0600) == 0);
    Child fifo({"--port", "0", "--access-log", path});
    LAW(fifo.complaint().find(path) != std::string::npos && fifo.wait() == 3);
    unlink(path.c_str());
    Child bad({"--port", "0", "--access-log", "/nowhere/log"});
    LAW(bad.rest().find("/nowhere/log") != std::string::npos && bad.wait() == 3);
}

TEST(Main, connections_are_steered_to_the_worker_of_their_cpu) {
    cpu_set_t before;
    CHECK(sched_getaffinity(0, sizeof before, &before) == 0);
    for (unsigned cpu = 0; cpu < 2; ++cpu) {
        if (!CPU_ISSET(cpu, &before)) GTEST_SKIP() << "needs CPUs 0 and 1";
    }
    const std::string path = testing::TempDir() + "httpmark-steer-" + std::to_string(getpid());
    Child child({"--port", "0", "--workers", "2", "--steer", "--pin", "--access-log", path});
    const int port = child.port();
    unsigned total = 0;
    for (unsigned cpu = 0; cpu < 2; ++cpu) {
        cpu_set_t one;
        CPU_ZERO(&one);
        CPU_SET(cpu, &one);
        CHECK(sched_setaffinity(0, sizeof one, &one) == 0);
        for (unsigned i = 0; i < 20; ++i) {
            total += status_of(ask(port, request_of("GET /cpu" + std::to_string(cpu)))) == 200;
        }
    }
    CHECK(sched_setaffinity(0, sizeof before, &before) == 0);
    LAW(total == 40);
    kill(child.pid, SIGTERM);
    LAW(child.wait() == 0);
    std::ifstream file(path);
    std::string line;
    unsigned lines = 0;
    while (std::getline(file, line)) {
        ++lines;
        const char worker = line[line.find(' ') + 1];
        LAW(line.find(std::string("/cpu") + worker) != std::string::npos, << line);
    }
    LAW(lines == 40);
    unlink(path.c_str());
}

TEST(Main, a_port_that_is_taken_is_exit_3) {
    Child first({"--port", "0", "--workers", "2"});
    const int port = first.port();
    Child second({"--port", std::to_string(port), "--workers", "2"});
    const std::string text = second.rest();
    LAW(second.wait() == 3);
    LAW(text.find("Address already in use") != std::string::npos, << text);
    LAW(std::count(text.begin(), text.end(), '\n') == 1);
}

// A port that was free a moment ago.
std::string free_port() {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(bind(fd, reinterpret_cast<sockaddr*>(&address), size) == 0 &&
          getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) == 0);
    close(fd);
    return std::to_string(ntohs(address.sin_port));
}

TEST(Main, one_place_named_twice_is_exit_2) {
    const CertificatePair pair;
    const std::string port = free_port();
    std::vector<std::string> both{"--tls-port", port};
    for (const std::string& word : pair.words()) both.push_back(word);
    for (std::vector<std::string> words : {both,
                                           {"--address", "127.0.0.1", "--address", "127.0.0.1"},
                                           {"--address", "127.0.0.1", "--address", "0.0.0.0"},
                                           {"--address", "::1", "--address", "0:0:0::1"},
                                           {"--address", "::", "--address", "::1"}}) {
        words.insert(words.end(), {"--port", port, "--workers", "1"});
        Child child(words);
        const std::string text = child.complaint();
        if (text.find("cannot listen on ::") != std::string::npos) continue;  // no IPv6 here
        LAW(text.find(" overlap: ") != std::string::npos, << words[1] << ": " << text);
        LAW(child.rest().empty() && child.wait() == 2, << words[1]);
    }
    std::vector<std::string> apart{
        "--address", "0.0.0.0", "--address", "::", "--tls-port", "0", "--port", "0"};
    for (const std::string& word : pair.words()) apart.push_back(word);
    Child child(apart);
    const std::string text = child.line();
    LAW(text.starts_with("listening on 0.0.0.0:") ||
            text.find("cannot listen on ::") != std::string::npos,
        << text);
}

TEST(Main, it_serves_with_every_kernel_and_leaves_on_a_signal) {
    for (const char* simd : {"scalar", "sse42", "avx2", "avx512"}) {
        for (const int signal : {SIGTERM, SIGINT}) {
            Child child({"--port", "0", "--workers", "2", "--stats"}, simd);
            const std::string first = child.line();
            const std::string other =
                "HTTPMARK_SIMD=" + std::string(simd) + " is not a kernel that this machine can run";
            if (simd != std::string("scalar") && first.ends_with(other)) continue;
            const int port = Child::port_of(first);
            if (port == 0) continue;
            LAW(ask(port, kLastGet).starts_with("HTTP/1.1 200 OK\r\n"));
            LAW(ask(port, "GET /%zz HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 400 Bad Request\r\n"));
            kill(child.pid, SIGUSR1);
            LAW(child.line().find("requests 1 ") != std::string::npos);
            LAW(child.line() == "error target-percent 1");
            kill(child.pid, signal);
            const std::string end = child.rest();
            LAW(end.find("accepted 2 closed 2 requests 1 refused 1") != std::string::npos);
            LAW(end.find("\nerror target-percent 1\n") != std::string::npos);
            LAW(child.wait() == 0);
        }
    }
}

TEST(Main, a_drain_prints_counters_and_a_second_signal_ends_it) {
    Child child(
        {"--port", "0", "--workers", "1", "--head-timeout-ms", "0", "--drain-timeout-ms", "20000"});
    const int port = child.port();
    const int open = connect_to(port);
    CHECK(open >= 0 && write(open, "GET /", 5) == 5);
    const auto accepted = [&] {
        kill(child.pid, SIGUSR1);
        return child.line().starts_with("accepted 1 ");
    };
    for (unsigned i = 0; i < 1000 && !accepted(); ++i) usleep(10000);
    kill(child.pid, SIGTERM);
    for (unsigned i = 0; i < 1000; ++i) {
        const int other = connect_to(port);
        if (other < 0) break;  // the drain has begun
        close(other);
        usleep(10000);
    }
    kill(child.pid, SIGUSR1);
    const std::string counters = child.line();
    LAW(counters.starts_with("accepted "), << counters);
    timespec before{};
    timespec after{};
    clock_gettime(CLOCK_MONOTONIC, &before);
    kill(child.pid, SIGTERM);
    LAW(child.wait() == 0);
    clock_gettime(CLOCK_MONOTONIC, &after);
    LAW(after.tv_sec - before.tv_sec < 10, << after.tv_sec - before.tv_sec);
    close(open);
}

TEST(Main, without_time_to_drain_open_requests_are_cut_off) {
    Child child(
        {"--port", "0", "--workers", "1", "--head-timeout-ms", "0", "--drain-timeout-ms", "0"});
    const int open = connect_to(child.port());
    CHECK(open >= 0 && write(open, "GET /", 5) == 5);
    kill(child.pid, SIGTERM);
    LAW(child.wait() == 0);
    char octet = 0;
    LAW(read(open, &octet, 1) <= 0);
    close(open);
}

// What the server has counted, of the line that SIGUSR1 brings.
unsigned counted(const std::string& counters, const std::string& name) {
    const std::size_t at = counters.find(name + ' ');
    CHECK(at != std::string::npos);
    return static_cast<unsigned>(std::atoi(counters.c_str() + at + name.size() + 1));
}

bool has_ended(int fd) {
    char c = 0;
    return recv(fd, &c, 1, MSG_DONTWAIT) >= 0 || errno != EAGAIN;
}

// A server with few descriptors, of each engine that is here, and sixty clients that have said so
// much. Afterwards it ends as it should.
template <typename Test>
void with_few_descriptors(const std::string& said, const Test& test) {
    for (const char* engine : {"epoll", "uring"}) {
        Child child({"--port", "0", "--workers", "1", "--engine", engine}, nullptr, 24);
        const std::string first = child.line();
        if (lacks_uring(engine, first)) continue;
        const int port = Child::port_of(first);
        if (port == 0) continue;
        std::vector<int> fds;
        for (unsigned i = 0; i < 60; ++i) {
            fds.push_back(connect_to(port));
            CHECK(fds.back() >= 0);
            // It may have been closed already.
            (void)!send(fds.back(), said.data(), said.size(), MSG_NOSIGNAL);
        }
        test(child, port, fds);
        kill(child.pid, SIGTERM);
        LAW(child.wait() == 0, << engine);
    }
}

TEST(Main, without_descriptors_idle_connections_make_room) {
    with_few_descriptors("", [](Child&, int port, const std::vector<int>& fds) {
        for (unsigned i = 0; i < 20; ++i) {
            LAW(ask(port, kLastGet).starts_with("HTTP/1.1 200 OK\r\n"), << i);
        }
        // Those that came last are still held.
        const auto ended = std::count_if(fds.begin(), fds.end(), has_ended);
        LAW(ended > 30 && ended < 60, << ended);
        for (const int fd : fds) close(fd);
    });
}

// Octets that a server has put out for a client that asks on and on, and reads nothing.
unsigned put_out_unread(Child& child, int port) {
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const int little = 4096;
    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &little, sizeof little);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    CHECK(connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
    const std::string request = "GET /hello HTTP/1.1\r\nHost: h\r\n\r\n";
    unsigned sent = 0;
    for (unsigned i = 0, same = 0; i < 1000 && same < 10; ++i) {
        while (send(fd, request.data(), request.size(), MSG_DONTWAIT | MSG_NOSIGNAL) > 0) {
        }
        usleep(20000);
        kill(child.pid, SIGUSR1);
        const unsigned now = counted(child.line(), "bytes_out");
        same = now == sent ? same + 1 : 0;
        sent = now;
    }
    close(fd);
    return sent;
}

TEST(Main, the_kernel_holds_little_for_who_does_not_read) {
    constexpr unsigned kAtATime = 256 * 1024;  // of what one call hands to the kernel, and to spare
    for (const char* engine : {"epoll", "uring"}) {
        unsigned without_limit = 0;
        for (const unsigned most : {0U, 262144U, 65536U}) {
            Child child({"--port", "0", "--workers", "1", "--engine", engine, "--kernel-unsent-max",
                         std::to_string(most)});
            const std::string first = child.line();
            if (lacks_uring(engine, first)) break;
            const unsigned put_out = put_out_unread(child, Child::port_of(first));
            if (most == 0) {
                without_limit = put_out;
            } else {
                LAW(put_out > 0 && put_out < most + kAtATime && put_out < without_limit / 2,
                    << engine << ": " << put_out << " of " << most << ", " << without_limit);
            }
            kill(child.pid, SIGTERM);
            LAW(child.wait() == 0);
        }
    }
}

TEST(Main, without_descriptors_the_surplus_is_closed_and_service_goes_on) {
    with_few_descriptors("GET /", [](Child& child, int port, const std::vector<int>& fds) {
        // The surplus is closed at once, the others are kept.
        unsigned closed = 0;
        unsigned kept = 0;
        for (unsigned i = 0; i < 1000 && closed + kept < 60; ++i) {
            usleep(10000);
            closed = static_cast<unsigned>(std::count_if(fds.begin(), fds.end(), has_ended));
            kill(child.pid, SIGUSR1);
            const std::string counters = child.line();
            kept = counted(counters, "accepted") - counted(counters, "closed");
        }
        LAW(closed > 0 && kept > 0 && closed + kept == 60, << closed << "+" << kept);
        for (const int fd : fds) close(fd);
        bool served = false;
        for (unsigned i = 0; i < 1000 && !served; ++i) {
            served = ask(port, kLastGet).starts_with("HTTP/1.1 200 OK\r\n");
            if (!served) usleep(10000);
        }
        LAW(served);
    });
}

// Of all threads, in clock ticks.
unsigned long cpu_of(pid_t pid) {
    std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
    std::string text(std::istreambuf_iterator<char>(file), {});
    unsigned long user = 0;
    unsigned long system = 0;
    CHECK(std::sscanf(text.c_str() + text.rfind(')') + 1,
                      " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user, &system) == 2);
    return user + system;
}

// Each worker has a reserve, and another one may take it at the moment it is given up.
TEST(Main, without_descriptors_no_worker_spins) {
    const auto second = static_cast<unsigned long>(sysconf(_SC_CLK_TCK));
    for (unsigned i = 0; i < 6; ++i) {
        const char* const engine = i % 2 == 0 ? "epoll" : "uring";
        Child child({"--port", "0", "--workers", "2", "--engine", engine}, nullptr, 50);
        const std::string first = child.line();
        if (lacks_uring(engine, first)) continue;
        const int port = Child::port_of(first);
        std::vector<int> fds;
        for (unsigned k = 0; k < 300; ++k) fds.push_back(connect_to(port));
        usleep(300000);
        const unsigned long before = cpu_of(child.pid);
        usleep(1000000);
        const unsigned long used = cpu_of(child.pid) - before;
        LAW(used < second / 10, << engine << ": " << used << " ticks of " << second);
        for (const int fd : fds) close(fd);
        bool served = false;
        for (unsigned k = 0; k < 1000 && !served; ++k) {
            served = ask(port, kLastGet).starts_with("HTTP/1.1 200 OK\r\n");
            if (!served) usleep(10000);
        }
        LAW(served, << engine);
        kill(child.pid, SIGTERM);
        LAW(child.wait() == 0);
    }
}

TEST(Main, listens_on_several_addresses_and_a_unix_socket) {
    const std::string path = testing::TempDir() + "httpmark-main-" + std::to_string(getpid());
    Child child({"--address", "127.0.0.1", "--address", "::1", "--port", "0", "--unix", path,
                 "--workers", "1"});
    const std::string first = child.line();
    if (first.find("cannot listen on ::1 ") != std::string::npos) GTEST_SKIP() << first;
    LAW(first.starts_with("listening on 127.0.0.1:"), << first);
    const std::string port = first.substr(first.rfind(':') + 1);
    LAW(child.line() == "listening on [::1]:" + port);
    LAW(status_of(ask(std::atoi(port.c_str()), kLastGet)) == 200);
    sockaddr_in6 v6{};
    v6.sin6_family = AF_INET6;
    v6.sin6_port = htons(static_cast<std::uint16_t>(std::atoi(port.c_str())));
    v6.sin6_addr = in6addr_loopback;
    const int six = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(connect(six, reinterpret_cast<sockaddr*>(&v6), sizeof v6) == 0);
    CHECK(write(six, kLastGet.data(), kLastGet.size()) == static_cast<ssize_t>(kLastGet.size()));
    char first_octet = 0;
    LAW(read(six, &first_octet, 1) == 1 && first_octet == 'H');
    close(six);
    LAW(child.line() == "listening on unix:" + path);
    LAW(access(path.c_str(), F_OK) == 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::copy(path.begin(), path.end(), address.sun_path);
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
    CHECK(write(fd, kLastGet.data(), kLastGet.size()) == static_cast<ssize_t>(kLastGet.size()));
    std::string answer;
    char c = 0;
    while (read(fd, &c, 1) == 1) answer += c;
    close(fd);
    LAW(status_of(answer) == 200);
    kill(child.pid, SIGTERM);
    LAW(child.wait() == 0);
    LAW(access(path.c_str(), F_OK) != 0);
}

TEST(Main, a_start_that_fails_leaves_no_unix_socket_behind_and_takes_none_away) {
    const std::string path = testing::TempDir() + "httpmark-main-" + std::to_string(getpid());
    const auto leave = [&](std::vector<std::string> words) {
        words.insert(words.end(), {"--port", "0", "--workers", "1", "--unix", path});
        Child child(words);
        const std::string text = child.rest();
        LAW(child.wait() == 3, << text);
    };
    leave({"--access-log", "/nowhere/log"});
    LAW(access(path.c_str(), F_OK) != 0);
    leave({"--unix", path});
    LAW(access(path.c_str(), F_OK) != 0);
    Child first({"--port", "0", "--workers", "1", "--unix", path});
    first.port();
    leave({});
    LAW(access(path.c_str(), F_OK) == 0);
    kill(first.pid, SIGTERM);
    LAW(first.wait() == 0 && access(path.c_str(), F_OK) != 0);
}

}  // namespace
}  // namespace httpmark
