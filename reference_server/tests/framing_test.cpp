#include "framing.hpp"

#include <string>

#include "splits.hpp"

namespace httpmark {
namespace {

RequestHead head_of(const std::string& fields, const char* version = "1.1") {
    const std::string input =
        "POST / HTTP/" + std::string(version) + "\r\nHost: h\r\n" + fields + "\r\n";
    const Parsed parsed = parse_every_way(input);
    LAW(parsed.result.verdict == Verdict::kAccepted, << visible(input));
    return parsed.head;
}

TEST(Framing, how_content_is_delimited) {
    LAW(framing_of(head_of("")).kind == BodyKind::kNone);
    LAW(framing_of(head_of("Content-Length: 0\r\n")).kind == BodyKind::kNone);
    const Framing length = framing_of(head_of("Content-Length: 42\r\n"));
    LAW(length.kind == BodyKind::kLength && length.length == 42);
    LAW(framing_of(head_of("Transfer-Encoding: chunked\r\n")).kind == BodyKind::kChunked);
    LAW(framing_of(head_of("Content_Length: 5\r\nTransfer_Encoding: chunked\r\n")).kind ==
        BodyKind::kNone);
}

TEST(Framing, persistence) {
    LAW(wants_persistence(head_of("")));
    LAW(!wants_persistence(head_of("", "1.0")));
    LAW(wants_persistence(head_of("Connection: Keep-Alive\r\n", "1.0")));
    LAW(!wants_persistence(head_of("Connection: keep-alive\r\nConnection: x, close\r\n", "1.0")));
    LAW(!wants_persistence(head_of("Connection: close\r\n")));
    LAW(wants_persistence(head_of("Connection: closed\r\n", "1.9")));
}

TEST(Framing, limits_on_announced_content) {
    Limits limits;
    limits.body_max = 10;
    LAW(judge_head(head_of("Content-Length: 10\r\n"), limits, Strictness::kStrict, false) ==
        Reason::kNone);
    LAW(judge_head(head_of("Content-Length: 11\r\n"), limits, Strictness::kStrict, false) ==
        Reason::kContentTooLarge);
}

}  // namespace
}  // namespace httpmark
