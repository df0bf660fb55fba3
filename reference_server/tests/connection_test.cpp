// A connection's life, with an artificial wire and clock: answers, persistence, staged close,
// backpressure, timeouts, ceilings, drain.
#include "net/connection.hpp"

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

// RFC 9110 9.3.2, whatever the answer says and whenever it is known that there will be one.
TEST(Connection, no_answer_to_a_head_has_content) {
    const std::string head = "HEAD /body HTTP/1.1\r\nHost: h\r\n";
    for (const std::string& octets :
         {std::string("HEAD /body HTTP/1.1\r\nHost:"), head + "Content-Length: 5\r\n\r\na",
          head + "Transfer-Encoding: chunked\r\n\r\n5\r\na", head + "Host : h\r\n\r\n",
          head + "Transfer-Encoding: chunked\r\n\r\nx", head + "Content-Length: x\r\n\r\n",
          head + "Content-Length: 99999999999\r\n\r\n"}) {
        for (const bool ends : {false, true}) {
            Wire wire;
            const std::uint32_t id = wire.connect();
            wire.feed(id, octets);
            if (ends) wire.end(id);
            wire.pass(40000);
            const std::string& sent = wire.sent(id);
            LAW(statuses(sent).size() == 1 && sent.ends_with("\r\n\r\n"), << visible(sent));
        }
    }
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
        ServerSettings settings;
        settings.limits.pending_output_max = 65536;
        Wire wire(settings);
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

TEST(Connection, what_waits_may_grow_to_its_bound_before_reading_stops) {
    for (const std::uint64_t bound : {65536U, 262144U, 1000000U}) {
        ServerSettings settings;
        settings.limits.pending_output_max = bound;
        Wire wire(settings);
        const std::uint32_t id = wire.connect();
        wire.give_room(id, 0);
        std::size_t answered = 0;
        while (wire.reading(id)) {
            LAW(answered * 114 <= bound, << answered);
            wire.feed(id, kGet);
            ++answered;
        }
        LAW(answered == bound / 114 + 1, << answered);
        LAW(wire.connections().arena().bytes_in_use() < 2 * bound + 131072);
        for (unsigned turn = 0; turn < 40 && wire.sent(id).size() < answered * 114; ++turn)
            wire.give_room(id, 33333);
        LAW(statuses(wire.sent(id)) == Statuses(answered, 200), << wire.sent(id).size());
        LAW(wire.reading(id) && wire.connections().arena().bytes_in_use() == 0);
    }
    // The time limit on sending holds though requests still come.
    Wire wire;
    const std::uint32_t id = wire.connect();
    wire.give_room(id, 0);
    wire.feed(id, kGet);
    for (unsigned i = 0; i < 29; ++i) {
        wire.pass(1000);
        LAW(wire.alive(id) && wire.reading(id));
        wire.feed(id, kGet);
    }
    wire.pass(1000 + 2 * kTickMs);
    LAW(!wire.alive(id));
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
            expect_timeout(wire, goes_on, 10000, 408);  // from its first octet on
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

TEST(Connection, content_that_would_not_be_read_is_not_waited_for) {
    Wire wire;
    const std::uint32_t id = wire.connect();
    wire.feed(id, request("POST /early HTTP/1.1", "Content-Length: 262145\r\n"));
    LAW(wire.shut(id) && wire.sent(id).find("\r\nConnection: close\r\n") != std::string::npos);
    const std::uint32_t other = wire.connect();
    wire.feed(other, request("POST /early HTTP/1.1", "Content-Length: 262144\r\n"));
    LAW(!wire.shut(other) && wire.sent(other).find("Connection: close") == std::string::npos);
}

Reason answer_unsafely(const Request&, ResponseWriter& writer) {
    return writer.write(200, {{"X", "a\r\nSet-Cookie: smuggled=1"}}, "never") ? Reason::kNone
                                                                              : writer.fault();
}
Reason answer_shortly(const Request& asked, ResponseWriter& writer) {
    return writer.write(200, {}, asked.content) ? Reason::kNone : writer.fault();
}
Route own_route(std::string_view path, Reason (*function)(const Request&, ResponseWriter&)) {
    Route route{path, Handler::kFunction, true, false, false, 0xFFFF, "GET, POST"};
    route.function = function;
    return route;
}

TEST(Connection, a_handler_that_fails_is_a_500_and_breaks_no_framing) {
    ServerSettings settings;
    settings.routes = {own_route("/fails", answer_unsafely)};
    for (const std::string& ask :
         {request("GET /fails HTTP/1.1"),
          request("POST /fails HTTP/1.1", "Content-Length: 3\r\n", "abc")}) {
        const Talk talk = talk_every_way(ask + kGet, settings);
        LAW(statuses(talk.sent) == Statuses{500} && talk.closed, << visible(talk.sent));
        LAW(talk.sent.find("smuggled") == std::string::npos);
        LAW(talk.sent.find("\r\nConnection: close\r\n") != std::string::npos);
    }
}

TEST(Connection, what_a_route_asks_of_content) {
    ServerSettings settings;
    Route small = own_route("/small", answer_shortly);
    small.body_max = 5;
    Route sized = own_route("/sized", answer_shortly);
    sized.wants_length = true;
    Route typed = own_route("/typed", answer_shortly);
    typed.media_type = "application/json";
    settings.routes = {small, sized, typed};
    const auto expect = [&](const std::string& path, const std::string& fields,
                            const std::string& content, Statuses wanted) {
        const Talk talk =
            talk_every_way(request("POST " + path + " HTTP/1.1", fields, content) + kGet, settings);
        LAW(statuses(talk.sent) == wanted, << path << fields << visible(talk.sent));
    };
    expect("/small", "Content-Length: 5\r\n", "hello", {200, 200});
    expect("/small", "Content-Length: 6\r\n", "hello!", {413});
    expect("/small", "Transfer-Encoding: chunked\r\n", "5\r\nhello\r\n0\r\n\r\n", {200, 200});
    expect("/small", "Transfer-Encoding: chunked\r\n", "5\r\nhello\r\n1\r\n!\r\n0\r\n\r\n", {413});
    expect("/sized", "Content-Length: 6\r\n", "hello!", {200, 200});
    expect("/sized", "", "", {200, 200});
    expect("/sized", "Transfer-Encoding: chunked\r\n", "5\r\nhello\r\n0\r\n\r\n", {411, 200});
    for (const char* good : {"application/json", "Application/JSON ; charset=utf-8"}) {
        expect("/typed", "Content-Length: 2\r\nContent-Type: " + std::string(good) + "\r\n", "{}",
               {200, 200});
    }
    for (const char* bad :
         {"", "Content-Type: text/plain\r\n", "Content-Type: application/jsonx\r\n"}) {
        expect("/typed", "Content-Length: 2\r\n" + std::string(bad), "{}", {415, 200});
    }
    expect("/typed", "", "", {200, 200});
    // Refused before a 100 is promised.
    Wire wire(settings);
    const std::uint32_t id = wire.connect();
    wire.feed(id, request("POST /small HTTP/1.1", "Expect: 100-continue\r\nContent-Length: 6\r\n"));
    LAW(statuses(wire.sent(id)) == Statuses{413});
}

TEST(Connection, choices_beyond_strictness) {
    ServerSettings settings;
    settings.choices.refuse_empty_codings = true;
    settings.choices.refuse_framing_trailers = true;
    settings.choices.refuse_repeated_fields = true;
    const std::string chunks = "1\r\na\r\n0\r\n";
    for (const auto& [fields, content] : std::vector<std::pair<std::string, std::string>>{
             {"Transfer-Encoding: ,chunked\r\n", chunks + "\r\n"},
             {"Transfer-Encoding: chunked\r\n", chunks + "Host: evil\r\n\r\n"},
             {"Content-Type: a/b\r\nX: y\r\nContent-Type: a/b\r\n", ""}}) {
        const std::string ask = request("POST /body HTTP/1.1", fields, content) + kGet;
        LAW(statuses(talk_every_way(ask).sent) == (Statuses{200, 200}), << fields);
        const Talk talk = talk_every_way(ask, settings);
        LAW(statuses(talk.sent) == Statuses{400} && talk.closed, << fields);
    }
    LAW(statuses(
            talk_every_way(request("FOO / HTTP/1.1", "From: a\r\nFrom: b\r\n"), settings).sent) ==
        Statuses{400});
    LAW(statuses(talk_every_way(request("POST /body HTTP/1.1", "Accept: a\r\nAccept: b\r\n") + kGet,
                                settings)
                     .sent) == (Statuses{200, 200}));
}

TEST(Connection, an_observer_is_told_each_fault_and_each_answer_once) {
    struct Recorder final : Observer {
        std::string log;
        void on_error(const ErrorEvent& event) override {
            log += std::string("!") + error_row(event.reason).name;
            if (event.offset != ErrorEvent::kNoOffset) log += "@" + std::to_string(event.offset);
            log += ' ';
        }
        bool answer_error(const ErrorEvent& event, ResponseWriter& writer) override {
            return event.reason == Reason::kNotFound &&
                   writer.write(404, {{"Content-Type", "text/html"}}, "<p>nothing here");
        }
        void on_answer(const AnswerEvent& event) override {
            log += std::string(event.method) + "," + std::string(event.target) + "," +
                   std::string(event.version) + "," + std::to_string(event.status) + "," +
                   std::to_string(event.content_size) + (event.error != nullptr ? "!" : "") + ' ';
        }
    };
    struct Row {
        std::string octets;
        const char* log;
    };
    for (const Row& row : std::vector<Row>{
             {kGet, "GET,/hello,HTTP/1.1,200,12 "},
             {request("HEAD /hello HTTP/1.1"), "HEAD,/hello,HTTP/1.1,200,0 "},
             {request("POST /body?q HTTP/1.1", "Content-Length: 3\r\n", "abc"),
              "POST,/body?q,HTTP/1.1,200,3 "},
             {"GET / HTTP/1.0\r\n\r\n", "GET,/,HTTP/1.0,200,12 "},
             {request("GET /404 HTTP/1.1"), "!not-found GET,/404,HTTP/1.1,404,15! "},
             {request("POST /get-only HTTP/1.1"),
              "!method-not-allowed POST,/get-only,HTTP/1.1,405,19! "},
             {kGet + "GET /a%zz HTTP/1.1\r\n",
              "GET,/hello,HTTP/1.1,200,12 !target-percent@7 ,,,400,15! "},
             {request("POST /body HTTP/1.1", "Transfer-Encoding: chunked\r\n", "1\r\nab"),
              "!chunk-data-end@64 ,,,400,15! "},
             {"GET / HTTP/1.1\r\n\r\n", "!host-missing ,,,400,13! "}}) {
        for (const std::size_t step : {std::size_t{1}, std::size_t{9}, std::size_t{1000}}) {
            Recorder recorder;
            Wire wire;
            wire.connections().set_observer(&recorder);
            const std::uint32_t id = wire.connect();
            for (std::size_t at = 0; at < row.octets.size(); at += step) {
                wire.feed(id, std::string_view(row.octets).substr(at, step));
            }
            LAW(recorder.log == row.log, << visible(row.octets) << " " << recorder.log);
        }
    }
    Recorder recorder;
    Wire wire;
    wire.connections().set_observer(&recorder);
    const std::uint32_t id = wire.connect();
    wire.feed(id, request("GET /404 HTTP/1.1"));
    LAW(wire.sent(id).ends_with("Content-Length: 15\r\n\r\n<p>nothing here"));
    const std::uint32_t slow = wire.connect();
    wire.feed(slow, request("GET /slow HTTP/1.1"));
    wire.pass(600);
    LAW(recorder.log.ends_with(" GET,/slow,HTTP/1.1,200,12 "), << recorder.log);
    const std::uint32_t late = wire.connect();
    wire.feed(late, "GET");
    wire.pass(11000);
    LAW(recorder.log.ends_with(" !head-timeout ,,,408,13! "), << recorder.log);
}

TEST(Connection, a_long_name_of_the_server_only_costs_the_made_answer) {
    for (const std::size_t size : {std::size_t{0}, std::size_t{4}, DateLine::kServerNameMax}) {
        const std::string name(size, 's');
        ServerSettings settings;
        settings.server_name = name;
        const Talk talk = talk_every_way(kGet + kGet + request("GET /404 HTTP/1.1"), settings);
        LAW(statuses(talk.sent) == (Statuses{200, 200, 404}));
        std::size_t said = 0;
        for (std::size_t at = talk.sent.find("Server: " + name + "\r\n"); at != std::string::npos;
             at = talk.sent.find("Server: " + name + "\r\n", at + 1)) {
            ++said;
        }
        LAW(said == (size == 0 ? 0U : 3U), << said);
    }
}

TEST(Connection, metrics_are_all_workers_counters) {
    std::vector<const Counters*> all;
    ServerSettings settings;
    settings.routes = {{"/metrics", Handler::kMetrics, false, false, false, 0xFFFF, "GET, HEAD"}};
    settings.metrics = &all;
    Wire first(settings);
    Wire second(settings);
    all = {&first.connections().counters(), &second.connections().counters()};
    const std::uint32_t id = first.connect();
    first.feed(id, kGet + kGet);
    const std::uint32_t other = second.connect();
    second.feed(other, "GET /%zz HTTP/1.1\r\n");
    first.feed(id, request("GET /metrics HTTP/1.1"));
    const std::string& text = first.sent(id);
    LAW(text.find("\nhttpmark_requests_total{worker=\"0\"} 3\n") != std::string::npos, << text);
    LAW(text.find("\nhttpmark_requests_total{worker=\"1\"} 0\n") != std::string::npos);
    LAW(text.find("\nhttpmark_connections_accepted_total{worker=\"1\"} 1\n") != std::string::npos);
    LAW(text.find("\nhttpmark_errors_total{reason=\"target-percent\"} 1\n") != std::string::npos);
    LAW(text.find("not-found") == std::string::npos);
}

TEST(Connection, an_offer_to_upgrade_is_ignored) {
    const std::string websocket =
        "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
    for (const std::string& fields :
         {websocket, std::string("Connection: Upgrade\r\nUpgrade: nosuch/9\r\n"),
          std::string("Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n"
                      "HTTP2-Settings: AAMAAABk\r\n"),
          std::string("Connection: Upgrade\r\n"), std::string("Upgrade: websocket\r\n")}) {
        const Talk talk = talk_every_way(
            request("POST /body HTTP/1.1", fields + "Content-Length: 2\r\n", "ab") + kGet);
        LAW(statuses(talk.sent) == (Statuses{200, 200}), << fields);
        LAW(talk.sent.find("Upgrade") == std::string::npos);
    }
}

TEST(Connection, content_without_meaning_is_still_read) {
    const std::string smuggled = "GET /404 HTTP/1.1\r\nHost: h\r\n\r\n";
    const std::string length = "Content-Length: " + std::to_string(smuggled.size()) + "\r\n";
    char size[16];
    std::snprintf(size, sizeof size, "%zx\r\n", smuggled.size());
    for (const char* method : {"GET", "HEAD", "DELETE", "OPTIONS"}) {
        const std::string line = std::string(method) + " /hello HTTP/1.1";
        const std::string after = request(line) + kGet;
        const Statuses wanted = {200, 200, 200};
        // As many octets as answered heads: a HEAD is answered with a length and no content.
        const auto count = [](const Talk& talk) {
            std::size_t answers = 0;
            for (std::size_t at = 0; (at = talk.sent.find("HTTP/1.1 200", at)) != std::string::npos;
                 ++at) {
                ++answers;
            }
            return answers;
        };
        const Talk sized = talk_every_way(request(line, length, smuggled) + after);
        LAW(count(sized) == wanted.size() && sized.sent.find("404") == std::string::npos,
            << method);
        const Talk chunked = talk_every_way(
            request(line, "Transfer-Encoding: chunked\r\n", size + smuggled + "\r\n0\r\n\r\n") +
            after);
        LAW(count(chunked) == wanted.size() && chunked.sent.find("404") == std::string::npos,
            << method);
    }
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

TEST(Connection, a_request_is_measured_whole_whatever_it_is_made_of) {
    ServerSettings settings;
    settings.limits.request_max = 1024;
    const std::string fields = "X: " + std::string(1000, 'a') + "\r\n";
    for (const std::string& octets :
         {request("GET /hello HTTP/1.1", fields), request("GET /body HTTP/1.1", fields),
          request("POST /body HTTP/1.1", fields + "Content-Length: 1\r\n", "a"),
          request("POST /body HTTP/1.1", fields + "Transfer-Encoding: chunked\r\n", "0\r\n\r\n")}) {
        LAW(statuses(once(octets, settings).sent) == Statuses{413}, << visible(octets));
    }
    LAW(statuses(once(kGet, settings).sent) == Statuses{200});
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
