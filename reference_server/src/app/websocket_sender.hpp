// Sending on a WebSocket connection from any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>

#include "websocket/session.hpp"

namespace httpmark {

class WebSocketQueue;

// Made by WebSocket::sender(). Sends on that connection from any thread, several at a time, so also
// from the handlers of connections that belong to other workers. May be copied, and kept for as
// long as one likes: all that are made for one connection are the same, and once it is gone,
// nothing is sent.
//
// Messages go out in the order in which they were given, each of them whole. What the handlers of
// the connection send by themselves does not wait for them.
class WebSocketSender {
  public:
    using Sent = websocket::Sent;

    WebSocketSender() = default;
    explicit WebSocketSender(std::shared_ptr<WebSocketQueue> queue) : queue_(std::move(queue)) {}
    explicit operator bool() const { return queue_ != nullptr; }

    // kYes: it is kept for the worker of the connection, which sends it soon. That the client gets
    // it is not said: the connection may end before.
    // kFull: too much is kept already, because the client does not read. Nothing was kept of this
    // one, and on_room of the route tells when there is room again. What may be kept of one
    // connection is twice Limits::pending_output_max, besides what waits for room on the wire.
    // kClosed: the connection is gone, or about to close.
    Sent send_text(std::string_view message) const;  // must be UTF-8
    Sent send_binary(std::string_view message) const;
    // Starts the closing handshake when all that was given before has been sent. It is never full.
    Sent close(std::uint16_t code = websocket::kCloseNormal, std::string_view reason = {}) const;
    // A hint to spare the work; it can become true at any time.
    bool gone() const;

  private:
    std::shared_ptr<WebSocketQueue> queue_;
};

}  // namespace httpmark
