#include "http/framing.hpp"

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

// The short cut says nothing that the long way does not say.
TEST(Framing, a_plain_head_is_one_that_passes_has_no_content_and_persists) {
    unsigned plain = 0;
    for (unsigned method = 0; method <= static_cast<unsigned>(Method::kConnect); ++method) {
        for (const int minor : {0, 1, 9}) {
            for (unsigned first = 0; first < 24; ++first) {
                for (unsigned second = 0; second < 24; ++second) {
                    for (const std::uint32_t host : {0U, std::uint32_t{kHostSeen}}) {
                        RequestHead head;
                        head.method = static_cast<Method>(method);
                        head.version_major = 1;
                        head.version_minor = static_cast<std::uint8_t>(minor);
                        head.flags = 1U << first | 1U << second | host;
                        if (!is_plain(head)) continue;
                        ++plain;
                        for (const Strictness strictness :
                             {Strictness::kStrict, Strictness::kBrowser}) {
                            LAW(judge_head(head, {}, strictness, false, {}) == Reason::kNone);
                        }
                        LAW(framing_of(head).kind == BodyKind::kNone);
                        LAW(wants_persistence(head));
                    }
                }
            }
        }
    }
    LAW(plain != 0);
}

TEST(Framing, empty_members_of_transfer_encoding_can_be_refused) {
    Choices choices;
    choices.refuse_empty_codings = true;
    const auto verdict = [&](const std::string& fields, const Choices& with) {
        return judge_head(head_of(fields), {}, Strictness::kStrict, false, with);
    };
    for (const char* value :
         {",chunked", "chunked,", " , chunked ,", "\r\nTransfer-Encoding: chunked"}) {
        const std::string fields = "Transfer-Encoding:" + std::string(value) + "\r\n";
        LAW(verdict(fields, {}) == Reason::kNone, << value);
        LAW(verdict(fields, choices) == Reason::kTransferCodingEmptyMember, << value);
    }
    LAW(verdict("Transfer-Encoding: chunked\r\n", choices) == Reason::kNone);
    LAW(verdict("Transfer-Encoding: gzip, chunked\r\n", choices) == Reason::kTransferCodingUnknown);
    LAW(verdict("Transfer-Encoding: ,chunked\r\nContent-Length: 1\r\n", choices) ==
        Reason::kTransferCodingWithLength);
}

TEST(Framing, repeated_singletons) {
    LAW(repeats_a_singleton("Content-Type: a/b\r\nX: y\r\ncontent-type: a/b\r\n\r\n"));
    LAW(repeats_a_singleton("User-Agent: a\r\nUSER-AGENT:\r\n\r\n"));
    LAW(repeats_a_singleton("Cookie: a=b\r\nCookie: c=d\r\n\r\n"));
    LAW(!repeats_a_singleton("Accept: a\r\nAccept: b\r\nX: 1\r\nX: 2\r\n\r\n"));
    LAW(!repeats_a_singleton("Content-Type: a/b\r\nContent-Types: a/b\r\nFrom: x\r\n\r\n"));
    LAW(!repeats_a_singleton("\r\n"));
    LAW(comes_behind_repeated_fields(Reason::kNone));
    LAW(comes_behind_repeated_fields(Reason::kMethodUnknown));
    LAW(!comes_behind_repeated_fields(Reason::kHostMissing));
    LAW(!comes_behind_repeated_fields(Reason::kLengthRepeated));
    LAW(!comes_behind_repeated_fields(Reason::kTransferCodingUnknown));
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
