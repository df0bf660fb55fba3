#include "shared/http_date.hpp"

#include <gtest/gtest.h>

#include <ctime>
#include <string>

namespace httpmark {
namespace {

std::string formatted(std::int64_t seconds) {
    char text[kImfFixdateSize];
    format_imf_fixdate(seconds, text);
    return std::string(text, sizeof text);
}

TEST(HttpDate, the_example_of_the_rfc) {
    EXPECT_EQ(formatted(784111777), "Sun, 06 Nov 1994 08:49:37 GMT");
    EXPECT_EQ(parse_imf_fixdate("Sun, 06 Nov 1994 08:49:37 GMT"), 784111777);
}

TEST(HttpDate, agrees_with_strftime_and_comes_back) {
    for (std::int64_t seconds = 0; seconds < 5'000'000'000; seconds += 8'640'007) {
        const auto time = static_cast<time_t>(seconds);
        std::tm parts = {};
        gmtime_r(&time, &parts);
        char expected[64];
        std::strftime(expected, sizeof expected, "%a, %d %b %Y %H:%M:%S GMT", &parts);
        ASSERT_EQ(formatted(seconds), expected);
        ASSERT_EQ(parse_imf_fixdate(expected), seconds);
    }
}

TEST(HttpDate, what_is_no_imf_fixdate) {
    for (const char* text : {
             "Mon, 06 Nov 1994 08:49:37 GMT",  // it was a Sunday
             "Sun, 6 Nov 1994 08:49:37 GMT",
             "Sun, 06 Nov 1994 08:49:37 UTC",
             "Sun, 06 nov 1994 08:49:37 GMT",
             "sun, 06 Nov 1994 08:49:37 GMT",
             "Sun, 06 Nov 1994 24:49:37 GMT",
             "Sun, 06 Nov 1994 08:60:37 GMT",
             "Sun, 06 Nov 1994 08:49:61 GMT",
             "Sun, 31 Feb 1994 08:49:37 GMT",
             "Sun, 06-Nov-1994 08:49:37 GMT",
             "Sunday, 06-Nov-94 08:49:37 GMT",
             "Sun Nov  6 08:49:37 1994",
             "Sun, 06 Nov 1994 08:49:37 GMT ",
             "",
             "Sun, 0x Nov 1994 08:49:37 GMT",
         }) {
        EXPECT_FALSE(parse_imf_fixdate(text).has_value()) << text;
    }
}

}  // namespace
}  // namespace httpmark
