// A chat: what one says, everybody is told. Open http://127.0.0.1:8080/ in two windows.
#include <cstdlib>
#include <httpmark/httpmark.hpp>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

using namespace httpmark;

namespace {

constexpr std::string_view kPage = R"(<!DOCTYPE html>
<title>Chat</title>
<input id="text" placeholder="Say something" autofocus>
<pre id="said"></pre>
<script>
const name = encodeURIComponent(prompt("Your name?") || "somebody");
const chat = new WebSocket(`ws://${location.host}/chat?name=${name}`);
chat.onmessage = event => said.textContent += event.data + "\n";
text.onchange = () => { chat.send(text.value); text.value = ""; };
</script>
)";

struct Member {
    std::string name;
    WebSocketSender sender;
};

// Each connection belongs to one of several workers; its sender reaches it from all of them. The
// lock is for the list, and gives everybody the same order of messages.
std::mutex everybody_lock;
std::vector<std::shared_ptr<Member>> everybody;

void tell_everybody(const std::string& text) {
    // Whoever reads too slowly misses it: nothing is kept for him once his sender is full.
    for (const auto& member : everybody) member->sender.send_text(text);
}

void enter(WebSocket& socket, const WebSocketOffer& offer) {
    const auto name = offer.request.parameter("name");
    const auto member =
        std::make_shared<Member>(Member{name.value_or("somebody"), socket.sender()});
    socket.data = member;
    const std::lock_guard held(everybody_lock);
    everybody.push_back(member);
    tell_everybody(member->name + " is here");
}

void say(WebSocket& socket, const WebSocketMessage& message) {
    const auto& member = *static_cast<const Member*>(socket.data.get());
    const std::lock_guard held(everybody_lock);
    if (message.is_text) tell_everybody(member.name + ": " + std::string(message.content));
}

void leave(WebSocket& socket, const websocket::Event&) {
    const auto member = std::static_pointer_cast<Member>(socket.data);
    const std::lock_guard held(everybody_lock);
    std::erase(everybody, member);
    tell_everybody(member->name + " has left");
}

}  // namespace

int main(int argc, char** argv) {
    Router::Builder routes;
    routes.add(Method::kGet, "/", Answer(200, {{"Content-Type", "text/html"}}, kPage));
    routes.add_websocket("/chat", {.on_open = enter, .on_message = say, .on_close = leave});
    return run(routes, {.port = argc > 1 ? std::atoi(argv[1]) : 8080});
}
