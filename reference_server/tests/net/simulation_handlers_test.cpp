// As the other simulation, but of what handlers may do: answers from other threads, deferred ones,
// streams, events, content in pieces and WebSocket, on connections that are cut, blocked, closed by
// either side and reset in any order. Answers come whole, once and in the order of the requests;
// whoever was told of a beginning is told of the end; and nothing is left behind.
#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "app/content_reader.hpp"
#include "app/event_sender.hpp"
#include "app/later_answer.hpp"
#include "app/waker.hpp"
#include "net/requests.hpp"
#include "websocket/client.hpp"
#include "wire.hpp"

namespace httpmark {
namespace {

using State = ContentStream::State;
using Flow = ContentReader::Flow;

// An application that does as chance will have it.
class Application {
  public:
    explicit Application(Random& random) : random_(random) {
        Router::Builder routes;
        const auto add = [&](const char* path, auto ask, RouteOptions options = {}) {
            routes.add(
                kAnyMethod, path,
                [this, ask](const Request& asked, ResponseWriter& writer) {
                    return (this->*ask)(asked, writer);
                },
                std::move(options));
        };
        add("/now/{number}", &Application::now, {.wants_content = true});
        add("/later/{number}", &Application::later, {.wants_content = true});
        add("/deferred/{number}", &Application::deferred);
        add("/stream/{number}", &Application::stream);
        add("/events/{number}", &Application::events);
        add("/upload/{number}", &Application::upload, {.streams = true});
        routes.add_websocket("/ws/{number}", websocket());
        router_ = built(routes);
    }
    const Router* router() const { return router_.get(); }

    // Something happens in the application by itself.
    void stir() {
        if (!wakers_.empty() && random_() % 2 == 0) wakers_[random_() % wakers_.size()].wake();
        if (!tokens_.empty() && random_() % 2 == 0) answer_one();
        if (!senders_.empty() && random_() % 2 == 0) {
            EventSender& sender = senders_[random_() % senders_.size()];
            EventSender::ServerEvent event;
            const std::string data(random_() % 3000, 'e');
            event.data = data;
            sender.send(event);
            if (random_() % 8 == 0) sender = EventSender();
        }
        if (!sockets_.empty() && random_() % 4 == 0) {
            WebSocket& socket = *sockets_[random_() % sockets_.size()];
            if (random_() % 10 == 0) socket.close();
            socket.send_text(std::string(random_() % 2000, 'w'));
        }
    }
    // What it still holds is let go.
    void finish() {
        ends_ = true;
        tokens_.clear();
        senders_.clear();
        for (const Waker& waker : wakers_) waker.wake();
    }
    void expect_all_told() const {
        LAW(readers_ == 0 && streams_ == 0 && sockets_.empty(),
            << readers_ << ' ' << streams_ << ' ' << sockets_.size());
    }

  private:
    std::string some_content() { return std::string(random_() % 3 == 0 ? 40000 : 50, 'c'); }
    Reason write(const Request& asked, ResponseWriter& writer) {
        return writer.answer(200, {{"Number", asked.value("number")}}, some_content());
    }
    Reason now(const Request& asked, ResponseWriter& writer) { return write(asked, writer); }
    Reason later(const Request&, ResponseWriter& writer) {
        tokens_.push_back(writer.later());
        return Reason::kNone;
    }
    Reason deferred(const Request& asked, ResponseWriter& writer) {
        if (asked.asked_again && random_() % 4 != 0) return write(asked, writer);
        writer.defer(static_cast<std::uint32_t>(random_() % 300));
        return Reason::kNone;
    }
    Reason stream(const Request& asked, ResponseWriter& writer) {
        wakers_.push_back(writer.waker());
        const bool written =
            writer.write_stream(200, {{"Number", asked.value("number")}},
                                std::make_unique<Stream>(*this, 1 + random_() % 8));
        return written ? Reason::kNone : writer.fault();
    }
    Reason events(const Request&, ResponseWriter& writer) {
        senders_.emplace_back(writer, random_() % 9000);
        return senders_.back() ? Reason::kNone : writer.fault();
    }
    Reason upload(const Request& asked, ResponseWriter& writer) {
        if (random_() % 8 == 0) return write(asked, writer);
        wakers_.push_back(writer.waker());
        writer.read_content(std::make_unique<Reader>(*this, std::string(asked.value("number"))),
                            random_() % 3 == 0);
        return Reason::kNone;
    }
    WebSocketRoute websocket() {
        WebSocketRoute route;
        route.deflate.enabled = true;
        route.on_open = [this](WebSocket& socket, const WebSocketOffer&) {
            sockets_.push_back(&socket);
            if (random_() % 4 == 0) socket.send_text("welcome");
        };
        route.on_message = [this](WebSocket& socket, const WebSocketMessage& message) {
            if (random_() % 2 == 0) socket.send_binary(message.content);
            if (random_() % 20 == 0) socket.close();
            if (random_() % 4 == 0) tell_all(message.content);
        };
        route.on_room = [this](WebSocket& socket) { socket.send_binary(some_content()); };
        route.on_close = [this](WebSocket& socket, const websocket::Event&) {
            std::erase(sockets_, &socket);
            tell_all("left");
        };
        return route;
    }
    void tell_all(std::string_view message) {
        for (WebSocket* const socket : sockets_) socket->send_binary(message);
    }
    void answer_one() {
        LaterAnswer token = std::exchange(tokens_[random_() % tokens_.size()], {});
        std::erase_if(tokens_, [](const LaterAnswer& one) { return !one; });
        switch (random_() % 4) {
            case 0:
                token.complete([this](const Request& asked, ResponseWriter& writer) {
                    return ends_ || random_() % 2 == 0 ? write(asked, writer)
                                                       : stream(asked, writer);
                });
                break;
            case 1:
                token.complete([this](const Request& asked, ResponseWriter& writer) {
                    return later(asked, writer);
                });
                break;
            case 2:
                token.complete(200, {}, some_content());
                break;
            default:
                break;  // dropped
        }
    }
    class Stream final : public ContentStream {
      public:
        Stream(Application& all, std::size_t pieces) : all_(all), pieces_(pieces) {
            ++all_.streams_;
        }
        ~Stream() override { --all_.streams_; }
        Piece read(std::span<char> room) override {
            if (pieces_ == 0) return {0, State::kEnd};
            const std::size_t size = std::min<std::size_t>(room.size(), 1 + all_.random_() % 20000);
            std::fill_n(room.begin(), size, 's');
            --pieces_;
            return {size, !all_.ends_ && all_.random_() % 2 == 0 ? State::kLater : State::kMore};
        }

      private:
        Application& all_;
        std::size_t pieces_;
    };
    class Reader final : public ContentReader {
      public:
        Reader(Application& all, std::string number) : all_(all), number_(std::move(number)) {
            ++all_.readers_;
        }
        ~Reader() override { --all_.readers_; }
        Flow on_piece(std::string_view, ResponseWriter& writer) override {
            if (all_.random_() % 100 == 0) {
                LAW(writer.write(200, {{"Number", number_}}, "enough"));
            }
            return !all_.ends_ && all_.random_() % 3 == 0 ? Flow::kPause : Flow::kMore;
        }
        Reason on_end(const Request& asked, ResponseWriter& writer) override {
            LAW(asked.value("number") == number_);
            return all_.random_() % 3 == 0 ? all_.later(asked, writer) : all_.write(asked, writer);
        }
        Flow on_woken(ResponseWriter& writer) override { return on_piece({}, writer); }

      private:
        Application& all_;
        const std::string number_;
    };

    Random& random_;
    std::shared_ptr<const Router> router_;
    std::vector<LaterAnswer> tokens_;
    std::vector<Waker> wakers_;
    std::vector<EventSender> senders_;
    std::vector<WebSocket*> sockets_;
    unsigned readers_ = 0;
    unsigned streams_ = 0;
    bool ends_ = false;
};

// Some requests, numbered, and frames behind a last one.
std::string some_requests(Random& random, unsigned& count) {
    static const std::string kTargets[] = {"/now/",    "/later/",  "/deferred/",
                                           "/stream/", "/events/", "/upload/"};
    std::string all;
    count = 1 + static_cast<unsigned>(random() % 6);
    for (unsigned i = 0; i < count; ++i) {
        const std::string line =
            "POST " + kTargets[random() % std::size(kTargets)] + std::to_string(i) + " HTTP/1.1";
        const std::string content(random() % 4 == 0 ? 0 : random() % 3000, 'q');
        if (random() % 2 == 0) {
            all += request(line, "Content-Length: " + std::to_string(content.size()) + "\r\n",
                           content);
            continue;
        }
        all += request(line, "Transfer-Encoding: chunked\r\n");
        for (std::size_t at = 0; at < content.size(); at += 9) {
            const std::string chunk = content.substr(at, 9);
            all += std::to_string(chunk.size()) + "\r\n" + chunk + "\r\n";
        }
        all += "0\r\n\r\n";
    }
    if (random() % 2 == 0) return all;
    ++count;
    all += request("GET /ws/0 HTTP/1.1",
                   "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
                   "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
                   "Sec-WebSocket-Extensions: permessage-deflate\r\n");
    for (unsigned i = random() % 20; i > 0; --i) {
        const std::string content(random() % 4000, 'm');
        all += random() % 3 == 0 ? websocket::fragments(2, content, {1, 100}, websocket::ping("p"))
                                 : websocket::binary(content);
    }
    if (random() % 2 == 0) all += websocket::close_with(1000);
    return all;
}

struct Client {
    std::uint32_t id;
    std::string to_send;
    unsigned requests = 0;
    std::size_t fed = 0;
    bool ended = false;
    bool disturbed = false;
};

// How many whole answers there are, each of which says its request's number, or nothing of it.
// False where something else stands there.
bool count_answers(std::string_view sent, unsigned& count) {
    for (count = 0; !sent.empty(); ++count) {
        const std::size_t end = sent.find("\r\n\r\n");
        if (!sent.starts_with("HTTP/1.1 ")) return false;
        if (end == std::string_view::npos) return true;
        const std::string_view head = sent.substr(0, end + 2);
        const std::size_t number = head.find("\r\nNumber: ");
        if (number != std::string_view::npos &&
            !head.substr(number + 10).starts_with(std::to_string(count) + "\r\n")) {
            return false;
        }
        if (sent.starts_with("HTTP/1.1 101 ")) return ++count != 0;  // frames follow
        sent.remove_prefix(end + 4);
        const std::size_t length = head.find("\r\nContent-Length: ");
        if (length != std::string_view::npos) {
            const std::size_t size = std::stoul(std::string(head.substr(length + 18)));
            if (sent.size() < size) return true;
            sent.remove_prefix(size);
            continue;
        }
        for (std::size_t size = 1; size != 0;) {
            const std::size_t line = sent.find("\r\n");
            if (line == std::string_view::npos) return true;
            size = std::stoul(std::string(sent.substr(0, line)), nullptr, 16);
            if (sent.size() < line + 2 + size + 2) return true;
            if (sent.substr(line + 2 + size, 2) != "\r\n") return false;
            sent.remove_prefix(line + 2 + size + 2);
        }
    }
    return true;
}

void turn(Wire& wire, Application& application, Client& client, Random& random) {
    switch (random() % 10) {
        case 0:
            wire.give_room(client.id, random() % 5000);
            break;
        case 1:
            wire.give_room(client.id, 1U << 30);
            break;
        case 2:
            wire.pass(random() % 200);
            break;
        case 3:
            wire.deliver();
            wire.connections().end_turn();
            break;
        case 4:
            if (random() % 40 != 0 || !wire.alive(client.id)) break;
            client.disturbed = true;
            wire.connections().on_broken(client.id);
            break;
        case 5:
            if (random() % 40 != 0) break;
            client.disturbed |= client.fed < client.to_send.size();
            client.ended = true;
            wire.end(client.id);
            break;
        case 6:
            application.stir();
            wire.connections().end_turn();
            break;
        default: {
            if (!wire.alive(client.id) || client.ended) break;
            if (!wire.reading(client.id) && random() % 3 != 0) break;
            const std::size_t size =
                std::min<std::size_t>(1 + random() % 2000, client.to_send.size() - client.fed);
            wire.feed(client.id, std::string_view(client.to_send).substr(client.fed, size));
            client.fed += size;
        }
    }
}

void simulate(std::uint64_t seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    Application application(random);
    ServerSettings settings;
    settings.router = application.router();
    settings.limits.pending_output_max = 65536;
    Wire wire(settings);
    std::vector<Client> clients;
    for (unsigned i = 0; i < 6; ++i) {
        Client client{wire.connect(), {}};
        client.to_send = some_requests(random, client.requests);
        clients.push_back(client);
    }
    const bool drains = random() % 4 == 0;
    for (unsigned turns = 0; turns < 800; ++turns) {
        if (drains && turns == 500) wire.connections().drain();
        turn(wire, application, clients[random() % clients.size()], random);
    }
    for (unsigned i = 0; i < 400; ++i) {
        application.finish();
        wire.deliver();
        wire.pass(10);
        for (Client& client : clients) {
            wire.give_room(client.id, 1U << 30);
            if (!wire.alive(client.id) || client.ended || !wire.reading(client.id)) continue;
            wire.feed(client.id, std::string_view(client.to_send).substr(client.fed, 1000));
            client.fed = std::min(client.fed + 1000, client.to_send.size());
        }
    }
    for (Client& client : clients) {
        unsigned answers = 0;
        LAW(count_answers(wire.sent(client.id), answers), << visible(wire.sent(client.id)));
        LAW(answers <= client.requests);
        const bool closed = wire.shut(client.id) || !wire.alive(client.id);
        LAW(client.disturbed || closed || answers == client.requests,
            << answers << " of " << client.requests << ": " << visible(client.to_send));
        wire.end(client.id);
    }
    wire.pass(100000);
    wire.pass(100000);
    LAW(wire.connections().open_count() == 0);
    LAW(wire.connections().arena().bytes_in_use() == 0);
    application.expect_all_told();
}

TEST(SimulationOfHandlers, seeded_wires) {
    for (std::uint64_t seed = 1; seed <= 300; ++seed) simulate(seed);
}

}  // namespace
}  // namespace httpmark
