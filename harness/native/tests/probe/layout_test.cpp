// The numbers on the wire do not change unnoticed: the harness and stored evidence rely on them.
#include "probe/layout.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "probe/frames.hpp"

namespace httpmark {
namespace {

TEST(FrameLayout, is_told_as_it_is_on_the_wire) {
    EXPECT_EQ(
        frame_layout_json(),
        "{\"steps\": {\"send\": 1, \"pause\": 2, \"await\": 3, \"fin\": 4, \"reset\": 5, "
        "\"watch\": 6, \"close_wait\": 7}, "
        "\"awaits\": {\"final\": 0, \"head\": 1, \"connect\": 2, \"any\": 3, \"look_final\": 4, "
        "\"look_any\": 5}, "
        "\"outcomes\": {\"answered\": 0, \"closed\": 1, \"reset\": 2, \"hung\": 3, "
        "\"refused\": 4}, "
        "\"ends\": {\"open\": 0, \"closed\": 1, \"reset\": 2}, "
        "\"events\": {\"sent\": 1, \"received\": 2, \"fin\": 3, \"rst\": 4, \"own_fin\": 5, "
        "\"close_notify\": 6}, "
        "\"flags\": {\"step\": {\"if_prompt\": 16, \"if_connected\": 32, \"if_unanswered\": 64, "
        "\"if_open\": 128}, "
        "\"case\": {\"head_only\": 1, \"timeline\": 2}, "
        "\"exchange\": {\"unsent\": 1, \"deadline\": 2, \"await_ran_out\": 4, "
        "\"announced_close\": 8, \"cut\": 16, \"look_ran_out\": 32, \"reached\": 64, \"held_up\": "
        "128}}, "
        "\"request_frame\": {\"bytes\": 24, \"fields\": [[\"length\", \"u32\"], "
        "[\"number\", \"u32\"], [\"deadline_ms\", \"u32\"], [\"settle_ms\", \"u32\"], "
        "[\"close_ms\", \"u32\"], [\"flags\", \"u8\"], [\"zero\", \"u8\"], [\"steps\", \"u16\"]]}, "
        "\"step_record\": {\"bytes\": 5, \"fields\": [[\"op\", \"u8\"], [\"n\", \"u32\"]]}, "
        "\"await_record\": {\"bytes\": 1, \"fields\": [[\"kind\", \"u8\"]]}, "
        "\"exchange_frame\": {\"bytes\": 44, \"fields\": [[\"length\", \"u32\"], "
        "[\"number\", \"u32\"], [\"outcome\", \"u8\"], [\"end\", \"u8\"], [\"flags\", \"u8\"], "
        "[\"steps_done\", \"u8\"], [\"connect_us\", \"u32\"], [\"first_us\", \"u32\"], "
        "[\"end_us\", \"u32\"], [\"sent\", \"u32\"], [\"received\", \"u32\"], "
        "[\"events\", \"u16\"], [\"finals\", \"u16\"], [\"ended_unix_us\", \"u64\"]]}, "
        "\"event_record\": {\"bytes\": 9, \"fields\": [[\"kind\", \"u8\"], [\"at_us\", \"u32\"], "
        "[\"bytes\", \"u32\"]]}, "
        "\"limits\": {\"case_bytes_max\": 268435456, \"received_bytes_max\": 4194304, "
        "\"events_max\": 65535, \"steps_done_max\": 255, \"never_us\": 4294967295}}");
}

TEST(FrameLayout, an_exchange_has_the_sizes_that_are_told) {
    const std::vector<ProbeEvent> events(3);
    ProbeExchange exchange;
    exchange.received = "HTTP";
    exchange.events = &events;
    std::string out;
    encode_exchange(exchange, &out);
    EXPECT_EQ(out.size(), bytes_of(kExchangeFields) + 4 + 3 * bytes_of(kEventFields));
}

TEST(FrameLayout, what_has_no_name_is_no_word) {
    EXPECT_FALSE(is_known(static_cast<StepOp>(0)));
    EXPECT_FALSE(is_known(static_cast<StepOp>(8)));
    EXPECT_FALSE(is_known(static_cast<AwaitKind>(6)));
    EXPECT_TRUE(is_known(AwaitKind::kFinal));
}

}  // namespace
}  // namespace httpmark
