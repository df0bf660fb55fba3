// WebSocket on a connection: from the handshake over messages, pings and full output to every way
// that it can end.
#include <memory>
#include <string>
#include <vector>

#include "net/connection.hpp"
#include "net/requests.hpp"
#include "routes.hpp"
#include "websocket/client.hpp"

namespace httpmark {
namespace {

using websocket::binary;
using websocket::binary_back;
using websocket::close_with;
using websocket::ping;
using websocket::pong_back;
using websocket::server_frame;
using websocket::text;
using websocket::text_back;
using Sent = WebSocket::Sent;

std::string offer(const std::string& more = "", const std::string& line = "GET /ws HTTP/1.1") {
    return request(line,
                   "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
                   "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n" +
                       more);
}

// What an application was told, one word for each event.
struct Told {
    std::vector<std::string> events;
    std::vector<WebSocket*> sockets;
    std::string line() const {
        std::string all;
        for (const std::string& event : events) all += event + ' ';
        return all;
    }
};

// A route at /ws that sends every message back, and tells of all that happens.
WebSocketRoute telling(Told& told) {
    WebSocketRoute route;
    route.on_open = [&told](WebSocket& socket, const WebSocketOffer&) {
        told.events.push_back("open");
        told.sockets.push_back(&socket);
    };
    route.on_message = [&told](WebSocket& socket, const WebSocketMessage& message) {
        told.events.push_back((message.is_text ? "t:" : "b:") + std::string(message.content));
        const Sent sent = message.is_text ? socket.send_text(message.content)
                                          : socket.send_binary(message.content);
        LAW(sent == Sent::kYes);
    };
    route.on_room = [&told](WebSocket&) { told.events.push_back("room"); };
    route.on_close = [&told](WebSocket& socket, const websocket::Event& event) {
        told.events.push_back("close:" + std::to_string(event.code));
        LAW(socket.send_text("too late") == Sent::kClosed && !socket.is_open());
        std::erase(told.sockets, &socket);
    };
    return route;
}

struct Served {
    std::shared_ptr<const Router> router;
    ServerSettings settings;

    explicit Served(WebSocketRoute route, std::optional<Answer> otherwise = {}) {
        Router::Builder routes;
        routes.add_websocket("/ws", std::move(route), std::move(otherwise));
        routes.add(kAnyMethod, "/hello", Answer(200, {}, "hello"));
        router = built(routes);
        settings.router = router.get();
    }
};

// What follows the head of the 101.
std::string frames_of(std::string_view sent) {
    const std::size_t begin = sent.find("HTTP/1.1 101 ");
    if (begin == std::string_view::npos) return "no 101";
    const std::size_t end = sent.find("\r\n\r\n", begin);
    return std::string(sent.substr(end + 4));
}

TEST(ConnectionWebSocket, the_handshake_and_the_frames_behind_it_however_they_are_cut) {
    const std::string input = request("GET /hello HTTP/1.1") + offer() + text("hello") +
                              binary(std::string(300, 'b')) + ping("p") +
                              websocket::fragments(1, "in parts", {2, 3}) + close_with(1000, "bye");
    Told told;
    const Served served(telling(told));
    const Talk talk = talk_every_way(input, served.settings);
    LAW(statuses(talk.sent)[0] == 200 && talk.closed);
    LAW(talk.sent.find("HTTP/1.1 101 Switching Protocols\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\n"
                       "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"
                       "Upgrade: websocket\r\nConnection: upgrade\r\n\r\n") != std::string::npos,
        << visible(talk.sent));
    LAW(frames_of(talk.sent) == text_back("hello") + binary_back(std::string(300, 'b')) +
                                    pong_back("p") + text_back("in parts") +
                                    websocket::close_back(1000),
        << visible(talk.sent));
    const std::vector<std::string> once{"open", "t:hello", "b:" + std::string(300, 'b'),
                                        "t:in parts", "close:1000"};
    LAW(told.events.size() % once.size() == 0);
    for (std::size_t i = 0; i < told.events.size(); ++i) {
        LAW(told.events[i] == once[i % once.size()], << told.events[i]);
    }
    LAW(told.sockets.empty());
}

TEST(ConnectionWebSocket, what_offers_none_or_wrongly_is_answered_and_the_connection_lives) {
    Told told;
    const Served served(telling(told));
    const std::string hello = request("GET /hello HTTP/1.1");
    const auto with = [](std::string text, const std::string& from, const std::string& to) {
        return text.replace(text.find(from), from.size(), to);
    };
    const struct {
        std::string request;
        int status;
    } kRequests[] = {
        {request("GET /ws HTTP/1.1"), 426},
        {offer("", "POST /ws HTTP/1.1"), 405},
        {offer("Content-Length: 5\r\n") + "hello", 400},
        {offer("Transfer-Encoding: chunked\r\n") + "0\r\n\r\n", 400},
        {with(offer(), "Upgrade: websocket", "Upgrade: h2c"), 426},
        {with(offer(), "Connection: Upgrade", "Connection: keep-alive"), 400},
        {with(offer(), "Version: 13", "Version: 12"), 426},
        {with(offer(), "Sec-WebSocket-Version: 13\r\n", ""), 400},
        {with(offer(), "jZQ==", "j"), 400},
        {offer("Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"), 400},
        {offer("", "GET /hello HTTP/1.1"), 200},
    };
    for (const auto& [text, status] : kRequests) {
        const Talk talk = talk_every_way(text + hello, served.settings);
        LAW(statuses(talk.sent) == (Statuses{status, 200}) && !talk.closed,
            << visible(text) << visible(talk.sent));
        const bool says = talk.sent.find(
                              "\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
                              "Connection: upgrade\r\n\r\n") != std::string::npos;
        LAW(says == (status == 426), << visible(talk.sent));
    }
    const Talk head = talk_every_way(request("HEAD /ws HTTP/1.1"), served.settings);
    LAW(statuses(head.sent) == Statuses{426} && head.sent.ends_with("upgrade\r\n\r\n"));
    // HTTP/1.0 knows no 101 (RFC 9110 15.2), and closes unless it is asked not to.
    const Talk old = talk_every_way(offer("", "GET /ws HTTP/1.0"), served.settings);
    LAW(statuses(old.sent) == Statuses{426} && old.closed);
    LAW(old.sent.find("\r\nConnection: upgrade, close\r\n") != std::string::npos);
    LAW(told.events.empty());
}

TEST(ConnectionWebSocket, a_route_may_have_another_answer_for_those_that_do_not_offer_it) {
    Told told;
    const Served served(telling(told), Answer(200, {}, "page"));
    const Talk talk = talk_every_way(
        request("GET /ws HTTP/1.1") + request("GET /ws HTTP/1.1", "Upgrade: h2c\r\n") + offer(),
        served.settings);
    LAW(statuses(talk.sent) == (Statuses{200, 200, 101}), << visible(talk.sent));
}

TEST(ConnectionWebSocket, the_application_may_refuse_and_sees_what_was_asked) {
    WebSocketRoute route;
    std::string seen;
    route.subprotocols = {"b", "a"};
    route.admit = [](const WebSocketOffer& asked) {
        return asked.origin == "http://evil" ? Reason::kOriginForbidden : Reason::kNone;
    };
    route.on_open = [&](WebSocket& socket, const WebSocketOffer& asked) {
        seen = std::string(asked.request.target.query) + '|' + std::string(asked.subprotocol);
        LAW(socket.send_text("welcome") == Sent::kYes && socket.peer() == "192.0.2.7:5000");
    };
    route.on_message = [](WebSocket&, const WebSocketMessage&) {};
    const Served served(route);
    const Talk refused = talk_every_way(offer("Origin: http://evil\r\n"), served.settings);
    LAW(statuses(refused.sent) == Statuses{403} && seen.empty());
    const Talk talk = talk_every_way(
        offer("Sec-WebSocket-Protocol: x, a, b\r\n", "GET /ws?q=1 HTTP/1.1"), served.settings);
    LAW(frames_of(talk.sent) == text_back("welcome") && seen == "q=1|a", << visible(talk.sent));
    LAW(talk.sent.find("\r\nSec-WebSocket-Protocol: a\r\n") != std::string::npos);
}

TEST(ConnectionWebSocket, silent_peers_are_pinged_and_dead_ones_left) {
    Told told;
    Served served(telling(told));
    served.settings.limits.ping_after_ms = 10000;
    served.settings.limits.pong_timeout_ms = 3000;
    Wire wire(served.settings);
    const std::uint32_t id = wire.connect();
    wire.feed(id, offer());
    const std::string ping_back = server_frame(0x89, "");
    std::string due;
    for (unsigned i = 0; i < 5; ++i) {
        wire.pass(9000);
        LAW(frames_of(wire.sent(id)) == due);
        wire.pass(1200);
        LAW(frames_of(wire.sent(id)) == (due += ping_back), << i);
        wire.pass(2900);
        // Any byte is a sign of life, half a frame too.
        const std::string pong = websocket::pong("");
        wire.feed(id, pong.substr(0, i));
        wire.feed(id, pong.substr(i));
        LAW(wire.alive(id) && !wire.shut(id));
    }
    wire.pass(10200);
    LAW(told.line() == "open ");
    wire.pass(3200);
    LAW(told.line() == "open close:1006 " && wire.shut(id));
    wire.pass(served.settings.limits.linger_timeout_ms + 100);
    LAW(!wire.alive(id) && wire.connections().arena().bytes_in_use() == 0);
}

TEST(ConnectionWebSocket, both_sides_close_and_the_answer_has_a_deadline) {
    for (const bool answers : {true, false}) {
        Told told;
        Served served(telling(told));
        served.settings.limits.close_timeout_ms = 2000;
        Wire wire(served.settings);
        const std::uint32_t id = wire.connect();
        wire.feed(id, offer());
        LAW(told.sockets[0]->close(4000, "enough") == Sent::kYes);
        LAW(told.sockets[0]->close(4000) == Sent::kClosed);
        wire.connections().end_turn();
        LAW(frames_of(wire.sent(id)) ==
            server_frame(0x88, websocket::code_octets(4000) + "enough"));
        wire.feed(id, text("on its way") + ping());
        LAW(!wire.shut(id) && told.line() == "open ");
        if (answers) {
            wire.feed(id, close_with(4000));
            LAW(told.line() == "open close:4000 ");
        } else {
            wire.pass(1900);
            LAW(told.line() == "open ");
            wire.pass(200);
            LAW(told.line() == "open close:1006 ");
        }
        LAW(wire.shut(id));
        wire.end(id);
        LAW(!wire.alive(id) && wire.connections().arena().bytes_in_use() == 0);
    }
}

// Whatever else a peer sends: it prolongs neither the wait for its Close frame nor the one for
// room.
TEST(ConnectionWebSocket, a_peer_that_sends_is_left_in_time_all_the_same) {
    for (const bool closing : {true, false}) {
        for (const std::string& octets :
             {websocket::pong(), text("more"), std::string("\x82", 1)}) {
            Told told;
            Served served(telling(told));
            served.settings.limits.close_timeout_ms = 2000;
            served.settings.limits.write_timeout_ms = 2000;
            Wire wire(served.settings);
            const std::uint32_t id = wire.connect();
            wire.feed(id, offer());
            if (!closing) wire.give_room(id, 0);
            LAW((closing ? told.sockets[0]->close() : told.sockets[0]->send_text("unread")) ==
                Sent::kYes);
            wire.connections().end_turn();
            for (unsigned i = 0; i < 10 && wire.alive(id) && !wire.shut(id); ++i) {
                LAW(i < 5, << visible(octets));
                wire.feed(id, octets);
                wire.pass(500);
            }
            LAW(told.events.back() == "close:1006", << told.line());
        }
    }
}

TEST(ConnectionWebSocket, however_it_ends_the_application_hears_of_it_once) {
    using End = void (*)(Wire&, std::uint32_t);
    const struct {
        End end;
        const char* told;
    } kEnds[] = {
        {[](Wire& wire, std::uint32_t id) { wire.end(id); }, "open close:1006 "},
        {[](Wire& wire, std::uint32_t id) { wire.connections().on_broken(id); },
         "open close:1006 "},
        {[](Wire& wire, std::uint32_t id) {
             wire.break_peer(id);
             wire.feed(id, ping());
         },
         "open close:1006 "},
        {[](Wire& wire, std::uint32_t) { wire.connections().close_all(); }, "open close:1006 "},
        {[](Wire& wire, std::uint32_t id) { wire.feed(id, "\x81\x05hello"); }, "open close:1002 "},
        {[](Wire& wire, std::uint32_t id) { wire.feed(id, text("\xFF")); }, "open close:1007 "},
        {[](Wire& wire, std::uint32_t id) { wire.feed(id, websocket::client_frame(0x88, "")); },
         "open close:1005 "},
        {[](Wire& wire, std::uint32_t id) {
             wire.connections().drain();
             LAW(frames_of(wire.sent(id)) == websocket::close_back(1001));
             wire.feed(id, close_with(1001));
         },
         "open close:1001 "},
    };
    for (const auto& [end, due] : kEnds) {
        Told told;
        const Served served(telling(told));
        Wire wire(served.settings);
        const std::uint32_t id = wire.connect();
        wire.feed(id, offer());
        end(wire, id);
        LAW(told.line() == due, << told.line());
        wire.end(id);
        LAW(!wire.alive(id) && wire.connections().open_count() == 0);
        LAW(wire.connections().arena().bytes_in_use() == 0);
    }
}

TEST(ConnectionWebSocket, one_that_begins_while_the_server_stops_is_told_so) {
    Told told;
    const Served served(telling(told));
    Wire wire(served.settings);
    const std::uint32_t id = wire.connect();
    const std::string asked = offer();
    wire.feed(id, asked.substr(0, 50));
    wire.connections().drain();
    wire.feed(id, asked.substr(50));
    LAW(frames_of(wire.sent(id)) == websocket::close_back(1001), << visible(wire.sent(id)));
    wire.feed(id, close_with(1001));
    LAW(told.line() == "open close:1001 " && wire.shut(id));
}

TEST(ConnectionWebSocket, full_output_stops_reading_and_loses_nothing) {
    Told told;
    Served served(telling(told));
    served.settings.limits.pending_output_max = 65536;
    std::string due;
    std::string input = offer();
    for (unsigned i = 0; i < 400; ++i) {
        const std::string message(1000 + i, static_cast<char>('a' + i % 26));
        input += text(message) + ping(std::to_string(i));
        due += text_back(message) + pong_back(std::to_string(i));
    }
    for (const std::size_t room : {std::size_t{999}, std::size_t{70001}}) {
        Wire wire(served.settings);
        const std::uint32_t id = wire.connect();
        wire.give_room(id, 1000);
        std::uint64_t most = 0;
        for (std::size_t at = 0; at < input.size();) {
            if (wire.reading(id)) {
                wire.feed(id, std::string_view(input).substr(at, 5000));
                at += 5000;
            } else {
                LAW(!told.sockets.empty() && told.sockets.back()->unsent() > 60000);
                wire.give_room(id, room);
            }
            most = std::max(most, wire.connections().arena().bytes_in_use());
        }
        for (unsigned i = 0; i < 1000; ++i) wire.give_room(id, room);
        LAW(frames_of(wire.sent(id)) == due);
        LAW(most < 400000 && told.sockets.back()->unsent() == 0, << most);
        wire.feed(id, close_with(1000));
        LAW(wire.shut(id));
    }
}

TEST(ConnectionWebSocket, an_application_that_sends_too_much_is_told_and_hears_of_room) {
    Told told;
    WebSocketRoute route = telling(told);
    unsigned sent = 0;
    const std::string message(1000, 'm');
    const auto fill = [&](WebSocket& socket) {
        Sent last = Sent::kYes;
        while (sent < 5000 && (last = socket.send_text(message)) == Sent::kYes) ++sent;
        LAW(sent == 5000 || last == Sent::kFull);
    };
    route.on_open = [&](WebSocket& socket, const WebSocketOffer&) { fill(socket); };
    unsigned told_of_room = 0;
    route.on_room = [&](WebSocket& socket) {
        ++told_of_room;
        fill(socket);
    };
    const Served served(route);
    Wire wire(served.settings);
    const std::uint32_t id = wire.connect();
    wire.give_room(id, 5000);
    wire.feed(id, offer());
    LAW(sent > 100 && sent < 1000);
    for (unsigned i = 0; i < 5000 && sent < 5000; ++i) {
        wire.give_room(id, 10000);
        LAW(wire.connections().arena().bytes_in_use() < 2000000);
    }
    wire.give_room(id, 1U << 30);
    LAW(sent == 5000 && told_of_room > 5);
    std::string due;
    for (unsigned i = 0; i < sent; ++i) due += text_back(message);
    LAW(frames_of(wire.sent(id)) == due);
}

// It sends for as long as there is room, and there is always some.
TEST(ConnectionWebSocket, one_that_reads_fast_does_not_keep_the_others_waiting) {
    Told told;
    WebSocketRoute route = telling(told);
    constexpr unsigned kMessages = 20000;
    unsigned sent = 0;
    const std::string message(1000, 'm');
    const auto fill = [&](WebSocket& socket) {
        while (sent < kMessages && socket.send_text(message) == Sent::kYes) ++sent;
    };
    route.on_open = [&](WebSocket& socket, const WebSocketOffer&) { fill(socket); };
    route.on_room = fill;
    const Served served(route);
    Wire wire(served.settings);
    const std::uint32_t id = wire.connect();
    std::size_t before = 0;
    wire.feed(id, offer());
    for (unsigned i = 0; i < 100 && wire.wants_room(id); ++i) {
        const std::size_t now = wire.sent(id).size();
        LAW(now - before < 3 * kSentInTurnMax, << now - before);
        before = now;
        wire.give_room(id, std::size_t{1} << 40);
    }
    LAW(wire.sent(id).size() - before < 3 * kSentInTurnMax, << wire.sent(id).size() - before);
    std::string due;
    for (unsigned i = 0; i < kMessages; ++i) due += text_back(message);
    LAW(sent == kMessages && frames_of(wire.sent(id)) == due);
    LAW(wire.reading(id));
}

TEST(ConnectionWebSocket, what_one_says_is_sent_to_all_with_one_send_each) {
    std::vector<WebSocket*> all;
    WebSocketRoute route;
    route.on_open = [&](WebSocket& socket, const WebSocketOffer&) { all.push_back(&socket); };
    route.on_message = [&](WebSocket&, const WebSocketMessage& message) {
        for (WebSocket* const one : all) LAW(one->send_text(message.content) == Sent::kYes);
    };
    route.on_close = [&](WebSocket& socket, const websocket::Event&) {
        std::erase(all, &socket);
        for (WebSocket* const one : all) LAW(one->send_text("left") == Sent::kYes);
    };
    const Served served(route);
    Wire wire(served.settings);
    std::vector<std::uint32_t> ids;
    for (unsigned i = 0; i < 5; ++i) {
        ids.push_back(wire.connect());
        wire.feed(ids.back(), offer());
    }
    LAW(wire.connections().find_websocket(all[2]->key()) == all[2]);
    const WebSocketKey key = all[0]->key();
    wire.feed(ids[1], text("one") + text("two"));
    for (const std::uint32_t id : ids) {
        LAW(frames_of(wire.sent(id)) == text_back("one") + text_back("two"));
        LAW(wire.sends(id) == 2);
    }
    wire.connections().on_broken(ids[0]);
    wire.connections().end_turn();
    LAW(wire.connections().find_websocket(key) == nullptr);
    for (unsigned i = 1; i < 5; ++i) LAW(wire.sent(ids[i]).ends_with(text_back("left")));
    // One whose wire breaks while it is sent to ends as any other, and tells the rest.
    wire.break_peer(ids[1]);
    wire.feed(ids[2], text("three"));
    LAW(!wire.alive(ids[1]) && all.size() == 3);
    for (unsigned i = 2; i < 5; ++i) {
        LAW(wire.sent(ids[i]).ends_with(text_back("three") + text_back("left")));
    }
}

TEST(ConnectionWebSocket, an_ordinary_handler_may_send_too) {
    WebSocket* socket = nullptr;
    Router::Builder routes;
    WebSocketRoute route;
    route.on_open = [&](WebSocket& opened, const WebSocketOffer&) { socket = &opened; };
    route.on_message = [](WebSocket&, const WebSocketMessage&) {};
    routes.add_websocket("/ws", route);
    routes.add(kAnyMethod, "/say", [&](const Request&, ResponseWriter& writer) {
        LAW(socket->send_text("said") == Sent::kYes);
        return writer.write(204, {}, {}) ? Reason::kNone : writer.fault();
    });
    const auto router = built(routes);
    ServerSettings settings;
    settings.router = router.get();
    Wire wire(settings);
    const std::uint32_t id = wire.connect();
    wire.feed(id, offer());
    const std::uint32_t other = wire.connect();
    wire.feed(other, request("POST /say HTTP/1.1") + request("POST /say HTTP/1.1"));
    LAW(statuses(wire.sent(other)) == (Statuses{204, 204}));
    LAW(frames_of(wire.sent(id)) == text_back("said") + text_back("said"));
}

TEST(ConnectionWebSocket, limits_of_the_server_and_of_the_route) {
    for (const bool of_route : {false, true}) {
        Told told;
        WebSocketRoute route = telling(told);
        if (of_route) route.limits = {1000, 2000, 3};
        Served served(route);
        if (!of_route) {
            served.settings.limits.frame_max = 1000;
            served.settings.limits.message_max = 2000;
            served.settings.limits.fragments_max = 3;
        }
        const auto heard = [&](const std::string& frames) {
            return frames_of(talk_every_way(offer() + frames, served.settings).sent);
        };
        const std::string good(1000, 'g');
        LAW(heard(binary(good)) == binary_back(good));
        LAW(heard(binary(good + 'x')) == websocket::refused(websocket::Violation::kFrameTooLarge));
        LAW(heard(websocket::fragments(2, good + good, {1000})) == binary_back(good + good));
        LAW(heard(websocket::fragments(2, good + good + 'x', {1000, 1000})) ==
            websocket::refused(websocket::Violation::kMessageTooLarge));
        LAW(heard(websocket::fragments(2, "abc", {1, 1}, ping())) ==
            pong_back() + pong_back() + binary_back("abc"));
        LAW(heard(websocket::fragments(2, "abc", {1, 1, 1})) ==
            websocket::refused(websocket::Violation::kFragmentsTooMany));
    }
}

TEST(ConnectionWebSocket, memory_of_an_idle_one_is_one_block_and_short_memory_is_told) {
    Told told;
    Served served(telling(told));
    served.settings.limits.memory_max = 1 << 20;
    Wire wire(served.settings);
    std::vector<std::uint32_t> ids;
    for (unsigned i = 0; i < 1000; ++i) {
        ids.push_back(wire.connect());
        wire.feed(ids.back(), offer() + websocket::fragments(1, "in parts", {2, 3}));
        LAW(wire.connections().arena().bytes_in_use() == 512 * (i + 1));
    }
    unsigned refused = 0;
    for (unsigned i = 0; i < 2000; ++i) {
        const std::uint32_t id = wire.connect();
        wire.feed(id, offer());
        if (statuses(wire.sent(id))[0] == 503) ++refused;
    }
    LAW(refused > 100);
    // A message for which there is no memory is told, too.
    wire.feed(ids[0], websocket::fragments(1, std::string(600000, 'm'), {300000}));
    LAW(frames_of(wire.sent(ids[0]))
            .ends_with(websocket::refused(websocket::Violation::kNoMemory)));
}

}  // namespace
}  // namespace httpmark
