#include "http/response.hpp"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "http/syntax.hpp"
#include "laws.hpp"

namespace httpmark {
namespace {

// Keeps what is written. Room ends kCopySlack bytes before that of the vector does, so that a
// sanitizer sees who writes more.
class StringSink final : public Sink {
  public:
    void append(const LaterContent& content) override { later = content; }
    std::string text() const { return {room_.begin(), room_.end() - kCopySlack}; }
    bool empty() const { return room_.size() == kCopySlack; }
    LaterContent later;
    bool refuse = false;

  private:
    char* prepare_more(std::size_t size) override {
        if (refuse) return nullptr;
        const std::size_t at = room_.size() - kCopySlack;
        std::vector<char> grown(at + size + kCopySlack);
        std::copy(room_.begin(), room_.end() - kCopySlack, grown.begin());
        room_ = std::move(grown);
        return room_.data() + at;
    }
    std::vector<char> room_ = std::vector<char>(kCopySlack);
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
    return sink.text();
}

// As applications hold them.
TEST(Response, fields_may_stand_in_any_container) {
    const Field array[] = {{"A", "1"}, {"B", "2"}};
    const std::vector<Field> vector(std::begin(array), std::end(array));
    const std::span<const Field, 2> fixed(array);
    for (const Fields& fields : {Fields(array), Fields(vector), Fields(fixed)}) {
        LAW(fields.fixed.text().empty() && fields.others.size() == 2);
        LAW(fields.others[0].name == "A" && fields.others[1].value == "2");
    }
}

TEST(Response, a_plain_answer) {
    LAW(written(200, {{"Content-Type", "text/plain"}}, "Hello World!") ==
        "HTTP/1.1 200 OK\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\nContent-Type: text/plain\r\n"
        "Content-Length: 12\r\n\r\nHello World!");
}

// However an answer is written, it is the same: at once, with the same field not known to be safe,
// or with room for the content.
TEST(Response, every_way_to_write_an_answer_gives_the_same) {
    static constexpr auto kPlain = fixed_field("Content-Type", "text/plain");
    const Field plain{"Content-Type", "text/plain"};
    const DateLine date = date_of(784111777);
    std::string content;
    const auto check = [&](unsigned status, const ResponseOptions& options) {
        std::string texts[3];
        for (int way = 0; way < 3; ++way) {
            StringSink sink;
            ResponseWriter writer(sink, date, options);
            char* room = nullptr;
            const bool done = way == 0   ? writer.write(status, kPlain, content)
                              : way == 1 ? writer.write(status, {plain}, content)
                                         : writer.start(status, kPlain, content.size(), room);
            LAW(done && writer.status() == status && !writer.write(200, {}, {}));
            const std::uint64_t sent =
                options.head_request || status_forbids_content(status) ? 0 : content.size();
            LAW(writer.content_size() == sent, << status << ", " << content.size());
            if (room != nullptr) std::copy(content.begin(), content.end(), room);
            texts[way] = sink.text();
        }
        LAW(texts[0] == texts[1] && texts[0] == texts[2], << texts[0]);
        if (options.adds_nothing() && !options.head_request && !status_forbids_content(status)) {
            LAW(texts[0].ends_with("Content-Length: " + std::to_string(content.size()) +
                                   "\r\n\r\n" + content));
        }
    };
    for (const unsigned size :
         {0U,  1U,  2U,  3U,  4U,  7U,   8U,   9U,   10U,   15U,   16U,   17U,    31U,    32U,
          33U, 63U, 64U, 65U, 99U, 100U, 101U, 999U, 1000U, 1001U, 9999U, 10000U, 123456U}) {
        content.clear();
        for (std::size_t i = 0; i < size; ++i) content += static_cast<char>('!' + i % 90);
        for (const bool head_request : {false, true}) {
            for (const unsigned status : {200U, 204U, 205U, 304U, 404U, 599U, 999U}) {
                check(status, {head_request});
                check(status, {head_request, true});
            }
        }
    }
}

TEST(Response, head_gets_the_fields_and_no_content) {
    LAW(written(200, {}, "Hello World!", {true, false, false, {}}) ==
        "HTTP/1.1 200 OK\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\nContent-Length: 12\r\n\r\n");
}

TEST(Response, statuses_without_content_have_neither_content_nor_length) {
    for (const unsigned status : {101U, 204U, 304U}) {
        ResponseOptions options;
        if (status == 101) options.upgrade = Upgrade::kSwitched;
        const std::string text = written(status, {}, "not to be sent", options);
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
    const ResponseOptions none;
    ResponseWriter writer(sink, date, none);
    LAW(writer.write_reference(205, {}, std::string(100000, 'x')) && sink.later.left == 0);
    LAW(sink.text().ends_with("\r\nContent-Length: 0\r\n\r\n"));
    LAW(writer.status() == 205 && writer.content_size() == 0);
}

TEST(Response, a_server_may_be_named_and_methods_be_told) {
    const std::string longest(DateLine::kServerNameMax, 's');
    for (const std::string& name : {std::string("httpmark"), longest}) {
        DateLine date(name);
        date.update(784111777);
        StringSink sink;
        const ResponseOptions none;
        ResponseWriter writer(sink, date, none);
        LAW(writer.write(200, {}, "abc"));
        LAW(sink.text() == "HTTP/1.1 200 OK\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\nServer: " +
                               name + "\r\nContent-Length: 3\r\n\r\nabc");
        LAW(writer.status() == 200 && writer.content_size() == 3);
    }
    LAW(written(200, {}, "", {false, false, false, "GET, HEAD"}).find("\r\nAllow: GET, HEAD\r\n") !=
        std::string::npos);
}

TEST(Response, an_upgrade_is_said_with_its_connection_option) {
    const auto lines = [](unsigned status, bool close, Upgrade upgrade) {
        const std::string text = written(status, {}, "", {false, close, false, {}, upgrade});
        return text.substr(text.find("GMT\r\n") + 5);
    };
    LAW(lines(101, false, Upgrade::kSwitched) ==
        "Upgrade: websocket\r\nConnection: upgrade\r\n\r\n");
    LAW(lines(426, false, Upgrade::kRequired) ==
        "Content-Length: 0\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
        "Connection: upgrade\r\n\r\n");
    LAW(lines(426, true, Upgrade::kRequired) ==
        "Content-Length: 0\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
        "Connection: upgrade, close\r\n\r\n");
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
        const ResponseOptions none;
        ResponseWriter writer(sink, date, none);
        const std::string value = std::string("a") + static_cast<char>(c) + "b";
        const bool good = !is_ctl(static_cast<unsigned char>(c)) || c == '\t';
        LAW(writer.write(200, {{"X", value}}, "") == good);
        LAW(sink.empty() == !good);
        StringSink other;
        ResponseWriter names(other, date, none);
        const std::string name = std::string("a") + static_cast<char>(c);
        LAW(names.write(200, {{name, "v"}}, "") == is_tchar(static_cast<unsigned char>(c)));
    }
    for (const char* name :
         {"", "Content-Length", "content-length", "TRANSFER-ENCODING", "Connection", "Date"}) {
        StringSink sink;
        const ResponseOptions none;
        ResponseWriter writer(sink, date, none);
        LAW(!writer.write(200, {{name, "5"}}, "hello") && sink.empty(), << name);
        LAW(writer.fault() == Reason::kHandlerFailed && writer.status() == 0);
    }
}

TEST(Response, without_memory_nothing_is_written) {
    StringSink sink;
    sink.refuse = true;
    const DateLine date = date_of(0);
    const ResponseOptions none;
    ResponseWriter writer(sink, date, none);
    LAW(!writer.write(200, {}, "a"));
    LAW(sink.empty() && writer.fault() == Reason::kNoMemory);
}

class Alphabet final : public ContentSource {
  public:
    std::string_view read(std::uint64_t, std::size_t most) override {
        return std::string_view("abc").substr(0, most);
    }
    void release() override { ++released; }
    int released = 0;
};

TEST(Response, content_that_comes_later_is_announced_and_left_to_the_sink) {
    const DateLine date = date_of(0);
    for (const bool head_request : {false, true}) {
        const ResponseOptions options{head_request, false, false, {}};
        StringSink sink;
        Alphabet source;
        ResponseWriter writer(sink, date, options);
        LAW(writer.write_source(200, {}, 1048576, source));
        LAW(sink.text().ends_with("\r\nContent-Length: 1048576\r\n\r\n"));
        LAW(sink.later.left == (head_request ? 0U : 1048576U));
        LAW(sink.later.source == (head_request ? nullptr : &source));
        LAW(source.released == (head_request ? 1 : 0));
        // A long content stays where it is, a short one is copied.
        for (const std::size_t size : {std::size_t{3}, std::size_t{100000}}) {
            const std::string content(size, 'y');
            StringSink other;
            ResponseWriter by_reference(other, date, options);
            LAW(by_reference.write_reference(200, {}, content));
            const bool copied = size == 3;
            LAW(other.later.bytes == (copied || head_request ? nullptr : content.data()));
            LAW(other.text().ends_with(copied && !head_request ? "\r\n\r\nyyy" : "\r\n\r\n"));
            LAW(by_reference.content_size() == (head_request ? 0 : size));
        }
    }
}

TEST(Response, what_is_prepared_is_written_as_what_is_not) {
    const DateLine date = date_of(784111777);
    const std::vector<Field> none;
    const std::vector<Field> two = {{"Content-Type", "text/plain"}, {"X", std::string_view()}};
    for (const unsigned status : {200U, 204U, 205U, 304U, 404U, 431U, 599U, 999U}) {
        for (const std::vector<Field>& fields : {none, two}) {
            for (const std::size_t size : {0UL, 1UL, 12UL, 63UL, 64UL, 65UL, 1000UL}) {
                const std::string content(size, 'c');
                const auto answer = PreparedAnswer::make(status, fields, content);
                ASSERT_NE(answer, nullptr);
                for (unsigned bits = 0; bits < 48; ++bits) {
                    const ResponseOptions options{(bits & 1) != 0, (bits & 2) != 0, (bits & 4) != 0,
                                                  (bits & 8) != 0 ? "GET" : "",
                                                  static_cast<Upgrade>(bits >> 4)};
                    StringSink one;
                    StringSink other;
                    ResponseWriter prepared(one, date, options);
                    ResponseWriter plain(other, date, options);
                    LAW(prepared.write(*answer) &&
                        plain.write(status, std::span<const Field>(fields), content));
                    LAW(one.text() == other.text(), << visible(one.text()));
                    LAW(prepared.status() == plain.status());
                    LAW(prepared.content_size() == plain.content_size());
                }
            }
        }
    }
    const Field unsafe{"X", "a\r\nb"};
    LAW(PreparedAnswer::make(200, {&unsafe, 1}, "") == nullptr);
    // None of a final answer (RFC 9110 15).
    for (const unsigned status : {0U, 1U, 99U, 100U, 101U, 103U, 199U, 1000U, ~0U}) {
        LAW(PreparedAnswer::make(status, {}, "") == nullptr, << status);
    }
}

TEST(Response, fixed_fields_come_before_others_and_are_written_as_they_are) {
    static constexpr auto kFixed = fixed_field("Content-Type", "text/plain");
    StringSink sink;
    const DateLine date = date_of(0);
    const ResponseOptions options;
    ResponseWriter writer(sink, date, options);
    const std::vector<Field> more = {{"A", "b"}};
    LAW(writer.write(200, {kFixed, more}, "c"));
    LAW(sink.text().ends_with(
        "\r\nContent-Type: text/plain\r\nA: b\r\nContent-Length: 1\r\n\r\nc"));
}

TEST(Response, there_is_one_for_each_request) {
    StringSink sink;
    const DateLine date = date_of(0);
    const ResponseOptions options;
    ResponseWriter writer(sink, date, options);
    LAW(writer.write(200, {}, "first"));
    const std::string once = sink.text();
    const auto answer = PreparedAnswer::make(200, {}, "second");
    LAW(!writer.write(200, {}, "second") && !writer.write(*answer));
    LAW(writer.fault() == Reason::kHandlerFailed && sink.text() == once);
}

// Of each length, with each octet at each place: quick and plain checks agree.
TEST(Response, values_are_checked_at_every_place) {
    const DateLine date = date_of(0);
    const ResponseOptions options;
    for (std::size_t size = 1; size < 20; ++size) {
        for (std::size_t at = 0; at < size; ++at) {
            for (unsigned c = 0; c < 256; ++c) {
                std::string value(size, 'a');
                value[at] = static_cast<char>(c);
                StringSink sink;
                ResponseWriter writer(sink, date, options);
                LAW(writer.write(200, {{"X", value}}, "") == field_is_safe({"X", value}));
            }
        }
    }
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
