// Sending on a WebSocket connection from other threads and from the handlers of other workers.
#include "app/websocket_sender.hpp"

#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "app/waker.hpp"
#include "net/live_server.hpp"
#include "net/requests.hpp"
#include "routes.hpp"
#include "websocket/client.hpp"
#include "wire.hpp"

namespace httpmark {
namespace {

using Sent = websocket::Sent;
using websocket::binary_back;
using websocket::close_with;
using websocket::server_frame;
using websocket::text;
using websocket::text_back;

const std::string kOffer =
    request("GET /ws HTTP/1.1",
            "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
            "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n");

std::string closing(unsigned code, std::string_view reason = {}) {
    return server_frame(0x88, websocket::code_octets(code) + std::string(reason));
}

// One route, whose senders are left to the test, in the order in which connections were opened.
struct Served {
    std::vector<WebSocketSender> senders;
    std::string told;  // of on_room and on_close, in their order
    std::shared_ptr<const Router> router;
    ServerSettings settings;

    Served() {
        WebSocketRoute route;
        route.on_open = [this](WebSocket& socket, const WebSocketOffer&) {
            senders.push_back(socket.sender());
        };
        route.on_message = [](WebSocket& socket, const WebSocketMessage& message) {
            LAW(socket.send_text(message.content) == Sent::kYes);
        };
        route.on_room = [this](WebSocket&) { told += "room "; };
        route.on_close = [this](WebSocket& socket, const websocket::Event& event) {
            told += std::to_string(event.code) + ' ';
            LAW(!socket.sender() && socket.sender().gone());
        };
        Router::Builder routes;
        routes.add_websocket("/ws", std::move(route));
        router = built(routes);
        settings.router = router.get();
    }
};

std::uint32_t connect(Wire& wire) {
    const std::uint32_t id = wire.connect();
    wire.feed(id, kOffer);
    return id;
}

// What follows the head of the 101.
std::string frames_of(std::string_view sent) {
    const std::size_t end = sent.find("\r\n\r\n");
    return end == std::string_view::npos ? "no 101" : std::string(sent.substr(end + 4));
}

TEST(WebSocketSender, what_is_given_arrives_in_order_with_one_wake_and_one_send) {
    Served served;
    Wire wire(served.settings);
    std::vector<std::uint32_t> ids;
    for (unsigned i = 0; i < 3; ++i) ids.push_back(connect(wire));
    std::string due;
    for (unsigned i = 0; i < 100; ++i) {
        const std::string message(i * 7, static_cast<char>('a' + i % 26));
        for (const WebSocketSender& sender : served.senders) {
            const Sent sent = i % 2 == 0 ? sender.send_text(message) : sender.send_binary(message);
            LAW(sent == Sent::kYes);
        }
        due += i % 2 == 0 ? text_back(message) : binary_back(message);
    }
    LAW(wire.wakes() == 1 && frames_of(wire.sent(ids[0])).empty());
    wire.deliver();
    for (const std::uint32_t id : ids) {
        LAW(frames_of(wire.sent(id)) == due);
        LAW(wire.sends(id) == 2, << "one of them is the handshake");
    }
    wire.deliver();
    LAW(wire.sends(ids[0]) == 2);
    // A copy is the same sender.
    const WebSocketSender copy = served.senders[1];
    LAW(copy.send_text("copied") == Sent::kYes && wire.wakes() == 1);
    wire.deliver();
    LAW(frames_of(wire.sent(ids[1])) == due + text_back("copied"));
    LAW(frames_of(wire.sent(ids[0])) == due);
}

TEST(WebSocketSender, what_cannot_be_sent_is_told_at_once) {
    Served served;
    Wire wire(served.settings);
    const std::uint32_t id = connect(wire);
    const WebSocketSender sender = served.senders[0];
    LAW(sender && !sender.gone());
    LAW(sender.send_text("\xFF") == Sent::kNotUtf8);
    LAW(sender.send_text("\xC3") == Sent::kNotUtf8);
    LAW(sender.close(1005, "reason") == Sent::kCode && sender.close(1006) == Sent::kCode);
    LAW(sender.close(1000, "\xFF") == Sent::kNotUtf8);
    LAW(sender.close(1000, std::string(124, 'r')) == Sent::kTooLong);
    const WebSocketSender none;
    LAW(!none && none.gone() && none.send_text("x") == Sent::kClosed);
    LAW(none.send_binary("x") == Sent::kClosed && none.close() == Sent::kClosed);
    LAW(wire.wakes() == 0 && !sender.gone());
    LAW(sender.send_binary("\xFF") == Sent::kYes);
    wire.deliver();
    LAW(frames_of(wire.sent(id)) == binary_back("\xFF"));
}

TEST(WebSocketSender, a_close_comes_after_what_was_given_before_it) {
    for (const unsigned code : {1000U, 4321U, 1005U}) {
        Served served;
        Wire wire(served.settings);
        const std::uint32_t id = connect(wire);
        const WebSocketSender sender = served.senders[0];
        LAW(sender.send_text("last") == Sent::kYes);
        const std::string reason = code == 1005 ? "" : "bye";
        LAW(sender.close(static_cast<std::uint16_t>(code), reason) == Sent::kYes);
        LAW(sender.gone() && sender.send_text("late") == Sent::kClosed);
        LAW(sender.close() == Sent::kClosed);
        wire.deliver();
        LAW(frames_of(wire.sent(id)) ==
            text_back("last") + (code == 1005 ? server_frame(0x88, "") : closing(code, reason)));
        wire.feed(id, text("on its way"));
        wire.feed(id, close_with(code == 1005 ? 1000 : code));
        LAW(served.told == std::to_string(code == 1005 ? 1000 : code) + ' ', << served.told);
        LAW(wire.shut(id) && wire.connections().arena().bytes_in_use() == 0);
    }
}

// However a connection ends: its sender knows, and the next owner of the slot is sent nothing.
TEST(WebSocketSender, once_the_connection_is_gone_nothing_is_sent) {
    using End = void (*)(Wire&, std::uint32_t);
    const End ends[] = {
        [](Wire& wire, std::uint32_t id) { wire.end(id); },
        [](Wire& wire, std::uint32_t id) { wire.connections().on_broken(id); },
        [](Wire& wire, std::uint32_t id) { wire.feed(id, close_with(1000)); },
        [](Wire& wire, std::uint32_t id) { wire.feed(id, text("\xFF")); },
        [](Wire& wire, std::uint32_t) { wire.connections().close_all(); },
        [](Wire& wire, std::uint32_t) { wire.connections().drain(); },
    };
    for (const End end : ends) {
        for (const bool before : {false, true}) {  // the message is under way already
            Served served;
            Wire wire(served.settings);
            const std::uint32_t id = connect(wire);
            const WebSocketSender sender = served.senders[0];
            if (before) LAW(sender.send_text("too late") == Sent::kYes);
            end(wire, id);
            LAW(sender.gone() && sender.send_text("later") == Sent::kClosed);
            LAW(sender.close() == Sent::kClosed);
            if (wire.alive(id)) wire.connections().on_broken(id);
            LAW(!wire.alive(id) && wire.connections().arena().bytes_in_use() == 0);
            const std::uint32_t next = connect(wire);
            LAW(next == id, << "the slot is used again");
            wire.deliver();
            LAW(wire.sent(next).find("late") == std::string::npos);
        }
    }
}

TEST(WebSocketSender, it_outlives_the_worker_harmlessly) {
    Served served;
    {
        Wire wire(served.settings);
        connect(wire);
        LAW(served.senders[0].send_text("nobody reads it") == Sent::kYes);
    }
    LAW(served.senders[0].gone() && served.senders[0].send_text("x") == Sent::kClosed);
}

TEST(WebSocketSender, what_a_slow_client_does_not_take_is_bounded_and_room_is_told) {
    for (const std::size_t size : {std::size_t{0}, std::size_t{100}, std::size_t{5000}}) {
        Served served;
        const std::uint64_t most = served.settings.limits.pending_output_max = 65536;
        Wire wire(served.settings);
        const std::uint32_t id = connect(wire);
        const WebSocketSender sender = served.senders[0];
        wire.give_room(id, 0);
        const std::string message(size, 'm');
        std::string due;
        unsigned sent = 0;
        // Full for good when the worker has looked twice and nothing of it went out.
        for (unsigned refused = 0; refused < 3;) {
            if (sender.send_text(message) == Sent::kYes) {
                ++sent;
                due += text_back(message);
                refused = 0;
            } else {
                LAW(sender.send_text(message) == Sent::kFull && !sender.gone());
                ++refused;
                wire.deliver();
            }
            if (sent > 200000) break;
        }
        LAW(sent * (size + 2) < 3 * (most + size + 2) && sent * (size + 48) > most, << sent);
        LAW(wire.connections().arena().bytes_in_use() < 3 * most);
        served.told.clear();
        wire.deliver();
        LAW(sender.send_text(message) == Sent::kFull && served.told.empty());
        for (unsigned i = 0; i < 2000 && wire.sent(id).size() < due.size(); ++i) {
            wire.give_room(id, 997);
            wire.deliver();
        }
        wire.give_room(id, 1U << 30);
        LAW(frames_of(wire.sent(id)) == due);
        LAW(served.told == "room ", << served.told);
        LAW(sender.send_text("again") == Sent::kYes);
        wire.deliver();
        LAW(frames_of(wire.sent(id)) == due + text_back("again"));
        LAW(served.told == "room ");
        wire.connections().on_broken(id);
        LAW(wire.connections().arena().bytes_in_use() == 0);
    }
}

TEST(WebSocketSender, a_close_is_taken_of_one_that_is_full) {
    Served served;
    served.settings.limits.pending_output_max = 65536;
    Wire wire(served.settings);
    const std::uint32_t id = connect(wire);
    wire.give_room(id, 0);
    const WebSocketSender sender = served.senders[0];
    std::string due;
    while (sender.send_binary(std::string(10000, 'b')) == Sent::kYes) {
        due += binary_back(std::string(10000, 'b'));
    }
    LAW(sender.close(4000) == Sent::kYes);
    for (unsigned i = 0; i < 1000; ++i) {
        wire.deliver();
        wire.give_room(id, 5000);
    }
    LAW(frames_of(wire.sent(id)) == due + closing(4000));
}

// A message that is missing would not be noticed, so the connection ends.
TEST(WebSocketSender, without_memory_for_a_message_the_connection_ends) {
    Served served;
    served.settings.limits.memory_max = 1 << 20;
    Wire wire(served.settings);
    const std::uint32_t id = connect(wire);
    const std::uint32_t other = connect(wire);
    wire.give_room(id, 10);
    const std::string message(900000, 'm');
    LAW(served.senders[0].send_binary(message) == Sent::kYes);
    LAW(served.senders[0].send_binary(message) == Sent::kFull);
    LAW(served.senders[1].send_text("x") == Sent::kYes);
    wire.deliver();
    LAW(served.senders[0].send_binary(message) == Sent::kYes || served.senders[0].gone());
    wire.deliver();
    LAW(served.told == "1006 " && !wire.alive(id) && served.senders[0].gone(), << served.told);
    LAW(frames_of(wire.sent(other)) == text_back("x"));
}

TEST(WebSocketSender, several_threads_send_and_each_ones_order_is_kept) {
    Served served;
    served.settings.limits.pending_output_max = 1 << 24;
    Wire wire(served.settings);
    const std::uint32_t id = connect(wire);
    constexpr unsigned kThreads = 4;
    constexpr unsigned kMessages = 500;
    std::vector<std::thread> threads;
    for (unsigned name = 0; name < kThreads; ++name) {
        threads.emplace_back([sender = served.senders[0], name] {
            for (unsigned i = 0; i < kMessages; ++i) {
                const std::string message{static_cast<char>('a' + name)};
                if (sender.send_text(message + std::to_string(1000 + i)) != Sent::kYes) return;
            }
        });
    }
    for (std::thread& thread : threads) thread.join();
    wire.deliver();
    const std::string all = frames_of(wire.sent(id));
    const std::size_t size = text_back("a1000").size();
    LAW(all.size() == size * kThreads * kMessages);
    std::vector<unsigned> seen(kThreads, 0);
    for (std::size_t at = 0; at + size <= all.size(); at += size) {
        const auto name = static_cast<unsigned>(all[at + 2] - 'a');
        LAW(name < kThreads &&
            all.substr(at, size) == text_back(all[at + 2] + std::to_string(1000 + seen[name]++)));
    }
}

// Messages, deliveries, room and ends of several connections, in any order: each client got what
// was taken for it, in its order.
TEST(WebSocketSender, any_order_of_events_keeps_the_order_of_messages) {
    for (std::uint64_t seed = 1; seed <= 100; ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        Served served;
        served.settings.limits.pending_output_max = 65536;
        Wire wire(served.settings);
        Random random(seed);
        std::vector<std::uint32_t> ids;
        std::vector<std::string> due(4);
        for (unsigned i = 0; i < 4; ++i) {
            ids.push_back(connect(wire));
            wire.give_room(ids[i], 1000);
        }
        for (unsigned turn = 0; turn < 400; ++turn) {
            const std::size_t which = random() % 4;
            const std::string message = std::to_string(turn) + std::string(random() % 3000, 'x');
            switch (random() % 8) {
                case 0:
                    wire.deliver();
                    break;
                case 1:
                    wire.give_room(ids[which], random() % 20000);
                    break;
                case 2:
                    if (random() % 100 != 0 || !wire.alive(ids[which])) break;
                    wire.connections().on_broken(ids[which]);
                    break;
                default:
                    if (served.senders[which].send_text(message) != Sent::kYes) break;
                    due[which] += text_back(message);
            }
        }
        for (unsigned i = 0; i < 4; ++i) {
            if (wire.alive(ids[i])) {
                wire.give_room(ids[i], 1U << 30);
                wire.deliver();
                LAW(frames_of(wire.sent(ids[i])) == due[i]);
            } else {
                LAW(due[i].starts_with(frames_of(wire.sent(ids[i]))));
            }
        }
    }
}

TEST(WebSocketSender, a_waker_of_a_request_before_the_switch_wakes_nothing) {
    Waker waker;
    Router::Builder routes;
    routes.add(kAnyMethod, "/waker", [&](const Request&, ResponseWriter& writer) {
        waker = writer.waker();
        return writer.answer(204, {}, {});
    });
    WebSocketRoute route;
    route.on_message = [](WebSocket&, const WebSocketMessage&) {};
    routes.add_websocket("/ws", std::move(route));
    const auto router = built(routes);
    ServerSettings settings;
    settings.router = router.get();
    Wire wire(settings);
    const std::uint32_t id = wire.connect();
    wire.feed(id, request("GET /waker HTTP/1.1") + kOffer);
    waker.wake();
    wire.deliver();
    LAW(wire.alive(id) && statuses(wire.sent(id)) == (std::vector<int>{204, 101}));
}

// A client that has switched to WebSocket.
int switched(const LiveServer& server) {
    const int fd = server.connect();
    write_all(fd, kOffer);
    std::string head;
    while (!head.ends_with("\r\n\r\n")) {
        const Received received = read_some(fd, 1);
        LAW(!received.octets.empty(), << visible(head));
        if (received.octets.empty()) break;
        head += received.octets;
    }
    return fd;
}

class EachEngine : public EveryEngine {};

// Two whole workers: what a client of either says, the clients of both are told, in one order.
TEST_P(EachEngine, clients_of_two_workers_hear_each_other) {
    std::mutex lock;
    std::vector<WebSocketSender> everybody;
    WebSocketRoute route;
    route.on_open = [&](WebSocket& socket, const WebSocketOffer&) {
        const std::lock_guard<std::mutex> held(lock);
        everybody.push_back(socket.sender());
    };
    route.on_message = [&](WebSocket&, const WebSocketMessage& message) {
        const std::lock_guard<std::mutex> held(lock);
        for (const WebSocketSender& one : everybody) {
            LAW(one.send_text(message.content) == Sent::kYes);
        }
    };
    Router::Builder routes;
    routes.add_websocket("/ws", std::move(route));
    const auto router = built(routes);
    ServerSettings settings;
    settings.router = router.get();
    START(settings);
    LiveServer other(GetParam(), settings);
    ASSERT_TRUE(other.ready()) << other.error();
    constexpr unsigned kClients = 6;
    constexpr unsigned kMessages = 100;
    std::vector<int> fds;
    for (unsigned i = 0; i < kClients; ++i) {
        fds.push_back(switched(i % 2 == 0 ? *server_ : other));
    }
    for (unsigned i = 0; i < kClients; ++i) {
        std::string said;
        for (unsigned k = 0; k < kMessages; ++k) {
            said += text(std::to_string(i) + ":" + std::to_string(1000 + k));
        }
        write_all(fds[i], said);
    }
    const std::size_t size = text_back("0:1000").size();
    std::string heard_first;
    for (unsigned i = 0; i < kClients; ++i) {
        const std::string heard = read_some(fds[i], size * kClients * kMessages).octets;
        LAW(heard.size() == size * kClients * kMessages, << heard.size());
        if (i == 0) heard_first = heard;
        LAW(heard == heard_first, << "one lock, one order");
        std::vector<unsigned> seen(kClients, 0);
        for (std::size_t at = 0; at + size <= heard.size(); at += size) {
            const auto who = static_cast<unsigned>(heard[at + 2] - '0');
            LAW(who < kClients && heard.substr(at + 4, 4) == std::to_string(1000 + seen[who]++));
        }
        close(fds[i]);
    }
    other.stop(true);
    server_ = nullptr;
}

INSTANTIATE_TEST_SUITE_P(Senders, EachEngine, testing::ValuesIn(engines()), engine_name);

}  // namespace
}  // namespace httpmark
