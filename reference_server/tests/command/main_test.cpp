// What the words of the command line lead to: exit codes, one-line complaints, answers.
#include <algorithm>
#include <string>
#include <vector>

#include "command/child.hpp"
#include "laws.hpp"

namespace httpmark {
namespace {

TEST(Main, a_wrong_word_is_one_line_and_exit_2) {
    for (const std::vector<std::string>& arguments :
         std::vector<std::vector<std::string>>{{"--nonsense"},
                                               {"nonsense"},
                                               {"--port"},
                                               {"--port", "x"},
                                               {"--port", "65536"},
                                               {"--port", "-1"},
                                               {"--workers", "0"},
                                               {"--address", "example"},
                                               {"--strictness", "lax"},
                                               {"--engine", "none"},
                                               {"--tls-port", "1"},
                                               {"--tls-cert", "a"},
                                               {"--tls-key", "a"},
                                               {"--tls-min", "1.1"},
                                               {"--head-max", "1"},
                                               {"--refuse", "everything"},
                                               {"--connections-over", "500"},
                                               {"--route", "body-max=5"},
                                               {"--route", "/body"},
                                               {"--route", "/body,body-max=x"},
                                               {"--route", "/body,type=json"},
                                               {"--server-name", ""},
                                               {"--server-name", "a\r\nX: y"},
                                               {"--server-name", std::string(65, 'a')},
                                               {"--trace=1"},
                                               {"--body-max", "99999999999999999999"},
                                               {"--idle-timeout-s", "1.5"},
                                               {"--port", "0", "--tls-port", "0", "--tls-cert",
                                                "/nowhere", "--tls-key", "/nowhere"}}) {
        Child child(arguments);
        const std::string text = child.rest();
        LAW(child.wait() == 2, << arguments.front());
        LAW(text.starts_with("httpmark-server: ") &&
                std::count(text.begin(), text.end(), '\n') == 1,
            << text);
    }
    Child child({"--port", "0"}, "mmx");
    LAW(child.rest().find("HTTPMARK_SIMD=mmx") != std::string::npos && child.wait() == 2);
}

TEST(Main, a_flag_that_would_do_nothing_is_exit_2) {
    const std::vector<std::string> pair{"--tls-cert", "/nowhere", "--tls-key", "/nowhere"};
    struct Row {
        std::vector<std::string> words;
        const char* complaint;
    };
    for (Row row : std::vector<Row>{
             {{}, "--tls-cert does nothing without --tls-port"},
             {{"--tls-tickets", "2"}, "--tls-cert does nothing without --tls-port"},
             {{"--tls-port", "0", "--tls-client-ca", "/nowhere"},
              "--tls-client-ca does nothing without --tls-client-verify"},
             {{"--tls-port", "0", "--tls-client-depth", "1"},
              "--tls-client-depth does nothing without --tls-client-verify"},
             {{"--tls-port", "0", "--tls-min", "1.3", "--tls-max", "1.2"},
              "--tls-min must not be above --tls-max"},
         }) {
        row.words.insert(row.words.begin(), pair.begin(), pair.end());
        row.words.insert(row.words.end(), {"--port", "0"});
        Child child(row.words);
        const std::string text = child.complaint();
        LAW(text == std::string("httpmark-server: ") + row.complaint, << text);
        LAW(child.rest().empty() && child.wait() == 2);
    }
    Child alone({"--port", "0", "--tls-groups", "P-256"});
    LAW(alone.line() == "httpmark-server: --tls-groups does nothing without --tls-port");
}

TEST(Main, help_version_and_limits) {
    Child help({"--help"});
    const std::string words = help.rest();
    LAW(help.wait() == 0);
    for (const char* part : {"--strictness", "(epoll only)", "0: no minimum rate either",
                             "0: they are cut off at once"}) {
        LAW(words.find(part) != std::string::npos, << part);
    }
    Child version({"--version"});
    LAW(version.line().starts_with("httpmark-server ") && version.wait() == 0);
    const std::string engines = version.rest();
    LAW(engines.starts_with("engines: epoll"), << engines);
    // What it says is what it takes.
    Child uring({"--port", "0", "--workers", "1", "--engine", "uring"});
    const bool lacks = uring.complaint().find("this build has no io_uring") != std::string::npos;
    LAW((engines.find(", uring") == std::string::npos) == lacks, << engines);
    Child limits({"--print-limits", "--target-max", "9000", "--request-timeout-s=3"});
    const std::string text = limits.rest();
    LAW(limits.wait() == 0);
    LAW(text.find("target-max               9000\n") != std::string::npos);
    LAW(text.find("head-timeout-ms          3000\n") != std::string::npos);
    LAW(text.find("body-timeout-ms          3000\n") != std::string::npos);
    LAW(std::count(text.begin(), text.end(), '\n') >= 30);
}

struct SwitchRow {
    std::vector<std::string> words;
    std::string ask;
    int without;
    int with;
};

std::vector<SwitchRow> switch_rows() {
    const std::string chunks = "1\r\na\r\n0\r\n";
    return {
        {{"--refuse", "empty-codings"},
         request_of("POST /", "Transfer-Encoding: ,chunked\r\n", chunks + "\r\n"),
         200,
         400},
        {{"--refuse", "framing-trailers"},
         request_of("POST /", "Transfer-Encoding: chunked\r\n", chunks + "Host: x\r\n\r\n"),
         200,
         400},
        {{"--refuse", "repeated-fields"}, request_of("GET /", "From: a\r\nFrom: a\r\n"), 200, 400},
        {{"--strictness", "rfc"}, "GET / HTTP/1.1\r\nHost:\r\nConnection: close\r\n\r\n", 400, 200},
        {{"--strictness", "rfc"}, "\r\n\r\n" + request_of("GET /"), 400, 200},
        {{"--strictness", "rfc"}, request_of("POST /", "Content-Length: 1, 1\r\n", "a"), 400, 200},
        {{"--strictness", "rfc"}, request_of("GET /?a=[1]|{2}"), 400, 400},
        {{"--strictness", "browser"}, request_of("GET /?a=[1]|{2}^`\\"), 400, 200},
        {{"--strictness", "browser"}, request_of("GET /[1]"), 400, 400},
        {{"--trace"}, request_of("TRACE /"), 501, 200},
        {{"--route", "/body,body-max=2"},
         request_of("POST /body", "Content-Length: 3\r\n", "abc"),
         200,
         413},
        {{"--route", "/body,length"},
         request_of("POST /body", "Transfer-Encoding: chunked\r\n", chunks + "\r\n"),
         200,
         411},
        {{"--route", "/body,type=Text/Plain,body-max=9"},
         request_of("POST /body", "Content-Length: 1\r\nContent-Type: a/b\r\n", "a"),
         200,
         415},
        {{"--route", "/body,type=Text/Plain,body-max=9"},
         request_of("POST /body", "Content-Length: 1\r\nContent-Type: text/PLAIN\r\n", "a"),
         200,
         200},
    };
}

TEST(Main, each_switch_does_what_it_says) {
    for (const SwitchRow& row : switch_rows()) {
        for (const bool with : {false, true}) {
            std::vector<std::string> words{"--port", "0", "--workers", "1"};
            if (with) words.insert(words.end(), row.words.begin(), row.words.end());
            Child child(words);
            const std::string answer = ask(child.port(), row.ask);
            LAW(status_of(answer) == (with ? row.with : row.without),
                << row.words.front() << with << visible(row.ask) << visible(answer));
        }
    }
    Child named({"--port", "0", "--workers", "1", "--server-name", "httpmark/0"});
    LAW(ask(named.port(), kLastGet).find("\r\nServer: httpmark/0\r\n") != std::string::npos);
    Child idle({"--port", "0", "--workers", "1", "--idle-408", "--idle-timeout-ms", "100"});
    LAW(status_of(ask(idle.port(), "")) == 408);
}

}  // namespace
}  // namespace httpmark
