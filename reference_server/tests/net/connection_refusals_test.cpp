// What an application is told of refusals, and what it can say in them.
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "net/connection.hpp"
#include "net/requests.hpp"
#include "routes.hpp"

namespace httpmark {
namespace {

struct Served {
    std::shared_ptr<const Router> router;
    ServerSettings settings;

    explicit Served(const RefusalHandler& handler,
                    const std::function<void(Router::Builder&)>& more = {}) {
        Router::Builder routes;
        example::add_routes(routes);
        routes.add(Method::kGet, "/fails",
                   [](const Request&, ResponseWriter&) { return Reason::kHandlerFailed; });
        routes.set_error(handler);
        if (more) more(routes);
        router = built(routes);
        settings.router = router.get();
    }
};

struct Row {
    std::string octets;
    const char* told;
    int status;
};

std::vector<Row> every_refusal() {
    return {
        {request("GET /404 HTTP/1.1"), "not-found GET /404", 404},
        {request("HEAD /404 HTTP/1.1"), "not-found HEAD /404", 404},
        {request("POST /get-only?q HTTP/1.1"), "method-not-allowed POST /get-only?q", 405},
        {request("POST /404 HTTP/1.1", "Transfer-Encoding: chunked\r\n", "1\r\na\r\n0\r\n\r\n"),
         "not-found POST /404", 404},
        {request("FOO / HTTP/1.1"), "method-unknown FOO /", 501},
        {request("GET /fails HTTP/1.1"), "handler-failed GET /fails", 500},
        {"GET /a%zz HTTP/1.1\r\n", "target-percent@7", 400},
        {"GET / HTTP/1.1\r\n\r\n", "host-missing", 400},
        {request("POST /body HTTP/1.1", "Transfer-Encoding: chunked\r\n", "1\r\nab"),
         "chunk-data-end@64 POST /body", 400},
        {request("POST /body HTTP/1.1", "Content-Length: 5\r\n", "ab"), "incomplete POST /body",
         400},
        {"GET / HT", "incomplete", 400},
        {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "version-major@", 505},
    };
}

// In a line; the offset only where there is one.
std::string line_of(const Refusal& refusal) {
    LAW(refusal.name == error_row(refusal.reason).name && !refusal.clause.empty());
    LAW(refusal.status == error_row(refusal.reason).status);
    std::string line(refusal.name);
    if (refusal.offset != Refusal::kNoOffset) line += '@' + std::to_string(refusal.offset);
    if (refusal.request == nullptr) return line;
    const Request& asked = *refusal.request;
    line += ' ' + std::string(asked.head.method_name.in(asked.data));
    return line + ' ' + std::string(asked.head.target.in(asked.data));
}

std::string talk(const ServerSettings& settings, const std::string& octets, std::size_t cut) {
    Wire wire(settings);
    const std::uint32_t id = wire.connect();
    wire.feed(id, octets.substr(0, cut));
    wire.feed(id, octets.substr(cut));
    wire.end(id);
    return wire.sent(id);
}

// The content of the last answer and its length are others than the server's; nothing else is.
std::string with_content(std::string sent, const std::string& type, const std::string& content,
                         bool to_head) {
    const auto replace = [&](std::size_t at, const std::string& name, const std::string& value) {
        at = sent.find(name, at) + name.size();
        sent.replace(at, sent.find("\r\n", at) - at, value);
    };
    const std::size_t begin = sent.rfind("HTTP/1.1 ");
    replace(begin, "\r\nContent-Type: ", type);
    replace(begin, "\r\nContent-Length: ", std::to_string(content.size()));
    sent.resize(sent.find("\r\n\r\n", begin) + 4);
    return to_head ? sent : sent + content;
}

TEST(ConnectionRefusals, each_is_told_once_and_may_have_other_content) {
    const ServerSettings plain;
    for (const bool answers : {false, true}) {
        std::vector<std::string> told;
        const Served served([&](const Refusal& refusal) -> std::optional<RefusalContent> {
            told.push_back(line_of(refusal));
            LAW(refusal.peer == "192.0.2.7:5000");
            if (!answers) return std::nullopt;
            return RefusalContent{"{}" + std::string(refusal.name), "application/json"};
        });
        for (const Row& row : every_refusal()) {
            const std::string octets = kGet + row.octets;
            for (std::size_t cut = 0; cut < octets.size(); ++cut) {
                told.clear();
                const std::string got = talk(served.settings, octets, cut);
                LAW(told.size() == 1 && told[0].starts_with(row.told), << visible(row.octets));
                LAW(got.find("HTTP/1.1 " + std::to_string(row.status)) != std::string::npos);
                if (told.size() != 1 || row.status == 500) continue;
                const std::string name = told[0].substr(0, told[0].find_first_of("@ "));
                std::string wanted = talk(plain, octets, cut);
                const bool to_head = row.octets.starts_with("HEAD");
                if (answers)
                    wanted = with_content(wanted, "application/json", "{}" + name, to_head);
                LAW(got == wanted, << visible(got) << "\n" << visible(wanted));
            }
        }
    }
}

TEST(ConnectionRefusals, what_cannot_be_said_is_the_servers_own) {
    const std::vector<RefusalHandler> wrong = {
        [](const Refusal&) -> std::optional<RefusalContent> { throw std::runtime_error("x"); },
        [](const Refusal&) {
            return RefusalContent{"never", "a/b\r\nX: smuggled"};
        },
        [](const Refusal&) {
            return RefusalContent{"never", std::string("a/b\0", 4)};
        },
    };
    for (const RefusalHandler& handler : wrong) {
        const Served served(handler);
        const Served hooked(handler, [](Router::Builder& routes) {
            routes.after([](const Request&, AnswerHead&) {});
        });
        for (const Row& row : every_refusal()) {
            if (row.status == 500) continue;
            const std::string wanted = talk({}, row.octets, 5);
            LAW(talk(served.settings, row.octets, 5) == wanted, << visible(row.octets));
            LAW(talk(hooked.settings, row.octets, 5) == wanted, << visible(row.octets));
        }
    }
}

// All of it: one that is told besides of each answer, the fields of hooks, and who comes first.
TEST(ConnectionRefusals, content_is_of_the_routes_first_and_then_of_an_observer) {
    struct Recorder final : Observer {
        std::string log;
        void on_error(const ErrorEvent& event) override {
            log += std::string("!") + error_row(event.reason).name + ' ';
        }
        bool answer_error(const ErrorEvent&, ResponseWriter& writer) override {
            return writer.write(404, {}, "observer");
        }
        void on_answer(const AnswerEvent& event) override {
            log += std::to_string(event.status) + "," + std::to_string(event.content_size) + ' ';
        }
    };
    for (const bool answers : {false, true}) {
        const Served served(
            [answers](const Refusal&) -> std::optional<RefusalContent> {
                if (!answers) return std::nullopt;
                return RefusalContent{"routes"};
            },
            [](Router::Builder& routes) {
                routes.after([](const Request&, AnswerHead& head) {
                    LAW(head.refusal() == Reason::kNotFound);
                    LAW(head.add("X-Frame-Options", "DENY"));
                });
            });
        Recorder recorder;
        Wire wire(served.settings);
        wire.connections().set_observer(&recorder);
        const std::uint32_t id = wire.connect();
        wire.feed(id, request("GET /404 HTTP/1.1"));
        LAW(wire.sent(id).ends_with(answers ? "\r\n\r\nroutes" : "\r\n\r\nobserver"));
        LAW(wire.sent(id).find("\r\nX-Frame-Options: DENY\r\n") != std::string::npos);
        LAW(recorder.log == (answers ? "!not-found 404,6 " : "!not-found 404,8 "), << recorder.log);
    }
}

TEST(ConnectionRefusals, an_answer_of_a_handler_is_none_whatever_its_status) {
    unsigned told = 0;
    Router::Builder routes;
    routes.add(Method::kGet, "/gone", Answer(410, {}, "gone"));
    routes.set_not_found([](const Request&, ResponseWriter& writer) {
        return writer.answer(404, {}, "of a handler");
    });
    routes.set_error([&](const Refusal&) -> std::optional<RefusalContent> {
        ++told;
        return std::nullopt;
    });
    const auto router = built(routes);
    ServerSettings settings;
    settings.router = router.get();
    LAW(once(request("GET /none HTTP/1.1"), settings).sent.ends_with("of a handler"));
    LAW(once(request("GET /gone HTTP/1.1"), settings).sent.ends_with("gone") && told == 0);
    once(request("POST /gone HTTP/1.1"), settings);
    LAW(told == 1);
}

TEST(ConnectionRefusals, those_of_time_and_of_room_are_told_too) {
    std::string told;
    Served served([&](const Refusal& refusal) -> std::optional<RefusalContent> {
        told += line_of(refusal) + ' ';
        return RefusalContent{"told"};
    });
    served.settings.choices.answer_idle = true;
    Wire wire(served.settings);
    const std::uint32_t over = wire.connect();
    wire.connections().refuse_open(over);
    LAW(wire.sent(over).ends_with("\r\n\r\ntold"));
    const std::uint32_t idle = wire.connect();
    const std::uint32_t slow = wire.connect();
    wire.feed(slow, "GET /");
    wire.pass(3600000);
    LAW(wire.sent(idle).ends_with("\r\n\r\ntold") && wire.sent(slow).ends_with("\r\n\r\ntold"));
    LAW(told.find("too-many-connections ") == 0 && told.find("idle-timeout") != std::string::npos &&
            told.find("head-timeout") != std::string::npos,
        << told);
}

}  // namespace
}  // namespace httpmark
