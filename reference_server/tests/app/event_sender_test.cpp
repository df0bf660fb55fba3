// Server-sent events as an answer that goes on.
#include "app/event_sender.hpp"

#include <string>
#include <thread>
#include <vector>

#include "net/requests.hpp"
#include "routes.hpp"
#include "wire.hpp"

namespace httpmark {
namespace {

using EventFault = websocket::EventFault;
using websocket::ServerEvent;

// One route, whose senders are left to the test.
struct Served {
    std::vector<EventSender> senders;
    std::shared_ptr<const Router> router;
    ServerSettings settings;

    explicit Served(std::size_t unsent_max = 65536) {
        Router::Builder routes;
        routes.add(kAnyMethod, "/events",
                   [this, unsent_max](const Request&, ResponseWriter& writer) {
                       senders.emplace_back(writer, unsent_max);
                       return senders.back() ? Reason::kNone : writer.fault();
                   });
        routes.add(kAnyMethod, "/hello", Answer(200, {}, "hello"));
        router = built(routes);
        settings.router = router.get();
    }
};

const std::string kEvents = request("GET /events HTTP/1.1");

ServerEvent event_of(std::string_view data) {
    ServerEvent event;
    event.data = data;
    return event;
}

// The content of the first answer, out of its chunks.
std::string content_of(std::string_view sent) {
    sent.remove_prefix(std::min(sent.find("\r\n\r\n") + 4, sent.size()));
    std::string content;
    while (!sent.empty()) {
        const std::size_t line = sent.find("\r\n");
        const std::size_t size = std::stoul(std::string(sent.substr(0, line)), nullptr, 16);
        if (size == 0) return content + "<end>";
        content += sent.substr(line + 2, size);
        sent.remove_prefix(std::min(line + 2 + size + 2, sent.size()));
    }
    return content;
}

TEST(EventSender, events_go_out_as_they_are_sent_until_the_end) {
    Served served;
    Wire wire(served.settings);
    const std::uint32_t id = wire.connect();
    wire.feed(id, kEvents + request("GET /hello HTTP/1.1"));
    LAW(wire.sent(id).find("\r\nContent-Type: text/event-stream\r\nCache-Control: no-store\r\n") !=
        std::string::npos);
    const EventSender sender = served.senders[0];
    LAW(sender.send(event_of("one")) == EventFault::kNone);
    wire.deliver();
    LAW(content_of(wire.sent(id)) == "data: one\n\n", << visible(wire.sent(id)));
    LAW(sender.send(event_of("two\nlines")) == EventFault::kNone);
    LAW(sender.comment() == EventFault::kNone);
    LAW(sender.send(event_of("\xFF")) == EventFault::kNotUtf8);
    ServerEvent wrong = event_of("x");
    wrong.type = "a\nb";
    LAW(sender.send(wrong) == EventFault::kTypeOctet);
    wire.deliver();
    const std::string due = "data: one\n\ndata: two\ndata: lines\n\n: \n\n";
    LAW(content_of(wire.sent(id)) == due, << visible(wire.sent(id)));
    wire.pass(3600000);
    LAW(!sender.gone() && wire.alive(id));
    sender.end();
    wire.deliver();
    // The request behind it has its answer now.
    LAW(content_of(wire.sent(id)) == due + "<end>" && wire.sent(id).ends_with("\r\n\r\nhello"));
    LAW(sender.send(event_of("late")) == EventFault::kGone && sender.gone());
}

TEST(EventSender, the_last_sender_that_goes_ends_the_answer) {
    Served served;
    Wire wire(served.settings);
    const std::uint32_t id = wire.connect();
    wire.feed(id, kEvents);
    EventSender copy = served.senders[0];
    served.senders.clear();
    wire.deliver();
    LAW(copy.send(event_of("still")) == EventFault::kNone);
    copy = EventSender();
    LAW(!copy && copy.gone() && copy.send(event_of("x")) == EventFault::kGone);
    wire.deliver();
    LAW(content_of(wire.sent(id)) == "data: still\n\n<end>", << visible(wire.sent(id)));
}

TEST(EventSender, it_is_told_when_the_client_leaves) {
    Served served;
    Wire wire(served.settings);
    const std::uint32_t id = wire.connect();
    wire.feed(id, kEvents);
    LAW(!served.senders[0].gone());
    wire.connections().on_broken(id);
    LAW(served.senders[0].gone());
    LAW(served.senders[0].send(event_of("x")) == EventFault::kGone);
    // HEAD has no content that could go on.
    const std::uint32_t other = wire.connect();
    wire.feed(other, request("HEAD /events HTTP/1.1"));
    LAW(served.senders[1] && served.senders[1].gone());
}

TEST(EventSender, what_a_slow_client_does_not_take_is_bounded) {
    Served served(1000);
    Wire wire(served.settings);
    const std::uint32_t id = wire.connect();
    wire.feed(id, kEvents);
    wire.give_room(id, 0);
    const EventSender sender = served.senders[0];
    const std::string data(100, 'd');
    std::string due;
    unsigned sent = 0;
    while (sent < 100000 && sender.send(event_of(data)) == EventFault::kNone) {
        due += "data: " + data + "\n\n";
        ++sent;
        wire.deliver();
    }
    LAW(sent < 100000 && sender.send(event_of(data)) == EventFault::kFull, << sent);
    for (unsigned i = 0; i < 100; ++i) wire.give_room(id, 997);
    wire.give_room(id, 1U << 30);
    LAW(sender.send(event_of("again")) == EventFault::kNone);
    wire.deliver();
    LAW(content_of(wire.sent(id)) == due + "data: again\n\n");
}

TEST(EventSender, several_threads_send_to_one_client) {
    Served served(1 << 20);
    Wire wire(served.settings);
    const std::uint32_t id = wire.connect();
    wire.feed(id, kEvents);
    {
        std::vector<std::thread> threads;
        for (char name = 'a'; name < 'e'; ++name) {
            threads.emplace_back([sender = served.senders[0], name] {
                for (unsigned i = 0; i < 500; ++i) {
                    if (sender.send(event_of({&name, 1})) != EventFault::kNone) return;
                }
            });
        }
        for (std::thread& thread : threads) thread.join();
    }
    wire.deliver();
    const std::string content = content_of(wire.sent(id));
    for (char name = 'a'; name < 'e'; ++name) {
        std::size_t found = 0;
        const std::string event = std::string("data: ") + name + "\n\n";
        for (std::size_t at = 0; (at = content.find(event, at)) != std::string::npos; ++at) ++found;
        LAW(found == 500, << name);
    }
}

}  // namespace
}  // namespace httpmark
