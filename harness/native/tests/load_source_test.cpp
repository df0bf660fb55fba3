#include "load_source.hpp"

#include <gtest/gtest.h>

#include <string>

namespace httpmark {
namespace {

std::string address_at(const SourceRange& range, std::size_t turn) {
  return range.at(turn * kConnectionsPerSource).text();
}

TEST(SourceRange, ipv4_without_its_first_and_its_last) {
  const auto range = parse_source_range("127.1.2.3/30");
  ASSERT_TRUE(range);
  EXPECT_EQ(range->count, 2u);
  EXPECT_EQ(address_at(*range, 0), "127.1.2.1:0");
  EXPECT_EQ(address_at(*range, 1), "127.1.2.2:0");
  EXPECT_EQ(address_at(*range, 2), "127.1.2.1:0");
  const auto loopback = parse_source_range("127.0.0.0/8");
  ASSERT_TRUE(loopback);
  EXPECT_EQ(loopback->count, (1u << 24) - 2);
  EXPECT_EQ(address_at(*loopback, 0), "127.0.0.1:0");
  EXPECT_EQ(address_at(*loopback, 255), "127.0.1.0:0");
  EXPECT_EQ(address_at(*loopback, loopback->count - 1), "127.255.255.254:0");
  EXPECT_EQ(parse_source_range("192.0.2.9/31")->count, 2u);
  EXPECT_EQ(address_at(*parse_source_range("192.0.2.9"), 7), "192.0.2.9:0");
}

TEST(SourceRange, ten_thousand_connections_come_from_each) {
  const auto range = parse_source_range("10.0.0.0/24");
  EXPECT_EQ(range->at(0).text(), range->at(kConnectionsPerSource - 1).text());
  EXPECT_NE(range->at(0).text(), range->at(kConnectionsPerSource).text());
}

TEST(SourceRange, ipv6_without_the_address_of_any_router) {
  const auto range = parse_source_range("fd00::abcd/120");
  ASSERT_TRUE(range);
  EXPECT_EQ(range->count, 255u);
  EXPECT_EQ(address_at(*range, 0), "[fd00::ab01]:0");
  EXPECT_EQ(address_at(*range, 254), "[fd00::abff]:0");
  EXPECT_EQ(address_at(*range, 255), "[fd00::ab01]:0");
  const auto wide = parse_source_range("2001:db8::/32");
  ASSERT_TRUE(wide);
  EXPECT_EQ(wide->count, kSourcesMax);
  EXPECT_EQ(address_at(*wide, 0xffff), "[2001:db8::1:0]:0");
  const auto loopback = parse_source_range("::1/128");
  ASSERT_TRUE(loopback);
  EXPECT_EQ(loopback->count, 1u);
  EXPECT_EQ(address_at(*loopback, 5), "[::1]:0");
}

TEST(SourceRange, what_is_no_range) {
  for (const char* text :
       {"", "/", "/8", "127.0.0.0/", "127.0.0.0/7", "127.0.0.0/33", "127.0.0.0/8x", "127.0.0.0/-8",
        "127.0.0/8", "localhost/8", "[::1]/128", "::/7", "::1/129", "::1/1 28", "name/24"}) {
    EXPECT_FALSE(parse_source_range(text)) << text;
  }
}

}  // namespace
}  // namespace httpmark
