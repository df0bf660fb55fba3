// Answers whose content comes piece by piece.
#include <algorithm>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "app/later_answer.hpp"
#include "app/waker.hpp"
#include "net/connection.hpp"
#include "net/requests.hpp"
#include "routes.hpp"

namespace httpmark {
namespace {

using State = ContentStream::State;

// What a stream is to say, step by step, and what became of it.
struct Script {
    struct Step {
        std::string octets;
        State state;
    };
    std::deque<Step> steps;
    std::vector<Field> trailers;
    std::optional<std::uint64_t> size;
    unsigned status = 200;
    std::vector<Field> fields;
    bool written = false;
    unsigned asked = 0;
    unsigned destroyed = 0;
    std::vector<Waker> wakers;
};

class Scripted final : public ContentStream {
  public:
    explicit Scripted(Script& script) : script_(script) {}
    ~Scripted() override { ++script_.destroyed; }
    Piece read(std::span<char> room) override {
        ++script_.asked;
        if (script_.steps.empty()) return {0, State::kFailed};
        Script::Step& step = script_.steps.front();
        const std::size_t size = std::min(room.size(), step.octets.size());
        std::copy_n(step.octets.begin(), size, room.begin());
        step.octets.erase(0, size);
        if (!step.octets.empty()) return {size, State::kMore};
        const State state = step.state;
        script_.steps.pop_front();
        return {size, state};
    }
    std::span<const Field> trailers() override { return script_.trailers; }

  private:
    Script& script_;
};

// The route /stream plays the script.
struct Played {
    std::shared_ptr<const Router> router;
    ServerSettings settings;

    explicit Played(Script& script, RouteOptions options = {}) {
        Router::Builder routes;
        routes.add(
            kAnyMethod, "/stream",
            [&script](const Request&, ResponseWriter& writer) {
                script.wakers.push_back(writer.waker());
                script.written =
                    writer.write_stream(script.status, std::span<const Field>(script.fields),
                                        std::make_unique<Scripted>(script), script.size);
                return script.written ? Reason::kNone : writer.fault();
            },
            std::move(options));
        routes.add(kAnyMethod, "/hello", Answer(200, {}, "hello"));
        router = built(routes);
        settings.router = router.get();
    }
};

const std::string kStream = request("GET /stream HTTP/1.1");

// One answer cut from the front of a transcript. `whole` is false where its end is missing.
struct Read {
    std::string head;
    std::string content;
    std::string trailers;
    bool whole = false;
};
Read take_answer(std::string_view& sent) {
    Read read;
    const std::size_t end = sent.find("\r\n\r\n");
    if (end == std::string_view::npos) return read;
    read.head = sent.substr(0, end + 2);
    sent.remove_prefix(end + 4);
    const std::size_t length = read.head.find("\r\nContent-Length: ");
    if (length != std::string::npos) {
        const std::size_t size = std::stoul(read.head.substr(length + 18));
        read.whole = sent.size() >= size;
        read.content = sent.substr(0, size);
        sent.remove_prefix(read.content.size());
        return read;
    }
    if (read.head.find("\r\nTransfer-Encoding: chunked\r\n") == std::string::npos) return read;
    while (true) {
        const std::size_t line = sent.find("\r\n");
        if (line == std::string_view::npos) return read;
        std::size_t digits = 0;
        const std::size_t size = std::stoul(std::string(sent.substr(0, line)), &digits, 16);
        LAW(digits == line, << "a chunk size and nothing else");
        sent.remove_prefix(line + 2);
        if (size == 0) break;
        if (sent.size() < size + 2) return read;
        LAW(sent.substr(size, 2) == "\r\n");
        read.content += sent.substr(0, size);
        sent.remove_prefix(size + 2);
    }
    while (!sent.starts_with("\r\n")) {
        const std::size_t line = sent.find("\r\n");
        if (line == std::string_view::npos) return read;
        read.trailers += sent.substr(0, line + 2);
        sent.remove_prefix(line + 2);
    }
    sent.remove_prefix(2);
    read.whole = true;
    return read;
}

// Whatever pieces, pauses and room: the client reads what the stream gave, framed to be told.
TEST(Streams, are_sent_whole_and_in_order_whatever_the_pieces_and_the_room) {
    for (std::uint64_t seed = 1; seed <= 400; ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        Random random(seed);
        std::string wanted;
        std::deque<Script::Step> steps;
        for (unsigned i = random() % 12; i > 0; --i) {
            std::string piece(random() % 4 == 0 ? random() % 60000 : random() % 40, '\0');
            for (char& c : piece) c = static_cast<char>(random());
            const bool pauses = piece.empty() || random() % 3 == 0;
            steps.push_back({piece, pauses ? State::kLater : State::kMore});
            wanted += piece;
        }
        steps.push_back({"end", State::kEnd});
        wanted += "end";
        Script script;
        const bool old = random() % 4 == 0;
        if (random() % 3 == 0) script.size = wanted.size();
        if (random() % 2 == 0) script.trailers = {{"T", "v"}, {"U", ""}};
        const Played played(script);
        Wire wire(played.settings);
        const std::uint32_t id = wire.connect();
        const std::size_t room = random() % 2 == 0 ? 1U << 30 : 1 + random() % 9000;
        wire.give_room(id, room);
        const std::string ask = old ? request("GET /stream HTTP/1.0") : kStream;
        for (unsigned i = 0; i < 2; ++i) {
            script.steps = steps;
            wire.feed(id, ask + kGet);
            for (unsigned k = 0; k < 200000 && !script.steps.empty(); ++k) {
                wire.give_room(id, room);
                if (random() % 2 == 0) script.wakers.back().wake();
                wire.deliver();
            }
            for (unsigned k = 0; k < 200000 && wire.alive(id) && wire.wants_room(id); ++k) {
                wire.give_room(id, room);
            }
            if (old) break;
        }
        std::string_view sent = wire.sent(id);
        for (unsigned i = 0; i < (old ? 1U : 2U); ++i) {
            const Read read = take_answer(sent);
            if (old && !script.size) {
                LAW(sent == wanted && wire.shut(id), << sent.size() << " of " << wanted.size());
                LAW(read.head.find("\r\nConnection: close\r\n") != std::string::npos);
                LAW(read.head.find("Transfer-Encoding") == std::string::npos);
                sent = {};
                break;
            }
            LAW(read.whole && read.content == wanted, << visible(read.head));
            LAW(read.trailers == (script.size || script.trailers.empty() ? "" : "T: v\r\nU: \r\n"));
            if (!old) LAW(take_answer(sent).content == "hello");
        }
        LAW(sent.empty() && script.destroyed == (old ? 1U : 2U));
        LAW(wire.connections().arena().bytes_in_use() == 0);
    }
}

TEST(Streams, are_asked_again_when_they_are_woken_and_wait_for_nothing_meanwhile) {
    Script script;
    script.steps = {{"", State::kLater}, {"a", State::kLater}, {"b", State::kEnd}};
    const Played played(script);
    Wire wire(played.settings);
    const std::uint32_t id = wire.connect();
    wire.feed(id, kStream + kGet);
    LAW(script.asked == 1 && !wire.wants_room(id), << "no busy waiting for room that is there");
    for (unsigned i = 0; i < 10; ++i) wire.pass(100000);
    LAW(script.asked == 1 && wire.alive(id));
    LAW(wire.connections().arena().bytes_in_use() <= 1024,
        << wire.connections().arena().bytes_in_use());
    for (unsigned i = 0; i < 100; ++i) script.wakers[0].wake();
    LAW(wire.wakes() == 1 && script.asked == 1);
    wire.deliver();
    LAW(script.asked == 2 && wire.sent(id).ends_with("\r\n1\r\na\r\n") && !wire.wants_room(id));
    script.wakers[0].wake();
    wire.deliver();
    LAW(wire.sent(id).find("\r\n1\r\nb\r\n0\r\n\r\nHTTP/1.1 200 OK\r\n") != std::string::npos,
        << visible(wire.sent(id)));
    script.wakers[0].wake();  // too late, and harmless
    wire.deliver();
    LAW(wire.reading(id) && script.destroyed == 1);
}

TEST(Streams, see_that_the_client_has_gone) {
    for (const unsigned end : {0U, 1U, 2U, 3U}) {
        Script script;
        script.steps = {{"a", State::kLater}, {"b", State::kLater}, {"c", State::kEnd}};
        Played played(script);
        played.settings.limits.handler_timeout_ms = 1000;
        Wire wire(played.settings);
        const std::uint32_t id = wire.connect();
        wire.feed(id, kStream);
        LAW(wire.reading(id), << "to see a reset");
        if (end == 0) wire.connections().on_broken(id);
        if (end == 1) wire.pass(1100);
        if (end == 2) wire.connections().close_all();
        if (end == 3) {
            wire.end(id);  // of the requests; the answer can still be sent
            LAW(wire.alive(id) && script.destroyed == 0);
            wire.break_peer(id);
            script.wakers[0].wake();
            wire.deliver();
        }
        LAW(!wire.alive(id) && script.destroyed == 1);
        LAW(wire.sent(id).ends_with("\r\n1\r\na\r\n"), << "no last chunk");
        const std::uint32_t next = wire.connect();
        LAW(next == id);
        Script::Step more{"x", State::kLater};
        script.steps = {more, more};
        wire.feed(next, kStream);
        const unsigned asked = script.asked;
        script.wakers[0].wake();  // of the connection that was there before
        wire.deliver();
        LAW(script.asked == asked);
    }
}

// A stream that pauses again and again may take longer than a handler; one that is silent may not.
TEST(Streams, the_limit_on_handlers_is_for_each_pause) {
    Script script;
    for (unsigned i = 0; i < 10; ++i) script.steps.push_back({"a", State::kLater});
    Played played(script);
    played.settings.limits.handler_timeout_ms = 1000;
    Wire wire(played.settings);
    const std::uint32_t id = wire.connect();
    wire.feed(id, kStream);
    for (unsigned i = 0; i < 8; ++i) {
        wire.pass(800);
        script.wakers[0].wake();
        wire.deliver();
        LAW(wire.alive(id));
    }
    wire.pass(1200);
    LAW(!wire.alive(id) && script.destroyed == 1);
}

TEST(Streams, that_fail_end_the_connection_without_an_end_of_the_content) {
    const std::vector<Field> breaking = {{"T", "a\r\nb"}};
    const std::vector<Field> forbidden = {{"content-length", "5"}};
    const std::vector<Field> routing = {{"Host", "a"}};
    struct Row {
        Script::Step last;
        std::optional<std::uint64_t> size;
        std::vector<Field> trailers;
    };
    const Row rows[] = {
        {{"", State::kFailed}, {}, {}},      {{"b", State::kFailed}, {}, {}},
        {{"", State::kMore}, {}, {}},        {{"b", State::kEnd}, {}, breaking},
        {{"b", State::kEnd}, {}, forbidden}, {{"b", State::kEnd}, {}, routing},
        {{"b", State::kEnd}, 5, {}},         {{"", State::kFailed}, 5, {}},
    };
    for (const Row& row : rows) {
        Script script;
        script.steps = {{"first", State::kMore}, row.last};
        if (row.size) script.size = *row.size + 5;
        script.trailers = row.trailers;
        const Played played(script);
        Wire wire(played.settings);
        const std::uint32_t id = wire.connect();
        wire.feed(id, kStream + kGet);
        LAW(!wire.alive(id) && script.destroyed == 1, << visible(wire.sent(id)));
        std::string_view sent = wire.sent(id);
        const Read read = take_answer(sent);
        LAW(!read.whole && sent.find("HTTP") == std::string_view::npos);
        LAW(wire.connections().arena().bytes_in_use() == 0);
    }
}

TEST(Streams, never_have_more_than_the_length_that_was_said) {
    Script script;
    script.steps = {{std::string(100, 'a'), State::kMore}, {"b", State::kEnd}};
    script.size = 40;
    const Played played(script);
    const Talk talk = once(kStream + kGet, played.settings);
    std::string_view sent = talk.sent;
    LAW(take_answer(sent).content == std::string(40, 'a') && take_answer(sent).content == "hello");
    LAW(script.destroyed == 1);
}

TEST(Streams, are_not_asked_where_an_answer_has_no_content) {
    struct Row {
        std::string line;
        unsigned status;
        std::optional<std::uint64_t> size;
        std::string wanted;
    };
    const std::string chunked = "\r\nTransfer-Encoding: chunked\r\n\r\n";
    const std::string known = "\r\nContent-Length: 7\r\n\r\n";
    const Row rows[] = {
        {"HEAD /stream HTTP/1.1", 200, {}, chunked},
        {"HEAD /stream HTTP/1.1", 200, 7, known},
        {"HEAD /stream HTTP/1.0", 200, 7, known},
        {"GET /stream HTTP/1.1", 204, {}, ""},
        {"GET /stream HTTP/1.1", 204, 7, ""},
        {"GET /stream HTTP/1.1", 304, {}, ""},
        {"GET /stream HTTP/1.0", 304, {}, ""},
        {"HEAD /stream HTTP/1.0", 200, {}, ""},
        {"GET /stream HTTP/1.1", 205, {}, "\r\nContent-Length: 0\r\n\r\n"},
        {"GET /stream HTTP/1.1", 205, 7, "\r\nContent-Length: 0\r\n\r\n"},
        {"GET /stream HTTP/1.1", 200, 0, "\r\nContent-Length: 0\r\n\r\n"},
    };
    for (const Row& row : rows) {
        Script script;
        script.status = row.status;
        script.size = row.size;
        const Played played(script);
        Wire wire(played.settings);
        const std::uint32_t id = wire.connect();
        wire.feed(id, request(row.line, "Connection: keep-alive\r\n") + kGet);
        const std::string first = wire.sent(id).substr(0, wire.sent(id).find("HTTP/1.1 200", 9));
        LAW(script.asked == 0 && script.destroyed == 1 && !wire.shut(id), << row.line);
        LAW(first.ends_with("\r\n\r\n") && first.find("\r\n\r\n") == first.size() - 4);
        if (row.wanted.empty()) {
            LAW(first.find("Content-Length") == std::string::npos, << visible(first));
            LAW(first.find("Transfer-Encoding") == std::string::npos, << visible(first));
        } else if (row.line.ends_with("1.1")) {
            LAW(first.ends_with(row.wanted), << visible(first));
        }
        LAW(wire.sent(id).ends_with("hello"));
    }
}

// What a handler may try: nothing of it reaches the wire.
TEST(Streams, framing_is_not_the_handlers_to_break) {
    const Field fields[] = {{"Content-Length", "5"},
                            {"transfer-encoding", "chunked"},
                            {"Connection", "close"},
                            {"A", "b\r\nContent-Length: 3"},
                            {"A\r\nB", "c"},
                            {"A", "b\nc"},
                            {"A", std::string_view("\0", 1)},
                            {"A:", "b"},
                            {"", "b"},
                            {"A ", "b"}};
    for (const Field& field : fields) {
        Script script;
        script.fields = {field};
        script.steps = {{"x", State::kEnd}};
        const Played played(script);
        const Talk talk = once(kStream, played.settings);
        LAW(!script.written && script.destroyed == 1 && statuses(talk.sent) == Statuses{500});
    }
    for (const unsigned status : {0U, 1U, 99U, 100U, 102U, 103U, 199U, 1000U, ~0U}) {
        Script script;
        script.status = status;
        script.steps = {{"x", State::kEnd}};
        const Played played(script);
        const Talk talk = once(kStream, played.settings);
        LAW(!script.written && script.destroyed == 1 && statuses(talk.sent) == Statuses{500},
            << status);
    }
    Router::Builder routes;
    routes.add(kAnyMethod, "/none", [](const Request&, ResponseWriter& writer) {
        return writer.write_stream(200, {}, nullptr) ? Reason::kNone : writer.fault();
    });
    routes.add(kAnyMethod, "/status", [](const Request&, ResponseWriter& writer) {
        LAW(!writer.write(1000, {}, "x") && !writer.write(150, {}, "x"));
        return writer.fault();
    });
    ServerSettings settings;
    const auto router = built(routes);
    settings.router = router.get();
    LAW(statuses(once(request("GET /none HTTP/1.1"), settings).sent) == Statuses{500});
    LAW(statuses(once(request("GET /status HTTP/1.1"), settings).sent) == Statuses{500});
}

// A slow reader holds the stream back, and what is held of it is bounded.
TEST(Streams, wait_for_their_reader) {
    class Endless final : public ContentStream {
      public:
        explicit Endless(std::uint64_t& given) : given_(given) {}
        Piece read(std::span<char> room) override {
            std::fill(room.begin(), room.end(), 'x');
            given_ += room.size();
            return {room.size(), State::kMore};
        }
        std::uint64_t& given_;
    };
    std::uint64_t given = 0;
    Router::Builder routes;
    routes.add(kAnyMethod, "/endless", [&](const Request&, ResponseWriter& writer) {
        return writer.write_stream(200, {}, std::make_unique<Endless>(given)) ? Reason::kNone
                                                                              : writer.fault();
    });
    ServerSettings settings;
    const auto router = built(routes);
    settings.router = router.get();
    Wire wire(settings);
    const std::uint32_t id = wire.connect();
    wire.give_room(id, 1000);
    wire.feed(id, request("GET /endless HTTP/1.1"));
    for (unsigned i = 0; i < 1000; ++i) {
        const std::uint64_t before = given;
        wire.pass(1000);
        LAW(given == before, << "no room, no question");
        LAW(given <= wire.sent(id).size() + 16384);
        LAW(wire.connections().arena().bytes_in_use() <= 32768);
        wire.give_room(id, 5000);
    }
    wire.connections().on_broken(id);
    LAW(wire.connections().arena().bytes_in_use() == 0);
}

TEST(Streams, may_be_what_another_thread_answers_with) {
    Script script;
    script.steps = {{"abc", State::kLater}, {"", State::kEnd}};
    LaterAnswer token;
    Router::Builder routes;
    routes.add(kAnyMethod, "/later", [&](const Request&, ResponseWriter& writer) {
        token = writer.later();
        return Reason::kNone;
    });
    ServerSettings settings;
    const auto router = built(routes);
    settings.router = router.get();
    Wire wire(settings);
    const std::uint32_t id = wire.connect();
    wire.feed(id, request("GET /later HTTP/1.1"));
    token.complete([&](const Request&, ResponseWriter& writer) {
        script.wakers.push_back(writer.waker());
        LAW(writer.write_stream(200, {}, std::make_unique<Scripted>(script)));
        return Reason::kNone;
    });
    wire.deliver();
    LAW(wire.sent(id).ends_with("\r\n3\r\nabc\r\n"));
    wire.connections().drain();  // waits for it
    LAW(wire.alive(id));
    script.wakers[0].wake();
    wire.deliver();
    LAW(wire.sent(id).ends_with("\r\n0\r\n\r\n") && wire.shut(id) && script.destroyed == 1);
}

}  // namespace
}  // namespace httpmark
