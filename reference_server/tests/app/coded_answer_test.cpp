// Content-Encoding of answers, through whole connections.
#include "app/coded_answer.hpp"

#include <algorithm>
#include <functional>
#include <memory>
#include <string>

#include "answers.hpp"
#include "app/content_reader.hpp"
#include "app/later_answer.hpp"
#include "app/waker.hpp"
#include "content/json_answer.hpp"
#include "http/content_stream.hpp"
#include "net/requests.hpp"
#include "routes.hpp"

namespace httpmark {
namespace {

constexpr auto kPlain = fixed_field("Content-Type", "text/plain");
constexpr auto kImage = fixed_field("Content-Type", "image/png");

std::string long_text() {
    std::string text;
    for (unsigned i = 0; i < 800; ++i) text += "line " + std::to_string(i % 37) + '\n';
    return text;
}

class Source final : public ContentSource {
  public:
    std::string_view read(std::uint64_t offset, std::size_t most) override {
        return std::string_view(text).substr(static_cast<std::size_t>(offset), most);
    }
    void release() override { ++released; }
    std::string text = long_text();
    unsigned released = 0;
};

// A text in pieces.
class Pieces final : public ContentStream {
  public:
    explicit Pieces(std::string text) : text_(std::move(text)) { ++alive; }
    ~Pieces() override { --alive; }
    static inline unsigned alive = 0;
    Piece read(std::span<char> room) override {
        const std::size_t size = std::min({room.size(), std::size_t{100}, text_.size() - at_});
        text_.copy(room.data(), size, at_);
        at_ += size;
        return {size, at_ == text_.size() ? State::kEnd : State::kMore};
    }

  private:
    std::string text_;
    std::size_t at_ = 0;
};

// Says something, has nothing for now, and then says the rest.
class Paused final : public ContentStream {
  public:
    explicit Paused(Waker own) { waker = std::move(own); }
    static inline Waker waker;
    Piece read(std::span<char> room) override {
        const std::string_view said = ++asked_ == 1 ? "first" : "second";
        std::copy(said.begin(), said.end(), room.begin());
        return {said.size(), asked_ == 1 ? State::kLater : State::kEnd};
    }

  private:
    unsigned asked_ = 0;
};

// Answers when all has come, or at its first piece.
class Answering final : public ContentReader {
  public:
    Answering(const std::string& text, bool at_once) : text_(text), at_once_(at_once) {}
    Flow on_piece(std::string_view, ResponseWriter& writer) override {
        if (at_once_) LAW(writer.write(200, kPlain, text_));
        return Flow::kMore;
    }
    Reason on_end(const Request&, ResponseWriter& writer) override {
        return writer.answer(200, kPlain, text_);
    }

  private:
    const std::string& text_;
    const bool at_once_;
};

struct Served {
    const std::string text = long_text();
    Source source;
    mutable LaterAnswer token;
    std::shared_ptr<const Router> router;
    ServerSettings settings;

    Served() {
        Router::Builder routes;
        add_coded(routes);
        add_streams(routes);
        add_others(routes);
        add_failing(routes);
        router = built(routes);
        settings.router = router.get();
    }

    static void add(Router::Builder& routes, const char* path, Answer answer) {
        routes.add(Method::kGet, path, std::move(answer), {.codes_answers = true});
    }

    void add_coded(Router::Builder& routes) {
        const auto tagged = [&](const char* tag) {
            return [this, tag](const Request&, ResponseWriter& writer) {
                const Field fields[] = {
                    {"ETag", tag}, {"Set-Cookie", "a=b"}, {"Set-Cookie", "c=d"}};
                return writer.answer(200, {kPlain.lines(), fields}, text);
            };
        };
        add(routes, "/constant",
            Answer(200, {{"Content-Type", "text/plain"}, {"ETag", "\"t\""}}, text));
        add(routes, "/handler", tagged("\"t\""));
        add(routes, "/weak", tagged("W/\"t\""));
        add(routes, "/started", [this](const Request&, ResponseWriter& writer) {
            char* room = nullptr;
            if (!writer.start(200, kPlain, text.size(), room)) return writer.fault();
            if (room != nullptr) std::copy(text.begin(), text.end(), room);
            return Reason::kNone;
        });
        add(routes, "/referred", [this](const Request&, ResponseWriter& writer) {
            static const std::string longer = text + text + text + text;
            return writer.write_reference(200, kPlain, longer) ? Reason::kNone : writer.fault();
        });
        add(routes, "/later", [this](const Request& request, ResponseWriter& writer) {
            if (request.asked_again) return writer.answer(200, kPlain, text);
            writer.defer(100);
            return Reason::kNone;
        });
        add(routes, "/elsewhere", [this](const Request&, ResponseWriter& writer) {
            token = writer.later();
            return Reason::kNone;
        });
        add(routes, "/moment", [](const Request&, ResponseWriter& writer) {
            return writer.answer(200, kPlain, std::to_string(writer.unix_seconds()));
        });
        add(routes, "/source", [this](const Request&, ResponseWriter& writer) {
            return writer.write_source(200, kPlain, source.text.size(), source) ? Reason::kNone
                                                                                : writer.fault();
        });
    }

    void add_streams(Router::Builder& routes) {
        add(routes, "/stream", [this](const Request&, ResponseWriter& writer) {
            auto stream = std::make_unique<Pieces>(text);
            return writer.write_stream(200, kPlain, std::move(stream)) ? Reason::kNone
                                                                       : writer.fault();
        });
        add(routes, "/stream-of-known-size", [this](const Request&, ResponseWriter& writer) {
            auto stream = std::make_unique<Pieces>(text);
            return writer.write_stream(200, kPlain, std::move(stream), text.size())
                       ? Reason::kNone
                       : writer.fault();
        });
        add(routes, "/image-stream", [this](const Request&, ResponseWriter& writer) {
            auto stream = std::make_unique<Pieces>(text);
            return writer.write_stream(200, kImage, std::move(stream)) ? Reason::kNone
                                                                       : writer.fault();
        });
        add(routes, "/short-stream", [this](const Request&, ResponseWriter& writer) {
            auto stream = std::make_unique<Pieces>(text);
            return writer.write_stream(200, kPlain, std::move(stream), text.size() + 1)
                       ? Reason::kNone
                       : writer.fault();
        });
        add(routes, "/large-stream", [](const Request&, ResponseWriter& writer) {
            auto stream = std::make_unique<Pieces>(std::string(3 << 20, 'a'));
            return writer.write_stream(200, kPlain, std::move(stream)) ? Reason::kNone
                                                                       : writer.fault();
        });
        add(routes, "/paused-stream", [](const Request&, ResponseWriter& writer) {
            auto stream = std::make_unique<Paused>(writer.waker());
            return writer.write_stream(200, kPlain, std::move(stream)) ? Reason::kNone
                                                                       : writer.fault();
        });
    }

    void add_others(Router::Builder& routes) {
        add(routes, "/small", Answer(200, {{"Content-Type", "text/plain"}}, "small"));
        add(routes, "/small-handler", [](const Request&, ResponseWriter& writer) {
            return writer.answer(200, kPlain, "small");
        });
        add(routes, "/image", [this](const Request&, ResponseWriter& writer) {
            return writer.answer(200, {{"Content-Type", "image/png"}}, text);
        });
        add(routes, "/part", [this](const Request&, ResponseWriter& writer) {
            return writer.answer(206, {kPlain.lines()}, text);
        });
        add(routes, "/coded", [this](const Request&, ResponseWriter& writer) {
            const Field own{"Content-Encoding", "x-own"};
            return writer.answer(200, {kPlain.lines(), {&own, 1}}, text);
        });
        add(routes, "/none", Answer(204, {}, {}));
        add(routes, "/unchanged", [](const Request&, ResponseWriter& writer) {
            return writer.answer(304, {{"ETag", "\"t\""}}, {});
        });
        add(routes, "/unchanged-constant", Answer(304, {{"ETag", "\"t\""}}, {}));
        add(routes, "/fails", [](const Request&, ResponseWriter&) { return Reason::kNotFound; });
        add(routes, "/unsafe", [](const Request&, ResponseWriter& writer) {
            return writer.answer(200, {{"X", "a\r\nb"}}, "text");
        });
        add(routes, "/random", [](const Request&, ResponseWriter& writer) {
            std::string octets;
            std::uint32_t state = 1;
            for (unsigned i = 0; i < 2000; ++i) {
                state = state * 1664525 + 1013904223;
                octets += static_cast<char>(state >> 24);
            }
            return writer.answer(200, kPlain, octets);
        });
    }

    // Those that have written an answer before they fail, or hand the content over.
    void add_failing(Router::Builder& routes) {
        add(routes, "/written-and-fails", [this](const Request&, ResponseWriter& writer) {
            LAW(writer.write(200, kPlain, text));
            return Reason::kNotFound;
        });
        add(routes, "/source-and-fails", [this](const Request&, ResponseWriter& writer) {
            LAW(writer.write_source(200, kPlain, source.text.size(), source));
            return Reason::kNotFound;
        });
        add(routes, "/stream-and-fails", [this](const Request&, ResponseWriter& writer) {
            LAW(writer.write_stream(200, kPlain, std::make_unique<Pieces>(text)));
            return Reason::kNotFound;
        });
        for (const bool at_once : {false, true}) {
            routes.add(Method::kPost, at_once ? "/read-at-once" : "/read",
                       [this, at_once](const Request&, ResponseWriter& writer) {
                           auto reader = std::make_unique<Answering>(text, at_once);
                           return writer.read_content(std::move(reader)) ? Reason::kNone
                                                                         : writer.fault();
                       },
                       {.streams = true, .codes_answers = true});
        }
    }

    Answered ask(const std::string& path, const std::string& accept,
                 const std::string& method = "GET") const {
        const std::string field = accept.empty() ? "" : "Accept-Encoding: " + accept + "\r\n";
        return answered(once(request(method + ' ' + path + " HTTP/1.1", field), settings).sent);
    }
};

struct Wanted {
    const char* accept;
    ContentCoding coding;
};
constexpr Wanted kWanted[] = {
    {"", ContentCoding::kIdentity},
    {"gzip", ContentCoding::kGzip},
    {"deflate", ContentCoding::kDeflate},
    {"gzip, deflate", ContentCoding::kGzip},
    {"gzip;q=0.5, deflate;q=0.6", ContentCoding::kDeflate},
    {"br", ContentCoding::kIdentity},
    {"*", ContentCoding::kGzip},
    {"gzip;q=0.1, identity;q=0.2", ContentCoding::kIdentity},
    {"gzip;q=0, *;q=0.1", ContentCoding::kDeflate},
    {"gzip;q=2", ContentCoding::kIdentity},
};

TEST(CodedAnswer, every_way_to_write_one_is_coded_as_the_client_wants) {
    const Served served;
    for (const char* path : {"/constant", "/handler", "/weak", "/started", "/referred"}) {
        const std::string whole = served.ask(path, "").content;
        LAW(whole.starts_with(served.text));
        for (const Wanted& row : kWanted) {
            const Answered answer = served.ask(path, row.accept);
            const bool is_coded = row.coding != ContentCoding::kIdentity;
            LAW(answer.status == 200 && answer.field("vary") == "Accept-Encoding", << path);
            LAW(answer.field("content-encoding") == (is_coded ? coding_name(row.coding) : ""),
                << path << row.accept);
            LAW(decoded(row.coding, answer.content) == whole, << path << row.accept);
            LAW(answer.field("content-length") == std::to_string(answer.content.size()));
            LAW(answer.field("content-type") == "text/plain");
            LAW(!is_coded || answer.content.size() < whole.size() / 2);
            // RFC 9110 9.3.2: the fields that GET would get.
            Answered head = served.ask(path, row.accept, "HEAD");
            LAW(head.content.empty() && head.head == answer.head, << path << head.head);
        }
    }
}

TEST(CodedAnswer, a_stream_is_coded_piece_by_piece_as_the_client_wants) {
    const Served served;
    for (const char* path : {"/stream", "/stream-of-known-size"}) {
        for (const Wanted& row : kWanted) {
            const Answered answer = served.ask(path, row.accept);
            const bool is_coded = row.coding != ContentCoding::kIdentity;
            LAW(answer.status == 200 && answer.field("vary") == "Accept-Encoding", << path);
            LAW(answer.field("content-encoding") == (is_coded ? coding_name(row.coding) : ""),
                << path << row.accept);
            const bool in_chunks = is_coded || path == std::string_view("/stream");
            LAW(answer.field("transfer-encoding") == (in_chunks ? "chunked" : ""), << path);
            LAW(answer.field("content-length").empty() == in_chunks, << path);
            const auto [content, rest] = in_chunks ? unchunked(answer.content)
                                                   : std::pair(answer.content, std::string("\r\n"));
            LAW(rest == "\r\n" && decoded(row.coding, content) == served.text, << row.accept);
            LAW(!is_coded || content.size() < served.text.size() / 2);
            Answered head = served.ask(path, row.accept, "HEAD");
            LAW(head.content.empty() && head.head == answer.head, << path << head.head);
        }
    }
    const Answered large = served.ask("/large-stream", "gzip");
    LAW(decoded(ContentCoding::kGzip, unchunked(large.content).first) == std::string(3 << 20, 'a'));
    LAW(served.ask("/stream", "br, identity;q=0").status == 406);
    LAW(Pieces::alive == 0);
}

TEST(CodedAnswer, a_stream_that_ends_before_its_size_breaks_the_answer) {
    const Served served;
    for (const char* accept : {"", "gzip"}) {
        Wire wire(served.settings);
        const std::uint32_t id = wire.connect();
        const std::string field = *accept ? "Accept-Encoding: gzip\r\n" : "";
        wire.feed(id, request("GET /short-stream HTTP/1.1", field));
        LAW(!wire.alive(id) && !wire.sent(id).ends_with("0\r\n\r\n"), << accept);
    }
}

TEST(CodedAnswer, what_a_stream_has_said_can_be_read_before_it_says_more) {
    const Served served;
    Wire wire(served.settings);
    const std::uint32_t id = wire.connect();
    wire.feed(id, request("GET /paused-stream HTTP/1.1", "Accept-Encoding: gzip\r\n"));
    const std::string until = answered(wire.sent(id)).content;
    std::string_view coded = std::string_view(until).substr(until.find("\r\n") + 2);
    ContentDecoder decoder(ContentCoding::kGzip, 1000);
    char octets[100];
    std::span<char> room(octets);
    LAW(decoder.decode(coded, room) != ContentDecoder::Status::kDone);
    LAW(std::string_view(octets, sizeof octets - room.size()) == "first", << until.size());
    Paused::waker.wake();
    wire.connections().read_mail();
    const auto [content, rest] = unchunked(answered(wire.sent(id)).content);
    LAW(decoded(ContentCoding::kGzip, content) == "firstsecond" && rest == "\r\n");
    Paused::waker = {};
}

TEST(CodedAnswer, other_fields_stay_and_a_strong_tag_becomes_weak) {
    const Served served;
    for (const char* path : {"/constant", "/handler"}) {
        LAW(served.ask(path, "gzip").field("etag") == "W/\"t\"", << path);
        LAW(served.ask(path, "").field("etag") == "\"t\"", << path);
    }
    LAW(served.ask("/weak", "gzip").field("etag") == "W/\"t\"");
    LAW(served.ask("/handler", "gzip").field("set-cookie") == "a=b, c=d");
    LAW(served.ask("/moment", "gzip").content == std::to_string(kWireDate));
}

TEST(CodedAnswer, what_is_not_to_be_coded_is_sent_as_it_is_and_still_varies) {
    const Served served;
    for (const char* path : {"/small", "/small-handler", "/image", "/part", "/coded", "/source",
                             "/image-stream", "/none", "/random"}) {
        const Answered plain = served.ask(path, "");
        const Answered answer = served.ask(path, "gzip");
        LAW(answer.content == plain.content && answer.head == plain.head, << path << answer.head);
        LAW(answer.field("vary") == "Accept-Encoding", << path);
    }
    LAW(served.ask("/coded", "gzip").field("content-encoding") == "x-own");
    LAW(served.source.released == 2);
}

TEST(CodedAnswer, where_identity_is_refused_all_is_coded_or_not_acceptable) {
    const Served served;
    for (const char* path : {"/constant", "/handler", "/small", "/small-handler", "/random"}) {
        const Answered answer = served.ask(path, "gzip, identity;q=0");
        LAW(answer.status == 200 && answer.field("content-encoding") == "gzip", << path);
        LAW(decoded(ContentCoding::kGzip, answer.content) == served.ask(path, "").content);
        const Answered refused = served.ask(path, "br, identity;q=0");
        LAW(refused.status == 406 && refused.content == "not-acceptable\n", << path);
        LAW(refused.field("vary") == "Accept-Encoding");
    }
    LAW(served.ask("/none", "br, identity;q=0").status == 204);
    LAW(served.ask("/fails", "br, identity;q=0").status == 404);
}

TEST(CodedAnswer, one_that_comes_later_is_coded_too) {
    const Served served;
    Wire wire(served.settings);
    const std::uint32_t id = wire.connect();
    wire.feed(id, request("GET /later HTTP/1.1", "Accept-Encoding: gzip\r\n"));
    LAW(wire.sent(id).empty());
    wire.pass(200);
    const Answered answer = answered(wire.sent(id));
    LAW(decoded(ContentCoding::kGzip, answer.content) == served.text);
}

// By itself, prepared, or by a handler.
TEST(CodedAnswer, one_that_another_thread_gives_is_coded_as_any_other) {
    const Served served;
    const Field fields[] = {{"Content-Type", "text/plain"}, {"ETag", "\"t\""}};
    const std::vector<std::function<bool()>> ways = {
        [&] { return served.token.complete(200, fields, served.text); },
        [&] { return served.token.complete(PreparedAnswer::make(200, fields, served.text)); },
        [&] {
            return served.token.complete([&](const Request&, ResponseWriter& writer) {
                return writer.answer(200, fields, served.text);
            });
        }};
    const auto ask = [&](const std::string& accept, const auto& complete) {
        Wire wire(served.settings);
        const std::uint32_t id = wire.connect();
        wire.feed(id, request("GET /elsewhere HTTP/1.1", "Accept-Encoding: " + accept + "\r\n"));
        LAW(wire.sent(id).empty() && served.token);
        LAW(complete());
        wire.connections().read_mail();
        return answered(wire.sent(id));
    };
    for (const auto& complete : ways) {
        for (const Wanted& row : kWanted) {
            const Answered answer = ask(row.accept, complete);
            const bool is_coded = row.coding != ContentCoding::kIdentity;
            LAW(answer.status == 200 && answer.field("vary") == "Accept-Encoding", << row.accept);
            LAW(answer.field("content-encoding") == (is_coded ? coding_name(row.coding) : ""));
            LAW(answer.field("etag") == (is_coded ? "W/\"t\"" : "\"t\""), << row.accept);
            LAW(decoded(row.coding, answer.content) == served.text, << row.accept);
        }
        LAW(ask("identity;q=0", complete).status == 406);
    }
    const Answered failed = ask("gzip", [&] { return served.token.fail(Reason::kNotFound); });
    LAW(failed.status == 404 && failed.content == "not-found\n");
}

TEST(CodedAnswer, those_who_read_content_are_coded_too) {
    const Served served;
    for (const char* path : {"/read", "/read-at-once"}) {
        for (const Wanted& row : kWanted) {
            const std::string octets =
                request(std::string("POST ") + path + " HTTP/1.1",
                        "Content-Length: 5\r\nAccept-Encoding: " + std::string(row.accept) + "\r\n",
                        "hello");
            const Answered answer = answered(talk_every_way(octets, served.settings).sent);
            LAW(answer.status == 200 && answer.field("vary") == "Accept-Encoding", << path);
            LAW(decoded(row.coding, answer.content) == served.text, << path << row.accept);
        }
    }
}

// RFC 9110 15.4.5 and RFC 9111 4.3.4: with the tag that the answer would have had, or the client
// does not know what it may use again.
TEST(CodedAnswer, a_304_has_the_tag_of_what_would_be_coded) {
    const Served served;
    for (const Wanted& row : kWanted) {
        const Answered answer = served.ask("/unchanged", row.accept);
        const bool is_coded = row.coding != ContentCoding::kIdentity;
        LAW(answer.status == 304 && answer.field("vary") == "Accept-Encoding");
        LAW(answer.field("etag") == (is_coded ? "W/\"t\"" : "\"t\""), << row.accept);
        LAW(answer.content.empty() && answer.field("content-encoding").empty());
        const Answered constant = served.ask("/unchanged-constant", row.accept);
        LAW(constant.head == answer.head, << constant.head);
    }
}

TEST(CodedAnswer, one_that_fails_after_it_has_written_has_written_nothing) {
    const Served served;
    for (const char* path : {"/written-and-fails", "/source-and-fails", "/stream-and-fails"}) {
        for (const char* accept : {"", "gzip"}) {
            const Answered answer = served.ask(path, accept);
            LAW(answer.status == 404 && answer.content == "not-found\n", << path);
        }
    }
    LAW(served.source.released == 2 && Pieces::alive == 0);
}

// What stays where it is, is not copied, and what is copied counts.
TEST(CodedAnswer, its_memory_is_limited_and_given_back) {
    const std::string text(3000000, 'x');
    Router::Builder routes;
    Served::add(routes, "/referred", [&](const Request&, ResponseWriter& writer) {
        return writer.write_reference(200, kPlain, text) ? Reason::kNone : writer.fault();
    });
    Served::add(routes, "/copied", [&](const Request&, ResponseWriter& writer) {
        return writer.answer(200, kPlain, text);
    });
    const auto router = built(routes);
    ServerSettings settings;
    settings.router = router.get();
    settings.limits.memory_max = 1U << 20;
    for (const char* accept : {"identity", "gzip"}) {
        const std::string field = "Accept-Encoding: " + std::string(accept) + "\r\n";
        Wire wire(settings);
        const std::uint32_t id = wire.connect();
        wire.give_room(id, 10000);
        wire.feed(id, request("GET /referred HTTP/1.1", field));
        LAW(wire.connections().arena().bytes_in_use() < 100000);
        LAW(wire.sent(id).starts_with("HTTP/1.1 200 "));
        const std::uint32_t other = wire.connect();
        wire.feed(other, request("GET /copied HTTP/1.1", field));
        LAW(wire.sent(other).starts_with("HTTP/1.1 503 "), << accept);
        for (unsigned i = 0; i < 400; ++i) wire.give_room(id, 10000);
        LAW(wire.connections().arena().bytes_in_use() == 0);
    }
}

TEST(CodedAnswer, a_handler_that_fails_fails_as_without_it) {
    const Served served;
    LAW(served.ask("/fails", "gzip").status == 404);
    LAW(served.ask("/unsafe", "gzip").status == 500);
    const Talk talk = once(request("OPTIONS /handler HTTP/1.1") + request("POST /handler HTTP/1.1"),
                           served.settings);
    LAW(statuses(talk.sent) == (Statuses{204, 405}), << visible(talk.sent));
}

}  // namespace
}  // namespace httpmark
