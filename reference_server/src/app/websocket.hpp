// WebSocket for applications, RFC 6455: what a route that speaks it is made of, and the connection
// that its handlers are given.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "app/request.hpp"
#include "app/websocket_sender.hpp"
#include "http/error.hpp"
#include "websocket/session.hpp"

namespace httpmark {

// Names one connection of one worker for as long as that worker runs.
struct WebSocketKey {
    std::uint32_t slot = 0;
    std::uint32_t generation = 0;
    bool operator==(const WebSocketKey&) const = default;
};

// One connection. It lives from on_open until on_close has returned, at one address, and belongs to
// one worker: only handlers that this worker runs may use it, be it for another connection or for
// an ordinary request. What is sent goes out when the handler has returned, all of it together.
// Everybody else sends with its sender().
class WebSocket : private websocket::FrameSink {
  public:
    using Sent = websocket::Sent;
    WebSocket(const WebSocket&) = delete;
    WebSocket& operator=(const WebSocket&) = delete;

    // kFull while more than Limits::pending_output_max waits for room on the wire: nothing was
    // sent, and on_room tells when there is room again. A message is sent whole or not at all.
    Sent send_text(std::string_view message);  // must be UTF-8
    Sent send_binary(std::string_view message);
    Sent ping(std::string_view payload = {});  // at most 125 bytes
    // Starts the closing handshake: nothing more can be sent, and no message comes any more. A
    // client that does not answer is left after Limits::close_timeout_ms.
    Sent close(std::uint16_t code = websocket::kCloseNormal, std::string_view reason = {});

    // To send from other threads, and from the handlers of other workers. One that was made when
    // the connection is not open sends nothing.
    WebSocketSender sender();

    bool is_open() const { return session_.state() == websocket::Session::State::kOpen; }
    // Bytes that wait for room on the wire.
    virtual std::size_t unsent() const = 0;
    virtual std::string peer() const = 0;
    virtual WebSocketKey key() const = 0;

    std::shared_ptr<void> data;  // the application's own

  protected:
    WebSocket(const websocket::SessionSettings& settings,
              const std::optional<websocket::DeflateParameters>& agreed, Arena& arena)
        : session_(*this, settings, agreed, &arena) {}
    ~WebSocket() = default;
    virtual bool is_full() const = 0;
    virtual std::shared_ptr<WebSocketQueue> make_queue() = 0;
    void leave_senders();

    websocket::Session session_;
    std::shared_ptr<WebSocketQueue> queue_;  // of its senders; none before one is made
    bool room_is_awaited_ = false;           // a message was refused for want of room
};

struct WebSocketMessage {
    std::string_view content;  // for the call only
    bool is_text = false;
};

// What a request that offers WebSocket has asked for.
struct WebSocketOffer {
    const Request& request;
    std::string_view origin;       // empty when none was sent
    std::string_view subprotocol;  // of those that the route speaks; empty when there is none
};

// A route that speaks WebSocket. All but on_message may be left out. Handlers are shared by all
// workers and called by several at a time, but for one connection only by one.
struct WebSocketRoute {
    // Before the switch: kNone, or why not, which is then answered with the status of that reason.
    // Browsers send pages of any site here: look at the origin where cookies mean something.
    std::function<Reason(const WebSocketOffer&)> admit = {};
    std::function<void(WebSocket&, const WebSocketOffer&)> on_open = {};
    std::function<void(WebSocket&, const WebSocketMessage&)> on_message = {};
    // There is room again after a message was refused with kFull, also one of a sender.
    std::function<void(WebSocket&)> on_room = {};
    // Once for each on_open, also where the connection broke or the server stops.
    std::function<void(WebSocket&, const websocket::Event&)> on_close = {};

    std::vector<std::string> subprotocols = {};
    websocket::DeflateSettings deflate = {};
    // The server's limits hold where they are lower.
    websocket::MessageLimits limits{~std::uint64_t{0}, ~std::uint64_t{0}, ~std::uint64_t{0}};
};

}  // namespace httpmark
