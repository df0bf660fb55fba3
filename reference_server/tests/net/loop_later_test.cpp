// Answers from other threads, through whole workers on sockets of every engine.
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "app/event_sender.hpp"
#include "app/later_answer.hpp"
#include "app/waker.hpp"
#include "net/live_server.hpp"
#include "websocket/client.hpp"
#include "wire.hpp"

namespace httpmark {
namespace {

using Statuses = std::vector<int>;

// Threads that answer what is put before them, in no order.
class Answerers {
  public:
    explicit Answerers(unsigned count) {
        for (unsigned i = 0; i < count; ++i) threads_.emplace_back([this] { work(); });
    }
    ~Answerers() {
        {
            const std::lock_guard<std::mutex> held(lock_);
            stop_ = true;
        }
        some_.notify_all();
        for (std::thread& thread : threads_) thread.join();
    }
    void put(LaterAnswer token, std::string text) {
        {
            const std::lock_guard<std::mutex> held(lock_);
            waiting_.emplace_back(std::move(token), std::move(text));
        }
        some_.notify_one();
    }
    std::atomic<unsigned> answered{0};
    std::atomic<unsigned> gone{0};

  private:
    void work() {
        while (true) {
            std::unique_lock<std::mutex> held(lock_);
            some_.wait(held, [this] { return stop_ || !waiting_.empty(); });
            if (waiting_.empty()) return;
            auto [token, text] = std::move(waiting_.front());
            waiting_.pop_front();
            held.unlock();
            ++(token.complete(200, {{"X-From", "another thread"}}, text) ? answered : gone);
        }
    }
    std::mutex lock_;
    std::condition_variable some_;
    std::deque<std::pair<LaterAnswer, std::string>> waiting_;
    bool stop_ = false;
    std::vector<std::thread> threads_;
};

ServerSettings serving(const std::shared_ptr<const Router>& router) {
    ServerSettings settings;
    settings.router = router.get();
    return settings;
}

std::shared_ptr<const Router> routes_to(Answerers& answerers) {
    Router::Builder routes;
    routes.add(kAnyMethod, "/later/{name}",
               [&answerers](const Request& request, ResponseWriter& writer) {
                   answerers.put(writer.later(), std::string(request.value("name")));
                   return Reason::kNone;
               });
    return built(routes);
}

// Of an answer to a name of four bytes.
constexpr std::size_t kAnswerSize = std::string_view(
                                        "HTTP/1.1 200 OK\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\n"
                                        "X-From: another thread\r\nContent-Length: 4\r\n\r\n1000")
                                        .size();

std::string asking(const std::string& name) {
    return "GET /later/" + name + " HTTP/1.1\r\nHost: h\r\n\r\n";
}

TEST_P(EveryEngine, other_threads_answer_in_the_order_of_the_requests) {
    Answerers answerers(3);
    const auto router = routes_to(answerers);
    START(serving(router));
    constexpr unsigned kConnections = 16;
    constexpr unsigned kRequests = 50;
    std::vector<int> fds;
    for (unsigned i = 0; i < kConnections; ++i) {
        fds.push_back(server_->connect());
        std::string batch;
        for (unsigned k = 0; k < kRequests; ++k) batch += asking(std::to_string(1000 + k));
        write_all(fds.back(), batch);
    }
    const std::size_t size = kAnswerSize;
    for (const int fd : fds) {
        const std::string all = read_some(fd, size * kRequests).octets;
        LAW(statuses(all) == Statuses(kRequests, 200), << visible(all));
        for (unsigned k = 0; k < kRequests && all.size() == size * kRequests; ++k) {
            LAW(all.substr((k + 1) * size - 4, 4) == std::to_string(1000 + k));
        }
        close(fd);
    }
    LAW(answerers.answered == kConnections * kRequests);
    server_ = nullptr;  // before what its routes refer to
}

TEST_P(EveryEngine, answers_to_clients_that_have_gone_harm_nobody) {
    Answerers answerers(2);
    const auto router = routes_to(answerers);
    START(serving(router));
    constexpr unsigned kRounds = 200;
    for (unsigned i = 0; i < kRounds; ++i) {
        const int fd = server_->connect();
        write_all(fd, asking("nobody") + asking("nobody"));
        if (i % 2 == 0) {
            const linger abrupt{1, 0};
            setsockopt(fd, SOL_SOCKET, SO_LINGER, &abrupt, sizeof abrupt);
        }
        close(fd);
    }
    const int fd = server_->connect();
    write_all(fd, asking("last"));
    LAW(read_some(fd, kAnswerSize).octets.find("\r\n\r\nlast") != std::string::npos);
    close(fd);
    for (unsigned i = 0; i < 400 && server_->counters().closed < kRounds + 1; ++i) usleep(20000);
    LAW(server_->counters().closed == kRounds + 1, << server_->counters().closed);
    server_ = nullptr;
}

TEST_P(EveryEngine, a_stop_waits_for_answers_and_then_no_longer) {
    for (const bool answered : {true, false}) {
        std::mutex lock;
        LaterAnswer kept;
        Router::Builder routes;
        std::atomic<bool> asked{false};
        routes.add(kAnyMethod, "/later", [&](const Request&, ResponseWriter& writer) {
            const std::lock_guard<std::mutex> held(lock);
            kept = writer.later();
            asked = true;
            return Reason::kNone;
        });
        const auto router = built(routes);
        ServerSettings settings = serving(router);
        settings.limits.drain_timeout_ms = answered ? 30000 : 200;
        START(settings);
        const int fd = server_->connect();
        write_all(fd, "GET /later HTTP/1.1\r\nHost: h\r\n\r\n");
        for (unsigned i = 0; i < 1000 && !asked; ++i) usleep(10000);
        std::thread late([&] {
            usleep(300000);
            const std::lock_guard<std::mutex> held(lock);
            if (answered) kept.complete(200, {}, "x");
        });
        std::thread reader([&] {
            const Received received = read_some(fd, kToTheEnd);
            LAW(statuses(received.octets) == (answered ? Statuses{200} : Statuses{}));
            close(fd);
        });
        server_->stop(false);
        server_ = nullptr;
        late.join();
        reader.join();
        LAW(answered || (kept && kept.gone()));
    }
}

// What one thread puts in and the worker takes out.
class Pipe {
  public:
    // False when the stream is gone.
    bool put(std::string_view octets, bool last) {
        {
            const std::lock_guard<std::mutex> held(lock_);
            if (gone_) return false;
            octets_ += octets;
            ended_ = last;
        }
        waker.wake();
        return true;
    }
    ContentStream::Piece take(std::span<char> room) {
        const std::lock_guard<std::mutex> held(lock_);
        const std::size_t size = std::min(room.size(), octets_.size());
        std::copy_n(octets_.begin(), size, room.begin());
        octets_.erase(0, size);
        if (!octets_.empty()) return {size, ContentStream::State::kMore};
        return {size, ended_ ? ContentStream::State::kEnd : ContentStream::State::kLater};
    }
    void leave() {
        const std::lock_guard<std::mutex> held(lock_);
        gone_ = true;
    }
    Waker waker;

  private:
    std::mutex lock_;
    std::string octets_;
    bool ended_ = false;
    bool gone_ = false;
};

class FromPipe final : public ContentStream {
  public:
    explicit FromPipe(std::shared_ptr<Pipe> pipe) : pipe_(std::move(pipe)) {}
    ~FromPipe() override { pipe_->leave(); }
    Piece read(std::span<char> room) override { return pipe_->take(room); }

  private:
    std::shared_ptr<Pipe> pipe_;
};

TEST_P(EveryEngine, other_threads_feed_streams_and_learn_that_the_client_has_gone) {
    constexpr unsigned kLines = 2000;
    std::mutex lock;
    std::vector<std::thread> feeders;
    std::atomic<unsigned> gone{0};
    Router::Builder routes;
    routes.add(kAnyMethod, "/lines/{kind}", [&](const Request& request, ResponseWriter& writer) {
        const bool endless = request.value("kind") == "endless";
        const auto pipe = std::make_shared<Pipe>();
        pipe->waker = writer.waker();
        const std::lock_guard<std::mutex> held(lock);
        feeders.emplace_back([pipe, endless, &gone] {
            for (unsigned i = 0; endless || i < kLines; ++i) {
                const bool last = !endless && i + 1 == kLines;
                if (!pipe->put(std::to_string(i) + '\n', last)) {
                    ++gone;
                    return;
                }
                if (i % 100 == 0) usleep(1000);
            }
        });
        return writer.write_stream(200, {}, std::make_unique<FromPipe>(pipe)) ? Reason::kNone
                                                                              : writer.fault();
    });
    const auto router = built(routes);
    START(serving(router));
    const std::string end = " HTTP/1.0\r\nHost: h\r\n\r\n";
    std::string wanted;
    for (unsigned i = 0; i < kLines; ++i) wanted += std::to_string(i) + '\n';
    std::vector<int> readers;
    for (unsigned i = 0; i < 6; ++i) {
        const int fd = server_->connect();
        write_all(fd, (i % 2 == 0 ? "GET /lines/some" : "GET /lines/endless") + end);
        if (i % 2 == 0) {
            readers.push_back(fd);
        } else {
            LAW(!read_some(fd, 100).octets.empty());
            const linger abrupt{1, 0};
            setsockopt(fd, SOL_SOCKET, SO_LINGER, &abrupt, sizeof abrupt);
            close(fd);
        }
    }
    for (const int fd : readers) {
        const Received received = read_some(fd, kToTheEnd);
        LAW(received.ended && received.octets.ends_with("\r\n\r\n" + wanted),
            << received.octets.size());
        close(fd);
    }
    {
        const std::lock_guard<std::mutex> held(lock);
        for (std::thread& feeder : feeders) feeder.join();  // or they would feed for ever
    }
    server_ = nullptr;
    LAW(gone == 3, << gone);
}

constexpr std::size_t kSwitchedSize =
    std::string_view(
        "HTTP/1.1 101 Switching Protocols\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\n"
        "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"
        "Upgrade: websocket\r\nConnection: upgrade\r\n\r\n")
        .size();

// One that answers the Close frame, one that only goes on talking, and a stream that does not end.
TEST_P(EveryEngine, a_stop_ends_websockets_in_time_and_then_cuts_streams_off) {
    EventSender sender;
    std::atomic<unsigned> closed{0};
    Router::Builder routes;
    WebSocketRoute route;
    route.on_message = [](WebSocket&, const WebSocketMessage&) {};
    route.on_close = [&](WebSocket&, const websocket::Event& event) {
        closed += event.code == websocket::kCloseGoingAway ? 1 : 100;
    };
    routes.add_websocket("/ws", route);
    routes.add(Method::kGet, "/events", [&](const Request&, ResponseWriter& writer) {
        sender = EventSender(writer);
        return sender ? Reason::kNone : writer.fault();
    });
    const auto router = built(routes);
    ServerSettings settings = serving(router);
    settings.limits.close_timeout_ms = 300;
    settings.limits.drain_timeout_ms = 2500;
    START(settings);
    const int polite = server_->connect();
    const int talker = server_->connect();
    for (const int fd : {polite, talker}) {
        write_all(fd,
                  "GET /ws HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
                  "Sec-WebSocket-Version: 13\r\n"
                  "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n");
        LAW(read_some(fd, kSwitchedSize).octets.starts_with("HTTP/1.1 101 "));
    }
    const int events = server_->connect();
    write_all(events, "GET /events HTTP/1.1\r\nHost: h\r\n\r\n");
    LAW(!read_some(events, 100).octets.empty());
    std::thread stopper([&] { server_->stop(false); });
    const std::string going_away = websocket::close_back(1001);
    for (const int fd : {polite, talker}) LAW(read_some(fd, 4).octets == going_away);
    write_all(polite, websocket::close_with(1001));
    LAW(read_some(polite, kToTheEnd).ended);
    close(polite);
    pollfd waiting{talker, POLLIN, 0};
    unsigned talked = 0;
    for (; talked < 1000 && poll(&waiting, 1, 10) == 0; ++talked) {
        write_all(talker, websocket::text("wait"));
    }
    LAW(talked < 150, << "as long as the drain");
    close(talker);
    LAW(!read_some(events, kToTheEnd).octets.ends_with("0\r\n\r\n"));
    close(events);
    stopper.join();
    LAW(closed == 101 && sender.gone(), << closed);
    server_ = nullptr;
}

INSTANTIATE_TEST_SUITE_P(Later, EveryEngine, testing::ValuesIn(engines()), engine_name);

}  // namespace
}  // namespace httpmark
