// Hooks around every kind of answer, what an application says of refusals, and what becomes of a
// request whose handler throws.
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "answers.hpp"
#include "app/content_reader.hpp"
#include "app/later_answer.hpp"
#include "app/static_files.hpp"
#include "files/tree.hpp"
#include "net/connection.hpp"
#include "net/requests.hpp"
#include "routes.hpp"

namespace httpmark {
namespace {

const std::string kHandshake =
    "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
const std::string kLong(3000, 'l');

// In two pieces.
class Halves final : public ContentStream {
  public:
    Piece read(std::span<char> room) override {
        room[0] = 'h';
        return {1, std::exchange(first_, false) ? State::kMore : State::kEnd};
    }

  private:
    bool first_ = true;
};

// Answers with what has come, or early.
class Collector final : public ContentReader {
  public:
    explicit Collector(bool early) : early_(early) {}
    Flow on_piece(std::string_view piece, ResponseWriter& writer) override {
        content_ += piece;
        if (early_) LAW(writer.write(200, {}, "early"));
        return Flow::kMore;
    }
    Reason on_end(const Request&, ResponseWriter& writer) override {
        return writer.answer(200, {}, content_);
    }

  private:
    bool early_;
    std::string content_;
};

Handler reading(bool early) {
    return [early](const Request&, ResponseWriter& writer) {
        return writer.read_content(std::make_unique<Collector>(early)) ? Reason::kNone
                                                                       : writer.fault();
    };
}

// Routes of every kind.
class Kinds {
  public:
    Kinds() {
        tree_.file("file", kLong + kLong + kLong + kLong);
        std::string error;
        files_ = StaticFiles::open(tree_.at(".").c_str(), {}, error);
        CHECK(files_ != nullptr);
    }
    void add(Router::Builder& routes) {
        const auto content = [](const Request& asked, ResponseWriter& writer) {
            return writer.answer(200, {}, asked.content);
        };
        const Answer constant(200, {{"Content-Type", "text/plain"}}, kLong);
        routes.add(Method::kGet, "/constant", constant);
        routes.add(Method::kGet, "/constant/coded", constant, {.codes_answers = true});
        routes.add(kAnyMethod, "/any/{name}", [](const Request& asked, ResponseWriter& writer) {
            return writer.answer(200, {}, asked.value("name"));
        });
        routes.add(Method::kPost, "/content", content, {.wants_content = true});
        routes.add(Method::kPost, "/short", content, {.wants_content = true, .body_max = 5});
        routes.add(Method::kPost, "/typed", content, {.media_type = "a/b"});
        routes.add(Method::kPost, "/early", Answer(200, {}, "early"), {.early = true});
        routes.add(kAnyMethod, "/read", reading(false), {.streams = true});
        routes.add(kAnyMethod, "/read/early", reading(true), {.streams = true});
        routes.add(kAnyMethod, "/stream", [](const Request&, ResponseWriter& writer) {
            return writer.write_stream(200, {}, std::make_unique<Halves>()) ? Reason::kNone
                                                                            : writer.fault();
        });
        routes.add(kAnyMethod, "/deferred", [](const Request& asked, ResponseWriter& writer) {
            if (asked.asked_again) return writer.answer(200, {}, "deferred");
            writer.defer(100);
            return Reason::kNone;
        });
        routes.add(kAnyMethod, "/later",
                   [this](const Request&, ResponseWriter& writer) {
                       later_.push_back(writer.later());
                       return Reason::kNone;
                   },
                   {.wants_content = true});
        routes.add(kAnyMethod, "/fails",
                   [](const Request&, ResponseWriter&) { return Reason::kFileFailed; });
        routes.add_websocket("/socket", {.on_message = [](WebSocket&, const WebSocketMessage&) {}});
        StaticFiles::add(routes, "/files", files_);
    }
    void complete() {
        for (LaterAnswer& answer : later_) answer.complete(200, {}, "later");
        later_.clear();
    }

  private:
    Tree tree_;
    std::shared_ptr<const StaticFiles> files_;
    std::vector<LaterAnswer> later_;
};

// Everything that a connection sends, where the bytes come in two parts and time passes.
std::string transcript(const ServerSettings& settings, Kinds& kinds, std::string_view octets,
                       std::size_t cut) {
    Wire wire(settings);
    const std::uint32_t id = wire.connect();
    const auto goes_on = [&] {
        for (unsigned i = 0; i < 4; ++i) {
            kinds.complete();
            wire.deliver();
            wire.pass(200);
        }
    };
    wire.feed(id, octets.substr(0, cut));
    goes_on();
    wire.feed(id, octets.substr(cut));
    goes_on();
    wire.end(id);
    wire.pass(10000);
    LAW(wire.connections().open_count() == 0);
    LAW(wire.connections().arena().bytes_in_use() == 0);
    return wire.sent(id);
}

// Two of it in one call, which only chunks make differ.
std::size_t count_of(std::string_view text, std::string_view part) {
    std::size_t count = 0;
    for (std::size_t at = 0; (at = text.find(part, at)) != std::string_view::npos; ++at) ++count;
    return count;
}

struct Asked {
    std::string octets;
    std::string told;        // by the hooks
    bool is_broken = false;  // it has content after which the next request cannot be found
};

std::vector<Asked> every_kind() {
    const std::string five = "Content-Length: 5\r\n";
    const std::string chunks = "5\r\nhello\r\n0\r\n\r\n";
    const std::string chunked = "Transfer-Encoding: chunked\r\n";
    const std::string gzipped = std::to_string(coded(ContentCoding::kGzip, kLong).size());
    return {
        {request("GET /constant HTTP/1.1"), "<1 <2 >1 200 3000 >2 "},
        {request("GET /constant?q HTTP/1.0", "Connection: keep-alive\r\n"),
         "<1 <2 >1 200 3000 >2 "},
        {request("HEAD /constant HTTP/1.1"), "<1 <2 >1 200 0 >2 "},
        {request("GET /constant/coded HTTP/1.1", "Accept-Encoding: gzip\r\n"),
         "<1 <2 >1 200 " + gzipped + " >2 "},
        {request("GET http://h/any/x HTTP/1.1"), "<1 <2 >1 200 1 >2 "},
        {request("POST /any/x HTTP/1.1", five, "hello"), "<1 <2 >1 200 1 >2 "},
        {request("POST /any/x HTTP/1.1", chunked, chunks), "<1 <2 >1 200 1 >2 "},
        {request("OPTIONS /constant HTTP/1.1"), "<1 <2 >1 204 0 >2 "},
        {request("OPTIONS * HTTP/1.1"), "<1 <2 >1 204 0 >2 "},
        {request("GET /nowhere HTTP/1.1"), "<1 <2 >1 404 10 not-found >2 "},
        {request("POST /nowhere HTTP/1.1", five, "hello"), "<1 <2 >1 404 10 not-found >2 "},
        {request("POST /constant HTTP/1.1", chunked, chunks),
         "<1 <2 >1 405 19 method-not-allowed >2 "},
        {request("POST /content HTTP/1.1", five, "hello"), "<1 <2 >1 200 5 >2 "},
        {request("POST /content HTTP/1.1", chunked, chunks), "<1 <2 >1 200 5 >2 "},
        {request("POST /content HTTP/1.1", chunked, "x"), "<1 <2 >1 400 18 chunk-size-syntax >2 ",
         true},
        {request("POST /content HTTP/1.1", "Expect: 100-continue\r\n" + five, "hello"),
         "<1 <2 >1 200 5 >2 ", true},
        {request("POST /short HTTP/1.1", chunked, "6\r\nhello!\r\n0\r\n\r\n"),
         "<1 <2 >1 413 21 chunk-size-too-large >2 ", true},
        {request("POST /typed HTTP/1.1", five, "hello"), "<1 <2 >1 415 11 media-type >2 "},
        {request("POST /early HTTP/1.1", five, "hello"), "<1 <2 >1 200 5 >2 "},
        {request("POST /early HTTP/1.1", chunked, chunks), "<1 <2 >1 200 5 >2 "},
        {request("POST /read HTTP/1.1", five, "hello"), "<1 <2 >1 200 5 >2 "},
        {request("POST /read HTTP/1.1", chunked, chunks), "<1 <2 >1 200 5 >2 "},
        {request("GET /read HTTP/1.1"), "<1 <2 >1 200 0 >2 "},
        {request("POST /read/early HTTP/1.1", five, "hello"), "<1 <2 >1 200 5 >2 "},
        {request("GET /stream HTTP/1.1"), "<1 <2 >1 200 - >2 "},
        {request("HEAD /stream HTTP/1.1"), "<1 <2 >1 200 0 >2 "},
        {request("GET /deferred HTTP/1.1"), "<1 <2 >1 200 8 >2 "},
        {request("POST /deferred HTTP/1.1", chunked, chunks), "<1 <2 >1 200 8 >2 "},
        {request("GET /later HTTP/1.1"), "<1 <2 >1 200 5 >2 "},
        {request("POST /later HTTP/1.1", chunked, chunks), "<1 <2 >1 200 5 >2 "},
        {request("GET /fails HTTP/1.1"), "<1 <2 >1 500 12 file-failed >2 "},
        {request("GET /socket HTTP/1.1", kHandshake), "<1 <2 >1 101 0 >2 "},
        {request("GET /socket HTTP/1.1", kHandshake + kHandshake),
         "<1 <2 >1 400 18 handshake-invalid >2 "},
        {request("GET /socket HTTP/1.1"), "<1 <2 >1 426 17 upgrade-required >2 "},
        {request("GET /files/file HTTP/1.1"), "<1 <2 >1 200 12000 >2 "},
        {request("GET /files/file HTTP/1.1", "Range: bytes=0-1\r\n"), "<1 <2 >1 206 2 >2 "},
        {request("GET /files/none HTTP/1.1"), "<1 <2 >1 404 10 not-found >2 "},
        // What no route is asked for is no matter of hooks.
        {request("FOO /constant HTTP/1.1"), ""},
        {"GET / HTTP/1.1\r\n\r\n", ""},
        {"GET /%zz HTTP/1.1\r\n", ""},
        {request("POST /short HTTP/1.1", "Content-Length: 6\r\n", "hello!"), ""},
    };
}

TEST(ConnectionHooks, each_answer_of_a_route_is_seen_once_and_is_otherwise_the_same) {
    Kinds kinds;
    std::string told;
    Router::Builder without;
    kinds.add(without);
    Router::Builder with;
    kinds.add(with);
    for (const char* number : {"1", "2"}) {
        with.before([&told, number](const Request& asked, ResponseWriter& writer) {
            LAW(asked.data != nullptr && asked.peer() == "192.0.2.7:5000");
            LAW(writer.is_untouched() && asked.content.empty());
            told += std::string("<") + number + ' ';
            return Reason::kNone;
        });
        with.after([&told, number](const Request& asked, AnswerHead& head) {
            LAW(asked.data != nullptr && asked.peer() == "192.0.2.7:5000");
            told += std::string(">") + number + ' ';
            LAW(head.add("X-Path", asked.target.path));
            if (*number != '1') return;
            told += std::to_string(head.status()) + ' ';
            told += head.content_size() ? std::to_string(*head.content_size()) + ' ' : "- ";
            if (head.refusal() == Reason::kNone) return;
            told += std::string(error_row(head.refusal()).name) + ' ';
        });
    }
    const auto plain_router = built(without);
    const auto router = built(with);
    ServerSettings plain;
    plain.router = plain_router.get();
    ServerSettings hooked;
    hooked.router = router.get();
    for (const Asked& asked : every_kind()) {
        const std::string end = request("GET /any/end HTTP/1.0");
        const std::string octets = asked.octets + end;
        const std::size_t space = asked.octets.find(' ') + 1;
        std::string path = asked.octets.substr(space, asked.octets.find(' ', space) - space);
        path = path.substr(path.find("/h/") == std::string::npos ? 0 : path.find("/h/") + 2);
        const std::string line = "X-Path: " + path.substr(0, path.find('?')) + "\r\n";
        for (std::size_t cut = 0; cut < octets.size(); ++cut) {
            const std::string wanted = transcript(plain, kinds, octets, cut);
            told.clear();
            std::string got = transcript(hooked, kinds, octets, cut);
            LAW(told.starts_with(asked.told), << visible(asked.octets) << cut << " " << told);
            const std::string rest = told.substr(std::min(asked.told.size(), told.size()));
            LAW(rest == (got.ends_with("end") ? "<1 <2 >1 200 3 >2 " : ""), << rest);
            for (const std::string& one : {line, std::string("X-Path: /any/end\r\n")}) {
                for (std::size_t at = 0; (at = got.find(one)) != std::string::npos;) {
                    got.erase(at, one.size());
                }
            }
            LAW(got == wanted, << visible(octets) << cut << "\n"
                               << visible(got) << "\n"
                               << visible(wanted));
        }
    }
}

// Whatever the route is, and whether its content comes or not, there is one answer, and the next
// request is looked at where it begins.
TEST(ConnectionHooks, one_that_answers_has_answered) {
    for (const bool refuses : {false, true}) {
        Kinds kinds;
        unsigned asked_last = 0;
        Router::Builder routes;
        kinds.add(routes);
        routes.before([refuses](const Request& asked, ResponseWriter& writer) {
            if (asked.target.path == "/any/end") return Reason::kNone;
            return refuses ? Reason::kForbidden
                           : writer.answer(401, {{"WWW-Authenticate", "Basic"}}, "no");
        });
        routes.before([&](const Request& asked, ResponseWriter&) {
            LAW(asked.target.path == "/any/end", << asked.target.path);
            ++asked_last;
            return Reason::kNone;
        });
        const auto router = built(routes);
        ServerSettings settings;
        settings.router = router.get();
        for (const Asked& asked : every_kind()) {
            if (asked.told.empty() || asked.is_broken) continue;
            const std::string octets = asked.octets + request("GET /any/end HTTP/1.0");
            const bool to_head = octets.starts_with("HEAD");
            for (std::size_t cut = 0; cut < octets.size(); ++cut) {
                asked_last = 0;
                const std::string got = transcript(settings, kinds, octets, cut);
                const std::string first = refuses ? "HTTP/1.1 403 " : "HTTP/1.1 401 ";
                LAW(got.starts_with(first) && got.ends_with("\r\n\r\nend"),
                    << visible(octets) << cut << visible(got));
                LAW(count_of(got, "HTTP/1.1 ") == 2 && asked_last == 1);
                LAW(count_of(got, refuses ? "forbidden\n" : "\r\n\r\nno") == (to_head ? 0 : 1));
            }
        }
    }
}

TEST(ConnectionHooks, an_answer_before_the_content_promises_none_and_keeps_in_step_or_closes) {
    Router::Builder routes;
    routes.add(Method::kPost, "/content",
               [](const Request&, ResponseWriter&) {
                   ADD_FAILURE() << "it is not to be asked";
                   return Reason::kNone;
               },
               {.wants_content = true});
    routes.before([](const Request& asked, ResponseWriter& writer) {
        LAW(asked.content.empty());
        return writer.answer(401, {}, "no");
    });
    const auto router = built(routes);
    ServerSettings settings;
    settings.router = router.get();
    Wire wire(settings);
    const std::string line = "POST /content HTTP/1.1";
    const std::uint32_t expects = wire.connect();
    wire.feed(expects, request(line, "Expect: 100-continue\r\nContent-Length: 5\r\n"));
    LAW(wire.sent(expects).starts_with("HTTP/1.1 401 ") && wire.shut(expects));
    LAW(wire.sent(expects).find("\r\nConnection: close\r\n") != std::string::npos);
    const std::uint32_t big = wire.connect();
    wire.feed(big, request(line, "Content-Length: 262145\r\n"));
    LAW(statuses(wire.sent(big)) == Statuses{401} && wire.shut(big));
    const std::uint32_t small = wire.connect();
    wire.feed(small, request(line, "Content-Length: 262144\r\n"));
    LAW(statuses(wire.sent(small)) == Statuses{401} && !wire.shut(small));
    for (unsigned i = 0; i < 256; ++i) wire.feed(small, std::string(1024, 'x'));
    wire.feed(small, request(line, "Content-Length: 0\r\n"));
    LAW(statuses(wire.sent(small)) == (Statuses{401, 401}) && !wire.shut(small));
}

TEST(ConnectionHooks, one_that_puts_its_answer_off_or_throws_has_failed) {
    class Nobody final : public ContentReader {
        Flow on_piece(std::string_view, ResponseWriter&) override { return Flow::kMore; }
        Reason on_end(const Request&, ResponseWriter&) override { return Reason::kNone; }
        void on_abort(Reason) override { ADD_FAILURE() << "it was never asked to read"; }
    };
    std::vector<LaterAnswer> kept;
    const std::vector<Handler> wrong = {
        [](const Request&, ResponseWriter& writer) {
            writer.defer(1);
            return Reason::kNone;
        },
        [&](const Request&, ResponseWriter& writer) {
            kept.push_back(writer.later());
            return Reason::kNone;
        },
        [](const Request&, ResponseWriter& writer) {
            LAW(writer.read_content(std::make_unique<Nobody>()));
            return Reason::kNone;
        },
        [](const Request&, ResponseWriter&) -> Reason { throw std::runtime_error("hook"); },
    };
    for (const Handler& hook : wrong) {
        Kinds kinds;
        Router::Builder routes;
        kinds.add(routes);
        routes.before(hook);
        const auto router = built(routes);
        ServerSettings settings;
        settings.router = router.get();
        for (const Asked& asked : every_kind()) {
            if (asked.told.empty()) continue;
            const Talk talk = talk_every_way(asked.octets + kGet, settings);
            LAW(talk.sent.starts_with("HTTP/1.1 500 ") && talk.closed, << visible(talk.sent));
            LAW(count_of(talk.sent, "HTTP/1.1 ") == 1);
            for (LaterAnswer& answer : kept) LAW(answer.gone());
            kept.clear();
        }
    }
}

TEST(ConnectionHooks, those_of_a_path_are_asked_for_it_alone_in_their_order) {
    std::string told;
    const auto before = [&told](const char* name) {
        return Handler([&told, name](const Request&, ResponseWriter&) {
            told += name;
            return Reason::kNone;
        });
    };
    const auto after = [&told](const char* name) {
        return [&told, name](const Request&, AnswerHead&) { told += name; };
    };
    Router::Builder routes;
    routes.add(kAnyMethod, "/a/b", Answer(200, {}, "a"));
    routes.add(kAnyMethod, "/{one}/c", Answer(200, {}, "c"));
    routes.add(kAnyMethod, "/a", Answer(200, {}, "a"));
    routes.before(before("1"), "/a").after(after("3"), "/a/b").before(before("2"));
    routes.after(after("4"), "/").before(before("5"), "/a/b/");
    const auto router = built(routes);
    ServerSettings settings;
    settings.router = router.get();
    for (const auto& [path, wanted] :
         std::vector<std::pair<std::string, std::string>>{{"/a/b", "12534"},
                                                          {"/a/c", "124"},
                                                          {"/%61/c", "124"},
                                                          {"/b/c", "24"},
                                                          {"/a", "124"},
                                                          {"/ab", "24"},
                                                          {"/a/b/c", "12534"},
                                                          {"/%61%2fb", "12534"}}) {
        told.clear();
        once(request("GET " + path + " HTTP/1.1"), settings);
        LAW(told == wanted, << path << " " << told);
        told.clear();
        once(request("POST " + path + " HTTP/1.1", "Transfer-Encoding: chunked\r\n", "0\r\n\r\n"),
             settings);
        LAW(told == wanted, << path << " " << told);
    }
}

TEST(ConnectionHooks, one_after_an_answer_cannot_spoil_it) {
    Kinds kinds;
    Router::Builder without;
    kinds.add(without);
    Router::Builder with;
    kinds.add(with);
    with.after([](const Request&, AnswerHead& head) {
        LAW(!head.add("X", "a\r\nContent-Length: 0") && !head.add("Content-Length", "0"));
        LAW(!head.add("Transfer-Encoding", "chunked") && !head.add("Connection", "close"));
        LAW(head.add("X-Lost", "lost"));
        throw std::runtime_error("after");
    });
    const auto plain_router = built(without);
    const auto router = built(with);
    ServerSettings plain;
    plain.router = plain_router.get();
    ServerSettings hooked;
    hooked.router = router.get();
    for (const Asked& asked : every_kind()) {
        const std::string octets = asked.octets + request("GET /any/end HTTP/1.0");
        LAW(transcript(hooked, kinds, octets, 9) == transcript(plain, kinds, octets, 9),
            << visible(octets));
    }
}

TEST(ConnectionHooks, an_answer_that_does_not_come_in_time_is_seen_too) {
    std::vector<LaterAnswer> kept;
    std::string told;
    Router::Builder routes;
    routes.add(kAnyMethod, "/later", [&](const Request&, ResponseWriter& writer) {
        kept.push_back(writer.later());
        return Reason::kNone;
    });
    routes.add(kAnyMethod, "/content", Answer(200, {}, "x"), {.wants_content = true});
    routes.after([&](const Request& asked, AnswerHead& head) {
        told += std::string(asked.target.path) + ' ' + std::to_string(head.status()) + ' ';
    });
    const auto router = built(routes);
    ServerSettings settings;
    settings.router = router.get();
    settings.limits.handler_timeout_ms = 1000;
    for (const auto& [octets, wanted] : std::vector<std::pair<std::string, std::string>>{
             {request("GET /later HTTP/1.1"), "/later 503 "},
             {request("POST /content HTTP/1.1", "Content-Length: 5\r\n", "abc"),
              "/content 408 "}}) {
        told.clear();
        Wire wire(settings);
        const std::uint32_t id = wire.connect();
        wire.feed(id, octets);
        wire.pass(1200);
        wire.pass(60000);
        LAW(told == wanted, << told);
        kept.clear();
        wire.deliver();
        LAW(told == wanted, << told);
    }
}

}  // namespace
}  // namespace httpmark
