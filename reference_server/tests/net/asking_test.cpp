// What an application's code throws ends its request, and not the process.
#include "net/asking.hpp"

#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

#include "app/content_reader.hpp"
#include "app/later_answer.hpp"
#include "net/connection.hpp"
#include "net/requests.hpp"
#include "routes.hpp"

namespace httpmark {
namespace {

[[noreturn]] void fail(bool of_memory) {
    if (of_memory) throw std::bad_alloc();
    throw std::runtime_error("handler");
}

// Throws when it is asked for the `nth` time.
class Thrower final : public ContentReader {
  public:
    Thrower(unsigned nth, bool of_memory, bool aborts)
        : left_(nth), of_memory_(of_memory), aborts_(aborts) {}
    Flow on_piece(std::string_view, ResponseWriter&) override {
        if (left_-- == 0) fail(of_memory_);
        return Flow::kMore;
    }
    Reason on_end(const Request&, ResponseWriter&) override { fail(of_memory_); }
    void on_abort(Reason) override {
        if (aborts_) fail(of_memory_);
    }

  private:
    unsigned left_;
    bool of_memory_;
    bool aborts_;
};

// One piece, then nothing but an exception; or one in its trailers.
class BrokenStream final : public ContentStream {
  public:
    explicit BrokenStream(bool in_trailers) : in_trailers_(in_trailers) {}
    Piece read(std::span<char> room) override {
        if (!first_) fail(false);
        first_ = false;
        room[0] = 'x';
        return {1, in_trailers_ ? State::kEnd : State::kMore};
    }
    std::span<const Field> trailers() override { fail(false); }

  private:
    bool in_trailers_;
    bool first_ = true;
};

class BrokenSource final : public ContentSource {
  public:
    std::string_view read(std::uint64_t offset, std::size_t) override {
        if (offset != 0) fail(false);
        return "x";
    }
};

Talk asked(Router::Builder& routes, const std::string& octets) {
    const auto router = built(routes);
    ServerSettings settings;
    settings.router = router.get();
    return talk_every_way(octets, settings);
}

TEST(Asking, a_handler_that_throws_before_it_has_answered_has_failed) {
    for (const bool of_memory : {false, true}) {
        for (const bool codes : {false, true}) {
            for (const bool hooked : {false, true}) {
                Router::Builder routes;
                routes.add(
                    kAnyMethod, "/throws",
                    [of_memory](const Request&, ResponseWriter&) -> Reason { fail(of_memory); },
                    {.wants_content = true, .codes_answers = codes});
                if (hooked) routes.after([](const Request&, AnswerHead&) {});
                for (const std::string& octets :
                     {request("GET /throws HTTP/1.1"),
                      request("POST /throws HTTP/1.1", "Content-Length: 3\r\n", "abc")}) {
                    const Talk talk = asked(routes, octets + kGet);
                    LAW(statuses(talk.sent) == Statuses{of_memory ? 503 : 500} && talk.closed);
                }
            }
        }
    }
}

TEST(Asking, a_whole_answer_stands_and_a_half_one_is_not_sent) {
    Router::Builder routes;
    routes.add(kAnyMethod, "/whole", [](const Request&, ResponseWriter& writer) -> Reason {
        LAW(writer.write(200, {}, "whole"));
        fail(false);
    });
    routes.add(kAnyMethod, "/half", [](const Request&, ResponseWriter& writer) -> Reason {
        char* room = nullptr;
        LAW(writer.start(200, {}, 5, room));
        if (room != nullptr) room[0] = 'h';
        fail(false);
    });
    const std::string whole = request("GET /whole HTTP/1.1");
    LAW(statuses(asked(routes, whole + whole).sent) == (Statuses{200, 200}));
    const Talk half = asked(routes, request("GET /half HTTP/1.1") + whole);
    LAW(half.sent.empty() && half.closed, << visible(half.sent));
    // Without content there is nothing that could be half.
    const Talk head = asked(routes, request("HEAD /half HTTP/1.1"));
    LAW(statuses(head.sent) == Statuses{200}, << visible(head.sent));
}

// What a coded answer is made of goes with it.
TEST(Asking, what_was_to_be_sent_later_is_released) {
    struct Counted final : ContentStream {
        unsigned& alive;
        explicit Counted(unsigned& count) : alive(count) { ++alive; }
        ~Counted() override { --alive; }
        Piece read(std::span<char>) override { return {0, State::kEnd}; }
    };
    struct Source final : ContentSource {
        unsigned released = 0;
        std::string_view read(std::uint64_t, std::size_t) override { return "x"; }
        void release() override { ++released; }
    };
    unsigned alive = 0;
    Source source;
    Router::Builder routes;
    routes.add(kAnyMethod, "/stream",
               [&](const Request&, ResponseWriter& writer) -> Reason {
                   LAW(writer.write_stream(200, {}, std::make_unique<Counted>(alive)));
                   fail(false);
               },
               {.codes_answers = true});
    routes.add(kAnyMethod, "/source",
               [&](const Request&, ResponseWriter& writer) -> Reason {
                   LAW(writer.write_source(200, {}, 5, source));
                   fail(false);
               },
               {.codes_answers = true});
    const Talk stream = asked(routes, request("GET /stream HTTP/1.1"));
    LAW(statuses(stream.sent) == Statuses{500} && alive == 0, << alive);
    source.released = 0;
    LAW(statuses(asked(routes, request("GET /source HTTP/1.1")).sent) == Statuses{500});
    LAW(source.released != 0);
}

TEST(Asking, a_reader_of_content_that_throws_has_failed) {
    for (const unsigned nth : {0U, 1U, 9U}) {
        for (const bool of_memory : {false, true}) {
            Router::Builder routes;
            routes.add(kAnyMethod, "/read",
                       [=](const Request&, ResponseWriter& writer) {
                           writer.read_content(std::make_unique<Thrower>(nth, of_memory, false));
                           return Reason::kNone;
                       },
                       {.streams = true});
            for (const std::string& octets :
                 {request("POST /read HTTP/1.1", "Content-Length: 3\r\n", "abc"),
                  request("POST /read HTTP/1.1", "Transfer-Encoding: chunked\r\n",
                          "1\r\na\r\n1\r\nb\r\n0\r\n\r\n")}) {
                const Talk talk = asked(routes, octets + kGet);
                LAW(statuses(talk.sent) == Statuses{of_memory ? 503 : 500} && talk.closed,
                    << visible(octets) << visible(talk.sent));
            }
        }
    }
}

TEST(Asking, a_reader_that_throws_at_the_end_of_its_connection_has_nobody_to_tell) {
    Router::Builder routes;
    routes.add(kAnyMethod, "/read",
               [](const Request&, ResponseWriter& writer) {
                   writer.read_content(std::make_unique<Thrower>(9, false, true));
                   return Reason::kNone;
               },
               {.streams = true});
    const auto router = built(routes);
    ServerSettings settings;
    settings.router = router.get();
    Wire wire(settings);
    const std::uint32_t id = wire.connect();
    wire.feed(id, request("POST /read HTTP/1.1", "Content-Length: 3\r\n", "a"));
    wire.end(id);
    LAW(statuses(wire.sent(id)) == Statuses{400} && wire.connections().open_count() == 0);
}

TEST(Asking, who_answers_for_another_thread_may_throw) {
    std::vector<LaterAnswer> waiting;
    Router::Builder routes;
    routes.add(kAnyMethod, "/later", [&](const Request&, ResponseWriter& writer) {
        waiting.push_back(writer.later());
        return Reason::kNone;
    });
    const auto router = built(routes);
    ServerSettings settings;
    settings.router = router.get();
    Wire wire(settings);
    const std::uint32_t id = wire.connect();
    wire.feed(id, request("GET /later HTTP/1.1") + kGet);
    LAW(waiting.at(0).complete(
        Handler([](const Request&, ResponseWriter&) -> Reason { fail(false); })));
    wire.deliver();
    LAW(statuses(wire.sent(id)) == Statuses{500} && wire.shut(id));
    // And one that gives its answer away, and then throws.
    Router::Builder others;
    others.add(kAnyMethod, "/later", [&](const Request&, ResponseWriter& writer) -> Reason {
        waiting[0] = writer.later();
        fail(false);
    });
    LAW(statuses(asked(others, request("GET /later HTTP/1.1")).sent) == Statuses{500});
    LAW(waiting[0].gone());
}

TEST(Asking, content_that_throws_while_it_is_sent_ends_the_connection) {
    BrokenSource source;
    Router::Builder routes;
    routes.add(kAnyMethod, "/stream", [](const Request&, ResponseWriter& writer) {
        return writer.write_stream(200, {}, std::make_unique<BrokenStream>(false)) ? Reason::kNone
                                                                                   : writer.fault();
    });
    routes.add(kAnyMethod, "/trailers", [](const Request&, ResponseWriter& writer) {
        return writer.write_stream(200, {}, std::make_unique<BrokenStream>(true)) ? Reason::kNone
                                                                                  : writer.fault();
    });
    routes.add(kAnyMethod, "/source", [&](const Request&, ResponseWriter& writer) {
        return writer.write_source(200, {}, 9, source) ? Reason::kNone : writer.fault();
    });
    for (const char* path : {"/stream", "/trailers", "/source"}) {
        const Talk talk = asked(routes, request(std::string("GET ") + path + " HTTP/1.1") + kGet);
        LAW(talk.sent.starts_with("HTTP/1.1 200 ") && talk.closed, << path);
        LAW(talk.sent.find("0\r\n\r\n") == std::string::npos, << visible(talk.sent));
    }
}

TEST(Asking, whoever_admits_to_websocket_may_throw) {
    Router::Builder routes;
    WebSocketRoute route;
    route.admit = [](const WebSocketOffer&) -> Reason { fail(false); };
    route.on_message = [](WebSocket&, const WebSocketMessage&) {};
    routes.add_websocket("/socket", route);
    const Talk talk = asked(
        routes, request("GET /socket HTTP/1.1",
                        "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
                        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"));
    LAW(statuses(talk.sent) == Statuses{500}, << visible(talk.sent));
}

}  // namespace
}  // namespace httpmark
