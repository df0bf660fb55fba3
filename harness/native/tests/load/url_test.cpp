#include "load/url.hpp"

#include <gtest/gtest.h>

namespace httpmark {
namespace {

TEST(LoadUrl, the_parts) {
    const auto url = parse_load_url("http://127.0.0.1:8080/hello?a=b#c");
    ASSERT_TRUE(url);
    EXPECT_EQ(url->host, "127.0.0.1");
    EXPECT_EQ(url->port, 8080);
    EXPECT_EQ(url->authority, "127.0.0.1:8080");
    EXPECT_EQ(url->target, "/hello?a=b");
    EXPECT_FALSE(url->is_tls);
    const auto v6 = parse_load_url("https://[::1]");
    ASSERT_TRUE(v6);
    EXPECT_EQ(v6->host, "::1");
    EXPECT_EQ(v6->port, 443);
    EXPECT_EQ(v6->target, "/");
    EXPECT_TRUE(v6->is_tls);
    EXPECT_EQ(parse_load_url("http://h?x")->target, "/?x");
}

TEST(LoadUrl, what_is_none) {
    for (const char* text : {"", "http://", "ftp://a/", "http://a:0/", "http://a:70000/",
                             "http://a:8x/", "http://[::1/", "http://a/b c", "http://a/\r\nX: y"}) {
        EXPECT_FALSE(parse_load_url(text)) << text;
    }
}

}  // namespace
}  // namespace httpmark
