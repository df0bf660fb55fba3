// A server that is started from code: by the public header alone, with real sockets.
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <httpmark/httpmark.hpp>
#include <iterator>
#include <set>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "client.hpp"
#include "laws.hpp"

namespace httpmark {
namespace {

using Kind = StartError::Kind;

Router::Builder some_routes() {
    Router::Builder routes;
    routes.add(Method::kGet, "/name/{name}", [](const Request& request, ResponseWriter& writer) {
        return writer.answer(200, {}, request.value("name"));
    });
    routes.add(Method::kGet, "/late", [](const Request& request, ResponseWriter& writer) {
        if (request.asked_again) return writer.answer(200, {}, "late");
        writer.defer(200);
        return Reason::kNone;
    });
    return routes;
}

std::unique_ptr<Server> started(const ServerOptions& options) {
    Router::Builder routes = some_routes();
    StartError error;
    auto server = Server::start(routes, options, error);
    LAW(server != nullptr && error.kind == Kind::kNone && error.text.empty(), << error.text);
    return server;
}

StartError refused(const ServerOptions& options) {
    Router::Builder routes = some_routes();
    StartError error;
    LAW(Server::start(routes, options, error) == nullptr && !error.text.empty());
    LAW(error.text.find('\n') == std::string::npos, << error.text);
    return error;
}

TEST(Server, several_run_in_one_process_each_on_its_own_port) {
    const auto one = started({.port = 0, .workers = 1});
    const auto other = started({.addresses = {"127.0.0.1", "127.0.0.2"}, .port = 0, .workers = 2});
    LAW(one->port() > 0 && other->port() > 0 && one->port() != other->port());
    LAW(one->tls_port() == ServerOptions::kNoPort && other->places().size() == 2);
    LAW(other->places()[1].address == "127.0.0.2" && other->places()[1].port == other->port());
    for (const Server* server : {one.get(), other.get()}) {
        const std::string answer = ask(server->port(), request_of("GET /name/x"));
        LAW(status_of(answer) == 200 && answer.ends_with("\r\n\r\nx"), << answer);
    }
}

TEST(Server, every_engine_serves) {
    for (const Engine engine : {Engine::kEpoll, Engine::kUring, Engine::kUringDirect}) {
        Router::Builder routes = some_routes();
        StartError error;
        const auto server =
            Server::start(routes, {.port = 0, .workers = 1, .engine = engine}, error);
        if (server == nullptr) {
            LAW(engine != Engine::kEpoll && !error.text.empty(), << error.text);
            continue;
        }
        LAW(status_of(ask(server->port(), request_of("GET /name/x"))) == 200);
    }
}

std::string ask_unix(const std::string& path, const std::string& request) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof address.sun_path - 1);
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    (void)connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address);
    return ask_on(fd, request);
}

TEST(Server, handlers_are_told_who_asks) {
    Router::Builder routes;
    routes.add(Method::kGet, "/who", [](const Request& request, ResponseWriter& writer) {
        LAW(!request.is_tls() && !request.tls());
        return writer.answer(200, {}, request.peer());
    });
    const std::string path = testing::TempDir() + "httpmark-who-" + std::to_string(getpid());
    StartError error;
    const auto server = Server::start(
        routes, {.addresses = {"127.0.0.1", "::1"}, .port = 0, .unix_paths = {path}, .workers = 1},
        error);
    if (server == nullptr) GTEST_SKIP() << error.text;  // without IPv6
    const int fd = connect_to(server->port());
    sockaddr_in own{};
    socklen_t size = sizeof own;
    LAW(getsockname(fd, reinterpret_cast<sockaddr*>(&own), &size) == 0);
    const std::string request = request_of("GET /who");
    LAW(write(fd, request.data(), request.size()) > 0);
    std::string answer(4096, '\0');
    std::size_t taken = 0;
    for (ssize_t got = 1; got > 0; taken += static_cast<std::size_t>(got)) {
        got = read(fd, answer.data() + taken, answer.size() - taken);
        LAW(got >= 0);
    }
    close(fd);
    answer.resize(taken);
    LAW(answer.ends_with("\r\n\r\n127.0.0.1:" + std::to_string(ntohs(own.sin_port))), << answer);
    LAW(ask_unix(path, request).ends_with("\r\n\r\nunix"));
}

TEST(Server, a_stop_waits_for_answers_and_takes_no_more) {
    const auto server = started({.port = 0, .workers = 2});
    std::string answer;
    std::thread client([&] { answer = ask(server->port(), request_of("GET /late")); });
    const auto requests = [&] {
        std::uint64_t sum = 0;
        for (const Counters* one : server->counters()) sum += one->requests.load();
        return sum;
    };
    for (unsigned i = 0; i < 1000 && requests() == 0; ++i) usleep(1000);
    std::thread stopper([&] {
        server->stop();
        server->stop();
    });
    server->wait();
    LAW(connect_to(server->port()) < 0);
    client.join();
    stopper.join();
    LAW(status_of(answer) == 200 && answer.ends_with("late"), << answer);
    server->wait();  // there is nothing left to wait for
}

TEST(Server, a_stop_at_once_waits_for_no_answer) {
    Router::Builder routes;
    routes.add(Method::kGet, "/never", [](const Request&, ResponseWriter& writer) {
        writer.defer(3600000);
        return Reason::kNone;
    });
    StartError error;
    auto server = Server::start(routes, {.port = 0, .workers = 1}, error);
    const int fd = connect_to(server->port());
    const std::string request = request_of("GET /never");
    LAW(write(fd, request.data(), request.size()) > 0);
    while (server->counters()[0]->requests.load() == 0) usleep(1000);
    server->stop();
    server->stop_at_once();
    server->stop();  // does not take it back
    server->wait();
    close(fd);
    server = nullptr;
}

std::atomic<Server*> signalled = nullptr;

TEST(Server, a_signal_handler_may_stop_it) {
    const auto server = started({.port = 0, .workers = 2});
    signalled = server.get();
    struct sigaction action {};
    action.sa_handler = [](int) { signalled.load()->stop(); };
    struct sigaction before {};
    LAW(sigaction(SIGTERM, &action, &before) == 0);
    // No worker takes the signal, whoever sends it to the process.
    std::thread sender([] { kill(getpid(), SIGTERM); });
    server->wait();
    sender.join();
    sigaction(SIGTERM, &before, nullptr);
    LAW(connect_to(server->port()) < 0);
}

std::set<int> all_descriptors() {
    std::set<int> all;
    DIR* const folder = opendir("/proc/self/fd");
    while (const dirent* const entry = readdir(folder)) all.insert(std::atoi(entry->d_name));
    closedir(folder);
    return all;
}
std::size_t open_descriptors() {
    return all_descriptors().size();
}

TEST(Server, what_cannot_be_served_is_said_and_nothing_is_left_behind) {
    const std::size_t before = open_descriptors();
    LAW(refused({.addresses = {"localhost"}}).text.find("localhost") != std::string::npos);
    LAW(refused({.addresses = {"127.0.0.1", "127.0.0.1"}, .port = 1}).text.find("port 1") !=
        std::string::npos);
    for (const int port : {65536, 70000, -2}) {
        const StartError wrong = refused({.port = port});
        LAW(wrong.kind == Kind::kOptions &&
            wrong.text.find(std::to_string(port)) != wrong.text.npos);
        LAW(refused({.port = 0, .tls_port = port}).kind == Kind::kOptions);
    }
    LAW(refused({.port = ServerOptions::kNoPort}).kind == Kind::kOptions);
    LAW(refused({.addresses = {}, .port = 0}).kind == Kind::kOptions);
    LAW(refused({.port = 0, .stack_size = 1}).kind == Kind::kOptions);
    LAW(refused({.port = 0, .server_name = "a\r\nb"}).kind == Kind::kOptions);
    LAW(refused({.port = 0, .scan_kernel = "abacus"}).kind == Kind::kOptions);
    LAW(refused({.port = 0, .tls_port = 0, .tls = {.pairs = {{"/nowhere/c", "/nowhere/k"}}}})
            .text.find("/nowhere/c") != std::string::npos);
    LAW(refused({.port = 0, .access_log = "/nowhere/log"}).kind == Kind::kMachine);
    LAW(refused({.port = 0, .unix_paths = {"/nowhere/socket"}}).kind == Kind::kMachine);
    Limits none;
    none.target_max = 0;
    LAW(refused({.port = 0, .limits = none}).text.find("target-max") != std::string::npos);
    {
        const auto taken = started({.port = 0, .workers = 1});
        const StartError busy = refused({.port = taken->port(), .workers = 2});
        LAW(busy.kind == Kind::kMachine, << busy.text);
        LAW(busy.text.find("port " + std::to_string(taken->port())) != std::string::npos);
    }
    Router::Builder twice = some_routes();
    twice.add(Method::kGet, "/late", Answer(200, {}, {}));
    StartError error;
    LAW(Server::start(twice, {.port = 0}, error) == nullptr && error.kind == Kind::kOptions);
    LAW(error.text.find("/late") != std::string::npos, << error.text);
    LAW(open_descriptors() == before, << open_descriptors() << " and " << before);
}

unsigned threads_here() {
    const std::filesystem::directory_iterator tasks("/proc/self/task");
    return static_cast<unsigned>(std::distance(tasks, std::filesystem::directory_iterator()));
}

TEST(Server, before_its_first_thread_it_gives_up_what_it_is_told_to) {
    const unsigned before = threads_here();
    const std::string log = testing::TempDir() + "httpmark-before-" + std::to_string(getpid());
    unsigned asked = 0;
    unsigned threads = 0;
    bool allowed = true;
    const ServerOptions options{
        .port = 0, .workers = 2, .access_log = log, .before_threads = [&](std::string& why) {
            ++asked;
            threads = threads_here();
            why = "not today";
            return allowed;
        }};
    {
        const auto server = started(options);
        LAW(asked == 1 && threads == before && threads_here() > before);
        LAW(status_of(ask(server->port(), request_of("GET /name/x"))) == 200);
    }
    allowed = false;
    const StartError error = refused(options);
    LAW(error.kind == Kind::kMachine && error.text == "not today" && asked == 2);
    LAW(threads_here() == before);
    unlink(log.c_str());
}

TEST(Server, one_that_is_gone_has_left_nothing) {
    const std::size_t before = open_descriptors();
    for (unsigned i = 0; i < 3; ++i) {
        const std::string path = testing::TempDir() + "httpmark-server-" + std::to_string(getpid());
        const auto server = started({.port = 0, .unix_paths = {path}, .workers = 2});
        LAW(access(path.c_str(), F_OK) == 0);
        LAW(status_of(ask(server->port(), request_of("GET /name/x"))) == 200);
        server->stop();
        server->wait();
        LAW(access(path.c_str(), F_OK) != 0);
    }
    LAW(open_descriptors() == before, << open_descriptors() << " and " << before);
}

// Programs that the application starts have no business with them.
TEST(Server, no_descriptor_goes_to_other_programs) {
    const std::string path = testing::TempDir() + "httpmark-exec-" + std::to_string(getpid());
    for (const Engine engine : {Engine::kEpoll, Engine::kUring}) {
        Router::Builder routes = some_routes();
        StartError error;
        const std::set<int> before = all_descriptors();
        const auto server = Server::start(
            routes, {.port = 0, .unix_paths = {path}, .workers = 2, .engine = engine}, error);
        if (server == nullptr) {
            LAW(engine != Engine::kEpoll, << error.text);
            continue;
        }
        const int fd = connect_to(server->port());
        const std::string asked = request_of("GET /late");
        LAW(write(fd, asked.data(), asked.size()) > 0);
        while (server->counters()[0]->requests.load() + server->counters()[1]->requests.load() == 0)
            usleep(1000);
        for (const int one : all_descriptors()) {
            const int flags = fcntl(one, F_GETFD);
            if (before.contains(one) || one == fd || flags < 0) continue;
            std::error_code ignored;
            LAW((flags & FD_CLOEXEC) != 0,
                << std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(one), ignored));
        }
        close(fd);
    }
}

struct Seen final : Observer {
    std::atomic<unsigned> answers{0};
    std::atomic<unsigned> faults{0};
    void on_answer(const AnswerEvent&) override { ++answers; }
    void on_error(const ErrorEvent&) override { ++faults; }
};

TEST(Server, observers_are_told_with_and_without_a_log) {
    const std::string log = testing::TempDir() + "httpmark-seen-" + std::to_string(getpid());
    for (const bool logs : {false, true}) {
        Seen seen;
        std::vector<unsigned> workers;
        const auto server = started({.port = 0,
                                     .workers = 2,
                                     .access_log = logs ? log : "",
                                     .observer = [&](unsigned worker) -> Observer* {
                                         workers.push_back(worker);
                                         return &seen;
                                     }});
        LAW((workers == std::vector<unsigned>{0, 1}));
        LAW(status_of(ask(server->port(), request_of("GET /name/x"))) == 200);
        LAW(status_of(ask(server->port(), request_of("GET /nowhere"))) == 404);
        server->stop();
        server->wait();
        LAW(seen.answers == 2 && seen.faults == 1);
    }
    unlink(log.c_str());
}

// The routes stay as the application made them.
TEST(Server, the_same_routes_can_be_served_again) {
    Router::Builder routes = some_routes();
    StartError error;
    for (unsigned i = 0; i < 2; ++i) {
        const auto server =
            Server::start(routes, {.port = 0, .workers = 1, .metrics_path = "/counters"}, error);
        LAW(server != nullptr, << error.text);
        LAW(status_of(ask(server->port(), request_of("GET /counters"))) == 200);
    }
    const auto server = Server::start(routes, {.port = 0, .workers = 1}, error);
    LAW(status_of(ask(server->port(), request_of("GET /counters"))) == 404);
}

TEST(Server, handlers_have_the_stack_that_is_asked_for) {
    Router::Builder routes;
    routes.add(Method::kGet, "/deep", [](const Request&, ResponseWriter& writer) {
        volatile char text[1000000];
        for (std::size_t i = 0; i < sizeof text; i += 1000) text[i] = 'x';
        return writer.answer(200, {}, std::string(1, text[5000]));
    });
    StartError error;
    const auto server =
        Server::start(routes, {.port = 0, .workers = 1, .stack_size = 2000000}, error);
    LAW(server != nullptr, << error.text);
    LAW(ask(server->port(), request_of("GET /deep")).ends_with("\r\n\r\nx"));
}

TEST(Server, metrics_stand_where_they_are_wanted) {
    const auto server = started({.port = 0, .workers = 1, .metrics_path = "/counters"});
    const std::string answer = ask(server->port(), request_of("GET /counters"));
    LAW(status_of(answer) == 200 && answer.find("httpmark_requests_total") != std::string::npos);
}

}  // namespace
}  // namespace httpmark
