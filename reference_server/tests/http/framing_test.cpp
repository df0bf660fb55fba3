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
                        // With a length, only its size is left to be judged.
                        LAW(is_plain_with_length(head));
                        head.flags |= kLengthSeen;
                        head.content_length = 5;
                        LAW(!is_plain(head) && is_plain_with_length(head));
                        Limits limits;
                        for (const std::uint64_t most : {5U, 4U}) {
                            limits.body_max = most;
                            LAW(judge_head(head, limits, Strictness::kStrict, false, {}) ==
                                (most == 5 ? Reason::kNone : Reason::kContentTooLarge));
                        }
                        LAW(framing_of(head).kind == BodyKind::kLength);
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

// Which refusal comes first where a head deserves several; the order stands in judge_head().
TEST(Framing, of_several_faults_one_is_told) {
    struct Row {
        const char* line;
        const char* fields;
        Reason reason;
        Strictness strictness = Strictness::kStrict;
    };
    constexpr const char* kTooLong = "Content-Length: 9223372036854775808\r\n";
    constexpr const char* kUnbounded = "Content-Length: 92233720368547758079\r\n";
    for (const Row& row : {
             Row{"POST /", kTooLong, Reason::kLengthTooLarge},
             {"POST /", kUnbounded, Reason::kLengthTooLarge},
             {"POST /", "Content-Length: 9223372036854775807\r\n", Reason::kContentTooLarge},
             // An unknown method and the wrong scheme come before a length that is too large.
             {"BREW /", kTooLong, Reason::kMethodUnknown},
             {"BREW /", "Content-Length: 33554433\r\n", Reason::kMethodUnknown},
             {"TRACE /", kUnbounded, Reason::kMethodUnknown},
             {"POST https://h/", kTooLong, Reason::kMisdirected},
             {"POST https://h/", "Content-Length: 33554433\r\n", Reason::kMisdirected},
             {"BREW https://h/", "", Reason::kMethodUnknown},
             // Framing comes before them all.
             {"BREW /", "Content-Length: 1, 2\r\n", Reason::kLengthRepeated},
             {"BREW https://h/", "Content-Length: x\r\n", Reason::kLengthSyntax},
             {"BREW /", "Transfer-Encoding: gzip, chunked\r\n", Reason::kTransferCodingUnknown},
             {"POST /", "Transfer-Encoding: chunked\r\nContent-Length: 9223372036854775808\r\n",
              Reason::kTransferCodingWithLength},
             {"POST /", "Content-Length: 33554433\r\nExpect: 200-ok\r\n", Reason::kContentTooLarge},
             // Lengths are equal only where they are equal to their last digit.
             {"POST /", "Content-Length: 9223372036854775807, 92233720368547758079\r\n",
              Reason::kLengthRepeated, Strictness::kRfc},
             {"POST /", "Content-Length: 92233720368547758079, 9223372036854775807\r\n",
              Reason::kLengthRepeated, Strictness::kRfc},
             {"POST /", "Content-Length: 922337203685477580, 9223372036854775808\r\n",
              Reason::kLengthRepeated, Strictness::kRfc},
             {"POST /", "Content-Length: 7, 7, 8\r\n", Reason::kLengthRepeated, Strictness::kRfc},
             {"POST /", "Content-Length: 8, 7, 7\r\n", Reason::kLengthRepeated, Strictness::kRfc},
             {"POST /", "Content-Length: 7, 07\r\n", Reason::kNone, Strictness::kRfc},
         }) {
        const std::string text =
            std::string(row.line) + " HTTP/1.1\r\nHost: h\r\n" + row.fields + "\r\n";
        ParserSetting setting;
        setting.strictness = row.strictness;
        const Reason reason = judged(parse_every_way(text, setting), setting);
        LAW(reason == row.reason, << visible(text) << " is " << error_row(reason).name);
    }
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
