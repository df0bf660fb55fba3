#include "http/answer_head.hpp"

#include "http/response.hpp"
#include "http/syntax.hpp"

namespace httpmark {

namespace {

// They say what comes after a 101, and belong to the handshake.
bool is_of_upgrade(std::string_view name) {
    constexpr std::string_view kWebSocket = "sec-websocket-";
    return equals_ignoring_case(name, "upgrade") ||
           equals_ignoring_case(name.substr(0, kWebSocket.size()), kWebSocket);
}

}  // namespace

bool AnswerHead::add(std::string_view name, std::string_view value) {
    if (!field_is_safe({name, value}) || is_of_upgrade(name)) return false;
    const std::size_t room = kFieldsMax - (lines_.size() - own_);
    if (name.size() > room || value.size() > room || name.size() + value.size() + 4 > room) {
        return false;
    }
    lines_.append(name).append(": ").append(value).append("\r\n");
    return true;
}

}  // namespace httpmark
