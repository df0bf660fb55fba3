#include "app/websocket_queue.hpp"

namespace httpmark {

using Sent = websocket::Sent;
using websocket::Opcode;

Sent WebSocketQueue::put(Message&& message) {
    {
        const std::lock_guard<std::mutex> held(lock_);
        if (ended_) return Sent::kClosed;
        ended_ = message.opcode == Opcode::kClose;
        if (!ended_ && waiting_size_ > waiting_max_) {
            room_is_awaited_ = true;
            return Sent::kFull;
        }
        waiting_size_ += message.octets.size() + sizeof message;
        waiting_.push_back(std::move(message));
    }
    waker_.wake();
    return Sent::kYes;
}

bool WebSocketQueue::gone() const {
    const std::lock_guard<std::mutex> held(lock_);
    return ended_;
}

const WebSocketQueue::Message* WebSocketQueue::next() {
    if (at_ == taken_.size()) {
        taken_ = {};  // between messages it holds no memory
        at_ = 0;
        if (!is_called_) return nullptr;
        is_called_ = false;
        const std::lock_guard<std::mutex> held(lock_);
        taken_.swap(waiting_);
        waiting_size_ = 0;
    }
    return taken_.empty() ? nullptr : &taken_[at_];
}

bool WebSocketQueue::take_room_awaited() {
    const std::lock_guard<std::mutex> held(lock_);
    return waiting_size_ <= waiting_max_ && std::exchange(room_is_awaited_, false);
}

void WebSocketQueue::leave() {
    taken_ = {};
    at_ = 0;
    is_called_ = false;
    const std::lock_guard<std::mutex> held(lock_);
    ended_ = true;
    waiting_ = {};
}

}  // namespace httpmark
