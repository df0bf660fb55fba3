#include "app/websocket.hpp"

#include "app/websocket_queue.hpp"

namespace httpmark {

WebSocket::Sent WebSocket::send_text(std::string_view message) {
    if (is_full()) {
        room_is_awaited_ = true;
        return Sent::kFull;
    }
    return session_.send_text(message);
}

WebSocket::Sent WebSocket::send_binary(std::string_view message) {
    if (is_full()) {
        room_is_awaited_ = true;
        return Sent::kFull;
    }
    return session_.send_binary(message);
}

WebSocket::Sent WebSocket::ping(std::string_view payload) {
    return is_full() ? Sent::kFull : session_.ping(payload);
}

WebSocket::Sent WebSocket::close(std::uint16_t code, std::string_view reason) {
    const Sent sent = session_.close(code, reason);
    if (sent == Sent::kYes) leave_senders();
    return sent;
}

WebSocketSender WebSocket::sender() {
    if (!is_open()) return {};
    if (queue_ == nullptr) queue_ = make_queue();
    return WebSocketSender(queue_);
}

void WebSocket::leave_senders() {
    if (queue_ != nullptr) queue_->leave();
}

}  // namespace httpmark
