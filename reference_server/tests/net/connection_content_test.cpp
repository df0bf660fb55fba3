// Content that a handler takes piece by piece.
#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "app/content_reader.hpp"
#include "app/later_answer.hpp"
#include "app/waker.hpp"
#include "net/connection.hpp"
#include "net/requests.hpp"
#include "routes.hpp"

namespace httpmark {
namespace {

using Flow = ContentReader::Flow;

// What became of the uploads to /upload, and what is to be done with them.
struct Uploads {
    std::string content;
    std::string trailers;
    std::vector<Reason> aborted;
    std::vector<Waker> wakers;
    unsigned ended = 0;
    unsigned destroyed = 0;
    unsigned woken = 0;
    bool begins_paused = false;
    std::function<Flow(ResponseWriter&)> on_piece = [](ResponseWriter&) { return Flow::kMore; };
    std::function<Flow(ResponseWriter&)> on_woken = on_piece;
    std::function<Reason(ResponseWriter&)> on_end;
    std::function<bool(ResponseWriter&)> on_head;  // true where it has answered
    std::shared_ptr<const Router> router;
    ServerSettings settings;

    explicit Uploads(RouteOptions options = {}) {
        options.streams = true;
        Router::Builder routes;
        routes.add(
            kAnyMethod, "/upload",
            [this](const Request& r, ResponseWriter& w) { return ask(r, w); }, std::move(options));
        routes.add(kAnyMethod, "/hello", Answer(200, {}, "hello"));
        router = built(routes);
        settings.router = router.get();
    }
    Uploads(const Uploads&) = delete;
    Uploads& operator=(const Uploads&) = delete;

  private:
    class Reader final : public ContentReader {
      public:
        explicit Reader(Uploads& all) : all_(all) {}
        ~Reader() override { ++all_.destroyed; }
        Flow on_piece(std::string_view piece, ResponseWriter& writer) override {
            LAW(!piece.empty() && !over_);
            all_.content += piece;
            return all_.on_piece(writer);
        }
        Reason on_end(const Request& request, ResponseWriter& writer) override {
            LAW(!std::exchange(over_, true));
            ++all_.ended;
            all_.trailers += request.trailers;
            LAW(request.target.path == "/upload");
            if (all_.on_end) return all_.on_end(writer);
            const std::string text = '[' + all_.content + '|' + all_.trailers + ']';
            all_.content.clear();
            all_.trailers.clear();
            return writer.write(200, {}, text) ? Reason::kNone : writer.fault();
        }
        void on_abort(Reason reason) override {
            LAW(!std::exchange(over_, true));
            all_.aborted.push_back(reason);
        }
        Flow on_woken(ResponseWriter& writer) override {
            LAW(!over_);
            ++all_.woken;
            return all_.on_woken(writer);
        }

      private:
        Uploads& all_;
        bool over_ = false;
    };
    Reason ask(const Request& request, ResponseWriter& writer) {
        LAW(request.content.empty());
        wakers.push_back(writer.waker());
        if (on_head && on_head(writer)) return Reason::kNone;
        LAW(writer.read_content(std::make_unique<Reader>(*this), begins_paused));
        LAW(!writer.write(200, {}, "x") && !writer.later(), << "the reader answers");
        return Reason::kNone;
    }
};

std::string upload(const std::string& fields, const std::string& content) {
    return request("POST /upload HTTP/1.1", fields, content);
}
const std::string kByLength = upload("Content-Length: 9\r\n", "some text");
const std::string kByChunks =
    upload("Transfer-Encoding: chunked\r\n", "4\r\nsome\r\n5;a=b\r\n text\r\n0\r\nT: v\r\n\r\n");

TEST(Content, comes_whole_and_once_at_every_split) {
    for (const bool chunked : {false, true}) {
        for (const char* more : {"", "X: y\r\n"}) {
            Uploads uploads;
            const std::string octets = (chunked ? kByChunks : kByLength) + kGet + upload(more, "") +
                                       upload("Content-Length: 0\r\n", "") + kGet;
            const Talk talk = talk_every_way(octets, uploads.settings);
            LAW(statuses(talk.sent) == (Statuses{200, 200, 200, 200, 200}));
            const std::string text = chunked ? "[some text|T: v\r\n\r\n]" : "[some text|]";
            LAW(talk.sent.find("\r\n\r\n" + text + "HTTP/1.1 200") != std::string::npos,
                << visible(talk.sent));
            LAW(uploads.aborted.empty() && uploads.ended == uploads.destroyed);
            LAW(uploads.ended == 3 * (octets.size() + 1));
        }
    }
}

TEST(Content, pauses_and_goes_on_whatever_comes_meanwhile) {
    for (std::uint64_t seed = 1; seed <= 300; ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        Random random(seed);
        Uploads uploads;
        uploads.begins_paused = random() % 3 == 0;
        uploads.on_piece = [&](ResponseWriter&) {
            return random() % 2 == 0 ? Flow::kPause : Flow::kMore;
        };
        uploads.on_woken = uploads.on_piece;
        std::string octets;
        std::string wanted;
        for (unsigned i = 0; i < 3; ++i) {
            std::string text(random() % 3000, 'a');
            for (char& c : text) c = static_cast<char>('a' + random() % 26);
            if (random() % 2 == 0) {
                octets += upload("Content-Length: " + std::to_string(text.size()) + "\r\n", text);
                wanted += '[' + text + "|]";
            } else {
                std::string chunks;
                for (std::size_t at = 0; at < text.size(); at += 9) {
                    const std::string chunk = text.substr(at, 9);
                    chunks += std::to_string(chunk.size()) + "\r\n" + chunk + "\r\n";
                }
                octets += upload("Transfer-Encoding: chunked\r\n", chunks + "0\r\n\r\n");
                wanted += '[' + text + "|\r\n]";
            }
            octets += kGet;
            wanted += "hello";
        }
        Wire wire(uploads.settings);
        const std::uint32_t id = wire.connect();
        std::size_t fed = 0;
        for (unsigned i = 0; i < 100000 && statuses(wire.sent(id)).size() < 6; ++i) {
            if (wire.reading(id) && fed < octets.size()) {
                const std::size_t size = 1 + random() % 700;
                wire.feed(id, octets.substr(fed, size));
                fed = std::min(fed + size, octets.size());
            } else if (random() % 2 == 0) {
                const unsigned woken = uploads.woken;
                uploads.wakers.back().wake();
                wire.deliver();
                LAW(uploads.woken <= woken + 1);
            }
            LAW(wire.connections().arena().bytes_in_use() <= 8192);
            wire.pass(10);
        }
        std::string got;
        std::string_view sent = wire.sent(id);
        for (std::size_t at = 0; (at = sent.find("\r\n\r\n")) != std::string_view::npos;) {
            const std::size_t length = sent.find("Content-Length: ") + 16;
            const std::size_t size = std::stoul(std::string(sent.substr(length, 9)));
            got += sent.substr(at + 4, size);
            sent.remove_prefix(at + 4 + size);
        }
        LAW(got == wanted, << visible(got));
        LAW(uploads.ended == 3 && uploads.destroyed == 3 && uploads.aborted.empty());
        LAW(wire.connections().arena().bytes_in_use() == 0);
    }
}

// While it pauses nothing is read, and what an engine had taken already is all that is held.
TEST(Content, a_pause_holds_the_client_back) {
    Uploads uploads;
    uploads.on_piece = [](ResponseWriter&) { return Flow::kPause; };
    uploads.settings.limits.body_timeout_ms = 500;
    uploads.settings.limits.body_rate_min = 0;
    Wire wire(uploads.settings);
    const std::uint32_t id = wire.connect();
    wire.feed(id, upload("Content-Length: 300000\r\n", std::string(1000, 'x')));
    LAW(!wire.reading(id) && uploads.content.size() == 1000);
    wire.feed(id, std::string(65536, 'y'));
    LAW(!wire.reading(id) && uploads.content.size() == 1000);
    LAW(wire.connections().arena().bytes_in_use() <= 65536 + 8192);
    for (unsigned i = 0; i < 100; ++i) wire.pass(1000);
    LAW(wire.alive(id) && uploads.aborted.empty(), << "the client is not to blame");
    uploads.wakers[0].wake();
    wire.deliver();
    LAW(uploads.content.size() == 1000 + 65536 && !wire.reading(id), << "and paused again");
    LAW(wire.connections().arena().bytes_in_use() <= 8192);
    uploads.on_piece = uploads.on_woken = [](ResponseWriter&) { return Flow::kMore; };
    uploads.wakers[0].wake();
    wire.deliver();
    LAW(wire.reading(id));
    wire.pass(100);
    LAW(wire.alive(id));
    wire.pass(600);  // now it is
    LAW(uploads.aborted == std::vector<Reason>{Reason::kBodyTimeout});
}

TEST(Content, a_pause_has_the_limit_of_a_handler) {
    Uploads uploads;
    uploads.begins_paused = true;
    uploads.settings.limits.handler_timeout_ms = 1000;
    Wire wire(uploads.settings);
    const std::uint32_t id = wire.connect();
    wire.feed(id, kByLength);
    wire.pass(1200);
    LAW(statuses(wire.sent(id)) == Statuses{503} && wire.shut(id));
    LAW(uploads.aborted == std::vector<Reason>{Reason::kHandlerTimeout});
    uploads.wakers[0].wake();
    wire.deliver();
    LAW(uploads.woken == 0);
}

TEST(Content, that_does_not_come_is_told_once) {
    struct Row {
        std::string octets;
        std::function<void(Wire&, std::uint32_t)> then;
        Reason reason;
        Statuses statuses;
    };
    const auto nothing = [](Wire&, std::uint32_t) {};
    const std::string chunks = "Transfer-Encoding: chunked\r\n";
    const std::vector<Row> rows = {
        {upload("Content-Length: 9\r\n", "some"),
         [](Wire& wire, std::uint32_t id) { wire.connections().on_broken(id); },
         Reason::kIncomplete,
         {}},
        {upload("Content-Length: 9\r\n", "some"),
         [](Wire& wire, std::uint32_t id) { wire.end(id); },
         Reason::kIncomplete,
         {400}},
        {upload("Content-Length: 9\r\n", "some"),
         [](Wire& wire, std::uint32_t) { wire.connections().close_all(); },
         Reason::kIncomplete,
         {}},
        {upload("Content-Length: 9\r\n", "some"),
         [](Wire& wire, std::uint32_t) { wire.pass(100000); },
         Reason::kBodyTimeout,
         {408}},
        {upload(chunks, "4\r\nsomeX"), nothing, Reason::kChunkDataEnd, {400}},
        {upload(chunks, "4\r\nsome\r\n;\r\n"), nothing, Reason::kChunkSizeSyntax, {400}},
        {upload(chunks, "4\r\nsome\r\nff\r\n"), nothing, Reason::kChunkSizeTooLarge, {413}},
        {upload(chunks, "4\r\nsome\r\n0\r\n: v\r\n"), nothing, Reason::kTrailerNameEmpty, {400}},
    };
    for (const Row& row : rows) {
        for (const bool paused : {false, true}) {
            if (paused && row.reason != Reason::kIncomplete) continue;
            Uploads uploads({.body_max = 100});
            if (paused) uploads.on_piece = [](ResponseWriter&) { return Flow::kPause; };
            Wire wire(uploads.settings);
            const std::uint32_t id = wire.connect();
            for (const char c : row.octets) wire.feed(id, {&c, 1});
            row.then(wire, id);
            for (unsigned i = 0; i < 10; ++i) {
                uploads.wakers[0].wake();
                wire.deliver();
            }
            if (!paused) LAW(uploads.content == "some");
            LAW(uploads.aborted == std::vector<Reason>{row.reason},
                << error_row(row.reason).name << ' ' << uploads.aborted.size());
            LAW(uploads.ended == 0 && uploads.destroyed == 1);
            LAW(statuses(wire.sent(id)) == row.statuses, << visible(wire.sent(id)));
            LAW(wire.connections().arena().bytes_in_use() == 0);
        }
    }
}

// The stream is kept in step where the rest is short, and otherwise closed.
TEST(Content, may_be_answered_before_its_end) {
    for (const std::size_t size : {std::size_t{20}, std::size_t{1000}}) {
        for (const bool chunked : {false, true}) {
            for (const bool woken : {false, true}) {
                Uploads uploads;
                uploads.settings.limits.early_drain_max = 100;
                const auto answer = [](ResponseWriter& writer) {
                    LAW(writer.write(403, {}, "enough"));
                    return Flow::kPause;  // which has no meaning any more
                };
                uploads.on_piece = woken ? std::function<Flow(ResponseWriter&)>(
                                               [](ResponseWriter&) { return Flow::kPause; })
                                         : answer;
                uploads.on_woken = answer;
                Wire wire(uploads.settings);
                const std::uint32_t id = wire.connect();
                const std::string rest(size, 'x');
                const std::string number = std::to_string(size + 4);
                wire.feed(id, chunked ? upload("Transfer-Encoding: chunked\r\n", "4\r\nsome\r\n")
                                      : upload("Content-Length: " + number + "\r\n", "some"));
                if (woken) {
                    uploads.wakers[0].wake();
                    wire.deliver();
                }
                LAW(uploads.destroyed == 1 && uploads.aborted.empty() && uploads.ended == 0);
                LAW(statuses(wire.sent(id)) == Statuses{403});
                const bool says = wire.sent(id).find("Connection: close\r\n") != std::string::npos;
                LAW(says == (!chunked && size > 100) && wire.shut(id) == says);
                for (const char c : chunked ? "1\r\nx\r\n0\r\n\r\n" + kGet : rest + kGet) {
                    wire.feed(id, {&c, 1});
                }
                LAW(statuses(wire.sent(id)) == (says ? Statuses{403} : Statuses{403, 200}),
                    << visible(wire.sent(id)));
            }
        }
    }
}

TEST(Content, a_100_is_told_when_the_content_is_wanted) {
    const std::string ask = upload("Content-Length: 4\r\nExpect: 100-continue\r\n", "");
    const std::string told = "HTTP/1.1 100 Continue\r\n\r\n";
    for (const bool paused : {false, true}) {
        Uploads uploads;
        uploads.begins_paused = paused;
        Wire wire(uploads.settings);
        const std::uint32_t id = wire.connect();
        wire.feed(id, ask);
        LAW(wire.sent(id) == (paused ? "" : told));
        uploads.wakers[0].wake();
        wire.deliver();
        LAW(wire.sent(id) == told && wire.reading(id));
        wire.feed(id, "some" + kGet);
        LAW(wire.sent(id).find("[some|]HTTP/1.1 200") != std::string::npos);
    }
    // Refused without it, by the handler or by the reader that was woken: only a close is clear.
    for (const bool paused : {false, true}) {
        Uploads uploads;
        uploads.begins_paused = paused;
        if (!paused) {
            uploads.on_head = [](ResponseWriter& writer) { return writer.write(401, {}, ""); };
        }
        uploads.on_woken = [](ResponseWriter& writer) {
            LAW(writer.write(401, {}, ""));
            return Flow::kMore;
        };
        Wire wire(uploads.settings);
        const std::uint32_t id = wire.connect();
        wire.feed(id, ask);
        uploads.wakers[0].wake();
        wire.deliver();
        LAW(statuses(wire.sent(id)) == Statuses{401}, << visible(wire.sent(id)));
        LAW(wire.sent(id).find("Connection: close\r\n") != std::string::npos && wire.shut(id));
    }
}

TEST(Content, is_refused_before_the_handler_is_asked) {
    Uploads uploads({.body_max = 8, .wants_length = true, .media_type = "text/plain"});
    const std::string text = "Content-Type: text/plain\r\n";
    const std::string octets = upload(text + "Transfer-Encoding: chunked\r\n", "0\r\n\r\n") +
                               upload("Content-Length: 4\r\n", "some") +
                               upload(text + "Content-Length: 4\r\n", "some") + kByLength;
    const Talk talk = talk_every_way(octets, uploads.settings);
    LAW(statuses(talk.sent) == (Statuses{411, 415, 200, 413}) && talk.closed);
    LAW(uploads.wakers.size() == octets.size() + 1 && uploads.aborted.empty());
}

TEST(Content, may_be_answered_later_than_its_end) {
    Uploads uploads;
    LaterAnswer token;
    uploads.on_end = [&](ResponseWriter& writer) {
        token = writer.later();
        return Reason::kNone;
    };
    Wire wire(uploads.settings);
    const std::uint32_t id = wire.connect();
    for (const std::string& octets : {kByLength, kByChunks, upload("", "")}) {
        wire.feed(id, octets + kGet);
        const std::size_t before = statuses(wire.sent(id)).size();
        LAW(token && token.complete(201, {}, "x"));
        wire.deliver();
        LAW(statuses(wire.sent(id)).size() == before + 2);
    }
    LAW(wire.connections().arena().bytes_in_use() == 0 && uploads.destroyed == 3);
}

class Ignoring final : public ContentReader {
    Flow on_piece(std::string_view, ResponseWriter&) override { return Flow::kMore; }
    Reason on_end(const Request&, ResponseWriter&) override { return Reason::kNone; }
};

TEST(Content, handlers_that_do_something_else_have_failed) {
    LaterAnswer token;
    Router::Builder routes;
    const auto add = [&](const char* path, Handler handler, bool streams) {
        routes.add(kAnyMethod, path, handler, {.streams = streams});
    };
    add(
        "/silent", [](const Request&, ResponseWriter&) { return Reason::kNone; }, true);
    add(
        "/later",
        [&](const Request&, ResponseWriter& writer) {
            token = writer.later();
            return Reason::kNone;
        },
        true);
    add(
        "/defers",
        [](const Request&, ResponseWriter& writer) {
            writer.defer(1);
            return Reason::kNone;
        },
        true);
    add(
        "/fails",
        [&](const Request&, ResponseWriter& writer) {
            LAW(writer.read_content(std::make_unique<Ignoring>()) &&
                !writer.read_content(std::make_unique<Ignoring>()));
            return Reason::kHandlerFailed;
        },
        true);
    add(
        "/plain",
        [&](const Request&, ResponseWriter& writer) {
            LAW(writer.read_content(std::make_unique<Ignoring>()));
            return Reason::kNone;
        },
        false);
    add(
        "/no-answer",
        [&](const Request&, ResponseWriter& writer) {
            LAW(!writer.read_content(nullptr) && writer.read_content(std::make_unique<Ignoring>()));
            return Reason::kNone;
        },
        true);
    const auto router = built(routes);
    ServerSettings settings;
    settings.router = router.get();
    for (const char* path : {"silent", "later", "defers", "fails", "plain", "no-answer"}) {
        const std::string line = std::string("POST /") + path + " HTTP/1.1";
        const std::string octets = request(line, "Content-Length: 4\r\n", "some") +
                                   request(line, "Content-Length: 4\r\n", "some");
        const Talk talk = talk_every_way(octets, settings);
        LAW(statuses(talk.sent) == Statuses{500} && talk.closed, << path << visible(talk.sent));
        LAW(!token || token.gone());
        token = LaterAnswer();
    }
}

}  // namespace
}  // namespace httpmark
