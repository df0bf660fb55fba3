#include "app/websocket_sender.hpp"

#include <string>

#include "app/websocket_queue.hpp"

namespace httpmark {

using Sent = websocket::Sent;
using websocket::Opcode;

Sent WebSocketSender::send_text(std::string_view message) const {
    if (!websocket::is_utf8(message)) return Sent::kNotUtf8;
    if (queue_ == nullptr) return Sent::kClosed;
    return queue_->put({Opcode::kText, 0, std::string(message)});
}

Sent WebSocketSender::send_binary(std::string_view message) const {
    if (queue_ == nullptr) return Sent::kClosed;
    return queue_->put({Opcode::kBinary, 0, std::string(message)});
}

Sent WebSocketSender::close(std::uint16_t code, std::string_view reason) const {
    const Sent fault = websocket::judge_close(code, reason);
    if (fault != Sent::kYes) return fault;
    if (queue_ == nullptr) return Sent::kClosed;
    return queue_->put({Opcode::kClose, code, std::string(reason)});
}

bool WebSocketSender::gone() const {
    return queue_ == nullptr || queue_->gone();
}

}  // namespace httpmark
