// One test for every engine: whole workers on loopback sockets, driven by a plain blocking client.
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "needs.hpp"
#include "net/live_server.hpp"
#include "net/worker.hpp"
#include "wire.hpp"

namespace httpmark {
namespace {

using Statuses = std::vector<int>;
const std::string kGet = "GET /hello HTTP/1.1\r\nHost: h\r\n\r\n";

TEST_P(EveryEngine, answers_what_it_is_asked) {
    START();
    const int fd = server_->connect();
    write_all(fd, kGet);
    LAW(statuses(read_some(fd, 114).octets) == Statuses{200});
    std::string batch;
    for (unsigned i = 0; i < 3000; ++i) batch += kGet;
    std::thread writer([&] { write_all(fd, batch); });
    LAW(statuses(read_some(fd, 3000 * 114).octets) == Statuses(3000, 200));
    writer.join();
    close(fd);
}

TEST_P(EveryEngine, octet_by_octet) {
    START();
    const int fd = server_->connect();
    const std::string input =
        "POST /body HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: "
        "chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n" +
        kGet;
    for (const char c : input) {
        write_all(fd, {&c, 1});
        usleep(200);
    }
    const Received received = read_some(fd, 230);
    LAW(statuses(received.octets) == (Statuses{200, 200}), << visible(received.octets));
    close(fd);
}

TEST_P(EveryEngine, a_refusal_is_never_eaten_by_a_reset) {
    START();
    for (unsigned i = 0; i < 50; ++i) {
        const int fd = server_->connect();
        write_all(fd, "GET /%zz HTTP/1.1\r\n" + std::string(200000, 'x'));
        shutdown(fd, SHUT_WR);
        const Received received = read_some(fd, kToTheEnd);
        LAW(statuses(received.octets) == Statuses{400} && received.ended && !received.reset,
            << i << server_->counters().accepted.load() << " in "
            << server_->counters().bytes_in.load() << " refused "
            << server_->counters().refused.load() << " out " << server_->counters().bytes_out.load()
            << (received.ended ? " ended " : " ") << (received.reset ? " reset " : " ")
            << visible(received.octets));
        close(fd);
    }
}

TEST_P(EveryEngine, large_content_both_ways) {
    START();
    const int fd = server_->connect();
    std::string content;
    for (unsigned i = 0; i < 3000000; ++i) content += static_cast<char>(i * 31 % 251);
    std::thread writer([&] {
        write_all(fd,
                  "POST /body HTTP/1.1\r\nHost: h\r\nContent-Length: 3000000\r\n\r\n" + content);
        write_all(fd, "GET /big HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
    });
    const Received received = read_some(fd, kToTheEnd);
    writer.join();
    LAW(statuses(received.octets) == (Statuses{200, 200}), << received.octets.size());
    LAW(received.octets.find(content) != std::string::npos && received.ended);
    close(fd);
}

TEST_P(EveryEngine, a_reader_that_is_slow_gets_everything) {
    START();
    const int fd = server_->connect();
    std::string batch;
    for (unsigned i = 0; i < 40000; ++i) batch += kGet;
    std::thread writer([&] { write_all(fd, batch); });
    usleep(300000);
    std::string all;
    while (all.size() < 40000U * 114) {
        const Received received = read_some(fd, 1);
        if (received.octets.empty()) break;
        all += received.octets;
        if (all.size() % 7 == 0) usleep(100);
    }
    writer.join();
    LAW(all.size() == 40000U * 114, << all.size());
    LAW(statuses(all) == Statuses(40000, 200));
    close(fd);
}

double cpu_seconds() {
    timespec used{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    return static_cast<double>(used.tv_sec) + static_cast<double>(used.tv_nsec) / 1e9;
}

TEST_P(EveryEngine, readers_that_never_read_hold_nobody_up) {
    START();
    std::vector<int> fds;
    for (unsigned i = 0; i < 40; ++i) {
        fds.push_back(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
        const int little = 4096;
        setsockopt(fds.back(), SOL_SOCKET, SO_RCVBUF, &little, sizeof little);
        server_->connect(fds.back());
        std::string batch;
        for (unsigned j = 0; j < 8; ++j) batch += "GET /big HTTP/1.1\r\nHost: h\r\n\r\n";
        write_all(fds.back(), batch);
    }
    // Until no more of it finds room.
    std::uint64_t sent = 0;
    for (unsigned i = 0, same = 0; i < 1000 && same < 10; ++i) {
        usleep(20000);
        const std::uint64_t now = server_->counters().bytes_out;
        same = now == sent && now != 0 ? same + 1 : 0;
        sent = now;
    }
    const int fd = server_->connect();
    for (unsigned i = 0; i < 100; ++i) {
        write_all(fd, kGet);
        LAW(statuses(read_some(fd, 114).octets) == Statuses{200}, << i);
        if (HasFailure()) break;
    }
    // All of a large answer too, in more pieces than one.
    write_all(fd, "GET /big HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
    const Received big = read_some(fd, kToTheEnd);
    LAW(statuses(big.octets) == Statuses{200} && big.ended, << big.octets.size());
    close(fd);
    // And waiting for room costs nothing.
    const double before = cpu_seconds();
    usleep(500000);
    LAW(cpu_seconds() - before < 0.1, << cpu_seconds() - before);
    for (const int slow : fds) close(slow);
}

TEST_P(EveryEngine, half_close_is_answered) {
    START();
    const int fd = server_->connect();
    write_all(fd, kGet + kGet);
    shutdown(fd, SHUT_WR);
    const Received received = read_some(fd, kToTheEnd);
    LAW(statuses(received.octets) == (Statuses{200, 200}) && received.ended);
    close(fd);
}

TEST_P(EveryEngine, timers_run) {
    ServerSettings settings;
    settings.limits.head_timeout_ms = 200;
    settings.limits.idle_timeout_ms = 300;
    START(settings);
    const int fd = server_->connect();
    write_all(fd, "GET /");
    LAW(statuses(read_some(fd, kToTheEnd).octets) == Statuses{408});
    close(fd);
    const int idle = server_->connect();
    const Received received = read_some(idle, kToTheEnd);
    LAW(received.octets.empty() && received.ended);
    close(idle);
    const int slow = server_->connect();
    write_all(slow, "GET /slow HTTP/1.1\r\nHost: h\r\n\r\n");
    LAW(statuses(read_some(slow, 114).octets) == Statuses{200});
    close(slow);
}

TEST_P(EveryEngine, resets_in_every_state_leave_nothing_behind) {
    START();
    for (unsigned i = 0; i < 200; ++i) {
        const int fd = server_->connect();
        const std::string inputs[] = {
            "",
            "GET /",
            kGet,
            "POST /body HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\nab",
            "GET /big HTTP/1.1\r\nHost: h\r\n\r\n",
            "GET /slow HTTP/1.1\r\nHost: h\r\n\r\n"};
        write_all(fd, inputs[i % std::size(inputs)]);
        const linger abrupt{1, 0};
        setsockopt(fd, SOL_SOCKET, SO_LINGER, &abrupt, sizeof abrupt);
        close(fd);
    }
    const int fd = server_->connect();
    write_all(fd, kGet);
    LAW(statuses(read_some(fd, 114).octets) == Statuses{200});
    close(fd);
    // Longer than the 2 s that a lingering close may take.
    for (unsigned i = 0; i < 400 && server_->counters().closed < 201; ++i) usleep(20000);
    LAW(server_->counters().accepted == 201 && server_->counters().closed == 201,
        << server_->counters().accepted << " " << server_->counters().closed);
}

// An end of stream that comes so soon after bytes that one wake-up stands for both.
TEST_P(EveryEngine, an_end_right_behind_octets_is_seen) {
    START();
    constexpr unsigned kRounds = 3000;
    for (unsigned i = 0; i < kRounds; ++i) {
        const int fd = server_->connect();
        write_all(fd, "POST /body HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\nab");
        if (i % 2 == 0) {
            const linger abrupt{1, 0};
            setsockopt(fd, SOL_SOCKET, SO_LINGER, &abrupt, sizeof abrupt);
        }
        close(fd);
    }
    // Far sooner than any timeout would end them.
    for (unsigned i = 0; i < 250 && server_->counters().closed < kRounds; ++i) usleep(20000);
    LAW(server_->counters().closed == kRounds, << server_->counters().closed);
    LAW(server_->counters().timeouts == 0);
}

TEST_P(EveryEngine, over_the_connection_ceiling_there_is_503) {
    ServerSettings settings;
    settings.limits.connections_max = 2;
    START(settings);
    const int first = server_->connect();
    const int second = server_->connect();
    write_all(first, kGet);
    write_all(second, kGet);
    LAW(statuses(read_some(first, 114).octets) == Statuses{200});
    LAW(statuses(read_some(second, 114).octets) == Statuses{200});
    const int third = server_->connect();
    LAW(statuses(read_some(third, kToTheEnd).octets) == Statuses{503});
    // What was refused holds no room, though its close is still under way.
    close(first);
    for (unsigned i = 0; i < 250 && server_->counters().closed < 1; ++i) usleep(20000);
    const int fourth = server_->connect();
    write_all(fourth, kGet);
    LAW(statuses(read_some(fourth, 114).octets) == Statuses{200});
    for (const int fd : {second, third, fourth}) close(fd);
}

TEST_P(EveryEngine, over_the_connection_ceiling_they_may_wait_their_turn) {
    ServerSettings settings;
    settings.limits.connections_max = 2;
    settings.wait_over_connections = true;
    START(settings);
    std::vector<int> fds;
    for (unsigned i = 0; i < 4; ++i) {
        fds.push_back(server_->connect());
        write_all(fds.back(), kGet);
    }
    // Two are served; io_uring may have taken more before it was told to stop.
    LAW(statuses(read_some(fds[0], 114).octets) == Statuses{200});
    LAW(statuses(read_some(fds[1], 114).octets) == Statuses{200});
    if (GetParam() == Engine::kEpoll) {
        pollfd waiting{fds[2], POLLIN, 0};
        LAW(poll(&waiting, 1, 200) == 0);
        LAW(server_->counters().accepted == 2);
    }
    close(fds[0]);
    close(fds[1]);
    for (const int fd : {fds[2], fds[3]}) {
        LAW(statuses(read_some(fd, 114).octets) == Statuses{200});
        close(fd);
    }
    // And again, after both have gone.
    const int late = server_->connect();
    write_all(late, kGet);
    LAW(statuses(read_some(late, 114).octets) == Statuses{200});
    close(late);
}

TEST_P(EveryEngine, a_drain_finishes_what_is_under_way) {
    START();
    const int slow = server_->connect();
    const int idle = server_->connect();
    write_all(idle, kGet);
    LAW(statuses(read_some(idle, 114).octets) == Statuses{200});
    write_all(slow, "GET /slow HTTP/1.1\r\nHost: h\r\n\r\n");
    usleep(100000);
    std::thread stopper([&] { server_->stop(false); });
    const Received end_of_idle = read_some(idle, kToTheEnd);
    LAW(end_of_idle.ended && end_of_idle.octets.empty());
    close(idle);
    const Received answer = read_some(slow, kToTheEnd);
    LAW(statuses(answer.octets) == Statuses{200} && answer.ended);
    LAW(answer.octets.find("Connection: close") != std::string::npos);
    close(slow);
    stopper.join();
}

// Asks for that many bytes, sends no more and reads nothing. Until no more of them finds room.
int ask_and_read_nothing(const LiveServer& server, std::size_t size) {
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const int little = 4096;
    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &little, sizeof little);
    server.connect(fd);
    const std::uint64_t before = server.counters().bytes_out;
    write_all(fd, "GET /octets/" + std::to_string(size) + " HTTP/1.1\r\nHost: h\r\n\r\n");
    shutdown(fd, SHUT_WR);
    std::uint64_t sent = before;
    for (unsigned i = 0, same = 0; i < 1000 && same < 10; ++i) {
        usleep(10000);
        const std::uint64_t now = server.counters().bytes_out;
        same = now == sent && now != before ? same + 1 : 0;
        sent = now;
    }
    return fd;
}

// An engine may have taken the last bytes of a connection, which is over then, and still have them.
TEST_P(EveryEngine, a_drain_waits_until_all_that_was_taken_is_sent) {
    Router::Builder routes;
    routes.add(kAnyMethod, "/octets/{count}", [](const Request& request, ResponseWriter& writer) {
        const std::string octets(std::stoul(std::string(request.value("count"))), 'o');
        return writer.answer(200, {}, octets);
    });
    const auto router = built(routes);
    ServerSettings settings;
    settings.router = router.get();
    START(settings);
    close(ask_and_read_nothing(*server_, 64 << 20));
    const std::size_t room = server_->counters().bytes_out;
    std::vector<std::pair<int, std::size_t>> asked;
    for (std::size_t less = 8192; less < 81920; less += 16384) {
        if (room < less + 1000) break;
        asked.emplace_back(ask_and_read_nothing(*server_, room - less), room - less);
    }
    const int idle = server_->connect();
    write_all(idle, kGet);
    LAW(!read_some(idle, 50).octets.empty());
    std::thread stopper([&] { server_->stop(false); });
    LAW(read_some(idle, kToTheEnd).ended);
    close(idle);
    usleep(100000);  // for a worker that does not wait
    for (const auto& [fd, size] : asked) {
        const Received answer = read_some(fd, size);
        LAW(answer.octets.size() >= size, << answer.octets.size() << " of " << size);
        const Received end = read_some(fd, kToTheEnd);
        LAW(end.ended && !end.reset);
        close(fd);
    }
    stopper.join();
}

TEST_P(EveryEngine, many_connections_at_once) {
    START();
    std::vector<int> fds;
    for (unsigned i = 0; i < 300; ++i) fds.push_back(server_->connect());
    for (unsigned round = 0; round < 5; ++round) {
        for (const int fd : fds) write_all(fd, kGet + kGet);
        for (const int fd : fds) LAW(statuses(read_some(fd, 228).octets) == (Statuses{200, 200}));
    }
    for (const int fd : fds) close(fd);
}

// Takes no connection, and counts how often it was woken.
struct CountsWakes : LoopEvents {
    LoopToken on_accept(std::int32_t, std::uint32_t) override { return kRefused; }
    std::int32_t handle_of(LoopToken) override { return -1; }
    void on_data(LoopToken, const char*, std::size_t) override {}
    void on_end(LoopToken) override {}
    void on_broken(LoopToken) override {}
    void on_sendable(LoopToken) override {}
    void on_wake() override { ++wakes; }
    void on_turn() override {}
    bool on_full() override { return false; }
    void on_starved() override {}
    unsigned wakes = 0;
};

// The wake-up and the connection are announced at once. By the time the second is looked at, the
// listener's number is another socket's.
TEST(EpollLoop, accepts_nothing_of_a_listener_that_was_removed) {
    const auto listening = [](sockaddr_in& address) {
        const int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        socklen_t size = sizeof address;
        CHECK(bind(fd, reinterpret_cast<sockaddr*>(&address), size) == 0 && listen(fd, 8) == 0);
        CHECK(getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) == 0);
        return fd;
    };
    struct Removes final : CountsWakes {
        LoopToken on_accept(std::int32_t, std::uint32_t) override {
            ++accepted;
            return kRefused;
        }
        void on_wake() override {
            CountsWakes::on_wake();
            loop->remove_listener(listener);
            CHECK(dup2(other, listener) == listener);
        }
        Loop* loop = nullptr;
        int listener = -1;
        int other = -1;
        unsigned accepted = 0;
    } events;
    sockaddr_in address{};
    sockaddr_in other_address{};
    events.listener = listening(address);
    events.other = listening(other_address);
    const auto loop = make_epoll_loop({kReceiveBufferSize, 64});
    events.loop = loop.get();
    std::string error;
    LAW(loop->start(events, error) && loop->add_listener(events.listener, 0, error));
    loop->wake();
    std::vector<int> clients;
    for (const sockaddr_in& to : {address, other_address}) {
        clients.push_back(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
        CHECK(connect(clients.back(), reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0);
    }
    loop->turn(1000);
    LAW(events.wakes == 1 && events.accepted == 0, << events.accepted);
    for (const int fd : {clients[0], clients[1], events.listener, events.other}) close(fd);
}

// The kernel may have no room for a further one to watch; a file it refuses always.
TEST(EpollLoop, outlives_what_cannot_be_watched) {
    const auto loop = make_epoll_loop({kReceiveBufferSize, 64});
    CountsWakes events;
    std::string error;
    LAW(loop->start(events, error), << error);
    const int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    CHECK(file >= 0);
    loop->set_interest(file, 0, true, true);
    loop->wake();
    loop->turn(1000);
    LAW(events.wakes == 1);
    close(file);
}

// Connections by pairs of sockets, of which the first so many are costly to serve.
struct ServesPairs final : CountsWakes {
    static constexpr unsigned kCostly = 20;
    static constexpr unsigned kAll = kCostly + 1;

    ServesPairs() : loop(make_epoll_loop({16, 64})) {
        std::string error;
        CHECK(loop->start(*this, error));
        for (unsigned i = 0; i < kAll; ++i) {
            int pair[2];
            CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0);
            ours[i] = pair[0];
            theirs[i] = pair[1];
            // It is not watched yet: asking for bytes begins that.
            loop->set_interest(ours[i], i, true, false);
        }
    }
    ~ServesPairs() {
        for (unsigned i = 0; i < kAll; ++i) {
            ::close(ours[i]);
            ::close(theirs[i]);
        }
    }
    ServesPairs(const ServesPairs&) = delete;
    ServesPairs& operator=(const ServesPairs&) = delete;

    std::int32_t handle_of(LoopToken token) override { return ours[token]; }
    void on_data(LoopToken token, const char*, std::size_t) override {
        ++served[token];
        ++costly_since;
        if (token < kCostly) {
            if (token == 3) write_all(theirs[kCostly], "x");
            usleep(300);
        } else {
            most_before = std::max(most_before, costly_since - 1);
        }
        if (token >= kCostly || token == 3) costly_since = 0;
    }

    std::unique_ptr<Loop> loop;
    int ours[kAll]{};
    int theirs[kAll]{};
    unsigned served[kAll]{};
    unsigned costly_since = 0;  // connections served since another one had something to say
    unsigned most_before = 0;
};

// Twenty clients always have something to say, and each takes 0.3 ms. One that says little waits
// for a slice of their time, and not for all of them; they are served in turn.
TEST(EpollLoop, who_costs_little_waits_for_few_of_those_who_cost_much) {
    ServesPairs all;
    for (unsigned i = 0; i < ServesPairs::kCostly; ++i)
        write_all(all.theirs[i], std::string(4000, 'x'));
    // Who costs much is found by serving twice.
    for (unsigned i = 0; i < 2; ++i) all.loop->turn(0);
    LAW(std::count(all.served, all.served + ServesPairs::kCostly, 2U) == ServesPairs::kCostly);
    all.served[ServesPairs::kCostly] = all.costly_since = all.most_before = 0;
    for (unsigned i = 0; i < 100; ++i) all.loop->turn(0);
    const auto [least, most] = std::minmax_element(all.served, all.served + ServesPairs::kCostly);
    LAW(*least >= 4 && *most - *least <= 1, << *least << ' ' << *most);
    LAW(all.served[ServesPairs::kCostly] >= 4 && all.most_before <= 2, << all.most_before);
}

TEST(Loop, io_uring_is_built_where_it_is_required) {
    LAW(engine_is_built(Engine::kUring) || !is_required("uring"));
}

#if defined(HTTPMARK_HAS_URING)
TEST(UringLoop, wakes_again_after_its_queue_ran_over) {
    CountsWakes events;
    const auto loop = make_uring_loop({kReceiveBufferSize, 64});
    std::string error;
    if (!loop->start(events, error)) {
        ASSERT_TRUE(lacks_uring("uring", error)) << error;
        GTEST_SKIP() << error;
    }
    loop->turn(0);
    // Each leaves a completion: more of them than there are places.
    for (unsigned i = 0; i < 20000; ++i) loop->pause_listener(0, true);
    for (unsigned wanted = 1; wanted <= 3; ++wanted) {
        loop->wake();
        for (unsigned i = 0; i < 10 && events.wakes < wanted; ++i) loop->turn(200);
        LAW(events.wakes == wanted, << wanted << ": " << events.wakes);
    }
}
#endif

INSTANTIATE_TEST_SUITE_P(Loop, EveryEngine, testing::ValuesIn(engines()), engine_name);

}  // namespace
}  // namespace httpmark
