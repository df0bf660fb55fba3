// What ring lists in its README, asked of one application on the public header: a test for each
// row, named after it. docs/parity.md is the table of all rows.
#include <poll.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <httpmark/httpmark.hpp>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "answers.hpp"
#include "client.hpp"
#include "laws.hpp"
#include "net/requests.hpp"
#include "websocket/client.hpp"

namespace httpmark {
namespace {

constexpr unsigned kWorkers = 4;
constexpr std::chrono::seconds kDeadline{30};

std::string poem() {
    std::string text;
    for (int i = 0; i < 1000; ++i) text += "line " + std::to_string(i) + " of a long poem\n";
    return text;
}

// In pieces, whose number nobody knows before, and with a trailer.
class Poem final : public ContentStream {
  public:
    Piece read(std::span<char> room) override {
        const std::size_t size = std::min({room.size(), text_.size() - at_, std::size_t{777}});
        std::copy_n(text_.data() + at_, size, room.data());
        at_ += size;
        return {size, at_ == text_.size() ? State::kEnd : State::kMore};
    }
    std::span<const Field> trailers() override { return {&kTrailer, 1}; }

  private:
    static constexpr Field kTrailer{"Verses", "1000"};
    std::string text_ = poem();
    std::size_t at_ = 0;
};

Reason write_form(const Request& request, ResponseWriter& writer) {
    const Form form = read_form(request);
    if (form.fault() != Reason::kNone) return refuse_content(writer, form);
    return answer_json(writer, 200, [&](JsonWriter& json) {
        json.begin_object();
        for (const FormEntry& entry : form.entries()) {
            json.key(entry.name).begin_array().string(entry.value);
            if (entry.is_file) json.string(entry.filename).string(entry.content_type);
            json.end_array();
        }
        json.end_object();
    });
}

// Answers when two handlers are here at a time, or when that has taken too long.
std::atomic<unsigned> met{0};
Reason meet(const Request&, ResponseWriter& writer) {
    const auto end = std::chrono::steady_clock::now() + kDeadline;
    met.fetch_add(1);
    while (met.load() < 2 && std::chrono::steady_clock::now() < end) std::this_thread::yield();
    return answer_text(writer, 200, met.load() < 2 ? "alone" : "together");
}

// The global handler of errors: what is no answer of a handler.
RefusalContent tell_refusal(const Refusal& refusal) {
    return {"error: " + std::string(refusal.name)};
}

// A vector larger than all addresses that a process has. Sanitizers do not let the allocator say
// so: they end the program.
Reason take_all_memory(const Request&, ResponseWriter& writer) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    if (writer.is_untouched()) throw std::bad_alloc();
#endif
    const std::vector<char> all(std::size_t{1} << 62);
    return answer_text(writer, 200, {all.data(), 1});
}

void add_forms(Router::Builder& routes) {
    routes.add(Method::kPost, "/form", write_form, {.wants_content = true, .body_max = 5000});
    routes.add(
        kAnyMethod, "/raw",
        [](const Request& request, ResponseWriter& writer) {
            return writer.answer(200, {{"Content-Type", "application/x-own"}}, request.content);
        },
        {.wants_content = true});
    routes.add(Method::kGet, "/query", [](const Request& request, ResponseWriter& writer) {
        return answer_text(writer, 200, request.parameter("a").value_or("none"));
    });
    routes.add(Method::kGet, "/fields", [](const Request& request, ResponseWriter& writer) {
        const std::string_view value = request.field("x-own").value_or("none");
        const Field fields[] = {{"X-Back", value}, {"X-Broken", "a\r\nInjected: b"}};
        if (writer.write(200, std::span<const Field>(fields), {})) return Reason::kNone;
        return writer.answer(200, std::span<const Field>(fields, 1), "refused");
    });
}

void add_answers(Router::Builder& routes) {
    routes.add(Method::kGet, "/stream", [](const Request&, ResponseWriter& writer) {
        const bool written =
            writer.write_stream(200, {{"Trailer", "Verses"}}, std::make_unique<Poem>());
        return written ? Reason::kNone : writer.fault();
    });
    routes.add(
        Method::kGet, "/poem",
        [](const Request&, ResponseWriter& writer) { return answer_text(writer, 200, poem()); },
        {.codes_answers = true});
    routes.add(Method::kGet, "/text", [](const Request&, ResponseWriter& writer) {
        return answer_text(writer, 200, "text");
    });
    routes.add(Method::kGet, "/html", [](const Request&, ResponseWriter& writer) {
        return answer_html(writer, 201, "<p>html</p>", {{{"Location", "/html"}}});
    });
    routes.add(Method::kGet, "/json", [](const Request&, ResponseWriter& writer) {
        return answer_json(writer, 200, [](JsonWriter& json) { json.begin_array().end_array(); });
    });
}

Router::Builder ring_routes() {
    Router::Builder routes;
    add_forms(routes);
    add_answers(routes);
    routes.add(Method::kGet, "/path/{id}", [](const Request& request, ResponseWriter& writer) {
        return answer_text(writer, 200, request.decoded_value("id"));
    });
    routes.add(Method::kGet, "/path/fixed", Answer(200, {}, "fixed"));
    routes.add(Method::kPut, "/users/{user}/files/{rest...}",
               [](const Request& request, ResponseWriter& writer) {
                   std::string both(request.value("user"));
                   return answer_text(writer, 200, both.append("|").append(request.value("rest")));
               });
    routes.add(Method::kGet, "/meet", meet);
    routes.add(Method::kGet, "/throws", [](const Request&, ResponseWriter&) -> Reason {
        throw std::runtime_error("no matter what");
    });
    routes.add(Method::kGet, "/memory", take_all_memory);
    routes.set_error(tell_refusal);
    routes.set_not_found([](const Request& request, ResponseWriter& writer) {
        return answer_text(writer, 404, "there is no " + std::string(request.target.path));
    });
    WebSocketRoute route;
    route.on_message = [](WebSocket& socket, const WebSocketMessage& message) {
        if (message.content == "exit") {
            socket.close();
        } else {
            socket.send_text("Server says: '" + std::string(message.content) + "'");
        }
    };
    routes.add_websocket("/ws", std::move(route));
    return routes;
}

// A directory with one file, which goes with this.
class Folder {
  public:
    Folder() {
        LAW(mkdtemp(path_.data()) != nullptr);
        std::FILE* const file = std::fopen((path_ + "/page.html").c_str(), "w");
        LAW(file != nullptr && std::fputs("<p>page</p>", file) > 0 && std::fclose(file) == 0);
    }
    ~Folder() {
        unlink((path_ + "/page.html").c_str());
        rmdir(path_.c_str());
    }
    Folder(const Folder&) = delete;
    Folder& operator=(const Folder&) = delete;
    const char* path() const { return path_.c_str(); }

  private:
    std::string path_ = "/tmp/httpmark-parity-XXXXXX";
};

// One server for all tests.
class Ring : public testing::Test {
  protected:
    static void SetUpTestSuite() {
        folder_ = std::make_unique<Folder>();
        Router::Builder routes = ring_routes();
        std::string why;
        const auto files = StaticFiles::open(folder_->path(), {}, why);
        ASSERT_TRUE(files != nullptr) << why;
        StaticFiles::add(routes, "/static", files);
        ServerOptions options{.port = 0, .workers = kWorkers};
        options.limits.target_max = 100;
        options.limits.head_max = 1000;
        options.limits.body_max = 100000;
        StartError error;
        server_ = Server::start(routes, options, error);
        ASSERT_TRUE(server_ != nullptr) << error.text;
    }
    static void TearDownTestSuite() {
        server_ = nullptr;
        folder_ = nullptr;
    }

    static int port() { return server_->port(); }
    static Answered asked(const std::string& line, const std::string& fields = "",
                          const std::string& content = "") {
        return answered(ask(port(), request_of(line, fields, content)));
    }
    static Answered posted(const std::string& path, const std::string& type,
                           const std::string& content) {
        return asked("POST " + path,
                     "Content-Type: " + type +
                         "\r\nContent-Length: " + std::to_string(content.size()) + "\r\n",
                     content);
    }

    static inline std::unique_ptr<Folder> folder_;
    static inline std::unique_ptr<Server> server_;
};

std::string chunked(const std::string& content, std::size_t step) {
    std::string out;
    char size[20];
    for (std::size_t at = 0; at < content.size(); at += step) {
        const std::string piece = content.substr(at, step);
        std::snprintf(size, sizeof size, "%zx\r\n", piece.size());
        out += size + piece + "\r\n";
    }
    return out + "0\r\n\r\n";
}

TEST_F(Ring, multipart) {
    const std::string form =
        "--b\r\nContent-Disposition: form-data; name=\"text\"\r\n\r\nvalue\r\n"
        "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.txt\"\r\n"
        "Content-Type: text/plain\r\n\r\nline 1\r\nline 2\r\n--b--\r\n";
    const Answered answer = posted("/form", "multipart/form-data; boundary=b", form);
    const std::string wanted =
        R"({"text":["value"],"file":["line 1\u000d\u000aline 2","a.txt","text/plain"]})";
    LAW(answer.status == 200 && answer.content == wanted, << answer.content);
    LAW(posted("/form", "multipart/form-data; boundary=c", form).status == 400);
}

TEST_F(Ring, chunked_request) {
    const std::string text = poem();
    for (const std::size_t step : {std::size_t{1}, std::size_t{700}, text.size()}) {
        const Answered answer =
            asked("POST /raw", "Transfer-Encoding: chunked\r\n", chunked(text, step));
        LAW(answer.status == 200 && answer.content == text, << step);
    }
}

TEST_F(Ring, chunked_response) {
    const Answered answer = asked("GET /stream");
    LAW(answer.status == 200 && answer.field("transfer-encoding") == "chunked");
    LAW(answer.field("content-length").empty() && answer.field("trailer") == "Verses");
    const auto [content, trailers] = unchunked(answer.content);
    LAW(content == poem() && trailers == "Verses: 1000\r\n\r\n", << visible(trailers));
}

TEST_F(Ring, deflate) {
    const Answered answer = asked("GET /poem", "Accept-Encoding: deflate\r\n");
    LAW(answer.field("content-encoding") == "deflate");
    LAW(answer.field("vary") == "Accept-Encoding");
    LAW(answer.content.size() < poem().size() / 2);
    LAW(decoded(ContentCoding::kDeflate, answer.content) == poem());
}

TEST_F(Ring, gzip) {
    const Answered answer = asked("GET /poem", "Accept-Encoding: gzip, deflate;q=0.5\r\n");
    LAW(answer.field("content-encoding") == "gzip");
    LAW(decoded(ContentCoding::kGzip, answer.content) == poem());
    const Answered plain = asked("GET /poem");
    LAW(plain.field("content-encoding").empty() && plain.content == poem());
}

TEST_F(Ring, form_urlencoded) {
    const std::string type = "application/x-www-form-urlencoded";
    const Answered answer = posted("/form", type, "a=b+c&d=%26%C3%A9&e");
    LAW(answer.content == R"({"a":["b c"],"d":["&é"],"e":[""]})", << answer.content);
    LAW(posted("/form", type, "a=%zz").status == 400);
    LAW(posted("/form", "text/plain", "a=b").status == 415);
}

TEST_F(Ring, path_values) {
    LAW(asked("GET /path/a%20b").content == "a b");
    LAW(asked("GET /path/12?q").content == "12");
    LAW(asked("GET /path/").status == 404 && asked("GET /path/a/b").status == 404);
}

TEST_F(Ring, path_templates) {
    LAW(asked("PUT /users/me/files/a/b.txt").content == "me|a/b.txt");
    LAW(asked("PUT /users/me/files/").content == "me|");
    const Answered wrong = asked("GET /users/me/files/x");
    LAW(wrong.status == 405 && wrong.field("allow").find("PUT") != std::string::npos);
    LAW(asked("GET /path/fixed").content == "fixed", << "a literal comes first");
}

TEST_F(Ring, query_parameters) {
    LAW(asked("GET /query?b=x&a=1%2B1+%3D+2&a=3").content == "1+1 = 2");
    LAW(asked("GET /query?b=x").content == "none");
}

TEST_F(Ring, headers) {
    LAW(asked("GET /fields", "x-OWN:  a value \r\n").field("x-back") == "a value");
    LAW(asked("GET /fields").field("x-back") == "none");
}

TEST_F(Ring, response_headers) {
    const Answered answer = asked("GET /fields");
    LAW(answer.content == "refused", << "a field that would break the framing");
    LAW(answer.field("injected").empty() && answer.field("x-broken").empty());
    LAW(asked("GET /html").field("location") == "/html");
}

TEST_F(Ring, static_files) {
    const Answered whole = asked("GET /static/page.html");
    LAW(whole.status == 200 && whole.content == "<p>page</p>");
    LAW(whole.field("content-type") == "text/html");
    LAW(asked("GET /static/page.html", "Range: bytes=3-6\r\n").content == "page");
    const std::string tag = "If-None-Match: " + whole.field("etag") + "\r\n";
    LAW(asked("GET /static/page.html", tag).status == 304);
    for (const char* path : {"/static/none", "/static/%2e%2e/etc/passwd", "/static//etc/passwd"}) {
        LAW(asked(std::string("GET ") + path).status == 404, << path);
    }
}

// Reads from a connection until `enough` says so.
template <class Enough>
std::string read_until(int fd, const Enough& enough) {
    std::string received;
    char buffer[4096];
    while (!enough(received)) {
        pollfd waiting{fd, POLLIN, 0};
        if (poll(&waiting, 1, 30000) <= 0) break;
        const ssize_t got = read(fd, buffer, sizeof buffer);
        if (got <= 0) break;
        received.append(buffer, static_cast<std::size_t>(got));
    }
    return received;
}
bool never(const std::string&) {
    return false;
}
void send_all(int fd, const std::string& octets) {
    LAW(write(fd, octets.data(), octets.size()) == static_cast<ssize_t>(octets.size()));
}

TEST_F(Ring, keep_alive_with_timeout) {
    const std::string get = "GET /text HTTP/1.1\r\nHost: h\r\n\r\n";
    const auto is_whole = [](const std::string& text) { return text.ends_with("\r\n\r\ntext"); };
    const int kept = connect_to(port());
    for (int i = 0; i < 3; ++i) {
        send_all(kept, get);
        LAW(status_of(read_until(kept, is_whole)) == 200, << "on the same connection");
    }
    close(kept);
    Router::Builder routes = ring_routes();
    ServerOptions options{.port = 0, .workers = 1};
    options.limits.idle_timeout_ms = 700;
    StartError error;
    const auto hasty = Server::start(routes, options, error);
    ASSERT_TRUE(hasty != nullptr) << error.text;
    const int left = connect_to(hasty->port());
    const auto begin = std::chrono::steady_clock::now();
    LAW(read_until(left, never).empty());
    LAW(std::chrono::steady_clock::now() - begin < kDeadline, << "closed by the server");
    close(left);
}

TEST_F(Ring, configurable_sizes) {
    const auto of_size = [](std::size_t size) { return std::string(size, 'a'); };
    LAW(asked("GET /" + of_size(99)).status == 404 && asked("GET /" + of_size(100)).status == 414);
    LAW(asked("GET /text", "x: " + of_size(900) + "\r\n").status == 200);
    LAW(asked("GET /text", "x: " + of_size(1000) + "\r\n").status == 431);
    LAW(posted("/raw", "a/b", of_size(100000)).status == 200);
    LAW(posted("/raw", "a/b", of_size(100001)).status == 413);
    LAW(posted("/form", "a/b", of_size(5000)).status == 415, << "a route has sizes of its own");
    LAW(posted("/form", "a/b", of_size(5001)).status == 413);
}

TEST_F(Ring, multi_threading) {
    met = 0;
    // Where a connection goes, the system decides: all 64 at one worker is as good as impossible.
    std::vector<int> all;
    for (int i = 0; i < 64; ++i) {
        all.push_back(connect_to(port()));
        send_all(all.back(), request_of("GET /meet"));
    }
    for (const int fd : all) {
        LAW(read_until(fd, never).ends_with("together"));
        close(fd);
    }
}

TEST_F(Ring, route_handlers) {
    LAW(asked("GET /text").content == "text" && asked("HEAD /text").content.empty());
    LAW(asked("POST /text").status == 405 && asked("OPTIONS /text").status == 204);
    LAW(asked("DELETE /raw").status == 200 && asked("PATCH /raw").status == 200);
}

TEST_F(Ring, global_error_handler) {
    for (const auto& [answer, status, text] :
         {std::tuple{asked("GET /throws"), 500, "error: handler-failed"},
          std::tuple{asked("POST /text"), 405, "error: method-not-allowed"},
          std::tuple{asked("GET /text", "no@colon\r\n"), 400, "error: field-name-octet"},
          std::tuple{asked("GET /text", "Expect: more\r\n"), 417, "error: expectation-unknown"}}) {
        LAW(answer.status == status && answer.content == text, << answer.content);
    }
}

TEST_F(Ring, global_404_handler) {
    const Answered answer = asked("GET /nowhere/at/all");
    LAW(answer.status == 404 && answer.content == "there is no /nowhere/at/all");
}

TEST_F(Ring, raw_body) {
    std::string octets;
    for (int i = 0; i < 1024; ++i) octets += static_cast<char>(i);
    const Answered answer = posted("/raw", "a/b", octets);
    LAW(answer.content == octets && answer.field("content-type") == "application/x-own");
}

TEST_F(Ring, websocket) {
    const int fd = connect_to(port());
    send_all(fd,
             "GET /ws HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
             "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n" +
                 websocket::text("hello") + websocket::text("exit") + websocket::close_with(1000));
    const std::string received = read_until(fd, never);
    LAW(received.starts_with("HTTP/1.1 101 "));
    LAW(received.ends_with("\r\n\r\n" + websocket::text_back("Server says: 'hello'") +
                           websocket::close_back(1000)),
        << visible(received));
    close(fd);
}

// What ring has not done.

TEST_F(Ring, out_of_memory_in_a_handler) {
    for (int i = 0; i < 20; ++i) {
        const Answered answer = asked("GET /memory");
        LAW(answer.status == 503 && answer.content == "error: no-memory", << answer.content);
    }
    LAW(asked("GET /text").content == "text");
}

TEST_F(Ring, content_types) {
    LAW(asked("GET /text").field("content-type") == "text/plain; charset=utf-8");
    LAW(asked("GET /html").field("content-type") == "text/html; charset=utf-8");
    LAW(asked("GET /html").content == "<p>html</p>" && asked("GET /html").status == 201);
    LAW(asked("GET /json").field("content-type") == "application/json");
    LAW(media_type_of_file("/a/b.svg") == "image/svg+xml");
}

TEST_F(Ring, batching) {
    std::string requests;
    for (int i = 0; i < 100; ++i) requests += kGet;
    Wire wire;
    const std::uint32_t id = wire.connect();
    wire.feed(id, requests);
    LAW(statuses(wire.sent(id)) == Statuses(100, 200));
    LAW(wire.sends(id) == 1, << wire.sends(id) << " sends for a hundred answers");
}

}  // namespace
}  // namespace httpmark
