// What requests tell of who sent them, whatever their handler waits for.
#include <string>
#include <vector>

#include "app/later_answer.hpp"
#include "net/connection.hpp"
#include "net/requests.hpp"
#include "routes.hpp"

namespace httpmark {
namespace {

TEST(ConnectionClient, each_request_tells_of_its_own_connection) {
    std::vector<LaterAnswer> waiting;
    const auto tell = [](const Request& asked, ResponseWriter& writer) {
        LAW(!asked.is_tls() && !asked.tls());
        return writer.answer(200, {}, asked.peer());
    };
    Router::Builder routes;
    routes.add(kAnyMethod, "/now", tell);
    routes.add(kAnyMethod, "/content", tell, {.wants_content = true});
    routes.add(kAnyMethod, "/deferred", [&](const Request& asked, ResponseWriter& writer) {
        if (asked.asked_again) return tell(asked, writer);
        writer.defer(100);
        return Reason::kNone;
    });
    routes.add(kAnyMethod, "/later", [&](const Request&, ResponseWriter& writer) {
        waiting.push_back(writer.later());
        return Reason::kNone;
    });
    const auto router = built(routes);
    ServerSettings settings;
    settings.router = router.get();
    for (const std::string& octets :
         {request("GET /now HTTP/1.1"), request("GET http://h/now HTTP/1.1"),
          request("POST /content HTTP/1.1", "Content-Length: 3\r\n", "abc"),
          request("POST /content HTTP/1.1", "Transfer-Encoding: chunked\r\n", "0\r\n\r\n"),
          request("GET /deferred HTTP/1.1"), request("GET /later HTTP/1.1")}) {
        for (std::size_t cut = 0; cut < octets.size(); ++cut) {
            Wire wire(settings);
            const std::uint32_t one = wire.connect();
            const std::uint32_t other = wire.connect();
            wire.feed(one, std::string_view(octets).substr(0, cut));
            wire.feed(other, octets);
            wire.feed(one, std::string_view(octets).substr(cut));
            for (LaterAnswer& answer : waiting) LAW(answer.complete(tell));
            waiting.clear();
            wire.deliver();
            wire.pass(200);
            for (const std::uint32_t id : {one, other}) {
                LAW(wire.sent(id).ends_with("\r\n\r\n" + wire.peer(id)), << visible(wire.sent(id)));
            }
        }
    }
}

// The system is asked for each connection, and not for each of its answers.
TEST(ConnectionClient, an_observer_is_told_of_the_right_one_without_asking_again) {
    struct Recorder final : Observer {
        void on_answer(const AnswerEvent& event) override { peers.emplace_back(event.peer); }
        std::vector<std::string> peers;
    };
    Router::Builder routes;
    routes.add(kAnyMethod, "/now", Answer(200, {}, "now"));
    const auto router = built(routes);
    ServerSettings settings;
    settings.router = router.get();
    Wire wire(settings);
    Recorder recorder;
    wire.connections().set_observer(&recorder);
    const std::string octets = request("GET /now HTTP/1.1");
    const std::uint32_t one = wire.connect();
    const std::uint32_t other = wire.connect();
    std::vector<std::string> expected;
    unsigned asked = 0;
    const auto expect = [&](std::uint32_t id, unsigned answers, unsigned more) {
        for (unsigned i = 0; i < answers; ++i) wire.feed(id, octets);
        asked += more;
        LAW(wire.peers_asked() == asked, << wire.peers_asked());
        expected.insert(expected.end(), answers, "192.0.2.7:" + std::to_string(5000 + id));
        LAW(recorder.peers == expected);
    };
    expect(one, 3, 1);
    expect(other, 2, 1);
    expect(one, 1, 1);
    // Another client in the same place.
    wire.connections().on_broken(one);
    LAW(wire.connect() == one);
    expect(one, 2, 1);
}

}  // namespace
}  // namespace httpmark
