#include "probe/frames.hpp"

#include <gtest/gtest.h>

#include <string>

namespace httpmark {
namespace {

std::string u32(std::uint32_t value) {
    std::string out;
    for (int i = 0; i < 4; ++i) out.push_back(static_cast<char>(value >> (8 * i) & 0xff));
    return out;
}

std::string head(std::uint32_t number, char flags, char steps) {
    return u32(number) + u32(2000) + u32(80) + u32(1500) + std::string{flags, '\0', steps, '\0'};
}

std::string framed(const std::string& body) {
    return u32(static_cast<std::uint32_t>(body.size())) + body;
}

TEST(ProbeFrames, a_case_with_every_kind_of_step) {
    const std::string body = head(7, 3, 8) + "\x01" + u32(3) + "abc" + "\x02" + u32(10) + "\x03" +
                             u32(200) + "\x01" + "\xf1" + u32(2) + "de" + "\x04" + u32(0) + "\x06" +
                             u32(20) + "\x07" + u32(30) + "\x05" + u32(0);
    const std::string input = framed(body) + "next";
    ProbeCase play;
    std::size_t used = 0;
    std::string complaint;
    ASSERT_EQ(decode_case(input, &used, &play, &complaint), FrameResult::kCase) << complaint;
    EXPECT_EQ(used, input.size() - 4);
    EXPECT_EQ(play.number, 7u);
    EXPECT_EQ(play.deadline_ms, 2000u);
    EXPECT_EQ(play.settle_ms, 80u);
    EXPECT_EQ(play.close_ms, 1500u);
    EXPECT_EQ(play.flags, kCaseHeadOnly | kCaseTimeline);
    ASSERT_EQ(play.steps.size(), 8u);
    EXPECT_EQ(play.octets, "abcde");
    EXPECT_EQ(play.steps[2].kind, AwaitKind::kHead);
    EXPECT_TRUE(play.steps[3].if_open);
    EXPECT_TRUE(play.steps[3].if_unanswered);
    EXPECT_TRUE(play.steps[3].if_connected);
    EXPECT_TRUE(play.steps[3].if_prompt);
    EXPECT_FALSE(play.steps[0].if_open || play.steps[0].if_unanswered ||
                 play.steps[0].if_connected || play.steps[0].if_prompt);
    EXPECT_EQ(play.steps[3].offset, 3u);
    EXPECT_EQ(play.steps[7].op, StepOp::kReset);
    for (std::size_t size = 0; size < input.size() - 4; ++size) {
        EXPECT_EQ(decode_case(std::string_view(input).substr(0, size), &used, &play, &complaint),
                  FrameResult::kNeedMore);
    }
}

TEST(ProbeFrames, what_is_malformed_is_said_not_played) {
    const std::string bad[] = {
        framed("short"),
        u32(0xffffffff),
        framed(head(1, 0, 1)),                                             // a step is missing
        framed(head(1, 0, 1) + "\x01" + u32(5) + "abcd"),                  // a byte is missing
        framed(head(1, 0, 1) + "\x03" + u32(5)),                           // the kind is missing
        framed(head(1, 0, 1) + "\x03" + u32(5) + "\x06"),                  // no such kind
        framed(head(1, 0, 1) + "\x08" + u32(5)),                           // no such step
        framed(head(1, 0, 0) + "x"),                                       // one too many
        framed(head(1, 4, 0)),                                             // no such flag
        framed(u32(1) + u32(0) + u32(0) + u32(0) + std::string(4, '\0')),  // no deadline
    };
    for (const std::string& input : bad) {
        ProbeCase play;
        std::size_t used = 0;
        std::string complaint;
        EXPECT_EQ(decode_case(input, &used, &play, &complaint), FrameResult::kMalformed);
        EXPECT_FALSE(complaint.empty());
        EXPECT_EQ(complaint.find('\n'), std::string::npos);
    }
}

TEST(ProbeFrames, an_exchange_octet_by_octet) {
    const std::vector<ProbeEvent> events = {{EventKind::kSent, 5, 3},
                                            {EventKind::kRst, 0x01020304, 0}};
    ProbeExchange exchange;
    exchange.number = 0x0a0b0c0d;
    exchange.outcome = Outcome::kAnswered;
    exchange.end = End::kReset;
    exchange.flags = 9;
    exchange.steps_done = 2;
    exchange.connect_us = 1;
    exchange.first_us = 2;
    exchange.end_us = 3;
    exchange.sent = 4;
    exchange.final_responses = 6;
    exchange.ended_unix_us = 0x0102030405060708;
    exchange.received = "HTTP";
    exchange.events = &events;
    std::string out;
    encode_exchange(exchange, &out);
    const std::string expected = u32(40 + 4 + 18) + u32(0x0a0b0c0d) + std::string("\0\2\11\2", 4) +
                                 u32(1) + u32(2) + u32(3) + u32(4) + u32(4) +
                                 std::string("\2\0\6\0", 4) + u32(0x05060708) + u32(0x01020304) +
                                 "HTTP" + "\1" + u32(5) + u32(3) + "\4" + u32(0x01020304) + u32(0);
    EXPECT_EQ(out, expected);
}

}  // namespace
}  // namespace httpmark
