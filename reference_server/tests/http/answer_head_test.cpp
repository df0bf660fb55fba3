// What hooks may add to the head of an answer, and what they cannot break.
#include "http/answer_head.hpp"

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "answers.hpp"
#include "http/response.hpp"
#include "laws.hpp"

namespace httpmark {
namespace {

struct Paper final : Sink {
    std::string text;
    std::string page;
    LaterContent later;
    void append(const LaterContent& content) override { later = content; }
    char* prepare_more(std::size_t size) override {
        page.assign(size + kCopySlack, '\0');
        return page.data();
    }
};

struct Asked final : HeadWatcher {
    std::function<void(AnswerHead&)> ask;
    mutable unsigned times = 0;
    void on_head(AnswerHead& head) const override {
        ++times;
        ask(head);
    }
};

// One answer with a hook around it; the head and what the sink was given.
std::string written(const std::function<bool(ResponseWriter&)>& write, const Asked& asked,
                    const ResponseOptions& options) {
    Paper paper;
    DateLine date("server");
    date.update(784111777);
    ResponseWriter writer(paper, date, options);
    writer.watch(asked);
    LAW(writer.is_untouched() && writer.status() == 0 && !writer.is_answered());
    LAW(write(writer) && writer.is_answered() && asked.times == 1);
    LAW(!write(writer) && asked.times == 1);
    delete paper.later.stream;
    return paper.page.substr(0, paper.page.size() - kCopySlack);
}

class Empty final : public ContentStream {
    Piece read(std::span<char>) override { return {0, State::kEnd}; }
};

using Write = std::function<bool(ResponseWriter&)>;
const std::shared_ptr<const PreparedAnswer> kPrepared =
    PreparedAnswer::make(200, std::vector<Field>{{"Content-Type", "text/plain"}}, "12345678");
constexpr auto kPlain = fixed_field("Content-Type", "text/plain");

std::vector<Write> every_way() {
    static const std::string text(20000, 'x');
    return {
        [](ResponseWriter& w) { return w.write(200, {}, ""); },
        [](ResponseWriter& w) {
            return w.write(404, {{"X", "y"}}, "abc");
        },
        [](ResponseWriter& w) { return w.write(204, kPlain, "abc"); },
        [](ResponseWriter& w) {
            return w.write(304, {kPlain.lines(), {}}, "abc");
        },
        [](ResponseWriter& w) { return w.write(205, {}, "abc"); },
        [](ResponseWriter& w) { return w.write(*kPrepared); },
        [](ResponseWriter& w) { return w.write_reference(200, kPlain, text); },
        [](ResponseWriter& w) { return w.write_stream(200, {}, std::make_unique<Empty>()); },
        [](ResponseWriter& w) { return w.write_stream(200, {}, std::make_unique<Empty>(), 7); },
        [](ResponseWriter& w) {
            char* room = nullptr;
            if (!w.start(200, kPlain, 3, room)) return false;
            if (room != nullptr) std::copy_n("abc", 3, room);
            return true;
        },
    };
}

std::vector<ResponseOptions> every_option() {
    std::vector<ResponseOptions> all;
    for (const bool head : {false, true}) {
        for (const bool close : {false, true}) {
            for (const bool chunked : {false, true}) {
                all.push_back({head, close, !close && !chunked, {}, Upgrade::kNone, chunked});
                all.push_back({head, close, false, "GET, HEAD", Upgrade::kNone, chunked});
            }
        }
    }
    return all;
}

TEST(AnswerHead, what_is_added_stands_once_and_everything_else_stays) {
    for (const Write& write : every_way()) {
        for (const ResponseOptions& options : every_option()) {
            Asked silent;
            silent.ask = [](AnswerHead&) {};
            Asked adding;
            adding.ask = [](AnswerHead& head) {
                LAW(head.add("X-One", "1") && head.add("X-Two", ""));
            };
            const std::string plain = written(write, silent, options);
            std::string added = written(write, adding, options);
            const std::string lines = "X-One: 1\r\nX-Two: \r\n";
            const std::size_t at = added.find(lines);
            LAW(at != std::string::npos && at < added.find("\r\n\r\n"), << visible(added));
            added.erase(at, lines.size());
            LAW(added == plain, << visible(added));
            // And a writer that nobody watches writes the same.
            Paper paper;
            DateLine date("server");
            date.update(784111777);
            ResponseWriter writer(paper, date, options);
            LAW(write(writer));
            delete paper.later.stream;
            LAW(paper.page.substr(0, paper.page.size() - kCopySlack) == plain);
        }
    }
}

TEST(AnswerHead, it_tells_what_the_client_will_get) {
    struct Row {
        std::size_t way;
        unsigned status;
        std::optional<std::uint64_t> size;
    };
    for (const Row& row : std::vector<Row>{{0, 200, 0},
                                           {1, 404, 3},
                                           {2, 204, 0},
                                           {3, 304, 0},
                                           {4, 205, 0},
                                           {5, 200, 8},
                                           {6, 200, 20000},
                                           {7, 200, std::nullopt},
                                           {8, 200, 7},
                                           {9, 200, 3}}) {
        for (const ResponseOptions& options : every_option()) {
            Asked asked;
            asked.ask = [&](AnswerHead& head) {
                LAW(head.status() == row.status && head.refusal() == Reason::kNone);
                LAW(head.content_size() == (options.head_request ? 0 : row.size), << row.way);
            };
            written(every_way()[row.way], asked, options);
        }
    }
}

// Any byte, in a name and in a value.
TEST(AnswerHead, no_field_of_a_hook_breaks_the_framing) {
    for (unsigned c = 0; c < 256; ++c) {
        const std::string octet(1, static_cast<char>(c));
        for (const auto& [name, value] : std::vector<std::pair<std::string, std::string>>{
                 {"X" + octet + "Y", "v"}, {"X", octet}}) {
            Asked asked;
            bool added = false;
            asked.ask = [&, &n = name, &v = value](AnswerHead& head) { added = head.add(n, v); };
            const std::string text = written(every_way()[1], asked, {});
            LAW(added == field_is_safe({name, value}), << c);
            const std::string line = name + ": " + value + "\r\n";
            LAW((text.find(line) != std::string::npos) == added, << visible(text));
        }
    }
}

TEST(AnswerHead, what_is_the_servers_cannot_be_added) {
    Asked asked;
    asked.ask = [](AnswerHead& head) {
        for (const char* name :
             {"Date", "connection", "CONTENT-LENGTH", "Transfer-Encoding", "upgrade",
              "Sec-WebSocket-Accept", "sec-websocket-extensions", "", "a b", "X\r\nY"}) {
            LAW(!head.add(name, "x"), << name);
        }
        LAW(head.add("Sec-WebSocket", "x") && head.add("Upgrade-Insecure-Requests", "1"));
    };
    const Answered answer = answered(written(every_way()[0], asked, {}));
    LAW(answer.field("connection").empty() && answer.field("content-length") == "0");
    LAW(answer.field("date") == "Sun, 06 Nov 1994 08:49:37 GMT");
}

TEST(AnswerHead, fields_of_hooks_are_bounded) {
    const std::string long_value(AnswerHead::kFieldsMax - 5, 'v');
    Asked asked;
    asked.ask = [&](AnswerHead& head) {
        LAW(!head.add("Z", long_value + "v") && head.add("Z", long_value));
        LAW(!head.add("Y", ""));
    };
    for (const Write& write : every_way()) {
        asked.times = 0;
        LAW(answered(written(write, asked, {})).field("z") == long_value);
    }
}

TEST(AnswerHead, an_answer_that_cannot_be_written_is_told_to_nobody) {
    Paper paper;
    const DateLine date;
    const ResponseOptions options;
    ResponseWriter writer(paper, date, options);
    Asked asked;
    asked.ask = [](AnswerHead& head) { LAW(head.status() == 200); };
    writer.watch(asked);
    LAW(!writer.write(200, {{"X", "a\r\nb"}}, "never") && !writer.write(99, {}, "never"));
    LAW(asked.times == 0 && paper.page.empty());
    LAW(writer.write(200, {}, "then") && asked.times == 1);
}

}  // namespace
}  // namespace httpmark
