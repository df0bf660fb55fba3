// The example routes, seen over a wire.
#include "app.hpp"

#include <string>

#include "wire.hpp"

namespace httpmark {
namespace {

std::string content_of(const std::string& target, const std::string& method = "GET") {
    const std::string input = method + " " + target + " HTTP/1.1\r\nHost: h\r\n\r\n";
    const Talk talk = talk_every_way(input);
    const std::size_t at = talk.sent.find("\r\n\r\n");
    return at == std::string::npos ? "" : talk.sent.substr(at + 4);
}
int status_of(const std::string& target, const std::string& method = "GET") {
    const auto all =
        statuses(talk_every_way(method + " " + target + " HTTP/1.1\r\nHost: h\r\n\r\n").sent);
    return all.size() == 1 ? all[0] : -1;
}

TEST(App, hello_everywhere) {
    for (const char* target :
         {"/hello", "/", "/hello?a", "/a/b", "//", "http://x/hello", "http://x"}) {
        for (const char* method : {"GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"}) {
            LAW(content_of(target, method) == "Hello World!", << target << method);
        }
        LAW(content_of(target, "HEAD").empty() && status_of(target, "HEAD") == 200);
    }
}

TEST(App, echo_decodes_a_query_into_json) {
    LAW(content_of("/echo?a=1&b=2") == "{\"a\":\"1\",\"b\":\"2\"}");
    LAW(content_of("/echo") == "{}");
    LAW(content_of("/echo?") == "{}");
    LAW(content_of("/echo?a&b=&=c") == "{\"a\":\"\",\"b\":\"\",\"\":\"c\"}");
    LAW(content_of("/echo?a=1&a=2") == "{\"a\":\"2\"}");
    LAW(content_of("/echo?a=b+c%20d%2B") == "{\"a\":\"b c d+\"}");
    LAW(content_of("/echo?a=%22%5C%0a%00%7f") == "{\"a\":\"\\\"\\\\\\u000a\\u0000\x7f\"}");
    LAW(content_of("/echo?a=%e2%82%ac%f0%9f%98%80") == "{\"a\":\"\xe2\x82\xac\xf0\x9f\x98\x80\"}");
    LAW(content_of("/echo?a=%ff%c0%af%ed%a0%80%e2%82") ==
        "{\"a\":"
        "\"\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\xEF"
        "\xBF\xBD\"}");
    std::string many = "/echo?";
    for (unsigned i = 0; i < 300; ++i) many += "k" + std::to_string(i) + "&";
    LAW(status_of(many) == 400);
}

TEST(App, the_behaving_routes) {
    LAW(status_of("/204") == 204 && content_of("/204").empty());
    LAW(status_of("/304") == 304 && content_of("/304").empty());
    LAW(status_of("/redirect") == 302);
    LAW(status_of("/404") == 404 && status_of("/404", "DELETE") == 404);
    LAW(status_of("/get-only") == 200 && status_of("/get-only", "HEAD") == 200);
    for (const char* method : {"POST", "PUT", "DELETE", "PATCH", "OPTIONS"})
        LAW(status_of("/get-only", method) == 405);
    LAW(status_of("*", "OPTIONS") == 204);
    LAW(content_of("/big") == std::string(1048576, kFillOctet));
    LAW(content_of("/big", "HEAD").empty());
}

}  // namespace
}  // namespace httpmark
