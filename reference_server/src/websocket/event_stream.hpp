// Server-sent events, WHATWG HTML 9.2: the writer of text/event-stream. Whatever an event holds, a
// reader sees exactly one event with it, or the event is refused.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace httpmark::websocket {

struct ServerEvent {
    std::string_view type;               // "event:"; empty: the reader's default, "message"
    std::optional<std::string_view> id;  // empty: the reader forgets the last one
    std::optional<std::uint64_t> retry_ms;
    // Lines end in CR, LF or CRLF, which a reader cannot tell apart: it sees LF. Without data there
    // is no event, only a new id or retry time.
    std::optional<std::string_view> data;
};

enum class EventFault : std::uint8_t {
    kNone,
    kTypeOctet,  // CR, LF or NUL, which end the field or make it void
    kIdOctet,    // the same
    kNotUtf8,    // the stream is UTF-8, always (9.2.4)
    // Of an EventSender alone.
    kFull,  // too much waits for room on the wire
    kGone,  // the client has left, or the stream has ended
};

// Appends the event, or nothing when it is refused.
EventFault append_event(std::string& stream, const ServerEvent& event);

// Appends a comment, a line of it for each line of `text`. An empty one keeps a connection alive
// (9.2.7).
EventFault append_comment(std::string& stream, std::string_view text);

}  // namespace httpmark::websocket
