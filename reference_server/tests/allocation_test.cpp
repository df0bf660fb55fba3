// After a warm-up a request costs no allocation: neither from the heap nor from the arena's steps.
// And what goes on for long holds no more memory the longer it does.
#include <algorithm>
#include <memory>
#include <span>
#include <string>

#include "app/event_sender.hpp"
#include "counted_allocations.hpp"
#include "laws.hpp"
#include "net/connection.hpp"
#include "routes.hpp"

namespace httpmark {
namespace {

// Takes everything, or in turn half of it, and keeps nothing.
class Drain final : public Transport {
  public:
    std::ptrdiff_t send(std::uint32_t, const char*, std::size_t size) override {
        ++sends;
        return static_cast<std::ptrdiff_t>(halves && sends % 2 == 1 ? size / 2 : size);
    }
    void set_interest(std::uint32_t, bool, bool wanted) override { room = wanted; }
    void shutdown_write(std::uint32_t) override {}
    void close(std::uint32_t) override {}
    bool halves = false;
    bool room = false;
    unsigned sends = 0;
};

// Asks each in turn, whole and cut in two at a moving place.
void ask_in_turn(std::span<const std::string> requests, const ServerSettings& settings,
                 bool halves) {
    Drain drain;
    drain.halves = halves;
    Connections connections(settings, drain, 1000);
    connections.set_time(1000, 784111777);
    const std::uint32_t id = connections.open(3, false);
    std::uint64_t now = 1000;
    const auto turn = [&](unsigned round) {
        const std::string& request = requests[round % requests.size()];
        const std::size_t cut = round % request.size();
        if (cut != 0) connections.on_data(id, request.data(), cut);
        connections.on_data(id, request.data() + cut, request.size() - cut);
        for (unsigned i = 0; i < 10000 && drain.room; ++i) connections.on_sendable(id);
        now += 10;
        connections.set_time(now, 784111777);
        connections.run_timers();
    };
    for (unsigned round = 0; round < 2000; ++round) turn(round);
    const std::uint64_t before = allocations.load();
    bool same = true;
    for (unsigned round = 0; round < 20000; ++round) {
        turn(round);
        same = same && allocations.load() == before;
        ++law_count;
    }
    LAW(same, << allocations.load() - before << " allocations");
    LAW(connections.counters().requests == 22000);
    LAW(connections.arena().bytes_in_use() == 0);
}

TEST(Allocation, none_per_request_after_warm_up) {
    const std::string requests[] = {
        "GET /hello HTTP/1.1\r\nHost: h\r\n\r\n",
        "POST /body HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhello",
        "POST /mirror HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: "
        "chunked\r\n\r\n5\r\nhello\r\n0\r\nT: v\r\n\r\n",
        "GET /echo?a=1&b=2 HTTP/1.1\r\nHost: h\r\n\r\n",
        "GET /404 HTTP/1.1\r\nHost: h\r\n\r\n",
        "GET /big HTTP/1.1\r\nHost: h\r\n\r\n",
    };
    for (const bool halves : {false, true}) ask_in_turn(requests, with_routes({}), halves);
}

// What a route asks for beyond that costs none either.
TEST(Allocation, none_per_coded_answer_after_warm_up) {
    const std::string text(2000, 'a');
    Router::Builder routes;
    routes.add(Method::kGet, "/constant", Answer(200, {{"Content-Type", "text/plain"}}, text),
               {.codes_answers = true});
    routes.add(Method::kPost, "/written",
               [&](const Request&, ResponseWriter& writer) {
                   return writer.answer(200, {{"Content-Type", "text/plain"}}, text);
               },
               {.wants_content = true, .codes_answers = true});
    const std::shared_ptr<const Router> router = built(routes);
    ServerSettings settings;
    settings.router = router.get();
    const std::string requests[] = {
        "GET /constant HTTP/1.1\r\nHost: h\r\nAccept-Encoding: gzip\r\n\r\n",
        "POST /written HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nAccept-Encoding: "
        "deflate\r\n\r\nx",
        "POST /written HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\n\r\nx",
    };
    ask_in_turn(requests, settings, false);
}

// A client that takes events as fast as they come, and is always a little behind.
TEST(Allocation, an_event_sender_holds_no_more_than_what_waits) {
    class Behind final : public Transport {
      public:
        std::ptrdiff_t send(std::uint32_t, const char*, std::size_t size) override {
            const std::size_t taken = std::min(size, room);
            room -= taken;
            return static_cast<std::ptrdiff_t>(taken);
        }
        void set_interest(std::uint32_t, bool, bool) override {}
        void shutdown_write(std::uint32_t) override {}
        void close(std::uint32_t) override {}
        std::size_t room = 0;
    };
    EventSender sender;
    Router::Builder routes;
    routes.add(Method::kGet, "/events", [&](const Request&, ResponseWriter& writer) {
        sender = EventSender(writer);
        return sender ? Reason::kNone : writer.fault();
    });
    const std::shared_ptr<const Router> router = built(routes);
    ServerSettings settings;
    settings.router = router.get();
    Behind wire;
    Connections connections(settings, wire, 1000);
    connections.set_time(1000, 784111777);
    const std::uint32_t id = connections.open(3, false);
    const std::string ask = "GET /events HTTP/1.1\r\nHost: h\r\n\r\n";
    connections.on_data(id, ask.data(), ask.size());
    EventSender::ServerEvent event;
    const std::string data(1000, 'd');
    event.data = data;
    const auto send = [&] { return sender.send(event) == EventSender::EventFault::kNone; };
    connections.read_mail();
    while (send()) connections.read_mail();
    largest_allocation = 0;
    std::uint64_t sent = 0;
    for (unsigned round = 0; round < 2000; ++round) {
        wire.room = 10 * data.size();
        connections.on_sendable(id);
        while (send()) ++sent;
    }
    LAW(sent > 10000, << sent);
    LAW(largest_allocation <= 4 * 65536, << largest_allocation);
}

// Nor do hooks and what an application says of refusals, but for the text that it makes itself.
TEST(Allocation, none_for_hooks_after_warm_up) {
    Router::Builder routes;
    routes.add(Method::kGet, "/constant", Answer(200, {{"Content-Type", "text/plain"}}, "text"));
    routes.add(Method::kPost, "/written",
               [](const Request& request, ResponseWriter& writer) {
                   return writer.answer(200, {}, request.content);
               },
               {.wants_content = true});
    routes.before([](const Request& request, ResponseWriter& writer) {
        return request.field("x-refused") ? writer.answer(401, {}, "no") : Reason::kNone;
    });
    routes.after([](const Request&, AnswerHead& head) {
        LAW(head.add("X-Content-Type-Options", "nosniff"));
    });
    routes.set_error([](const Refusal&) { return RefusalContent{"none", "a/b"}; });
    const std::shared_ptr<const Router> router = built(routes);
    ServerSettings settings;
    settings.router = router.get();
    const std::string requests[] = {
        "GET /constant HTTP/1.1\r\nHost: h\r\n\r\n",
        "GET /404 HTTP/1.1\r\nHost: h\r\n\r\n",
        "POST /written HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nX-Refused: 1\r\n\r\nx",
        "POST /written HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\n\r\nx",
    };
    ask_in_turn(requests, settings, false);
}

}  // namespace
}  // namespace httpmark
