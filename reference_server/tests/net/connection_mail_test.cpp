// Answers that come later, from whoever holds the token.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "app/later_answer.hpp"
#include "net/connection.hpp"
#include "net/requests.hpp"
#include "routes.hpp"

namespace httpmark {
namespace {

// One route whose answers are left to the test, and what the handler was told.
struct Later {
    std::vector<LaterAnswer> tokens;
    std::vector<std::string> asked;
    std::shared_ptr<const Router> router;
    ServerSettings settings;

    explicit Later(RouteOptions options = {}) {
        Router::Builder routes;
        routes.add(
            kAnyMethod, "/later",
            [this](const Request& request, ResponseWriter& writer) {
                asked.push_back(std::string(request.content) + '|' + std::string(request.trailers));
                tokens.push_back(writer.later());
                return Reason::kNone;
            },
            std::move(options));
        routes.add(kAnyMethod, "/hello", Answer(200, {}, "hello"));
        router = built(routes);
        settings.router = router.get();
    }
};

const std::string kLater = request("GET /later HTTP/1.1");

TEST(LaterAnswers, come_in_the_order_of_the_requests_whenever_they_are_given) {
    const std::string posts[] = {
        request("POST /later HTTP/1.1", "Content-Length: 5\r\n", "abcde"),
        request("POST /later HTTP/1.1", "Transfer-Encoding: chunked\r\n",
                "5\r\nabcde\r\n0\r\nT: v\r\n\r\n"),
    };
    for (const std::string& post : posts) {
        const std::string octets = kGet + post + kGet + kLater + kGet;
        for (std::size_t cut = 0; cut <= octets.size(); ++cut) {
            Later later({.wants_content = true});
            Wire wire(later.settings);
            const std::uint32_t id = wire.connect();
            wire.feed(id, octets.substr(0, cut));
            if (cut != octets.size()) wire.feed(id, octets.substr(cut));
            LAW(statuses(wire.sent(id)) == Statuses{200} && later.tokens.size() == 1);
            LAW(later.asked.front() ==
                (post.find("chunked") == std::string::npos ? "abcde|" : "abcde|T: v\r\n\r\n"));
            LAW(later.tokens[0].complete(201, {{"X", "y"}}, "one"));
            LAW(statuses(wire.sent(id)) == Statuses{200}, << "before the worker has looked");
            wire.deliver();
            LAW(statuses(wire.sent(id)) == (Statuses{200, 201, 200}) && later.tokens.size() == 2);
            LAW(later.tokens[1].complete(202, {}, "two"));
            wire.deliver();
            LAW(statuses(wire.sent(id)) == (Statuses{200, 201, 200, 202, 200}));
            LAW(wire.sent(id).find("\r\nX: y\r\nContent-Length: 3\r\n\r\none") !=
                std::string::npos);
            LAW(wire.reading(id) && wire.connections().arena().bytes_in_use() == 0);
        }
    }
}

TEST(LaterAnswers, are_framed_as_any_other) {
    struct Row {
        std::string octets;
        std::string wanted;  // in the head
        bool content;
        bool closes;
    };
    const Row rows[] = {
        {kLater, "Content-Length: 5\r\n\r\n", true, false},
        {request("HEAD /later HTTP/1.1"), "Content-Length: 5\r\n\r\n", false, false},
        {request("GET /later HTTP/1.1", "Connection: close\r\n"), "Connection: close\r\n\r\n", true,
         true},
        {request("GET /later HTTP/1.0", "Connection: keep-alive\r\n"),
         "Connection: keep-alive\r\n\r\n", true, false},
        {request("GET /later HTTP/1.0"), "Connection: close\r\n\r\n", true, true},
        {request("OPTIONS /later HTTP/1.1"), "\r\nAllow: GET, HEAD,", true, false},
    };
    for (const Row& row : rows) {
        for (const bool by_handler : {false, true}) {
            Later later;
            Wire wire(later.settings);
            const std::uint32_t id = wire.connect();
            wire.feed(id, row.octets);
            if (by_handler) {
                later.tokens[0].complete([](const Request& asked, ResponseWriter& writer) {
                    LAW(asked.asked_again && asked.route.options.early == false);
                    return writer.write(200, {}, "later") ? Reason::kNone : writer.fault();
                });
            } else {
                later.tokens[0].complete(200, {}, "later");
            }
            wire.deliver();
            LAW(wire.sent(id).find(row.wanted) != std::string::npos, << visible(wire.sent(id)));
            LAW(wire.sent(id).ends_with(row.content ? "\r\n\r\nlater" : "\r\n\r\n"));
            LAW(wire.shut(id) == row.closes);
        }
    }
}

TEST(LaterAnswers, a_token_answers_once_and_nothing_that_would_break_the_framing) {
    Later later;
    Wire wire(later.settings);
    const std::uint32_t id = wire.connect();
    wire.feed(id, kLater);
    LaterAnswer token = std::move(later.tokens[0]);
    LAW(token && !token.gone() && !later.tokens[0] && later.tokens[0].gone());
    for (const unsigned status : {0U, 99U, 100U, 101U, 199U, 1000U}) {
        LAW(!token.complete(status, {}, ""), << status);
    }
    for (const Field& field :
         {Field{"A", "b\r\nC: d"}, Field{"A\r\n", "b"}, Field{"", "b"},
          Field{"Content-Length", "5"}, Field{"Transfer-Encoding", "chunked"},
          Field{"Connection", "close"}, Field{"A", std::string_view("\0", 1)}}) {
        LAW(!token.complete(200, {field}, "x") && token, << visible(field.name));
    }
    LAW(!token.complete(std::shared_ptr<const PreparedAnswer>()) && !token.complete(Handler()));
    wire.deliver();
    LAW(wire.sent(id).empty());
    LAW(token.complete(200, {}, "x") && !token);
    LAW(!token.complete(200, {}, "y") && !token.fail(Reason::kNotFound) && token.gone());
    wire.deliver();
    LAW(statuses(wire.sent(id)) == Statuses{200} && wire.sent(id).ends_with("\r\n\r\nx"));
}

TEST(LaterAnswers, a_token_that_fails_or_is_dropped_is_answered) {
    struct Row {
        Reason reason;
        int status;
    };
    for (const Row& row : {Row{Reason::kNotFound, 404}, Row{Reason::kHandlerFailed, 500},
                           Row{Reason::kNone, 500}, Row{Reason::kCount, 500}}) {
        Later later;
        Wire wire(later.settings);
        const std::uint32_t id = wire.connect();
        wire.feed(id, kLater + kGet);
        LAW(later.tokens[0].fail(row.reason));
        wire.deliver();
        LAW(statuses(wire.sent(id)).front() == row.status);
        LAW(wire.connections().arena().bytes_in_use() == 0);
    }
    Later later;
    Wire wire(later.settings);
    const std::uint32_t id = wire.connect();
    wire.feed(id, kLater);
    later.tokens.clear();
    LAW(wire.wakes() == 1);
    wire.deliver();
    LAW(statuses(wire.sent(id)) == Statuses{500});
    // Replaced by another one is dropped, too.
    const std::uint32_t other = wire.connect();
    wire.feed(other, kLater);
    later.tokens[0] = LaterAnswer();
    wire.deliver();
    LAW(statuses(wire.sent(other)) == Statuses{500});
}

TEST(LaterAnswers, a_handler_that_writes_as_well_or_fails_has_one_answer) {
    LaterAnswer kept;
    Router::Builder routes;
    routes.add(kAnyMethod, "/writes", [&](const Request&, ResponseWriter& writer) {
        kept = writer.later();
        LAW(!writer.write(200, {}, "x") && writer.status() == 0 && !writer.later());
        return Reason::kNone;
    });
    routes.add(kAnyMethod, "/fails", [&](const Request&, ResponseWriter& writer) {
        kept = writer.later();
        return Reason::kNotFound;
    });
    routes.add(kAnyMethod, "/wrote", [&](const Request&, ResponseWriter& writer) {
        LAW(writer.write(200, {}, "x") && !writer.later());
        return Reason::kNone;
    });
    routes.add(kAnyMethod, "/early",
               [&](const Request&, ResponseWriter& writer) {
                   kept = writer.later();
                   return Reason::kNone;
               },
               {.early = true});
    ServerSettings settings;
    const auto router = built(routes);
    settings.router = router.get();
    Wire wire(settings);
    const std::uint32_t id = wire.connect();
    wire.feed(id, request("GET /writes HTTP/1.1"));
    LAW(wire.sent(id).empty() && kept.complete(204, {}, ""));
    wire.deliver();
    wire.feed(id, request("GET /fails HTTP/1.1"));
    LAW(kept.gone() && !kept.complete(200, {}, "x"));
    wire.feed(id, request("GET /wrote HTTP/1.1") + request("GET /early HTTP/1.1"));
    LAW(kept.gone() && !kept.complete(200, {}, "x"));
    wire.deliver();
    LAW(statuses(wire.sent(id)) == (Statuses{204, 404, 200, 500}), << visible(wire.sent(id)));
}

// Whatever becomes of a connection, its token knows, and a later owner of the slot is not answered.
TEST(LaterAnswers, know_when_nobody_waits_any_more) {
    for (const unsigned end : {0U, 1U, 2U}) {
        for (const bool before : {false, true}) {  // the letter is under way already
            Later later;
            later.settings.limits.handler_timeout_ms = 1000;
            Wire wire(later.settings);
            const std::uint32_t id = wire.connect();
            wire.feed(id, kLater + kGet);
            LaterAnswer token = std::move(later.tokens[0]);
            later.tokens.clear();
            if (before) LAW(token.complete(200, {}, "too late"));
            if (end == 0) wire.connections().on_broken(id);
            if (end == 1) {
                wire.pass(1100);
                LAW(statuses(wire.sent(id)) == Statuses{503} && wire.shut(id));
                wire.end(id);
            }
            if (end == 2) wire.connections().close_all();
            LAW(!wire.alive(id) && wire.connections().arena().bytes_in_use() == 0);
            if (!before) LAW(token && token.gone() && !token.complete(200, {}, "too late"));
            const std::uint32_t next = wire.connect();
            LAW(next == id, << "the slot is used again");
            wire.feed(next, kLater);
            wire.deliver();
            LAW(wire.sent(next).empty() && wire.alive(next));
            LAW(later.tokens[0].complete(200, {}, "mine"));
            wire.deliver();
            LAW(statuses(wire.sent(next)) == Statuses{200} && wire.sent(next).ends_with("mine"));
        }
    }
}

TEST(LaterAnswers, without_a_limit_are_waited_for) {
    Later later;
    Wire wire(later.settings);
    const std::uint32_t id = wire.connect();
    wire.feed(id, kLater);
    for (unsigned i = 0; i < 100; ++i) wire.pass(100000);
    wire.end(id);  // a half-close: the answer can still be sent
    LAW(wire.sent(id).empty() && wire.alive(id) && later.tokens[0].complete(200, {}, "x"));
    wire.deliver();
    LAW(statuses(wire.sent(id)) == Statuses{200} && !wire.alive(id));
}

TEST(LaterAnswers, a_drain_waits_for_them) {
    Later later;
    Wire wire(later.settings);
    const std::uint32_t id = wire.connect();
    wire.feed(id, kLater + kGet);
    wire.connections().drain();
    LAW(wire.alive(id) && wire.connections().open_count() == 1);
    later.tokens[0].complete(200, {}, "x");
    wire.deliver();
    LAW(wire.sent(id).find("Connection: close\r\n") != std::string::npos && wire.shut(id));
    LAW(statuses(wire.sent(id)) == Statuses{200}, << "what follows the last answer is not read");
}

TEST(LaterAnswers, outlive_the_worker_harmlessly) {
    Later later;
    {
        Wire wire(later.settings);
        const std::uint32_t id = wire.connect();
        const std::uint32_t other = wire.connect();
        wire.feed(id, kLater);
        wire.feed(other, kLater);
        // A letter that nobody reads owns another token.
        later.tokens[0].complete([held = std::make_shared<LaterAnswer>(std::move(later.tokens[1]))](
                                     const Request&, ResponseWriter&) { return Reason::kNone; });
    }
    Later again;
    {
        Wire wire(again.settings);
        wire.feed(wire.connect(), kLater);
    }
    LAW(again.tokens[0].gone() && !again.tokens[0].complete(200, {}, "x"));
}

TEST(LaterAnswers, may_be_put_off_again_from_a_handler) {
    Later later;
    Wire wire(later.settings);
    const std::uint32_t id = wire.connect();
    wire.feed(id, kLater);
    LaterAnswer second;
    later.tokens[0].complete([&](const Request&, ResponseWriter& writer) {
        second = writer.later();
        return Reason::kNone;
    });
    wire.deliver();
    LAW(wire.sent(id).empty() && second && second.complete(200, {}, "x"));
    wire.deliver();
    LAW(statuses(wire.sent(id)) == Statuses{200});
}

// Connections that ask, tokens that answer, breaks: in any order.
class Crowd {
  public:
    explicit Crowd(std::uint64_t seed) : random_(seed), router_(routes()) {
        settings_.router = router_.get();
        wire_ = std::make_unique<Wire>(settings_);
        for (Client& client : clients_) client.id = wire_->connect();
    }
    void turn(unsigned number) {
        const std::size_t place = random_() % clients_.size();
        Client& client = clients_[place];
        switch (random_() % 4) {
            case 0:
                wire_->feed(client.id,
                            request("GET /later/" + std::to_string(place) + " HTTP/1.1"));
                break;
            case 1:
                if (!tokens_.empty()) answer(std::to_string(number));
                break;
            case 2:
                wire_->deliver();
                break;
            default:
                if (random_() % 20 != 0) break;
                wire_->connections().on_broken(client.id);
                // Slots are handed out last in, first out: this one comes back.
                LAW(wire_->connect() == client.id);
                client.expected.clear();
                break;
        }
        std::erase_if(tokens_, [](const auto& one) { return !one.first; });
    }
    // Each connection got its own answers, in its own order.
    void finish() {
        for (unsigned i = 0; i < 1000 && (!tokens_.empty() || wire_->wakes() != 0); ++i) {
            tokens_.clear();
            wire_->deliver();
        }
        for (const Client& client : clients_) {
            std::string got;
            const std::string_view sent = wire_->sent(client.id);
            for (std::size_t at = 0; (at = sent.find("\r\n\r\n", at)) != std::string_view::npos;) {
                at += 4;
                const std::string_view text = sent.substr(at, sent.find("HTTP", at) - at);
                if (!text.starts_with("handler-failed")) got += std::string(text) + ',';
            }
            LAW(got == client.expected, << got << " instead of " << client.expected);
        }
    }

  private:
    struct Client {
        std::uint32_t id;
        std::string expected;
    };
    std::shared_ptr<const Router> routes() {
        Router::Builder routes;
        routes.add(kAnyMethod, "/later/{client}",
                   [this](const Request& asked, ResponseWriter& writer) {
                       tokens_.emplace_back(writer.later(), asked.value("client").front() - '0');
                       return Reason::kNone;
                   });
        return built(routes);
    }
    void answer(const std::string& text) {
        auto& [token, whose] = tokens_[random_() % tokens_.size()];
        if (token.complete(200, {}, text)) clients_[whose].expected += text + ',';
    }

    Random random_;
    std::vector<Client> clients_{6};
    std::vector<std::pair<LaterAnswer, std::size_t>> tokens_;
    std::shared_ptr<const Router> router_;
    ServerSettings settings_;
    std::unique_ptr<Wire> wire_;
};

TEST(LaterAnswers, many_connections_in_any_order) {
    for (std::uint64_t seed = 1; seed <= 200; ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        Crowd crowd(seed);
        for (unsigned number = 0; number < 300; ++number) crowd.turn(number);
        crowd.finish();
    }
}

}  // namespace
}  // namespace httpmark
