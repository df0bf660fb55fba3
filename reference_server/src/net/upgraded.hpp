// What hangs off a connection that speaks WebSocket, instead of an Exchange. It lies in the arena.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "app/websocket.hpp"
#include "app/websocket_queue.hpp"
#include "net/connection.hpp"
#include "net/exchange.hpp"

namespace httpmark {

struct Upgraded final : public WebSocket {
    Upgraded(Connections& all, WebSocketKey key, const WebSocketRoute& spoken,
             const websocket::SessionSettings& settings,
             const std::optional<websocket::DeflateParameters>& agreed, Arena& arena)
        : WebSocket(settings, agreed, arena), connections(all), route(spoken), own_key(key) {}

    std::size_t unsent() const override { return connections.unsent_of(*this); }
    std::string peer() const override { return connections.peer_of(*this); }
    WebSocketKey key() const override { return own_key; }
    bool is_full() const override { return connections.is_full_of(*this); }
    char* prepare(std::size_t size) override { return connections.frame_room(*this, size); }

    std::shared_ptr<WebSocketQueue> make_queue() override { return connections.queue_for(*this); }
    using WebSocket::leave_senders;

    websocket::Session& session() { return session_; }
    WebSocketQueue* queue() const { return queue_.get(); }
    void await_room() { room_is_awaited_ = true; }
    // Something is left for when there is room.
    bool has_more() const {
        return parked.size != 0 || room_is_awaited_ || (queue_ != nullptr && queue_->has_more());
    }
    // Whether the application is to be told of room, once.
    bool take_room_awaited() { return std::exchange(room_is_awaited_, false); }

    Connections& connections;
    const WebSocketRoute& route;
    const WebSocketKey own_key;
    bool is_queued = false;  // frames wait for the end of the turn
    std::size_t block_capacity = 0;
    Buffer parked;  // bytes received while the output was full
};
// With its slot, all that an idle one costs.
static_assert(sizeof(Upgraded) <= 512);

}  // namespace httpmark
