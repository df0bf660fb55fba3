// What a connection answers, and when its framing or a choice lets it live on.
#include <string>
#include <vector>

#include "net/connection.hpp"
#include "net/requests.hpp"

namespace httpmark {
namespace {

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
constexpr Methods kGetAndPost = method_bit(Method::kGet) | method_bit(Method::kPost);

TEST(Connection, a_handler_that_fails_is_a_500_and_breaks_no_framing) {
    Router::Builder routes;
    routes.add(kGetAndPost, "/fails", answer_unsafely);
    const auto router = built(routes);
    ServerSettings settings;
    settings.router = router.get();
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
    Router::Builder routes;
    routes.add(kAnyMethod, "/{rest...}", Answer(200, {}, "hello"));
    routes.add(kGetAndPost, "/small", answer_shortly, {.wants_content = true, .body_max = 5});
    routes.add(kGetAndPost, "/sized", answer_shortly,
               {.wants_content = true, .wants_length = true});
    routes.add(kGetAndPost, "/typed", answer_shortly,
               {.wants_content = true, .media_type = "application/json"});
    const auto router = built(routes);
    ServerSettings settings;
    settings.router = router.get();
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
            log += std::string(event.method()) + "," + std::string(event.target()) + "," +
                   std::string(event.version()) + "," + std::to_string(event.status) + "," +
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
        // As many bytes as answered heads: a HEAD is answered with a length and no content.
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

}  // namespace
}  // namespace httpmark
