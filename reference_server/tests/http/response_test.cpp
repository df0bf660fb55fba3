#include "http/response.hpp"

#include <string>

#include "http/syntax.hpp"
#include "laws.hpp"

namespace httpmark {
namespace {

class StringSink final : public Sink {
  public:
    char* prepare(std::size_t size) override {
        if (refuse) return nullptr;
        text.append(size, '\0');
        return text.data() + text.size() - size;
    }
    bool append_fill(std::uint64_t size) override {
        fill += size;
        return true;
    }
    std::string text;
    std::uint64_t fill = 0;
    bool refuse = false;
};

DateLine date_of(std::int64_t seconds) {
    DateLine date;
    date.update(seconds);
    return date;
}

std::string written(unsigned status, std::initializer_list<Field> fields, std::string_view content,
                    ResponseOptions options = {}) {
    StringSink sink;
    const DateLine date = date_of(784111777);
    ResponseWriter writer(sink, date, options);
    LAW(writer.write(status, fields, content));
    return sink.text;
}

TEST(Response, a_plain_answer) {
    LAW(written(200, {{"Content-Type", "text/plain"}}, "Hello World!") ==
        "HTTP/1.1 200 OK\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\nContent-Type: text/plain\r\n"
        "Content-Length: 12\r\n\r\nHello World!");
}

TEST(Response, head_gets_the_fields_and_no_content) {
    LAW(written(200, {}, "Hello World!", {true, false, false, {}}) ==
        "HTTP/1.1 200 OK\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\nContent-Length: 12\r\n\r\n");
}

TEST(Response, statuses_without_content_have_neither_content_nor_length) {
    for (const unsigned status : {101U, 204U, 304U}) {
        const std::string text = written(status, {}, "not to be sent");
        LAW(text.find("Content-Length") == std::string::npos);
        LAW(text.ends_with("\r\n\r\n"));
    }
}

TEST(Response, a_205_has_a_length_of_nothing) {
    const std::string text = written(205, {}, "not to be sent");
    LAW(text.starts_with("HTTP/1.1 205 Reset Content\r\n"));
    LAW(text.ends_with("\r\nContent-Length: 0\r\n\r\n"));
    StringSink sink;
    const DateLine date = date_of(0);
    ResponseWriter writer(sink, date, {});
    LAW(writer.write_fill(205, {}, 100) && sink.fill == 0);
    LAW(sink.text.ends_with("\r\nContent-Length: 0\r\n\r\n"));
    LAW(writer.status() == 205 && writer.content_size() == 0);
}

TEST(Response, a_server_may_be_named_and_methods_be_told) {
    const std::string longest(DateLine::kServerNameMax, 's');
    for (const std::string& name : {std::string("httpmark"), longest}) {
        DateLine date(name);
        date.update(784111777);
        StringSink sink;
        ResponseWriter writer(sink, date, {});
        LAW(writer.write(200, {}, "abc"));
        LAW(sink.text == "HTTP/1.1 200 OK\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\nServer: " +
                             name + "\r\nContent-Length: 3\r\n\r\nabc");
        LAW(writer.status() == 200 && writer.content_size() == 3);
    }
    LAW(written(200, {}, "", {false, false, false, "GET, HEAD"}).find("\r\nAllow: GET, HEAD\r\n") !=
        std::string::npos);
}

TEST(Response, persistence_is_said) {
    LAW(written(200, {}, "", {false, true, false, {}}).find("\r\nConnection: close\r\n") !=
        std::string::npos);
    LAW(written(200, {}, "", {false, false, true, {}}).find("\r\nConnection: keep-alive\r\n") !=
        std::string::npos);
    LAW(written(200, {}, "").find("Connection") == std::string::npos);
}

TEST(Response, no_field_can_break_the_framing) {
    const DateLine date = date_of(0);
    for (unsigned c = 0; c < 256; ++c) {
        StringSink sink;
        ResponseWriter writer(sink, date, {});
        const std::string value = std::string("a") + static_cast<char>(c) + "b";
        const bool good = !is_ctl(static_cast<unsigned char>(c)) || c == '\t';
        LAW(writer.write(200, {{"X", value}}, "") == good);
        LAW(sink.text.empty() == !good);
        StringSink other;
        ResponseWriter names(other, date, {});
        const std::string name = std::string("a") + static_cast<char>(c);
        LAW(names.write(200, {{name, "v"}}, "") == is_tchar(static_cast<unsigned char>(c)));
    }
    for (const char* name :
         {"", "Content-Length", "content-length", "TRANSFER-ENCODING", "Connection", "Date"}) {
        StringSink sink;
        ResponseWriter writer(sink, date, {});
        LAW(!writer.write(200, {{name, "5"}}, "hello") && sink.text.empty(), << name);
        LAW(writer.fault() == Reason::kHandlerFailed && writer.status() == 0);
    }
}

TEST(Response, without_memory_nothing_is_written) {
    StringSink sink;
    sink.refuse = true;
    const DateLine date = date_of(0);
    ResponseWriter writer(sink, date, {});
    LAW(!writer.write(200, {}, "a"));
    LAW(sink.text.empty() && writer.fault() == Reason::kNoMemory);
}

TEST(Response, filling_is_announced_and_left_to_the_sink) {
    StringSink sink;
    const DateLine date = date_of(0);
    ResponseWriter writer(sink, date, {});
    LAW(writer.write_fill(200, {}, 1048576));
    LAW(sink.fill == 1048576 && sink.text.find("Content-Length: 1048576\r\n") != std::string::npos);
    StringSink head;
    ResponseWriter head_writer(head, date, {true, false, false, {}});
    LAW(head_writer.write_fill(200, {}, 1048576) && head.fill == 0);
}

TEST(Response, dates) {
    struct Row {
        std::int64_t seconds;
        const char* text;
    };
    for (const Row& row : {Row{0, "Date: Thu, 01 Jan 1970 00:00:00 GMT\r\n"},
                           Row{951782399, "Date: Mon, 28 Feb 2000 23:59:59 GMT\r\n"},
                           Row{951868800, "Date: Wed, 01 Mar 2000 00:00:00 GMT\r\n"},
                           Row{4102444799, "Date: Thu, 31 Dec 2099 23:59:59 GMT\r\n"}}) {
        LAW(date_of(row.seconds).text() == row.text, << row.text);
    }
    DateLine date;
    LAW(date.update(5) && !date.update(5) && date.update(6) && date.update(5));
}

}  // namespace
}  // namespace httpmark
