// Files over sockets, with every engine.
#include <poll.h>

#include <string>
#include <thread>
#include <vector>

#include "command/child.hpp"
#include "files/tree.hpp"
#include "needs.hpp"

namespace httpmark {
namespace {

std::size_t descriptors_of(pid_t pid) {
    const std::filesystem::path folder = "/proc/" + std::to_string(pid) + "/fd";
    return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(folder),
                                                  std::filesystem::directory_iterator()));
}
// After what the server may still have to do.
bool has_descriptors(pid_t pid, std::size_t count) {
    for (unsigned i = 0; i < 500 && descriptors_of(pid) != count; ++i) usleep(10000);
    return descriptors_of(pid) == count;
}

struct Served : Tree {
    explicit Served(const char* engine)
        : child({"--port", "0", "--workers", "1", "--engine", engine, "--static",
                 folder().string()}) {}
    // Made before the server starts.
    std::filesystem::path folder() {
        directory("www");
        file("www/small", text_of(1000));
        file("www/large", text_of(5000000));
        return at("www");
    }
    Child child;
};

std::string content_of(const std::string& answer) {
    return answer.substr(std::min(answer.find("\r\n\r\n"), answer.size() - 4) + 4);
}

constexpr const char* kEngines[] = {"epoll", "uring", "uring-direct"};

TEST(ServeFiles, small_and_large_ones_and_parts_with_every_engine) {
    for (const char* engine : kEngines) {
        Served served(engine);
        const std::string first = served.child.line();
        if (lacks_uring(engine, first)) continue;
        const int port = Child::port_of(first);
        LAW(content_of(ask(port, request_of("GET /static/small"))) == text_of(1000));
        LAW(content_of(ask(port, request_of("GET /static/large"))) == text_of(5000000), << engine);
        LAW(content_of(ask(port, request_of("GET /static/large", "Range: bytes=1-3000000\r\n"))) ==
            text_of(5000000).substr(1, 3000000));
        LAW(status_of(ask(port, request_of("POST /static/large"))) == 405);
        LAW(status_of(ask(port, request_of("GET /static/../secret.txt"))) == 404);
        // The application's routes are there as before.
        LAW(status_of(ask(port, kLastGet)) == 200);
    }
}

TEST(ServeFiles, pipelined_ones_come_in_order_to_a_slow_reader) {
    for (const char* engine : kEngines) {
        Served served(engine);
        const std::string first = served.child.line();
        if (lacks_uring(engine, first)) continue;
        const int fd = connect_to(Child::port_of(first));
        std::string octets;
        for (unsigned i = 0; i < 4; ++i) {
            octets += "GET /static/large HTTP/1.1\r\nHost: h\r\n\r\n";
            octets += "GET /static/small HTTP/1.1\r\nHost: h\r\n\r\n";
        }
        octets += request_of("GET /static/none");
        LAW(write(fd, octets.data(), octets.size()) == static_cast<ssize_t>(octets.size()));
        usleep(100000);
        std::string got;
        std::vector<char> buffer(200000);
        ssize_t size = 0;
        while ((size = read(fd, buffer.data(), buffer.size())) > 0) {
            got.append(buffer.data(), static_cast<std::size_t>(size));
        }
        close(fd);
        for (unsigned i = 0; i < 8; ++i) {
            const std::string& wanted = text_of(i % 2 == 0 ? 5000000 : 1000);
            const std::size_t begin = got.find("\r\n\r\n") + 4;
            LAW(got.compare(begin, wanted.size(), wanted) == 0, << engine << i);
            got.erase(0, std::min(begin + wanted.size(), got.size()));
        }
        LAW(status_of(got) == 404, << engine);
    }
}

// A reset while a file is sent would end a process that has not asked for no SIGPIPE.
TEST(ServeFiles, clients_that_go_leave_no_descriptor_and_no_harm) {
    for (const char* engine : kEngines) {
        Served served(engine);
        const std::string first = served.child.line();
        if (lacks_uring(engine, first)) continue;
        const int port = Child::port_of(first);
        const std::size_t before = descriptors_of(served.child.pid);
        LAW(status_of(ask(port, kLastGet)) == 200);
        for (const bool at_once : {false, true}) {
            std::vector<int> clients;
            for (unsigned i = 0; i < 20; ++i) {
                const int fd = connect_to(port);
                const std::string octets = "GET /static/large HTTP/1.1\r\nHost: h\r\n\r\n";
                LAW(write(fd, octets.data(), octets.size()) > 0);
                clients.push_back(fd);
            }
            if (!at_once) {
                for (const int fd : clients) {
                    char octets[1000];
                    LAW(read(fd, octets, sizeof octets) > 0);
                }
            }
            for (const int fd : clients) {
                const linger reset{1, 0};
                setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
                close(fd);
            }
            LAW(has_descriptors(served.child.pid, before), << engine);
        }
        LAW(content_of(ask(port, request_of("GET /static/small"))) == text_of(1000));
        kill(served.child.pid, SIGTERM);
        LAW(served.child.wait() == 0);
    }
}

TEST(ServeFiles, a_file_that_becomes_shorter_while_it_is_sent_ends_its_connection_alone) {
    for (const char* engine : kEngines) {
        Served served(engine);
        const std::string first = served.child.line();
        if (lacks_uring(engine, first)) continue;
        const int port = Child::port_of(first);
        // More than the system keeps for a client that reads nothing.
        served.file("www/long", text_of(60000000));
        const int fd = connect_to(port);
        const std::string octets = "GET /static/long HTTP/1.1\r\nHost: h\r\n\r\n";
        LAW(write(fd, octets.data(), octets.size()) > 0);
        char some[1000];
        LAW(read(fd, some, sizeof some) > 0);
        CHECK(truncate(served.at("www/long").c_str(), 50000000) == 0);
        std::size_t total = 0;
        std::vector<char> buffer(1000000);
        ssize_t got = 0;
        while ((got = read(fd, buffer.data(), buffer.size())) > 0) {
            total += static_cast<std::size_t>(got);
        }
        LAW(got == 0 && total < 50001000, << engine << total);
        close(fd);
        LAW(content_of(ask(port, request_of("GET /static/small"))) == text_of(1000));
    }
}

TEST(ServeFiles, a_folder_that_is_none_is_a_wrong_word) {
    for (const char* folder : {"/nowhere", "/dev/null", ""}) {
        Child child({"--port", "0", "--static", folder});
        const std::string text = child.complaint();
        LAW(text.starts_with("httpmark-server: --static"), << text);
        LAW(child.rest().empty() && child.wait() == 2);
    }
}

}  // namespace
}  // namespace httpmark
