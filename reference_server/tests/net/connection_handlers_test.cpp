// What a handler may do beside writing at once: answer later, and content that is sent as there is
// room.
#include <algorithm>
#include <string>
#include <vector>

#include "net/connection.hpp"
#include "net/requests.hpp"
#include "routes.hpp"

namespace httpmark {
namespace {

Reason done(const ResponseWriter& writer, bool written) {
    return written ? Reason::kNone : writer.fault();
}

// Settings for one router, which they outlive.
struct Served {
    std::shared_ptr<const Router> router;
    ServerSettings settings;

    explicit Served(Router::Builder& routes) : router(built(routes)) {
        settings.router = router.get();
    }
};

// Defers `times` times, then tells what it is asked with.
Handler deferring(unsigned times, std::uint32_t ms, unsigned& asked) {
    return [times, ms, &asked](const Request& request, ResponseWriter& writer) {
        LAW(request.asked_again == (asked != 0));
        if (asked++ < times) {
            writer.defer(ms);
            return Reason::kNone;
        }
        asked = 0;
        std::string text(request.target.path);
        text += '|' + std::string(request.content) + '|' + std::string(request.trailers);
        return done(writer, writer.write(200, {}, text));
    };
}

TEST(Handlers, a_deferred_answer_knows_all_that_was_asked) {
    const std::string line = "POST /later HTTP/1.1";
    const std::string requests[] = {
        request(line, "Content-Length: 5\r\n", "hello"),
        request(line, "Transfer-Encoding: chunked\r\n", "5\r\nhello\r\n0\r\nT: v\r\n\r\n"),
    };
    for (const std::string& octets : requests) {
        for (std::size_t cut = 0; cut < octets.size(); ++cut) {
            unsigned asked = 0;
            Router::Builder routes;
            routes.add(kAnyMethod, "/later", deferring(2, 700, asked),
                       {.wants_content = true, .wants_head = true});
            const Served served(routes);
            Wire wire(served.settings);
            const std::uint32_t id = wire.connect();
            wire.feed(id, octets.substr(0, cut));
            wire.feed(id, octets.substr(cut) + request("GET /nowhere HTTP/1.1"));
            wire.pass(690);
            LAW(asked == 1 && wire.sent(id).empty());
            wire.pass(100);
            LAW(asked == 2 && wire.sent(id).empty());
            wire.pass(800);
            LAW(statuses(wire.sent(id)) == (Statuses{200, 404}), << visible(wire.sent(id)));
            const bool chunked = octets.find("chunked") != std::string::npos;
            const std::string text = chunked ? "/later|hello|T: v\r\n\r\n" : "/later|hello|";
            LAW(wire.sent(id).find("\r\n\r\n" + text + "HTTP/1.1 404") != std::string::npos,
                << visible(wire.sent(id)));
            LAW(wire.connections().arena().bytes_in_use() == 0);
        }
    }
}

// Not only where it happens to come apart from the head.
TEST(Handlers, content_that_a_route_does_not_want_is_never_given) {
    Router::Builder routes;
    const auto tell = [](const Request& asked, ResponseWriter& writer) {
        return done(writer,
                    writer.write(200, {}, "content: '" + std::string(asked.content) + '\''));
    };
    routes.add(kAnyMethod, "/not", tell);
    routes.add(kAnyMethod, "/typed", tell, {.media_type = "a/b"});
    routes.add(kAnyMethod, "/early", tell, {.early = true});
    const Served served(routes);
    for (const char* path : {"/not", "/typed", "/early"}) {
        const std::string line = "POST " + std::string(path) + " HTTP/1.1";
        for (const std::string& octets :
             {request(line, "Content-Type: a/b\r\nContent-Length: 5\r\n", "hello"),
              request(line, "Content-Type: a/b\r\nTransfer-Encoding: chunked\r\n",
                      "5\r\nhello\r\n0\r\n\r\n")}) {
            const Talk talk = talk_every_way(octets + octets, served.settings);
            LAW(statuses(talk.sent) == (Statuses{200, 200}), << visible(talk.sent));
            LAW(talk.sent.ends_with("content: ''") && talk.sent.find("hello") == talk.sent.npos,
                << path << visible(talk.sent));
        }
    }
}

TEST(Handlers, the_time_of_all_deferrals_together_is_limited) {
    unsigned asked = 0;
    Router::Builder routes;
    routes.add(kAnyMethod, "/later", deferring(1000000, 300, asked));
    Served served(routes);
    served.settings.limits.handler_timeout_ms = 1000;
    Wire wire(served.settings);
    const std::uint32_t id = wire.connect();
    wire.feed(id, request("GET /later HTTP/1.1"));
    for (unsigned i = 0; i < 9; ++i) wire.pass(100);
    LAW(wire.sent(id).empty() && asked > 1);
    for (unsigned i = 0; i < 3; ++i) wire.pass(100);
    LAW(statuses(wire.sent(id)) == Statuses{503} && wire.shut(id), << visible(wire.sent(id)));
}

TEST(Handlers, one_that_answers_early_or_not_at_all_has_failed) {
    unsigned asked = 0;
    Router::Builder routes;
    routes.add(kAnyMethod, "/early", deferring(1, 300, asked), {.early = true});
    routes.add(kAnyMethod, "/none", [](const Request&, ResponseWriter&) { return Reason::kNone; });
    const Served served(routes);
    for (const char* path : {"/early", "/none"}) {
        asked = 0;
        const Talk talk = once(request(std::string("GET ") + path + " HTTP/1.1"), served.settings);
        LAW(statuses(talk.sent) == Statuses{500} && talk.closed, << path);
    }
}

TEST(Handlers, a_second_answer_is_not_written) {
    Router::Builder routes;
    routes.add(kAnyMethod, "/two", [](const Request&, ResponseWriter& writer) {
        LAW(writer.write(200, {}, "first") && !writer.write(200, {}, "second"));
        return writer.fault();
    });
    const Served served(routes);
    const Talk talk = talk_every_way(request("GET /two HTTP/1.1") + request("GET /two HTTP/1.1"),
                                     served.settings);
    LAW(statuses(talk.sent) == (Statuses{200, 200}) && !talk.closed, << visible(talk.sent));
    LAW(talk.sent.find("second") == std::string::npos);
}

// Counts up; cannot be read from `fails_at` on.
class Counting final : public ContentSource {
  public:
    std::string_view read(std::uint64_t offset, std::size_t most) override {
        LAW(most != 0);
        if (offset >= fails_at) return {};
        // Never all that is asked for, so that the next call goes on in the middle.
        piece_.clear();
        for (std::size_t i = 0; i < std::min<std::size_t>(most, 700); ++i) {
            piece_ += octet_at(offset + i);
        }
        return piece_;
    }
    void release() override { ++released; }
    static char octet_at(std::uint64_t offset) { return static_cast<char>('a' + offset % 23); }

    std::uint64_t fails_at = ~std::uint64_t{0};
    unsigned released = 0;

  private:
    std::string piece_;
};

constexpr std::size_t kLong = 50000;

TEST(Handlers, content_that_comes_later_is_sent_whole_and_in_order_whatever_the_room) {
    std::string wanted;
    for (std::size_t i = 0; i < kLong; ++i) wanted += Counting::octet_at(i);
    for (const bool by_reference : {false, true}) {
        for (const std::size_t room :
             {std::size_t{1000000}, std::size_t{999}, std::size_t{20001}}) {
            Counting source;
            Router::Builder routes;
            routes.add(kAnyMethod, "/long", [&](const Request&, ResponseWriter& writer) {
                return done(writer, by_reference ? writer.write_reference(200, {}, wanted)
                                                 : writer.write_source(200, {}, kLong, source));
            });
            const Served served(routes);
            Wire wire(served.settings);
            const std::uint32_t id = wire.connect();
            wire.give_room(id, room);
            const std::string ask = request("GET /long HTTP/1.1");
            wire.feed(id, ask + request("HEAD /long HTTP/1.1") + ask);
            for (unsigned i = 0; i < 1000; ++i) wire.give_room(id, room);
            std::string_view sent = wire.sent(id);
            for (const std::size_t size : {kLong, std::size_t{0}, kLong}) {
                const std::size_t end = sent.find("\r\n\r\n");
                ASSERT_NE(end, std::string_view::npos);
                LAW(sent.substr(0, end).find("Content-Length: 50000") != std::string::npos);
                LAW(sent.substr(end + 4, size) == std::string_view(wanted).substr(0, size));
                sent.remove_prefix(std::min(end + 4 + size, sent.size()));
            }
            LAW(sent.empty() && source.released == (by_reference ? 0U : 3U));
            LAW(wire.connections().arena().bytes_in_use() == 0);
        }
    }
}

TEST(Handlers, a_source_that_cannot_be_read_ends_the_connection) {
    Counting source;
    source.fails_at = 1400;
    Router::Builder routes;
    routes.add(kAnyMethod, "/long", [&](const Request&, ResponseWriter& writer) {
        return done(writer, writer.write_source(200, {}, kLong, source));
    });
    const Served served(routes);
    Wire wire(served.settings);
    const std::uint32_t id = wire.connect();
    wire.feed(id, request("GET /long HTTP/1.1"));
    LAW(!wire.alive(id) && source.released == 1);
    LAW(wire.sent(id).ends_with(std::string(1, Counting::octet_at(1399))));
    // And one whose client has gone is released, too.
    source = Counting();
    const std::uint32_t other = wire.connect();
    wire.give_room(other, 5000);
    wire.feed(other, request("GET /long HTTP/1.1"));
    LAW(wire.alive(other) && source.released == 0);
    wire.connections().on_broken(other);
    LAW(source.released == 1);
}

TEST(Handlers, options_and_methods_are_told_by_the_routes) {
    Router::Builder routes;
    routes.add(method_bit(Method::kGet), "/{name}",
               [](const Request& asked, ResponseWriter& writer) {
                   return done(writer, writer.write(200, {}, asked.value("name")));
               });
    const Served served(routes);
    const Talk talk = talk_every_way(
        request("GET /a%20b?c HTTP/1.1") + request("OPTIONS /a HTTP/1.1") +
            request("POST /a HTTP/1.1") + request("GET / HTTP/1.1") + request("OPTIONS * HTTP/1.1"),
        served.settings);
    LAW(statuses(talk.sent) == (Statuses{200, 204, 405, 404, 204}), << visible(talk.sent));
    LAW(talk.sent.find("\r\n\r\na%20bHTTP/1.1 204") != std::string::npos);
    std::size_t told = 0;
    for (std::size_t at = 0;
         (at = talk.sent.find("\r\nAllow: GET, HEAD, OPTIONS\r\n", at)) != std::string::npos;
         ++at) {
        ++told;
    }
    LAW(told == 3);
}

}  // namespace
}  // namespace httpmark
