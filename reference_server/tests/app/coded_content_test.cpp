// Content-Encoding of requests, through whole connections.
#include "app/coded_content.hpp"

#include <memory>
#include <string>

#include "answers.hpp"
#include "app/content_reader.hpp"
#include "net/requests.hpp"
#include "routes.hpp"

namespace httpmark {
namespace {

constexpr std::uint64_t kMost = 3000;

// Sends back what was streamed to it.
class Echo final : public ContentReader {
  public:
    Flow on_piece(std::string_view piece, ResponseWriter&) override {
        text_ += piece;
        return Flow::kMore;
    }
    Reason on_end(const Request&, ResponseWriter& writer) override {
        return writer.answer(200, {}, text_);
    }

  private:
    std::string text_;
};

struct Served {
    std::shared_ptr<const Router> router;
    ServerSettings settings;

    Served() {
        const auto give_back = [](const Request& request, ResponseWriter& writer) {
            return writer.answer(200, {}, request.content);
        };
        Router::Builder routes;
        routes.add(kAnyMethod, "/refused", give_back, {.wants_content = true});
        routes.add(
            kAnyMethod, "/decoded", give_back,
            {.wants_content = true, .coded_content = CodedContent::kDecoded, .decoded_max = kMost});
        routes.add(kAnyMethod, "/came", give_back,
                   {.wants_content = true, .coded_content = CodedContent::kAsItCame});
        routes.add(kAnyMethod, "/later",
                   [](const Request& request, ResponseWriter& writer) {
                       if (request.asked_again) return writer.answer(200, {}, request.content);
                       writer.defer(100);
                       return Reason::kNone;
                   },
                   {.wants_content = true, .coded_content = CodedContent::kDecoded});
        routes.add(kAnyMethod, "/streamed",
                   [](const Request&, ResponseWriter& writer) {
                       return writer.read_content(std::make_unique<Echo>()) ? Reason::kNone
                                                                            : writer.fault();
                   },
                   {.streams = true, .coded_content = CodedContent::kDecoded});
        router = built(routes);
        settings.router = router.get();
    }
};

std::string post(const std::string& path, const std::string& fields, const std::string& content,
                 bool chunked = false) {
    const std::string line = "POST " + path + " HTTP/1.1";
    if (!chunked) {
        return request(line, fields + "Content-Length: " + std::to_string(content.size()) + "\r\n",
                       content);
    }
    std::string body;
    for (std::size_t at = 0; at < content.size(); at += 7) {
        const std::string piece = content.substr(at, 7);
        body += std::to_string(piece.size()) + "\r\n" + piece + "\r\n";
    }
    return request(line, fields + "Transfer-Encoding: chunked\r\n", body + "0\r\n\r\n");
}

const std::string kText = "to be coded, to be coded, to be coded, to be coded";

TEST(CodedContent, a_handler_is_given_what_was_coded) {
    const Served served;
    for (const ContentCoding coding : {ContentCoding::kGzip, ContentCoding::kDeflate}) {
        const std::string field = "Content-Encoding: " + std::string(coding_name(coding)) + "\r\n";
        for (const bool chunked : {false, true}) {
            const Talk talk = talk_every_way(post("/decoded", field, coded(coding, kText), chunked),
                                             served.settings);
            const Answered answer = answered(talk.sent);
            LAW(answer.status == 200 && answer.content == kText, << visible(talk.sent));
        }
    }
}

TEST(CodedContent, content_without_a_coding_is_left_alone) {
    const Served served;
    for (const char* path : {"/refused", "/decoded", "/came"}) {
        for (const char* field : {"", "Content-Encoding: identity\r\n", "Content-Encoding: \r\n"}) {
            const Answered answer = answered(once(post(path, field, kText), served.settings).sent);
            LAW(answer.status == 200 && answer.content == kText, << path << field);
        }
        // Without content there is nothing that could be coded.
        const std::string gzip = "Content-Encoding: gzip\r\n";
        LAW(answered(
                once(request("GET " + std::string(path) + " HTTP/1.1", gzip), served.settings).sent)
                .status == 200);
        LAW(answered(once(post(path, gzip, ""), served.settings).sent).status == 200);
    }
}

TEST(CodedContent, what_is_not_taken_is_refused_and_told_what_is) {
    const Served served;
    const std::string gzip = coded(ContentCoding::kGzip, kText);
    const auto ask = [&](const std::string& path, const std::string& value) {
        return answered(
            talk_every_way(post(path, "Content-Encoding: " + value + "\r\n", gzip), served.settings)
                .sent);
    };
    for (const char* value : {"gzip", "br", "deflate, gzip"}) {
        const Answered answer = ask("/refused", value);
        LAW(answer.status == 415 && answer.field("accept-encoding") == "identity", << value);
        LAW(answer.content == "coding-unknown\n");
    }
    for (const char* value : {"br", "gzip, gzip", "gzip, br"}) {
        const Answered answer = ask("/decoded", value);
        LAW(answer.status == 415 && answer.field("accept-encoding") == "gzip, deflate", << value);
    }
    for (const char* path : {"/refused", "/decoded"}) {
        const Answered answer = ask(path, "g/zip");
        LAW(answer.status == 400 && answer.content == "coding-syntax\n", << answer.content);
        LAW(answer.field("accept-encoding").empty());
    }
    LAW(ask("/came", "br").content == gzip);
    // The connection is still good.
    const std::string two = post("/refused", "Content-Encoding: gzip\r\n", gzip);
    LAW(statuses(talk_every_way(two + two, served.settings).sent) == (Statuses{415, 415}));
}

TEST(CodedContent, the_limit_is_on_what_it_decodes_to_and_exact) {
    const Served served;
    for (const ContentCoding coding : {ContentCoding::kGzip, ContentCoding::kDeflate}) {
        const std::string field = "Content-Encoding: " + std::string(coding_name(coding)) + "\r\n";
        for (const std::size_t size : {kMost - 1, kMost, kMost + 1, 100 * kMost, 5000 * kMost}) {
            const std::string text(size, 'a');
            const Answered answer =
                answered(once(post("/decoded", field, coded(coding, text)), served.settings).sent);
            if (size <= kMost) {
                LAW(answer.status == 200 && answer.content == text, << size);
            } else {
                LAW(answer.status == 413 && answer.content.starts_with("decoded-too-large at "),
                    << size << answer.content);
            }
        }
    }
}

// What a few bytes become counts against the limit on memory, and is gone after the answer.
TEST(CodedContent, what_it_decodes_to_counts_as_memory) {
    Router::Builder routes;
    std::uint64_t most_in_use = 0;
    Wire* asked = nullptr;
    routes.add(kAnyMethod, "/",
               [&](const Request& request, ResponseWriter& writer) {
                   most_in_use = asked->connections().arena().bytes_in_use();
                   return writer.answer(200, {}, std::to_string(request.content.size()));
               },
               {.wants_content = true, .coded_content = CodedContent::kDecoded});
    const auto router = built(routes);
    ServerSettings settings;
    settings.router = router.get();
    settings.limits.memory_max = 4U << 20;
    for (const std::size_t size : {std::size_t{1000000}, std::size_t{20000000}}) {
        Wire wire(settings);
        asked = &wire;
        const std::uint32_t id = wire.connect();
        wire.feed(id, post("/", "Content-Encoding: gzip\r\n",
                           coded(ContentCoding::kGzip, std::string(size, 'a'))));
        const Answered answer = answered(wire.sent(id));
        const bool fits = size < settings.limits.memory_max;
        LAW(answer.status == (fits ? 200 : 503), << answer.head);
        LAW(!fits || (answer.content == std::to_string(size) && most_in_use >= size));
        LAW(wire.connections().arena().bytes_in_use() == 0);
    }
}

// Each prefix and each changed byte: decoded to the text, or refused with a name and an offset
// within what was sent; nothing of it reaches the next request.
TEST(CodedContent, what_is_cut_or_changed_is_refused_with_its_place) {
    const Served served;
    for (const ContentCoding coding : {ContentCoding::kGzip, ContentCoding::kDeflate}) {
        const std::string field = "Content-Encoding: " + std::string(coding_name(coding)) + "\r\n";
        const std::string whole = coded(coding, kText);
        const auto judge = [&](const std::string& content, bool may_pass) {
            const std::string sent =
                once(post("/decoded", field, content) + post("/decoded", field, whole),
                     served.settings)
                    .sent;
            const std::size_t second = sent.find("HTTP/1.1 ", 9);
            const Answered answer = answered(sent.substr(0, second));
            LAW(answered(sent.substr(second)).content == kText);
            if (answer.status == 200) {
                LAW(may_pass && answer.content.size() <= kMost);
                return;
            }
            LAW(answer.status == 400 || answer.status == 413, << answer.status);
            const std::size_t at = answer.content.find(" at ");
            LAW(at != std::string::npos &&
                    std::stoul(answer.content.substr(at + 4)) <= content.size(),
                << answer.content);
        };
        for (std::size_t size = 1; size < whole.size(); ++size) judge(whole.substr(0, size), false);
        for (std::size_t at = 0; at < whole.size(); ++at) {
            std::string changed = whole;
            changed[at] = static_cast<char>(changed[at] ^ 0x55);
            // Some bytes of gzip's header are about the file, and say nothing of the content.
            judge(changed, coding == ContentCoding::kGzip && at >= 4 && at < 10);
        }
    }
}

TEST(CodedContent, a_route_that_streams_is_handed_no_coded_content) {
    const Served served;
    for (const bool chunked : {false, true}) {
        const Answered plain =
            answered(talk_every_way(post("/streamed", "", kText, chunked), served.settings).sent);
        LAW(plain.status == 200 && plain.content == kText, << plain.head);
        const std::string octets = post("/streamed", "Content-Encoding: gzip\r\n",
                                        coded(ContentCoding::kGzip, kText), chunked);
        const Answered answer = answered(once(octets, served.settings).sent);
        LAW(answer.status == 415 && answer.field("accept-encoding") == "identity", << answer.head);
    }
}

TEST(CodedContent, an_answer_that_comes_later_is_given_it_too) {
    const Served served;
    const std::string field = "Content-Encoding: gzip\r\n";
    const std::string octets = post("/later", field, coded(ContentCoding::kGzip, kText));
    for (std::size_t cut = 0; cut < octets.size(); ++cut) {
        Wire wire(served.settings);
        const std::uint32_t id = wire.connect();
        wire.feed(id, octets.substr(0, cut));
        wire.feed(id, octets.substr(cut));
        LAW(wire.sent(id).empty());
        wire.pass(200);
        LAW(answered(wire.sent(id)).content == kText, << cut);
        LAW(wire.connections().arena().bytes_in_use() == 0);
    }
}

}  // namespace
}  // namespace httpmark
