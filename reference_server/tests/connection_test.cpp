// A connection's life, with an artificial wire and clock: answers, persistence, staged close,
// backpressure, timeouts, ceilings, drain.
#include "connection.hpp"

#include <string>
#include <vector>

#include "wire.hpp"

namespace httpmark {
namespace {

const std::string kGet = "GET /hello HTTP/1.1\r\nHost: h\r\n\r\n";

std::string request(const std::string& line, const std::string& fields = "",
                    const std::string& content = "") {
    return line + "\r\nHost: h\r\n" + fields + "\r\n" + content;
}
Talk once(const std::string& octets, const ServerSettings& settings = {}) {
    return talk_in(octets, octets.size(), settings, 0);
}
using Statuses = std::vector<int>;

TEST(Connection, a_slot_is_64_octets_and_an_idle_connection_is_nothing_more) {
    LAW(sizeof(Connection) == 64);
    Wire wire;
    for (unsigned i = 0; i < 100; ++i) {
        const std::uint32_t id = wire.connect();
        wire.feed(id, kGet);
        LAW(statuses(wire.sent(id)) == Statuses{200});
    }
    LAW(wire.connections().arena().bytes_in_use() == 0);
}

TEST(Connection, a_batch_is_answered_in_order_with_one_send) {
    Wire wire;
    const std::uint32_t id = wire.connect();
    std::string batch;
    for (unsigned i = 0; i < 256; ++i) batch += kGet;
    wire.feed(id, batch);
    LAW(wire.sends(id) == 1);
    LAW(statuses(wire.sent(id)) == Statuses(256, 200));
    const Talk talk =
        talk_every_way(request("POST /body HTTP/1.1", "Content-Length: 1\r\n", "a") +
                       request("GET /404 HTTP/1.1") + request("HEAD /hello HTTP/1.1"));
    LAW(talk.sent.find("\r\n\r\na") != std::string::npos);
    LAW(talk.sent.find("404") < talk.sent.rfind("200"));
}

TEST(Connection, persistence) {
    LAW(!talk_every_way(kGet).closed);
    for (const char* value :
         {"close", "CLOSE", "keep-alive, close", "close, keep-alive", "x ,\tclose", ",close,"}) {
        const Talk talk = talk_every_way(
            request("GET /hello HTTP/1.1", "Connection: " + std::string(value) + "\r\n") + kGet);
        LAW(statuses(talk.sent) == Statuses{200} && talk.closed, << value);
        LAW(talk.sent.find("\r\nConnection: close\r\n") != std::string::npos);
    }
    for (const char* value : {"", "closed", "x", "keep-alive"}) {
        LAW(!once(request("GET /hello HTTP/1.1", "Connection: " + std::string(value) + "\r\n"))
                 .closed,
            << value);
    }
    LAW(once("GET / HTTP/1.0\r\n\r\n").closed);
    const Talk kept = once("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    LAW(!kept.closed && kept.sent.find("\r\nConnection: keep-alive\r\n") != std::string::npos);
    ServerSettings two;
    two.limits.requests_per_connection = 2;
    const Talk talk = once(kGet + kGet + kGet, two);
    LAW(statuses(talk.sent) == (Statuses{200, 200}) && talk.closed);
}

TEST(Connection, every_refusal_is_one_answer_that_says_close_and_closes) {
    for (const char* bad :
         {"X\r\n\r\n", "GET /%zz HTTP/1.1\r\n", "GET / HTTP/1.1\r\n\r\n", "\x16\x03\x01",
          "GET / HTTP/2.0\r\n", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"}) {
        const Talk talk = once(std::string(bad) + kGet);
        LAW(statuses(talk.sent).size() == 1 && statuses(talk.sent)[0] >= 400,
            << visible(talk.sent));
        LAW(talk.sent.find("\r\nConnection: close\r\n") != std::string::npos && talk.closed);
        LAW(talk.sent.find("\r\nDate: ") != std::string::npos);
    }
    LAW(statuses(once("PRI * HTTP/2.0\r\n\r\n").sent) == Statuses{505});
    LAW(statuses(once(kGet + "@\r\n\r\n").sent) == (Statuses{200, 400}));
}

TEST(Connection, refusals_after_which_the_stream_is_still_good) {
    for (const auto& [line, status] :
         std::vector<std::pair<std::string, int>>{{"GET /404 HTTP/1.1", 404},
                                                  {"POST /get-only HTTP/1.1", 405},
                                                  {"FOO / HTTP/1.1", 501},
                                                  {"GET https://h/ HTTP/1.1", 421},
                                                  {"TRACE / HTTP/1.1", 501}}) {
        const Talk talk = talk_every_way(request(line, "Content-Length: 5\r\n", "hello") + kGet);
        LAW(statuses(talk.sent) == (Statuses{status, 200}), << line << visible(talk.sent));
        LAW(!talk.closed);
    }
    LAW(once(request("POST /get-only HTTP/1.1")).sent.find("\r\nAllow: GET, HEAD\r\n") !=
        std::string::npos);
}

TEST(Connection, an_early_answer_keeps_in_step_or_closes) {
    const Talk talk =
        talk_every_way(request("POST /early HTTP/1.1", "Content-Length: 5\r\n", "hello") + kGet);
    LAW(statuses(talk.sent) == (Statuses{200, 200}));
    Wire wire;
    const std::uint32_t id = wire.connect();
    wire.feed(id, request("POST /early HTTP/1.1", "Content-Length: 1000000\r\n"));
    LAW(statuses(wire.sent(id)) == Statuses{200});
    for (unsigned i = 0; i < 5; ++i) wire.feed(id, std::string(60000, 'a'));
    LAW(wire.shut(id));
    const std::uint32_t other = wire.connect();
    wire.feed(other, request("POST /early HTTP/1.1", "Transfer-Encoding: chunked\r\n"));
    wire.feed(other, "zz\r\n");
    LAW(statuses(wire.sent(other)) == Statuses{200} && wire.shut(other));
}

TEST(Connection, content_reaches_the_handler_whole) {
    std::string content;
    for (unsigned i = 0; i < 200000; ++i) content += static_cast<char>(i * 7 % 251);
    for (const std::size_t step : {1000U, 65536U, 199999U}) {
        const std::string input =
            request("POST /body HTTP/1.1", "Content-Length: 200000\r\n", content) + kGet;
        const Talk talk = talk_in(input, 0, {}, step);
        LAW(statuses(talk.sent) == (Statuses{200, 200}));
        LAW(talk.sent.find(content) != std::string::npos);
    }
}

TEST(Connection, a_mirror_tells_what_was_understood) {
    const Talk talk = talk_every_way(request("PUT http://a.example:8/mirror?q HTTP/1.1",
                                             "X: 1\r\nX: 2\r\nTransfer-Encoding: chunked\r\n",
                                             "2\r\nhi\r\n0\r\nT: v\r\nHost: evil\r\n\r\n"));
    LAW(talk.sent.find("\"method\":\"UFVU\"") != std::string::npos);
    LAW(talk.sent.find("\"authority\":\"YS5leGFtcGxlOjg=\"") != std::string::npos);
    LAW(talk.sent.find("\"version\":\"SFRUUC8xLjE=\"") != std::string::npos);
    LAW(talk.sent.find("[\"WA==\",\"MQ==\"],[\"WA==\",\"Mg==\"]") != std::string::npos);
    LAW(talk.sent.find("\"content\":\"aGk=\"") != std::string::npos);
    LAW(talk.sent.find("\"trailers\":[[\"VA==\",\"dg==\"]]") != std::string::npos);
    LAW(talk.sent.find("\"request_number\":1}") != std::string::npos);
}

TEST(Connection, what_is_not_taken_waits_and_nothing_more_is_read) {
    for (const std::size_t room : {0U, 1U, 100U, 5000U}) {
        Wire wire;
        const std::uint32_t id = wire.connect();
        wire.give_room(id, room);
        std::string batch;
        for (unsigned i = 0; i < 1000; ++i) batch += kGet;
        wire.feed(id, batch);
        LAW(!wire.reading(id));
        LAW(wire.sent(id).size() == room);
        LAW(wire.connections().arena().bytes_in_use() < 512 * 1024);
        for (unsigned turn = 0; turn < 10000 && wire.sent(id).size() < 114000; ++turn)
            wire.give_room(id, 777);
        LAW(statuses(wire.sent(id)) == Statuses(1000, 200), << wire.sent(id).size());
        LAW(wire.reading(id));
        LAW(wire.connections().arena().bytes_in_use() == 0);
    }
}

TEST(Connection, a_generated_answer_takes_no_memory) {
    Wire wire;
    const std::uint32_t id = wire.connect();
    wire.give_room(id, 1000);
    wire.feed(id, request("GET /big HTTP/1.1") + kGet);
    LAW(wire.connections().arena().bytes_in_use() < 4096);
    for (unsigned turn = 0; turn < 2000 && wire.alive(id) && !wire.reading(id); ++turn)
        wire.give_room(id, 1000);
    LAW(statuses(wire.sent(id)) == (Statuses{200, 200}));
}

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
    wire.feed(id, request("GET /slow HTTP/1.1") + kGet);
    wire.feed(id, request("GET /404 HTTP/1.1"));
    wire.pass(499);
    LAW(wire.sent(id).empty());
    wire.pass(1 + 2 * kTickMs);
    LAW(statuses(wire.sent(id)) == (Statuses{200, 200, 404}));
    LAW(wire.reading(id));
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

TEST(Connection, over_the_memory_ceiling_the_newest_gets_503) {
    ServerSettings settings;
    settings.limits.memory_max = 200000;
    Wire wire(settings);
    const std::uint32_t first = wire.connect();
    wire.feed(first,
              request("POST /body HTTP/1.1", "Content-Length: 60000\r\n", std::string(1000, 'a')));
    const std::uint32_t second = wire.connect();
    wire.feed(second, request("POST /body HTTP/1.1", "Content-Length: 500000\r\n",
                              std::string(60000, 'b')));
    for (unsigned i = 0; i < 7 && !wire.shut(second); ++i)
        wire.feed(second, std::string(60000, 'b'));
    LAW(statuses(wire.sent(second)) == Statuses{503} && wire.shut(second));
    wire.feed(first, std::string(59000, 'a'));
    LAW(statuses(wire.sent(first)) == Statuses{200});
}

TEST(Connection, over_the_connection_ceiling_there_is_503) {
    Wire wire;
    const std::uint32_t id = wire.connect();
    wire.connections().refuse_open(id);
    LAW(statuses(wire.sent(id)) == Statuses{503} && wire.shut(id));
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
}

TEST(Connection, a_broken_wire_frees_everything) {
    Wire wire;
    for (unsigned i = 0; i < 50; ++i) {
        const std::uint32_t id = wire.connect();
        wire.feed(id, request("POST /body HTTP/1.1", "Content-Length: 5000\r\n", "abc"));
        if (i % 2 == 0) {
            wire.connections().on_broken(id);
        } else {
            wire.break_peer(id);
            wire.feed(id, std::string(4997, 'x'));
        }
        LAW(!wire.alive(id));
    }
    LAW(wire.connections().open_count() == 0 && wire.connections().arena().bytes_in_use() == 0);
}

TEST(Connection, slots_are_used_again_under_a_new_generation) {
    Wire wire;
    const std::uint32_t first = wire.connect();
    const std::uint32_t generation = wire.connections().slot(first).generation;
    LAW(wire.connections().is_current(first, generation));
    wire.connections().on_broken(first);
    LAW(!wire.connections().is_current(first, generation));
    const std::uint32_t second = wire.connect();
    LAW(second == first && !wire.connections().is_current(first, generation));
}

}  // namespace
}  // namespace httpmark
