// What other threads have given to be sent on one WebSocket connection, on its way to the worker.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "app/waker.hpp"
#include "websocket/frames.hpp"
#include "websocket/session.hpp"

namespace httpmark {

class WebSocketQueue {
  public:
    struct Message {
        websocket::Opcode opcode = websocket::Opcode::kText;  // or kBinary, or kClose
        std::uint16_t code = 0;                               // of kClose
        std::string octets;
    };

    // No more is taken while more than `waiting_max` bytes wait for the worker.
    WebSocketQueue(Waker waker, std::size_t waiting_max)
        : waker_(std::move(waker)), waiting_max_(waiting_max) {}
    WebSocketQueue(const WebSocketQueue&) = delete;
    WebSocketQueue& operator=(const WebSocketQueue&) = delete;

    // From any thread.
    websocket::Sent put(Message&& message);
    bool gone() const;

    // The rest is the worker's.
    //
    // It was woken.
    void call() { is_called_ = true; }
    bool has_more() const { return is_called_ || at_ < taken_.size(); }
    // The next one, or nullptr, which leaves what is put from then on to the next call: threads
    // that go on sending do not keep the worker from its other connections.
    const Message* next();
    void drop_first() { ++at_; }
    // Whether somebody was told that it is full, and there is room now. True once.
    bool take_room_awaited();
    // Nothing is sent on the connection any more.
    void leave();

  private:
    const Waker waker_;
    const std::size_t waiting_max_;
    mutable std::mutex lock_;
    std::vector<Message> waiting_;
    std::size_t waiting_size_ = 0;  // bytes, and what it costs to keep them
    bool ended_ = false;            // nothing more is taken
    bool room_is_awaited_ = false;

    // The worker's own: what it has taken of those that waited.
    std::vector<Message> taken_;
    std::size_t at_ = 0;
    bool is_called_ = false;
};

}  // namespace httpmark
