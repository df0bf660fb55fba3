// What the handlers of a WebSocket route throw: it ends one connection, and never the server.
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <utility>

#include "net/connection.hpp"
#include "net/requests.hpp"
#include "routes.hpp"
#include "websocket/client.hpp"

namespace httpmark {
namespace {

// Settings for one router, which they outlive.
struct Served {
    std::shared_ptr<const Router> router;
    ServerSettings settings;

    explicit Served(Router::Builder& routes) {
        routes.add(kAnyMethod, "/hello", Answer(200, {}, "hello"));
        router = built(routes);
        settings.router = router.get();
    }
};

// The server lives, and has kept nothing.
void expect_alive(Wire& wire, std::uint32_t id) {
    wire.end(id);
    wire.pass(100000);
    LAW(!wire.alive(id) && wire.connections().open_count() == 0);
    LAW(wire.connections().arena().bytes_in_use() == 0);
    const std::uint32_t next = wire.connect();
    wire.feed(next, kGet);
    LAW(statuses(wire.sent(next)) == Statuses{200}, << visible(wire.sent(next)));
}

const std::string kOffer =
    request("GET /ws HTTP/1.1",
            "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
            "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n");

TEST(WebSocketExceptions, of_any_handler_close_with_1011) {
    for (const std::string which : {"admit", "open", "message", "close"}) {
        WebSocketRoute route;
        route.admit = [&](const WebSocketOffer&) {
            if (which == "admit") throw std::bad_alloc();
            return Reason::kNone;
        };
        route.on_open = [&](WebSocket&, const WebSocketOffer&) {
            if (which == "open") throw std::bad_alloc();
        };
        route.on_message = [&](WebSocket&, const WebSocketMessage&) {
            if (which == "message") throw std::runtime_error("no matter what");
        };
        unsigned closed = 0;
        route.on_close = [&](WebSocket&, const websocket::Event&) {
            ++closed;
            throw std::bad_alloc();
        };
        Router::Builder routes;
        routes.add_websocket("/ws", std::move(route));
        const Served served(routes);
        Wire wire(served.settings);
        const std::uint32_t id = wire.connect();
        wire.feed(id, kOffer);
        if (which == "admit") {
            LAW(statuses(wire.sent(id)) == Statuses{503});
        } else {
            wire.feed(id, websocket::text("hello"));
            const unsigned code = which == "close" ? 1000 : 1011;
            wire.feed(id, websocket::close_with(code));
            LAW(wire.sent(id).ends_with(websocket::close_back(code)), << visible(wire.sent(id)));
            LAW(closed == 1);
        }
        expect_alive(wire, id);
    }
}

// It is told of room in the turn of the socket, not in that of a message.
TEST(WebSocketExceptions, of_the_handler_that_hears_of_room_close_with_1011) {
    WebSocketRoute route;
    const std::string message(1000, 'm');
    route.on_open = [&](WebSocket& socket, const WebSocketOffer&) {
        while (socket.send_text(message) == WebSocket::Sent::kYes) {
        }
    };
    route.on_message = [](WebSocket&, const WebSocketMessage&) {};
    unsigned told = 0;
    route.on_room = [&](WebSocket&) {
        ++told;
        throw std::runtime_error("no matter what");
    };
    unsigned closed = 0;
    route.on_close = [&](WebSocket&, const websocket::Event&) { ++closed; };
    Router::Builder routes;
    routes.add_websocket("/ws", std::move(route));
    const Served served(routes);
    Wire wire(served.settings);
    const std::uint32_t id = wire.connect();
    wire.give_room(id, 5000);
    wire.feed(id, kOffer);
    LAW(told == 0);
    wire.give_room(id, 1U << 30);
    LAW(told == 1);
    wire.feed(id, websocket::close_with(1011));
    LAW(wire.sent(id).ends_with(websocket::close_back(1011)));
    LAW(closed == 1);
    expect_alive(wire, id);
}

}  // namespace
}  // namespace httpmark
