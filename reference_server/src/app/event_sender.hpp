// Server-sent events for one client (WHATWG HTML 9.2): an answer that goes on for as long as the
// client stays.
#pragma once

#include <cstddef>
#include <memory>
#include <string_view>

#include "http/response.hpp"
#include "websocket/event_stream.hpp"

namespace httpmark {

// Sends the events of one answer, from any thread, several at a time. A handler opens it, keeps it
// somewhere and returns; copies send to the same client. When the last copy is gone, or end() was
// called, the answer ends.
class EventSender {
  public:
    using ServerEvent = websocket::ServerEvent;
    using EventFault = websocket::EventFault;

    EventSender() = default;
    // Writes the head of the answer. False in `bool` where that could not be: writer.fault() says
    // why. `unsent_max`: bytes of events that may wait for room on the wire.
    explicit EventSender(ResponseWriter& writer, std::size_t unsent_max = 65536);
    explicit operator bool() const { return held_ != nullptr; }

    // kFull: too much waits already, and kGone: the client has left. Nothing was sent then.
    EventFault send(const ServerEvent& event) const;
    // A comment, which no reader shows. One every 15 seconds or so keeps proxies from closing a
    // connection that is silent, and finds out whether the client is still there.
    EventFault comment(std::string_view text = {}) const;
    void end() const;
    bool gone() const;

  private:
    struct Queue;
    struct Held;
    class Content;
    template <class Append>
    EventFault put(const Append& append) const;

    std::shared_ptr<const Held> held_;
};

}  // namespace httpmark
