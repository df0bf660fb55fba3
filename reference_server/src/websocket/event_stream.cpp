#include "websocket/event_stream.hpp"

#include <algorithm>

#include "websocket/utf8.hpp"

namespace httpmark::websocket {

namespace {

bool is_one_line(std::string_view text) {
    return text.find_first_of(std::string_view("\r\n\0", 3)) == std::string_view::npos;
}

// "prefix line LF" for each line of `text`; a text without a line end has one.
void append_lines(std::string& stream, std::string_view prefix, std::string_view text) {
    while (true) {
        const std::size_t end = std::min(text.find_first_of("\r\n"), text.size());
        stream.append(prefix).append(text.substr(0, end)) += '\n';
        if (end == text.size()) return;
        text.remove_prefix(end + (text.substr(end).starts_with("\r\n") ? 2 : 1));
    }
}

}  // namespace

EventFault append_event(std::string& stream, const ServerEvent& event) {
    if (!is_one_line(event.type)) return EventFault::kTypeOctet;
    if (event.id && !is_one_line(*event.id)) return EventFault::kIdOctet;
    if (!is_utf8(event.type) || !is_utf8(event.id.value_or("")) ||
        !is_utf8(event.data.value_or(""))) {
        return EventFault::kNotUtf8;
    }
    if (!event.type.empty()) append_lines(stream, "event: ", event.type);
    if (event.id) append_lines(stream, "id: ", *event.id);
    if (event.retry_ms) append_lines(stream, "retry: ", std::to_string(*event.retry_ms));
    if (event.data) append_lines(stream, "data: ", *event.data);
    stream += '\n';
    return EventFault::kNone;
}

EventFault append_comment(std::string& stream, std::string_view text) {
    if (!is_utf8(text)) return EventFault::kNotUtf8;
    append_lines(stream, ": ", text);
    stream += '\n';
    return EventFault::kNone;
}

}  // namespace httpmark::websocket
