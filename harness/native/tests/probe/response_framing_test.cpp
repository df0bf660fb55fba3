#include "probe/response_framing.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/shared/splits.hpp"

namespace httpmark {
namespace {

// What the framing says about a stream: "head 200", "done", "garbage"; at the end whether the close
// completes anything and whether a close was announced.
std::vector<std::string> told(const std::vector<std::string_view>& pieces,
                              const std::vector<RequestKind>& kinds) {
    ResponseFraming framing;
    std::vector<std::string> events;
    std::size_t finals = 0;
    for (std::string_view piece : pieces) {
        while (!piece.empty()) {
            switch (framing.feed(&piece)) {
                case FramingEvent::kNeedMore:
                    EXPECT_TRUE(piece.empty());
                    break;
                case FramingEvent::kGarbage:
                    events.push_back("garbage");
                    break;
                case FramingEvent::kMessage:
                    events.push_back("done");
                    break;
                case FramingEvent::kHead: {
                    events.push_back("head " + std::to_string(framing.status()));
                    const RequestKind kind =
                        finals < kinds.size() ? kinds[finals] : RequestKind::kOrdinary;
                    if (!framing.is_interim()) ++finals;
                    if (framing.begin_body(kind)) events.push_back("done");
                    break;
                }
            }
        }
    }
    if (framing.announced_close()) events.push_back("close announced");
    if (framing.finish()) events.push_back("done by close");
    return events;
}

void expect_told(std::string_view stream, const std::vector<std::string>& expected,
                 const std::vector<RequestKind>& kinds = {}) {
    each_split(stream, [&](const std::vector<std::string_view>& pieces) {
        EXPECT_EQ(told(pieces, kinds), expected)
            << stream << " in " << pieces.size() << " pieces, the first of " << pieces[0].size();
    });
}

TEST(ResponseFraming, content_length_and_the_next_response) {
    expect_told(
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"
        "HTTP/1.1 404 Not Found\r\ncontent-length:0\r\n\r\n",
        {"head 200", "done", "head 404", "done"});
}

TEST(ResponseFraming, chunked_with_extension_and_trailer) {
    expect_told(
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, Chunked\r\nContent-Length: 3\r\n\r\n"
        "5;a=b\r\nhello\r\nA\r\n0123456789\r\n0\r\nX: y\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n",
        {"head 200", "done", "head 204", "done"});
}

TEST(ResponseFraming, a_body_that_only_the_close_ends) {
    expect_told("HTTP/1.1 200 OK\r\n\r\nHTTP/1.1 200 OK\r\n\r\n", {"head 200", "done by close"});
    expect_told("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked, gzip\r\n\r\n0\r\n\r\n",
                {"head 200", "done by close"});
    expect_told("HTTP/1.1 200 OK\r\nContent-Length: 1x\r\n\r\nab", {"head 200", "done by close"});
    expect_told("HTTP/1.1 200 OK\r\nContent-Length: 1, 2\r\n\r\nab", {"head 200", "done by close"});
    expect_told("HTTP/1.1 200 OK\r\nContent-Length: 2, 2\r\n\r\nab", {"head 200", "done"});
}

TEST(ResponseFraming, no_body_after_head_1xx_204_304) {
    expect_told(
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n"
        "HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\nHTTP/1.1 200 OK\r\n"
        "Content-Length: 1\r\n\r\nx",
        {"head 100", "done", "head 200", "done", "head 304", "done", "head 200", "done"},
        {RequestKind::kHead});
}

TEST(ResponseFraming, a_tunnel_is_no_http) {
    expect_told("HTTP/1.1 200 OK\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
                {"head 200", "done"}, {RequestKind::kConnect});
    expect_told("HTTP/1.1 101 Switching Protocols\r\n\r\nHTTP/1.1 200 OK\r\n\r\n",
                {"head 101", "done"});
    expect_told("HTTP/1.1 400 Bad Request\r\nContent-Length: 2\r\n\r\nno", {"head 400", "done"},
                {RequestKind::kConnect});
}

TEST(ResponseFraming, a_close_announced) {
    expect_told("HTTP/1.1 400 Bad Request\r\nConnection: x, Close\r\nContent-Length: 0\r\n\r\n",
                {"head 400", "done", "close announced"});
    expect_told("HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n",
                {"head 200", "done", "close announced"});
    expect_told("HTTP/1.0 200 OK\r\nConnection: Keep-Alive\r\nContent-Length: 0\r\n\r\n",
                {"head 200", "done"});
    expect_told("HTTP/1.1 200 OK\r\nX-Connection: close\r\nContent-Length: 0\r\n\r\n",
                {"head 200", "done"});
}

TEST(ResponseFraming, bare_line_feeds_are_followed) {
    expect_told("HTTP/1.1 200 OK\nContent-Length: 1\n\nxHTTP/1.1 204 N\n\n",
                {"head 200", "done", "head 204", "done"});
}

TEST(ResponseFraming, what_is_no_response) {
    expect_told("hello world", {"garbage"});
    expect_told("<html>HTTP/1.1 200 OK\r\n\r\n", {"garbage"});
    expect_told("HTTP/2.0 200 OK\r\n\r\n", {"garbage"});
    expect_told("HTTP/1.1 20 OK\r\n\r\n", {"garbage"});
    expect_told("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
                {"head 200", "garbage"});
    expect_told("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nab\r\n",
                {"head 200", "garbage"});
    expect_told("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n",
                {"head 200", "garbage"});
    expect_told("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nab", {"head 200", "done", "garbage"});
}

TEST(ResponseFraming, an_answer_cut_short_is_not_complete) {
    expect_told("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhell", {"head 200"});
    expect_told("HTTP/1.1 200 OK\r\nContent-Len", {});
    expect_told("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n",
                {"head 200"});
}

TEST(ResponseFraming, an_endless_line_is_given_up) {
    ResponseFraming framing;
    const std::string line = "HTTP/1.1 200 " + std::string(kResponseLineBytesMax, 'x');
    std::string_view input = line;
    EXPECT_EQ(framing.feed(&input), FramingEvent::kGarbage);
    EXPECT_TRUE(framing.is_lost());
}

TEST(ResponseFraming, an_endless_header_section_is_given_up) {
    ResponseFraming framing;
    std::string_view input = "HTTP/1.1 200 OK\r\n";
    EXPECT_EQ(framing.feed(&input), FramingEvent::kNeedMore);
    std::size_t fed = 0;
    FramingEvent event = FramingEvent::kNeedMore;
    while (event == FramingEvent::kNeedMore && fed < 2 * kResponseHeadBytesMax) {
        input = "X-Field: 0123456789\r\n";
        fed += input.size();
        event = framing.feed(&input);
    }
    EXPECT_EQ(event, FramingEvent::kGarbage);
}

}  // namespace
}  // namespace httpmark
