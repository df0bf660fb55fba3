// Forms with files as they come, through whole connections.
#include "app/part_reader.hpp"

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "answers.hpp"
#include "app/waker.hpp"
#include "net/requests.hpp"
#include "routes.hpp"

namespace httpmark {
namespace {

using Flow = PartReader::Flow;

// A route at /upload, and what it was told: "name(content)" for a part, and how the form ended.
struct Uploads {
    std::string told;
    unsigned destroyed = 0;
    std::function<Flow(ResponseWriter&)> at_each_call = [](ResponseWriter&) { return Flow::kMore; };
    bool says_what_is_wrong = true;
    std::vector<Waker> wakers;
    std::shared_ptr<const Router> router;
    ServerSettings settings;

    explicit Uploads(const MultipartLimits& limits = {}, RouteOptions options = {}) {
        options.streams = true;
        Router::Builder routes;
        routes.add(
            kAnyMethod, "/upload",
            [this, limits](const Request& request, ResponseWriter& writer) {
                wakers.push_back(writer.waker());
                return read_parts(request, writer, std::make_unique<Reader>(*this), limits);
            },
            std::move(options));
        routes.add(kAnyMethod, "/hello", Answer(200, {}, "hello"));
        router = built(routes);
        settings.router = router.get();
    }
    Uploads(const Uploads&) = delete;
    Uploads& operator=(const Uploads&) = delete;

  private:
    class Reader final : public PartReader {
      public:
        explicit Reader(Uploads& all) : all_(all) {}
        ~Reader() override { ++all_.destroyed; }
        Flow on_part(const MultipartPart& part, ResponseWriter& writer) override {
            LAW(!std::exchange(in_part_, true));
            told_ += std::string(part.name) + std::string(part.filename) + '(';
            return all_.at_each_call(writer);
        }
        Flow on_piece(std::string_view piece, ResponseWriter& writer) override {
            LAW(in_part_ && !piece.empty());
            told_ += piece;
            return all_.at_each_call(writer);
        }
        Flow on_part_end(ResponseWriter& writer) override {
            LAW(std::exchange(in_part_, false));
            told_ += ')';
            return all_.at_each_call(writer);
        }
        Reason on_end(const Request& request, ResponseWriter& writer) override {
            LAW(!std::exchange(over_, true) && !in_part_ && request.target.path == "/upload");
            all_.told += told_ + "end ";
            return writer.answer(200, {}, told_);
        }
        void on_fault(Reason fault, std::uint64_t offset, ResponseWriter& writer) override {
            LAW(!std::exchange(over_, true));
            all_.told += told_ + error_row(fault).name + ' ';
            if (all_.says_what_is_wrong) PartReader::on_fault(fault, offset, writer);
        }
        void on_abort(Reason reason) override {
            LAW(!std::exchange(over_, true));
            all_.told += told_ + (reason == Reason::kIncomplete ? "incomplete " : "aborted ");
        }
        Flow on_woken(ResponseWriter& writer) override {
            LAW(!over_);
            return all_.at_each_call(writer);
        }

      private:
        Uploads& all_;
        std::string told_;
        bool in_part_ = false;
        bool over_ = false;
    };
};

constexpr std::string_view kForm =
    "preamble\r\n--b\r\nContent-Disposition: form-data; name=a\r\n\r\n1\r\n--b\r\n"
    "Content-Disposition: form-data; name=f; filename=\"n.txt\"\r\nContent-Type: text/plain\r\n\r\n"
    "x\r\n--\r\n--c\r\n\r\n--b\r\nContent-Disposition: form-data; name=e\r\n\r\n\r\n--b--\r\n";
constexpr std::string_view kTold = "a(1)fn.txt(x\r\n--\r\n--c\r\n)e()";

const std::string kMultipart = "Content-Type: multipart/form-data; boundary=b\r\n";

std::string by_length(std::string_view content, const std::string& type = kMultipart) {
    return request("POST /upload HTTP/1.1",
                   type + "Content-Length: " + std::to_string(content.size()) + "\r\n",
                   std::string(content));
}

std::string by_chunks(std::string_view content, std::size_t size) {
    std::string chunks;
    for (std::size_t at = 0; at < content.size(); at += size) {
        const std::string_view chunk = content.substr(at, size);
        char line[20];
        std::snprintf(line, sizeof line, "%zx\r\n", chunk.size());
        chunks += line + std::string(chunk) + "\r\n";
    }
    return request("POST /upload HTTP/1.1", kMultipart + "Transfer-Encoding: chunked\r\n",
                   chunks + "0\r\n\r\n");
}

TEST(PartReader, parts_are_the_same_at_every_split_and_in_any_chunks) {
    for (const std::size_t size : {0U, 1U, 7U, 50U}) {
        Uploads uploads;
        const std::string octets =
            (size == 0 ? by_length(kForm) : by_chunks(kForm, size)) + kGet + by_length("--b--");
        const Talk talk = talk_every_way(octets, uploads.settings);
        LAW(statuses(talk.sent) == (Statuses{200, 200, 200}), << visible(talk.sent));
        LAW(answered(talk.sent).content.starts_with(kTold), << visible(talk.sent));
        std::string due;
        for (unsigned i = 0; i < octets.size() + 1; ++i) due += std::string(kTold) + "end end ";
        LAW(uploads.told == due && uploads.destroyed == 2 * (octets.size() + 1));
    }
}

TEST(PartReader, it_pauses_anywhere_and_loses_nothing) {
    for (std::uint64_t seed = 1; seed <= 300; ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        Random random(seed);
        Uploads uploads;
        uploads.at_each_call = [&](ResponseWriter&) {
            return random() % 2 == 0 ? Flow::kPause : Flow::kMore;
        };
        Wire wire(uploads.settings);
        const std::uint32_t id = wire.connect();
        std::string octets;
        for (unsigned i = 0; i < 3; ++i) {
            octets += random() % 2 == 0 ? by_length(kForm) : by_chunks(kForm, 1 + random() % 90);
        }
        std::size_t fed = 0;
        for (unsigned i = 0; i < 100000 && statuses(wire.sent(id)).size() < 3; ++i) {
            if (wire.reading(id) && fed < octets.size()) {
                const std::size_t size = 1 + random() % 300;
                wire.feed(id, octets.substr(fed, size));
                fed = std::min(fed + size, octets.size());
            } else {
                uploads.wakers.back().wake();
                wire.deliver();
            }
        }
        LAW(statuses(wire.sent(id)) == (Statuses{200, 200, 200}), << visible(wire.sent(id)));
        const std::string once = std::string(kTold) + "end ";
        LAW(uploads.told == once + once + once, << visible(uploads.told));
        LAW(uploads.destroyed == 3 && wire.connections().arena().bytes_in_use() == 0);
    }
}

TEST(PartReader, what_is_no_form_is_answered_with_its_fault) {
    const std::string cut(kForm.substr(0, kForm.size() - 4));
    const std::string coded =
        "--b\r\nContent-Disposition: form-data; name=a\r\nContent-Transfer-Encoding: ";
    const struct {
        std::string content;
        int status;
        std::string text;
    } kRows[] = {
        {"--b\r\n\r\n", 400, "part-disposition-missing at 6\n"},
        {"--b", 400, "multipart-unfinished at 3\n"},
        {"", 400, "multipart-unfinished at 0\n"},
        {cut, 400, "multipart-unfinished at " + std::to_string(cut.size()) + '\n'},
        {coded + "base64\r\n", 415, "part-transfer-encoding at " + std::to_string(coded.size())},
    };
    for (const auto& [content, status, text] : kRows) {
        Uploads uploads;
        for (const std::string& octets : {by_length(content), by_chunks(content, 3)}) {
            const Talk talk = talk_every_way(octets + kGet, uploads.settings);
            LAW(statuses(talk.sent) == (Statuses{status, 200}), << visible(talk.sent));
            LAW(answered(talk.sent).content.starts_with(text), << visible(talk.sent));
        }
    }
    // Of a content type that is another one, or broken, no part is asked for.
    Uploads uploads;
    for (const auto& [type, status] :
         {std::pair{"Content-Type: application/x-www-form-urlencoded\r\n", 415},
          {"", 415},
          {"Content-Type: multipart/form-data\r\n", 400},
          {"Content-Type: multipart/form-data; boundary=\"\"\r\n", 400},
          {"Content-Type: multipart/form-data; boundary=b; boundary=b\r\n", 400},
          {"Content-Type: multipart\r\n", 400}}) {
        const Talk talk = talk_every_way(by_length(kForm, type) + kGet, uploads.settings);
        LAW(statuses(talk.sent) == (Statuses{status, 200}), << type << visible(talk.sent));
    }
    LAW(uploads.told.empty() && uploads.destroyed == uploads.wakers.size());
}

TEST(PartReader, limits_are_exact_and_answered_at_once) {
    const std::string head = "--b\r\nContent-Disposition: form-data; name=a\r\n\r\n";
    for (const std::size_t size : {std::size_t{10}, std::size_t{11}, std::size_t{400000}}) {
        Uploads uploads({.part_max = 10});
        const std::string content = head + std::string(size, 'x') + "\r\n--b--";
        Wire wire(uploads.settings);
        const std::uint32_t id = wire.connect();
        const std::string octets = by_length(content);
        const std::size_t to_the_limit = octets.size() - content.size() + head.size() + 10;
        wire.feed(id, octets.substr(0, to_the_limit));
        LAW(wire.sent(id).empty());
        wire.feed(id, octets.substr(to_the_limit, 1));
        // CRLF may begin the delimiter; any other byte is one too many.
        LAW(wire.sent(id).empty() == (size == 10));
        wire.feed(id, octets.substr(to_the_limit + 1));
        LAW(statuses(wire.sent(id)) == Statuses{size == 10 ? 200 : 413});
        const std::string text = "part-too-large at " + std::to_string(head.size() + 10) + '\n';
        LAW(size == 10 || answered(wire.sent(id)).content == text, << visible(wire.sent(id)));
        LAW(uploads.told == (size == 10 ? "a(xxxxxxxxxx)end " : "a(xxxxxxxxxxpart-too-large "));
        // What is left of it is read for a while, and the connection goes on.
        LAW(wire.shut(id) == (size == 400000) && uploads.destroyed == 1);
    }
    Uploads uploads({.parts_max = 2});
    const Talk talk = talk_every_way(by_length(kForm) + kGet, uploads.settings);
    LAW(statuses(talk.sent) == (Statuses{413, 200}), << visible(talk.sent));
    LAW(answered(talk.sent).content.starts_with("parts-too-many at "));
    // The limit of the route is one on all of the content, and judged by what is announced.
    Uploads small({}, {.body_max = 100});
    LAW(statuses(talk_every_way(by_length(kForm), small.settings).sent) == Statuses{413});
    LAW(small.told.empty());
    const std::string chunks = by_chunks(kForm, 40);
    LAW(statuses(talk_every_way(chunks, small.settings).sent) == Statuses{413});
    std::string due;
    for (unsigned i = 0; i < chunks.size() + 1; ++i) due += "a(1)aborted ";
    LAW(small.told == due, << visible(small.told));
}

TEST(PartReader, one_that_does_not_say_what_is_wrong_has_failed) {
    for (const std::string content : {"--b\r\n\r\nmore", "--b"}) {
        Uploads uploads;
        uploads.says_what_is_wrong = false;
        const Talk talk = talk_every_way(by_length(content) + kGet, uploads.settings);
        LAW(statuses(talk.sent) == Statuses{500}, << visible(talk.sent));
    }
}

TEST(PartReader, it_may_answer_in_any_call) {
    unsigned calls = 0;
    unsigned answers_at = 0;
    Uploads uploads;
    uploads.at_each_call = [&](ResponseWriter& writer) {
        if (++calls == answers_at) LAW(writer.write(409, {}, "enough"));
        LAW(calls <= answers_at, << "called after its answer");
        return Flow::kMore;
    };
    for (answers_at = 1; answers_at <= 9; ++answers_at) {
        Wire wire(uploads.settings);
        const std::uint32_t id = wire.connect();
        calls = 0;
        wire.feed(id, by_length(kForm) + kGet);
        const bool too_late = calls < answers_at;
        LAW(statuses(wire.sent(id)) == (Statuses{too_late ? 200 : 409, 200}), << answers_at);
        LAW(uploads.destroyed == answers_at);
    }
    LAW(calls < 9);
}

TEST(PartReader, it_is_told_that_the_rest_will_not_come) {
    for (std::size_t cut = 1; cut < kForm.size(); cut += 5) {
        Uploads uploads;
        Wire wire(uploads.settings);
        const std::uint32_t id = wire.connect();
        const std::string octets = by_length(kForm);
        wire.feed(id, octets.substr(0, octets.size() - cut));
        wire.connections().on_broken(id);
        LAW(uploads.told.ends_with("incomplete ") && uploads.destroyed == 1, << uploads.told);
    }
}

}  // namespace
}  // namespace httpmark
