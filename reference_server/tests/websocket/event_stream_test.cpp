#include "websocket/event_stream.hpp"

#include <string>
#include <vector>

#include "laws.hpp"

namespace httpmark::websocket {
namespace {

struct Received {
    std::string type;
    std::string data;
    std::string last_id;
    bool operator==(const Received&) const = default;
};

// A reader as WHATWG HTML 9.2.6 words it, line by line.
class Reader {
  public:
    std::vector<Received> events;
    std::string retry;

    explicit Reader(std::string_view stream) {
        while (!stream.empty()) {
            const std::size_t end = stream.find_first_of("\r\n");
            if (end == std::string_view::npos) break;
            line(stream.substr(0, end));
            const bool pair = stream.substr(end).starts_with("\r\n");
            stream.remove_prefix(end + (pair ? 2 : 1));
        }
    }

  private:
    void line(std::string_view text) {
        if (text.empty()) return dispatch();
        const std::size_t colon = text.find(':');
        if (colon == 0) return;
        const std::string_view name = text.substr(0, colon);
        std::string_view value =
            colon == std::string_view::npos ? std::string_view() : text.substr(colon + 1);
        if (value.starts_with(' ')) value.remove_prefix(1);
        if (name == "event") {
            type_ = value;
        } else if (name == "data") {
            data_.append(value) += '\n';
        } else if (name == "id" && value.find('\0') == std::string_view::npos) {
            id_ = value;
        } else if (name == "retry" &&
                   value.find_first_not_of("0123456789") == std::string_view::npos) {
            retry = value;
        }
    }
    void dispatch() {
        const std::string data = data_;
        const std::string type = type_;
        data_.clear();
        type_.clear();
        if (data.empty()) return;
        events.push_back({type.empty() ? "message" : type, data.substr(0, data.size() - 1), id_});
    }

    std::string type_;
    std::string data_;
    std::string id_;
};

std::string with_lf(std::string text) {
    for (std::size_t at = 0; (at = text.find("\r\n", at)) != std::string::npos;) text.erase(at, 1);
    for (char& c : text) {
        if (c == '\r') c = '\n';
    }
    return text;
}

TEST(EventStream, how_it_looks) {
    std::string stream;
    LAW(append_event(stream, {"add", "7", 1500, "two\nlines"}) == EventFault::kNone);
    LAW(stream == "event: add\nid: 7\nretry: 1500\ndata: two\ndata: lines\n\n");
    stream.clear();
    LAW(append_event(stream, {{}, {}, {}, ""}) == EventFault::kNone && stream == "data: \n\n");
    stream.clear();
    LAW(append_comment(stream, "") == EventFault::kNone && stream == ": \n\n");
    stream.clear();
    LAW(append_comment(stream, "a\r\nb") == EventFault::kNone && stream == ": a\n: b\n\n");
}

// Texts of the characters that could break it, all of them up to four long: one event, the same.
TEST(EventStream, whatever_an_event_holds_a_reader_sees_it_or_it_is_refused) {
    constexpr std::string_view kOctets("\r\n: a\0", 6);
    std::vector<std::string> texts = {""};
    for (std::size_t begin = 0, size = 0; size < 4; ++size) {
        const std::size_t end = texts.size();
        for (std::size_t i = begin; i < end; ++i) {
            for (const char c : kOctets) texts.push_back(texts[i] + c);
        }
        begin = end;
    }
    LAW(texts.size() == 1 + 6 + 36 + 216 + 1296);
    for (const std::string& text : texts) {
        std::string stream;
        LAW(append_event(stream, {"t", "1", {}, text}) == EventFault::kNone);
        const Reader data(stream);
        LAW(data.events == (std::vector<Received>{{"t", with_lf(text), "1"}}), << visible(text));
        const bool breaks = text.find_first_of(std::string_view("\r\n\0", 3)) != std::string::npos;
        stream.clear();
        LAW(append_event(stream, {text, {}, {}, "d"}) ==
            (breaks ? EventFault::kTypeOctet : EventFault::kNone));
        const Received typed{text.empty() ? "message" : text, "d", ""};
        LAW(breaks ? stream.empty() : Reader(stream).events == std::vector<Received>{typed},
            << visible(text));
        stream.clear();
        LAW(append_event(stream, {"", text, {}, "d"}) ==
            (breaks ? EventFault::kIdOctet : EventFault::kNone));
        LAW(breaks ? stream.empty()
                   : Reader(stream).events == (std::vector<Received>{{"message", "d", text}}),
            << visible(text));
        stream.clear();
        LAW(append_comment(stream, text) == EventFault::kNone && Reader(stream).events.empty());
    }
}

TEST(EventStream, events_do_not_leak_into_each_other) {
    std::string stream;
    append_event(stream, {"a", "1", {}, "first"});
    append_event(stream, {"b", {}, 2000, {}});  // no data: no event
    append_comment(stream, "event: c");
    append_event(stream, {{}, {}, {}, "second"});
    append_event(stream, {{}, "", {}, "third"});
    const Reader reader(stream);
    LAW(reader.retry == "2000");
    LAW(reader.events ==
        (std::vector<Received>{
            {"a", "first", "1"}, {"message", "second", "1"}, {"message", "third", ""}}));
}

TEST(EventStream, what_is_not_utf_8_is_refused_and_nothing_is_written) {
    std::string stream = "before";
    for (const std::string_view bad : {"\xFF", "a\xC3", "\xED\xA0\x80"}) {
        LAW(append_event(stream, {bad, {}, {}, "d"}) == EventFault::kNotUtf8);
        LAW(append_event(stream, {"", bad, {}, "d"}) == EventFault::kNotUtf8);
        LAW(append_event(stream, {"", {}, {}, bad}) == EventFault::kNotUtf8);
        LAW(append_comment(stream, bad) == EventFault::kNotUtf8);
    }
    LAW(stream == "before");
    LAW(append_event(stream, {"\xC3\xA4", "\xE2\x82\xAC", {}, "\xF0\x9F\x98\x80"}) ==
        EventFault::kNone);
    LAW(Reader(stream.substr(6)).events ==
        (std::vector<Received>{{"\xC3\xA4", "\xF0\x9F\x98\x80", "\xE2\x82\xAC"}}));
}

}  // namespace
}  // namespace httpmark::websocket
