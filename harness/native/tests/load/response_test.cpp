#include "load/response.hpp"

#include <gtest/gtest.h>

#include <string>

namespace httpmark {
namespace {

constexpr std::int64_t kNow = 784111777;  // Sun, 06 Nov 1994 08:49:37 GMT

std::string reply(const std::string& date = "Sun, 06 Nov 1994 08:49:37 GMT",
                  const std::string& body = "Hello World!", const std::string& more = "",
                  const std::string& status = "200 OK") {
    return "HTTP/1.1 " + status + "\r\nDate: " + date + "\r\n" + more +
           "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
}

class Verifier : public ::testing::Test {
  protected:
    Verifier() : verifier_(0, false) {
        verifier_.set_wall_clock(kNow, kNow);
        EXPECT_EQ(verifier_.check(reply()).kind, CheckKind::kVerified);
    }
    // As a worker asks: the fast way first.
    CheckKind kind_of(const std::string& octets) {
        if (verifier_.count_equal(octets, 1) == 1) return CheckKind::kVerified;
        return verifier_.check(octets).kind;
    }
    ResponseVerifier verifier_;
};

TEST_F(Verifier, equal_responses_are_counted_up_to_the_limit) {
    const std::string three = reply() + reply() + reply();
    EXPECT_EQ(verifier_.count_equal(three, 256), 3u);
    EXPECT_EQ(verifier_.count_equal(three, 2), 2u);
    EXPECT_EQ(verifier_.count_equal(three.substr(0, three.size() - 1), 256), 2u);
}

TEST_F(Verifier, one_octet_among_hundreds_of_responses_is_found_wherever_it_is) {
    const std::size_t size = reply().size();
    std::string many;
    for (int i = 0; i < 300; ++i) many += reply();
    for (std::size_t at = 0; at < many.size(); at += 7) {
        many[at] ^= 1;
        EXPECT_EQ(verifier_.count_equal(many, 1000), at / size);
        many[at] ^= 1;
        ASSERT_EQ(verifier_.count_equal(many, 1000), 300u);
    }
    // The Date moves in the middle of a read.
    const std::string later = reply("Sun, 06 Nov 1994 08:49:38 GMT");
    for (std::size_t i = 200; i < 300; ++i) many.replace(i * size, size, later);
    EXPECT_EQ(verifier_.count_equal(many, 1000), 200u);
    EXPECT_EQ(verifier_.check(later).kind, CheckKind::kVerified);
    EXPECT_EQ(verifier_.count_equal(std::string_view(many).substr(200 * size), 1000), 100u);
    EXPECT_EQ(verifier_.count_equal(many, 1000), 0u);
}

TEST_F(Verifier, the_date_is_free_near_the_clock) {
    EXPECT_EQ(kind_of(reply("Sun, 06 Nov 1994 08:49:38 GMT")), CheckKind::kVerified);
    EXPECT_EQ(verifier_.count_equal(reply("Sun, 06 Nov 1994 08:49:38 GMT"), 1), 1u);
    EXPECT_EQ(kind_of(reply("Sun, 06 Nov 1994 08:49:35 GMT")), CheckKind::kVerified);
    EXPECT_EQ(kind_of(reply("Sun, 06 Nov 1994 08:49:34 GMT")), CheckKind::kDate);
    EXPECT_EQ(kind_of(reply("Sun, 06 Nov 1994 08:49:40 GMT")), CheckKind::kDate);
    EXPECT_EQ(kind_of(reply("Mon, 06 Nov 1994 08:49:37 GMT")), CheckKind::kDate);
    EXPECT_EQ(kind_of(reply("Sun, 06 Nov 1994 08:49:37 UTC")), CheckKind::kDate);
    EXPECT_EQ(kind_of(reply("Sun Nov  6 08:49:37 1994")), CheckKind::kDate);
}

TEST_F(Verifier, an_answer_from_a_cache_is_caught_by_its_date) {
    EXPECT_EQ(kind_of(reply()), CheckKind::kVerified);
    const auto ask_at = [&](std::int64_t now) { verifier_.set_wall_clock(now, now); };
    ask_at(kNow + kDateSkewSecondsMax);
    EXPECT_EQ(kind_of(reply()), CheckKind::kVerified);
    ask_at(kNow + kDateSkewSecondsMax + 1);
    EXPECT_EQ(kind_of(reply()), CheckKind::kDate);
    EXPECT_EQ(kind_of(reply("Sun, 06 Nov 1994 08:49:40 GMT")), CheckKind::kVerified);
}

TEST_F(Verifier, a_date_that_was_not_renewed_is_told_from_one_of_before_and_one_ahead) {
    const std::int64_t later = kNow + 60;
    verifier_.set_wall_clock(later, later);
    const auto is_late = [&](const std::string& octets) {
        const CheckResult result = verifier_.check(octets);
        EXPECT_EQ(result.kind, CheckKind::kDate);
        return result.is_late;
    };
    EXPECT_TRUE(is_late(reply()));
    EXPECT_TRUE(is_late(reply("Sun, 06 Nov 1994 08:49:37 GMT", "Hello World!", "X: y\r\n")));
    EXPECT_TRUE(is_late(reply("Sun, 06 Nov 1994 08:49:35 GMT")));  // of another worker
    EXPECT_FALSE(is_late(reply("Sun, 06 Nov 1994 08:49:34 GMT")));
    EXPECT_FALSE(is_late(reply("Sun, 06 Nov 1994 08:50:40 GMT")));
    EXPECT_FALSE(is_late(reply("Sun, 06 Nov 1994 08:50:37 UTC")));
    // A first answer has nothing before it that could have been late.
    ResponseVerifier other(0, false);
    other.set_wall_clock(later, later);
    EXPECT_FALSE(other.check(reply()).is_late);
}

// A server that dates a long batch when it begins it, or an answer that waited to be read.
TEST_F(Verifier, an_answer_may_be_older_than_the_clock_and_not_than_its_request) {
    const std::string other = reply("Sun, 06 Nov 1994 08:49:37 GMT", "Hello World!", "X: y\r\n");
    verifier_.set_wall_clock(kNow + 60, kNow + kDateSkewSecondsMax);
    EXPECT_EQ(kind_of(reply()), CheckKind::kVerified);
    EXPECT_EQ(kind_of(other), CheckKind::kVariant);
    verifier_.set_wall_clock(kNow + 60, kNow + kDateSkewSecondsMax + 1);
    EXPECT_EQ(kind_of(other), CheckKind::kDate);
    EXPECT_EQ(kind_of(reply()), CheckKind::kDate);
    // The clock bounds what comes; long ago is no reason for a Date that is ahead.
    verifier_.set_wall_clock(kNow - kDateSkewSecondsMax - 1, kNow - 60);
    EXPECT_EQ(kind_of(reply()), CheckKind::kDate);
}

TEST_F(Verifier, changes_of_the_date_are_counted) {
    const std::uint64_t before = verifier_.date_changes();
    kind_of(reply());
    EXPECT_EQ(verifier_.date_changes(), before);
    kind_of(reply("Sun, 06 Nov 1994 08:49:38 GMT"));
    kind_of(reply("Sun, 06 Nov 1994 08:49:38 GMT"));
    EXPECT_EQ(verifier_.date_changes(), before + 1);
    // In a head that is new otherwise, too.
    kind_of(reply("Sun, 06 Nov 1994 08:49:38 GMT", "Hello World!", "X: y\r\n"));
    EXPECT_EQ(verifier_.date_changes(), before + 1);
    kind_of(reply("Sun, 06 Nov 1994 08:49:39 GMT"));
    EXPECT_EQ(verifier_.date_changes(), before + 2);
}

TEST_F(Verifier, another_body_of_the_same_length) {
    EXPECT_EQ(kind_of(reply("Sun, 06 Nov 1994 08:49:37 GMT", "Hello Worle!")), CheckKind::kBody);
    EXPECT_EQ(kind_of(reply("Sun, 06 Nov 1994 08:49:37 GMT", "Hello World")), CheckKind::kBody);
    EXPECT_EQ(kind_of(reply("Sun, 06 Nov 1994 08:49:37 GMT", "")), CheckKind::kBody);
}

TEST_F(Verifier, another_status) {
    EXPECT_EQ(kind_of(reply("Sun, 06 Nov 1994 08:49:37 GMT", "Hello World!", "", "201 OK")),
              CheckKind::kStatus);
    EXPECT_EQ(kind_of(reply("Sun, 06 Nov 1994 08:49:37 GMT", "", "", "503 No")),
              CheckKind::kStatus);
}

TEST_F(Verifier, a_changed_head_is_a_variant_once) {
    const std::string other = reply("Sun, 06 Nov 1994 08:49:37 GMT", "Hello World!", "X: y\r\n");
    EXPECT_EQ(kind_of(other), CheckKind::kVariant);
    EXPECT_EQ(kind_of(other), CheckKind::kVerified);
}

TEST_F(Verifier, a_lie_about_content_length_breaks_the_next_response) {
    std::string shorter = reply() + reply();
    shorter.replace(shorter.find("Length: 12"), 10, "Length: 11");
    // "Hello World" is not the first body, and "!HTTP/1.1" is no status line.
    const CheckResult first = verifier_.check(shorter);
    EXPECT_EQ(first.kind, CheckKind::kBody);
    EXPECT_EQ(verifier_.check(std::string_view(shorter).substr(first.size)).kind,
              CheckKind::kFraming);
    std::string longer = reply() + reply();
    longer.replace(longer.find("Length: 12"), 10, "Length: 13");
    EXPECT_EQ(verifier_.check(longer).kind, CheckKind::kBody);
}

TEST_F(Verifier, the_front_of_a_response_waits_for_the_rest) {
    const std::string other = reply("Sun, 06 Nov 1994 08:49:39 GMT", "Hello World!", "X: y\r\n");
    for (const std::string& whole : {reply("Sun, 06 Nov 1994 08:49:38 GMT"), other}) {
        for (std::size_t size = 1; size < whole.size(); ++size) {
            const CheckResult result = verifier_.check(std::string_view(whole).substr(0, size));
            EXPECT_EQ(result.kind, CheckKind::kNeedMore) << size;
            EXPECT_GT(result.need, size);
            EXPECT_LE(result.need, whole.size());
        }
    }
}

TEST_F(Verifier, a_short_error_is_not_waited_for_as_if_it_were_the_long_answer) {
    const std::string error = "HTTP/1.1 400 No\r\nContent-Length: 0\r\n\r\n";
    ASSERT_LT(error.size(), reply().size());
    EXPECT_EQ(verifier_.check(error).kind, CheckKind::kStatus);
}

// Its first bytes are those of the long answer, too: waiting for as many as that has would be for
// ever.
TEST_F(Verifier, a_short_answer_that_comes_in_parts_is_not_waited_for_as_if_it_were_the_long_one) {
    const std::string error =
        "HTTP/1.1 200 OK\r\nDate: Sun, 06 Nov 1994\r\nContent-Length: 0\r\n\r\n";
    const std::string status = "HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n";
    ASSERT_LT(error.size(), reply().size());
    for (const std::string& whole : {error, status}) {
        for (std::size_t size = 1; size < whole.size(); ++size) {
            const CheckResult part = verifier_.check(std::string_view(whole).substr(0, size));
            EXPECT_EQ(part.kind, CheckKind::kNeedMore) << size;
            EXPECT_LE(part.need, whole.size()) << size;
        }
        EXPECT_EQ(verifier_.check(whole).size, whole.size());
    }
}

TEST(VerifierLearning, fewer_chunks_than_the_first_answer_had_are_not_waited_for) {
    ResponseVerifier verifier(0, false);
    const std::string begin = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n";
    const std::string end = "0\r\n\r\n";
    const std::string learned = begin + "A\r\n0123456789\r\n" + end;
    ASSERT_EQ(verifier.check(learned).kind, CheckKind::kVerified);
    const std::string fewer = begin + end;
    for (std::size_t size = 1; size < fewer.size(); ++size) {
        const CheckResult part = verifier.check(std::string_view(fewer).substr(0, size));
        EXPECT_EQ(part.kind, CheckKind::kNeedMore) << size;
        EXPECT_LE(part.need, fewer.size()) << size;
    }
    EXPECT_EQ(verifier.check(fewer).kind, CheckKind::kBody);
    // Within a chunk whose size is known, nothing less than the chunk will do.
    const std::size_t within = begin.size() + 5;
    EXPECT_EQ(verifier.check(std::string_view(learned).substr(0, within)).need,
              learned.size() - end.size());
}

TEST_F(Verifier, a_line_end_in_the_place_of_the_date_makes_another_head) {
    const std::string other = "HTTP/1.1 200 OK\r\nDate: x\r\nContent-Length: 12\r\n\r\n";
    const std::string same_size = other + reply().substr(other.size());
    EXPECT_EQ(verifier_.check(same_size).size, other.size() + 12);
}

TEST(ParseResponse, a_line_may_be_as_long_whole_as_in_parts) {
    for (const std::size_t size : {kLoadHeadBytesMax - 3, kLoadHeadBytesMax + 1}) {
        const std::string status = "HTTP/1.1 200 OK\r\n";
        const std::string octets = status + "X: " + std::string(size, 'a') + "\r\n\r\n";
        ParsedResponse whole;
        parse_response(octets, false, &whole);
        const std::string_view begun = std::string_view(octets).substr(0, octets.size() - 3);
        ParsedResponse part;
        parse_response(begun, false, &part);
        EXPECT_EQ(part.state, whole.state) << size;
        EXPECT_STREQ(part.why, "line without an end");
        EXPECT_STREQ(part.why, whole.why);
    }
}

TEST(ParseResponse, a_bad_trailer_is_shown_where_it_begins) {
    const std::string begin = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nA: b\r\n";
    ParsedResponse parsed;
    parse_response(begin + "no colon\r\n\r\n", false, &parsed);
    EXPECT_STREQ(parsed.why, "bad trailer");
    EXPECT_EQ(parsed.why_at, begin.size());
}

TEST(ParseResponse, an_endless_trailer_section_is_given_up) {
    std::string octets = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n";
    ParsedResponse parsed;
    while (octets.size() <= 2 * kLoadHeadBytesMax && parsed.state == ParseState::kNeedMore) {
        for (int i = 0; i < 100; ++i) octets += "X-Trailer: 0123456789\r\n";
        parse_response(octets, false, &parsed);
    }
    EXPECT_EQ(parsed.state, ParseState::kInvalid);
    EXPECT_STREQ(parsed.why, "trailer section too large");
}

TEST(VerifierLearning, the_first_response_has_to_be_good) {
    ResponseVerifier verifier(0, false);
    verifier.set_wall_clock(kNow, kNow);
    EXPECT_EQ(verifier.check(reply("x")).kind, CheckKind::kDate);
    EXPECT_EQ(verifier.check("HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n").kind,
              CheckKind::kStatus);
    EXPECT_FALSE(verifier.is_learned());
    ResponseVerifier tolerant(404, false);
    EXPECT_EQ(tolerant.check("HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n").kind,
              CheckKind::kVerified);
}

TEST(VerifierLearning, chunked_content_counts_not_its_chunks) {
    ResponseVerifier verifier(0, false);
    const std::string head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    EXPECT_EQ(verifier.check(head + "5\r\nhello\r\n0\r\n\r\n").kind, CheckKind::kVerified);
    EXPECT_EQ(verifier.check(head + "2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n").kind, CheckKind::kVariant);
    EXPECT_EQ(verifier.check("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello").kind,
              CheckKind::kVariant);
    EXPECT_EQ(verifier.check(head + "2\r\nhe\r\n3\r\nllO\r\n0\r\n\r\n").kind, CheckKind::kBody);
}

TEST(VerifierLearning, a_head_request_has_no_body) {
    ResponseVerifier verifier(0, true);
    const std::string head = "HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\n";
    EXPECT_EQ(verifier.check(head).kind, CheckKind::kVerified);
    EXPECT_EQ(verifier.count_equal(head + head, 9), 2u);
}

TEST(ParseResponse, what_is_no_response_to_build_on) {
    for (const char* octets : {
             "GARBAGE\r\n\r\n",
             "HTTP/1.1 200\r\n\r\n",
             "HTTP/2 200 OK\r\n\r\n",
             "HTTP/1.1 099 OK\r\n\r\n",
             "HTTP/1.1  200 OK\r\n\r\n",
             "HTTP/1.1 200 OK\nContent-Length: 0\r\n\r\n",
             "HTTP/1.1 200 OK\r\nContent-Length : 0\r\n\r\n",
             "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nContent-Length: 0\r\n\r\n",
             "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
             "HTTP/1.1 200 OK\r\nContent-Length: \r\n\r\n",
             "HTTP/1.1 200 OK\r\nContent-Length: 1 2\r\n\r\n",
             "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
             "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\n",
             "HTTP/1.1 204 OK\r\nContent-Length: 0\r\n\r\n",
             "HTTP/1.1 200 OK\r\n folded\r\nContent-Length: 0\r\n\r\n",
             "HTTP/1.1 200 OK\r\nno colon\r\nContent-Length: 0\r\n\r\n",
             "HTTP/1.1 200 OK\r\nX: a\x01\r\nContent-Length: 0\r\n\r\n",
             "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nz\r\n",
             "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nab\r\n0\r\n\r\n",
             "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\nab",
         }) {
        ParsedResponse parsed;
        parse_response(octets, false, &parsed);
        EXPECT_EQ(parsed.state, ParseState::kInvalid) << octets;
    }
    ParsedResponse parsed;
    parse_response("HTTP/1.1 200 OK\r\nServer: x\r\n\r\nbody", false, &parsed);
    EXPECT_EQ(parsed.state, ParseState::kUntilClose);
}

}  // namespace
}  // namespace httpmark
