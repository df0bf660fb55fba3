// The command itself: exit codes, one-line complaints, signals.
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <string>
#include <vector>

#include "check.hpp"
#include "laws.hpp"

namespace httpmark {
namespace {

struct Child {
    pid_t pid = -1;
    int out = -1;

    explicit Child(std::vector<std::string> arguments, const char* simd = nullptr,
                   rlim_t descriptors = 0) {
        int pipe_ends[2];
        CHECK(pipe(pipe_ends) == 0);
        pid = fork();
        CHECK(pid >= 0);
        if (pid == 0) {
            dup2(pipe_ends[1], 1);
            dup2(pipe_ends[1], 2);
            close(pipe_ends[0]);
            close(pipe_ends[1]);
            if (descriptors != 0) {
                const rlimit limit{descriptors, descriptors};
                setrlimit(RLIMIT_NOFILE, &limit);
            }
            if (simd != nullptr) setenv("HTTPMARK_SIMD", simd, 1);
            std::vector<char*> argv{const_cast<char*>(HTTPMARK_SERVER_BINARY)};
            for (std::string& argument : arguments) argv.push_back(argument.data());
            argv.push_back(nullptr);
            execv(HTTPMARK_SERVER_BINARY, argv.data());
            _exit(127);
        }
        close(pipe_ends[1]);
        out = pipe_ends[0];
    }
    ~Child() {
        if (pid > 0) {
            kill(pid, SIGKILL);
            waitpid(pid, nullptr, 0);
        }
        close(out);
    }
    std::string line() {
        std::string text;
        char c = 0;
        while (read(out, &c, 1) == 1 && c != '\n') text += c;
        return text;
    }
    std::string rest() {
        std::string text;
        char c = 0;
        while (read(out, &c, 1) == 1) text += c;
        return text;
    }
    int wait() {
        int status = 0;
        CHECK(waitpid(pid, &status, 0) == pid);
        pid = -1;
        return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    }
    // From "listening on 127.0.0.1:PORT".
    int port() {
        const std::string text = line();
        LAW(text.starts_with("listening on "), << text);
        return std::atoi(text.substr(text.rfind(':') + 1).c_str());
    }
};

std::string ask(int port, const std::string& request) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    std::string out;
    if (connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0) {
        (void)!write(fd, request.data(), request.size());
        char buffer[4096];
        ssize_t got = 0;
        while ((got = read(fd, buffer, sizeof buffer)) > 0)
            out.append(buffer, static_cast<std::size_t>(got));
    }
    close(fd);
    return out;
}
const std::string kLastGet = "GET /hello HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n";

TEST(Main, a_wrong_word_is_one_line_and_exit_2) {
    for (const std::vector<std::string>& arguments :
         std::vector<std::vector<std::string>>{{"--nonsense"},
                                               {"nonsense"},
                                               {"--port"},
                                               {"--port", "x"},
                                               {"--port", "65536"},
                                               {"--port", "-1"},
                                               {"--workers", "0"},
                                               {"--address", "example"},
                                               {"--strictness", "lax"},
                                               {"--engine", "none"},
                                               {"--tls-port", "1"},
                                               {"--tls-cert", "a"},
                                               {"--tls-key", "a"},
                                               {"--tls-min", "1.1"},
                                               {"--head-max", "1"},
                                               {"--body-max", "99999999999999999999"},
                                               {"--idle-timeout-s", "1.5"},
                                               {"--port", "0", "--tls-port", "0", "--tls-cert",
                                                "/nowhere", "--tls-key", "/nowhere"}}) {
        Child child(arguments);
        const std::string text = child.rest();
        LAW(child.wait() == 2, << arguments.front());
        LAW(text.starts_with("httpmark-server: ") &&
                std::count(text.begin(), text.end(), '\n') == 1,
            << text);
    }
    Child child({"--port", "0"}, "mmx");
    LAW(child.rest().find("HTTPMARK_SIMD=mmx") != std::string::npos && child.wait() == 2);
}

TEST(Main, help_version_and_limits) {
    Child help({"--help"});
    LAW(help.rest().find("--strictness") != std::string::npos && help.wait() == 0);
    Child version({"--version"});
    LAW(version.rest().starts_with("httpmark-server ") && version.wait() == 0);
    Child limits({"--print-limits", "--target-max", "9000", "--request-timeout-s=3"});
    const std::string text = limits.rest();
    LAW(limits.wait() == 0);
    LAW(text.find("target-max               9000\n") != std::string::npos);
    LAW(text.find("head-timeout-ms          3000\n") != std::string::npos);
    LAW(text.find("body-timeout-ms          3000\n") != std::string::npos);
    LAW(std::count(text.begin(), text.end(), '\n') >= 28);
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

TEST(Main, it_serves_with_every_kernel_and_leaves_on_a_signal) {
    for (const char* simd : {"scalar", "sse42", "avx2", "avx512"}) {
        for (const int signal : {SIGTERM, SIGINT}) {
            Child child({"--port", "0", "--workers", "2", "--stats"}, simd);
            const std::string first = child.line();
            if (!first.starts_with("listening on ")) continue;  // not on this machine
            const int port = std::atoi(first.substr(first.rfind(':') + 1).c_str());
            LAW(ask(port, kLastGet).starts_with("HTTP/1.1 200 OK\r\n"));
            LAW(ask(port, "GET /%zz HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 400 Bad Request\r\n"));
            kill(child.pid, SIGUSR1);
            LAW(child.line().find("requests 1 ") != std::string::npos);
            kill(child.pid, signal);
            LAW(child.rest().find("accepted 2 closed 2 requests 1 refused 1") != std::string::npos);
            LAW(child.wait() == 0);
        }
    }
}

TEST(Main, without_descriptors_the_surplus_is_closed_and_service_goes_on) {
    for (const char* engine : {"epoll", "uring"}) {
        Child child({"--port", "0", "--workers", "1", "--engine", engine}, nullptr, 24);
        const std::string first = child.line();
        if (!first.starts_with("listening on ")) continue;  // this build or kernel has no io_uring
        const int port = std::atoi(first.substr(first.rfind(':') + 1).c_str());
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_port = htons(static_cast<std::uint16_t>(port));
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        std::vector<int> fds;
        for (unsigned i = 0; i < 60; ++i) {
            fds.push_back(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
            CHECK(connect(fds.back(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
        }
        usleep(200000);
        // The surplus is closed at once, the others are kept.
        unsigned closed = 0;
        for (const int fd : fds) {
            char c = 0;
            if (recv(fd, &c, 1, MSG_DONTWAIT) >= 0 || errno != EAGAIN) ++closed;
        }
        for (const int fd : fds) close(fd);
        usleep(200000);
        LAW(ask(port, kLastGet).starts_with("HTTP/1.1 200 OK\r\n"), << engine);
        LAW(closed > 0 && closed < 60, << engine << closed);
        kill(child.pid, SIGTERM);
        LAW(child.wait() == 0);
    }
}

TEST(Main, ipv6_and_a_unix_socket) {
    const std::string path = "/tmp/httpmark-main-test-" + std::to_string(getpid());
    Child child({"--address", "::1", "--port", "0", "--unix", path, "--workers", "1"});
    const std::string first = child.line();
    if (first.find("cannot listen") != std::string::npos) GTEST_SKIP() << first;
    LAW(first.starts_with("listening on [::1]:"), << first);
    LAW(child.line() == "listening on unix:" + path);
    LAW(access(path.c_str(), F_OK) == 0);
    kill(child.pid, SIGTERM);
    LAW(child.wait() == 0);
    LAW(access(path.c_str(), F_OK) != 0);
}

}  // namespace
}  // namespace httpmark
