// Ends, timeouts and the drain, with an artificial clock.
#include <string>
#include <vector>

#include "net/connection.hpp"
#include "net/requests.hpp"

namespace httpmark {
namespace {

TEST(Connection, half_close_is_still_answered) {
    Wire wire;
    const std::uint32_t id = wire.connect();
    wire.give_room(id, 10);
    wire.feed(id, kGet + kGet);
    wire.end(id);
    LAW(wire.alive(id));
    wire.give_room(id, 100000);
    LAW(statuses(wire.sent(id)) == (Statuses{200, 200}) && !wire.alive(id));
    const std::uint32_t slow = wire.connect();
    wire.feed(slow, request("GET /slow HTTP/1.1"));
    wire.end(slow);
    wire.pass(600);
    LAW(statuses(wire.sent(slow)) == Statuses{200} && !wire.alive(slow));
}

TEST(Connection, an_early_end_is_no_request) {
    for (const std::string& part :
         {std::string("GET / HT"), std::string("GET / HTTP/1.1\r\nHost: h\r\n"),
          request("POST /body HTTP/1.1", "Content-Length: 10\r\n", "hello"),
          request("POST /body HTTP/1.1", "Transfer-Encoding: chunked\r\n", "5\r\nhello\r\n"),
          request("POST /body HTTP/1.1", "Transfer-Encoding: chunked\r\n",
                  "5\r\nhello\r\n0\r\n")}) {
        Wire wire;
        const std::uint32_t id = wire.connect();
        wire.feed(id, part);
        wire.end(id);
        LAW(statuses(wire.sent(id)) == Statuses{400}, << visible(part));
        LAW(!wire.alive(id));
    }
    Wire wire;
    const std::uint32_t id = wire.connect();
    wire.end(id);
    LAW(wire.sent(id).empty() && !wire.alive(id));
}

TEST(Connection, after_the_last_answer_what_comes_is_thrown_away_for_a_while) {
    ServerSettings settings;
    settings.limits.linger_max = 1000;
    Wire wire(settings);
    const std::uint32_t id = wire.connect();
    wire.feed(id, "bad\r\n\r\n" + std::string(5000, 'x'));
    LAW(wire.alive(id) && wire.shut(id));
    wire.feed(id, std::string(1000, 'x'));
    LAW(wire.alive(id));
    wire.feed(id, "x");
    LAW(!wire.alive(id));
    const std::uint32_t other = wire.connect();
    wire.feed(other, "bad\r\n\r\n");
    wire.pass(1900);
    LAW(wire.alive(other));
    wire.pass(300);
    LAW(!wire.alive(other));
}

TEST(Connection, who_has_waited_longest_for_a_request_makes_room) {
    Wire wire;
    const std::uint32_t asks = wire.connect();
    const std::uint32_t first = wire.connect();
    const std::uint32_t slow = wire.connect();
    const std::uint32_t unsent = wire.connect();
    const std::uint32_t lingers = wire.connect();
    wire.give_room(unsent, 10);
    wire.feed(unsent, kGet);
    wire.feed(lingers, "bad\r\n\r\n");
    wire.pass(500);
    wire.feed(asks, kGet);
    const std::uint32_t second = wire.connect();
    const std::uint32_t begun = wire.connect();
    wire.feed(begun, "GET / HT");
    wire.pass(500);
    wire.feed(second, kGet);  // it waits again, and for less long
    wire.feed(slow, request("GET /slow HTTP/1.1"));
    Connections& connections = wire.connections();
    for (const std::uint32_t next : {first, asks, second}) {
        LAW(wire.alive(next) && connections.close_an_idle_one() && !wire.alive(next), << next);
    }
    LAW(!connections.close_an_idle_one());
    LAW(connections.counters().made_room.load() == 3);
    for (const std::uint32_t busy : {slow, unsent, lingers, begun}) LAW(wire.alive(busy), << busy);
    wire.pass(600);
    LAW(statuses(wire.sent(slow)) == Statuses{200});
    wire.feed(begun, "TP/1.1\r\nHost: h\r\n\r\n");
    LAW(statuses(wire.sent(begun)) == Statuses{200});
}

TEST(Connection, an_idle_one_is_found_among_thousands_in_few_looks_each) {
    Wire wire;
    LAW(!wire.connections().close_an_idle_one());
    std::vector<std::uint32_t> all;
    for (unsigned i = 0; i < 3000; ++i) all.push_back(wire.connect());
    for (const std::uint32_t id : all) wire.feed(id, id == all[1700] ? kGet : "GET / HT");
    unsigned looks = 1;
    while (!wire.connections().close_an_idle_one()) ++looks;
    LAW(!wire.alive(all[1700]) && looks <= 4096 / kIdleLookedAt, << looks);
}

TEST(Connection, one_without_an_idle_timeout_makes_room_too) {
    ServerSettings settings;
    settings.limits.idle_timeout_ms = 0;
    Wire wire(settings);
    const std::uint32_t id = wire.connect();
    wire.feed(id, kGet);
    LAW(wire.connections().close_an_idle_one() && !wire.alive(id));
}

// Fires within [T, T + 2 ticks], never before.
void expect_timeout(Wire& wire, std::uint32_t id, std::uint64_t ms, int status) {
    const std::size_t before = wire.sent(id).size();
    wire.pass(ms - 1);
    LAW(!wire.shut(id) && wire.alive(id), << ms);
    wire.pass(1 + 2 * kTickMs);
    LAW(wire.shut(id) || !wire.alive(id), << ms);
    const std::string answer = wire.sent(id).substr(before);
    if (status == 0) {
        LAW(answer.empty(), << visible(answer));
    } else {
        LAW(statuses(answer) == Statuses{status}, << visible(answer));
    }
}

TEST(Connection, timeouts) {
    {
        Wire wire;
        const std::uint32_t id = wire.connect();
        expect_timeout(wire, id, 60000, 0);
    }
    {
        Wire wire;
        const std::uint32_t id = wire.connect();
        for (unsigned i = 0; i < 20; ++i) {
            wire.feed(id, kGet);
            wire.pass(50000);
        }
        LAW(wire.alive(id) && !wire.shut(id));
        wire.feed(id, kGet);
        expect_timeout(wire, id, 60000, 0);
    }
    {
        Wire wire;
        const std::uint32_t id = wire.connect();
        wire.pass(30000);
        wire.feed(id, "G");
        for (unsigned i = 0; i < 9; ++i) {
            wire.pass(1000);
            wire.feed(id, "E");  // progress does not extend it
        }
        expect_timeout(wire, id, 1000, 408);
    }
    {
        Wire wire;
        const std::uint32_t id = wire.connect();
        wire.feed(id, request("POST /body HTTP/1.1", "Content-Length: 100000\r\n"));
        expect_timeout(wire, id, 30000, 408);
    }
    {
        Wire wire;
        const std::uint32_t id = wire.connect();
        wire.feed(id, request("POST /body HTTP/1.1", "Content-Length: 100000\r\n",
                              std::string(10240, 'a')));
        expect_timeout(wire, id, 40000, 408);  // ten seconds earned at 1 KiB a second
    }
    {
        Wire wire;
        const std::uint32_t id = wire.connect();
        wire.give_room(id, 0);
        wire.feed(id, kGet);
        wire.pass(29000);
        wire.give_room(id, 1);
        expect_timeout(wire, id, 30000, 0);
    }
    {
        ServerSettings settings;
        settings.limits.idle_timeout_ms = 0;
        settings.limits.head_timeout_ms = 0;
        Wire wire(settings);
        const std::uint32_t id = wire.connect();
        wire.pass(1000000);
        wire.feed(id, "GET");
        wire.pass(1000000);
        LAW(wire.alive(id) && !wire.shut(id));
    }
}

TEST(Connection, a_late_answer_comes_after_its_time_and_in_order) {
    Wire wire;
    const std::uint32_t id = wire.connect();
    wire.feed(id, request("GET /slow HTTP/1.1"));
    LAW(wire.reading(id));
    wire.feed(id, kGet);
    LAW(!wire.reading(id));
    wire.feed(id, request("GET /404 HTTP/1.1"));
    wire.pass(499);
    LAW(wire.sent(id).empty());
    wire.pass(1 + 2 * kTickMs);
    LAW(statuses(wire.sent(id)) == (Statuses{200, 200, 404}));
    LAW(wire.reading(id));
}

TEST(Connection, a_handler_has_its_own_limit) {
    for (const std::uint64_t limit : {std::uint64_t{0}, std::uint64_t{100}, std::uint64_t{499},
                                      std::uint64_t{500}, std::uint64_t{10000}}) {
        ServerSettings settings;
        settings.limits.handler_timeout_ms = limit;
        Wire wire(settings);
        const std::uint32_t id = wire.connect();
        wire.feed(id, request("GET /slow HTTP/1.1") + kGet);
        const bool late = limit != 0 && limit < 500;
        wire.pass((late ? limit : 500) - 1);
        LAW(wire.sent(id).empty(), << limit);
        wire.pass(1 + 2 * kTickMs);
        LAW(statuses(wire.sent(id)) == (late ? Statuses{503} : Statuses{200, 200}), << limit);
        LAW(wire.shut(id) == late);
    }
    // Neither does a reader that is slow put off the answer: its time is counted from the request.
    Wire wire;
    const std::uint32_t id = wire.connect();
    wire.give_room(id, 0);
    wire.feed(id, kGet + request("GET /slow HTTP/1.1"));
    wire.pass(2000);
    wire.give_room(id, 1000);
    wire.pass(1 + 2 * kTickMs);
    LAW(statuses(wire.sent(id)) == (Statuses{200, 200}));
}

TEST(Connection, the_head_timeout_is_of_the_request_under_way) {
    Wire wire;
    const std::uint32_t id = wire.connect();
    wire.feed(id, kGet.substr(0, 8));
    for (unsigned i = 0; i < 20; ++i) {  // each read ends within the next head
        wire.pass(3000);
        wire.feed(id, kGet.substr(8) + kGet.substr(0, 8));
    }
    LAW(statuses(wire.sent(id)) == Statuses(20, 200) && !wire.shut(id));
    expect_timeout(wire, id, 10000, 408);
}

// RFC 9112 2.2: an empty line before a request is ignored, so it begins none.
TEST(Connection, an_empty_line_is_no_request_under_way) {
    const std::string before = request("POST /body HTTP/1.1", "Content-Length: 2\r\n", "ab");
    for (const std::string line : {"\r\n", "\r"}) {
        for (const bool apart : {false, true}) {
            Wire wire;
            const std::uint32_t ended = wire.connect();
            const std::uint32_t idle = wire.connect();
            const std::uint32_t goes_on = wire.connect();
            for (const std::uint32_t id : {ended, idle, goes_on}) {
                wire.feed(id, apart ? before : before + line);
                if (apart) wire.feed(id, line);
            }
            wire.end(ended);
            LAW(statuses(wire.sent(ended)) == Statuses{200} && !wire.alive(ended));
            wire.pass(50000);
            wire.feed(goes_on, line == "\r" ? "\nG" : "G");
            expect_timeout(wire, goes_on, 10000, 408);  // from its first byte on
            LAW(wire.shut(idle) && statuses(wire.sent(idle)) == Statuses{200});
            wire.pass(60000);
            LAW(wire.connections().open_count() == 0);
            LAW(wire.connections().arena().bytes_in_use() == 0);
        }
    }
    Wire wire;
    const std::uint32_t id = wire.connect();
    wire.feed(id, "\r\n");
    wire.connections().drain();
    LAW(wire.shut(id) && wire.sent(id).empty());
}

TEST(Connection, the_rate_that_extends_the_body_timeout) {
    struct Row {
        std::uint64_t rate;
        std::uint64_t until;
    };
    for (const Row& row :
         {Row{0, 30000}, {1, 40030000}, {512, 50000}, {1024, 40000}, {10240, 31000}}) {
        ServerSettings settings;
        settings.limits.body_rate_min = row.rate;
        Wire wire(settings);
        const std::uint32_t id = wire.connect();
        const std::size_t taken = row.rate == 1 ? 40000 : 10240;
        wire.feed(id, request("POST /body HTTP/1.1", "Content-Length: 100000\r\n",
                              std::string(taken, 'a')));
        wire.pass(row.until - 1);
        LAW(wire.alive(id) && wire.sent(id).empty(), << row.rate);
        wire.pass(1 + 2 * kTickMs);
        LAW(statuses(wire.sent(id)) == Statuses{408}, << row.rate);
    }
}

TEST(Connection, an_idle_timeout_may_be_told) {
    ServerSettings settings;
    settings.choices.answer_idle = true;
    Wire wire(settings);
    const std::uint32_t id = wire.connect();
    wire.feed(id, kGet);
    wire.pass(60000 + 2 * kTickMs);
    LAW(statuses(wire.sent(id)) == (Statuses{200, 408}) && wire.shut(id));
}

TEST(Connection, the_clock_may_jump) {
    Wire wire;
    const std::uint32_t id = wire.connect();
    wire.connections().set_time(5, kWireDate - 1000000);  // back: ignored, but for the date
    wire.connections().run_timers();
    LAW(wire.alive(id));
    wire.feed(id, kGet);
    LAW(statuses(wire.sent(id)) == Statuses{200});
    wire.pass(1000000000);
    LAW(wire.shut(id));
    wire.pass(1000000000);
    LAW(!wire.alive(id));
}

TEST(Connection, drain_ends_the_idle_and_lets_the_others_finish) {
    Wire wire;
    const std::uint32_t idle = wire.connect();
    const std::uint32_t slow = wire.connect();
    const std::uint32_t half = wire.connect();
    wire.feed(slow, request("GET /slow HTTP/1.1"));
    wire.feed(half, "GET /hello HT");
    wire.connections().drain();
    LAW(wire.shut(idle));
    LAW(!wire.shut(slow) && !wire.shut(half));
    wire.feed(half, "TP/1.1\r\nHost: h\r\n\r\n");
    LAW(wire.sent(half).find("Connection: close") != std::string::npos && wire.shut(half));
    wire.pass(600);
    LAW(wire.sent(slow).find("Connection: close") != std::string::npos && wire.shut(slow));
    // Answers that were made before it, and wait for a reader, go out first.
    Wire blocked;
    const std::uint32_t reader = blocked.connect();
    blocked.give_room(reader, 0);
    blocked.feed(reader, kGet + kGet);
    blocked.connections().drain();
    LAW(!blocked.shut(reader));
    blocked.give_room(reader, 100000);
    LAW(statuses(blocked.sent(reader)) == (Statuses{200, 200}) && blocked.shut(reader));
}

}  // namespace
}  // namespace httpmark
