// The example routes, seen over a wire.
#include "example/application.hpp"

#include <algorithm>
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

TEST(App, options_are_told_what_is_allowed) {
    for (const char* target : {"/hello", "/mirror", "/x", "/body", "/big", "/redirect", "*"}) {
        const Talk talk =
            talk_every_way("OPTIONS " + std::string(target) + " HTTP/1.1\r\nHost: h\r\n\r\n");
        const std::string allow = "\r\nAllow: GET, HEAD, POST, PUT, DELETE, PATCH, OPTIONS\r\n";
        const std::size_t at = talk.sent.find(allow);
        LAW(at != std::string::npos && talk.sent.find("Allow:", at + 8) == std::string::npos,
            << target << visible(talk.sent));
    }
    LAW(talk_every_way("GET /mirror HTTP/1.1\r\nHost: h\r\n\r\n").sent.find("Allow") ==
        std::string::npos);
}

TEST(App, trace_reflects_only_where_it_is_wanted) {
    const std::string input =
        "\r\nTRACE http://h/a?b HTTP/1.1\r\nHost: h\r\nX:  y \r\nCookie: secret\r\n"
        "Proxy-Authorization: secret\r\nauthorization: secret\r\nMax-Forwards: 0\r\n\r\n";
    LAW(statuses(talk_every_way(input).sent) == std::vector<int>{501});
    ServerSettings settings;
    settings.choices.answer_trace = true;
    const Talk talk = talk_every_way(input, settings);
    LAW(statuses(talk.sent) == std::vector<int>{200}, << visible(talk.sent));
    LAW(talk.sent.find("\r\nContent-Type: message/http\r\n") != std::string::npos);
    LAW(talk.sent.ends_with("\r\n\r\nTRACE http://h/a?b HTTP/1.1\r\nHost: h\r\nX: y\r\n"
                            "Max-Forwards: 0\r\n\r\n"),
        << visible(talk.sent));
    // Content with it has no meaning, and does not put the connection out of step.
    const std::string with_content =
        "TRACE / HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabcTRACE / HTTP/1.1\r\nHost: "
        "h\r\n\r\n";
    LAW(statuses(talk_every_way(with_content, settings).sent) == (std::vector<int>{200, 200}));
    LAW(statuses(talk_every_way("CONNECT h:1 HTTP/1.1\r\nHost: h\r\n\r\n", settings).sent) ==
        std::vector<int>{501});
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
    LAW(content_of("/big") == std::string(1048576, 'x'));
    LAW(content_of("/big", "HEAD").empty());
}

TEST(App, events_go_on_after_the_last_one_that_was_seen) {
    const auto told = [](const std::string& last) {
        const std::string fields = last.empty() ? "" : "Last-Event-ID: " + last + "\r\n";
        return talk_every_way("GET /events HTTP/1.1\r\nHost: h\r\n" + fields + "\r\n").sent;
    };
    const struct {
        const char* last;
        unsigned first;
    } kRows[] = {{"", 1}, {"x", 1}, {"0", 1}, {"3", 4}, {"8", 9}};
    for (const auto& [last, first] : kRows) {
        const std::string sent = told(last);
        LAW(sent.starts_with("HTTP/1.1 200 OK\r\n"), << visible(sent));
        for (unsigned number = 1; number <= 10; ++number) {
            const std::string text = std::to_string(number);
            const bool is_told = number >= first && number < std::min(first + 3, 10U);
            LAW((sent.find("data: " + text + '\n') != std::string::npos) == is_told,
                << last << text);
            LAW((sent.find("id: " + text + '\n') != std::string::npos) == is_told, << last << text);
        }
    }
    LAW(statuses(told("9")) == std::vector<int>{204});
    LAW(statuses(told("123456789")) == std::vector<int>{204});
}

}  // namespace
}  // namespace httpmark
