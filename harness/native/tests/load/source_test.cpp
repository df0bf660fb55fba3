#include "load/source.hpp"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace httpmark {
namespace {

// The source of the first connection of each turn.
void expect_range(const std::string& text, std::uint32_t count,
                  const std::vector<std::pair<std::size_t, std::string>>& addresses) {
    const auto range = parse_source_range(text);
    ASSERT_TRUE(range) << text;
    EXPECT_EQ(range->count, count) << text;
    for (const auto& [turn, address] : addresses) {
        EXPECT_EQ(range->at(turn * kConnectionsPerSource).text(), address) << text << " " << turn;
    }
}

TEST(SourceRange, ipv4_without_its_first_and_its_last) {
    expect_range("127.1.2.3/30", 2, {{0, "127.1.2.1:0"}, {1, "127.1.2.2:0"}, {2, "127.1.2.1:0"}});
    constexpr std::uint32_t kLoopback = (1u << 24) - 2;
    expect_range("127.0.0.0/8", kLoopback,
                 {{0, "127.0.0.1:0"}, {255, "127.0.1.0:0"}, {kLoopback - 1, "127.255.255.254:0"}});
    expect_range("192.0.2.9/31", 2, {{0, "192.0.2.8:0"}, {1, "192.0.2.9:0"}});
    expect_range("192.0.2.9", 1, {{7, "192.0.2.9:0"}});
}

TEST(SourceRange, ten_thousand_connections_come_from_each) {
    const auto range = parse_source_range("10.0.0.0/24");
    EXPECT_EQ(range->at(0).text(), range->at(kConnectionsPerSource - 1).text());
    EXPECT_NE(range->at(0).text(), range->at(kConnectionsPerSource).text());
}

TEST(SourceRange, ipv6_without_the_address_of_any_router) {
    expect_range("fd00::abcd/120", 255,
                 {{0, "[fd00::ab01]:0"}, {254, "[fd00::abff]:0"}, {255, "[fd00::ab01]:0"}});
    expect_range("2001:db8::/32", kSourcesMax, {{0xffff, "[2001:db8::1:0]:0"}});
    expect_range("::1/128", 1, {{5, "[::1]:0"}});
}

TEST(SourceRange, what_is_no_range) {
    for (const char* text : {"", "/", "/8", "127.0.0.0/", "127.0.0.0/7", "127.0.0.0/33",
                             "127.0.0.0/8x", "127.0.0.0/-8", "127.0.0/8", "localhost/8",
                             "[::1]/128", "::/7", "::1/129", "::1/1 28", "name/24"}) {
        EXPECT_FALSE(parse_source_range(text)) << text;
    }
}

}  // namespace
}  // namespace httpmark
