// A chat: what one says, everybody is told. Open http://127.0.0.1:8080/ in two windows.
#include <cstdlib>
#include <httpmark/httpmark.hpp>
#include <memory>
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

// A connection belongs to one worker. This program has one, so that all of them are here, and the
// list needs no lock.
std::vector<WebSocket*> everybody;

const std::string& name_of(const WebSocket& socket) {
    return *static_cast<const std::string*>(socket.data.get());
}

void tell_everybody(const std::string& text) {
    // Whoever reads too slowly misses it: his connection is full, and nothing is kept for him.
    for (WebSocket* const socket : everybody) socket->send_text(text);
}

void enter(WebSocket& socket, const WebSocketOffer& offer) {
    const auto name = offer.request.parameter("name");
    socket.data = std::make_shared<std::string>(name.value_or("somebody"));
    everybody.push_back(&socket);
    tell_everybody(name_of(socket) + " is here");
}

void say(WebSocket& socket, const WebSocketMessage& message) {
    if (message.is_text) tell_everybody(name_of(socket) + ": " + std::string(message.content));
}

void leave(WebSocket& socket, const websocket::Event&) {
    std::erase(everybody, &socket);
    tell_everybody(name_of(socket) + " has left");
}

}  // namespace

int main(int argc, char** argv) {
    Router::Builder routes;
    routes.add(Method::kGet, "/", Answer(200, {{"Content-Type", "text/html"}}, kPage));
    routes.add_websocket("/chat", {.on_open = enter, .on_message = say, .on_close = leave});
    return run(routes, {.port = argc > 1 ? std::atoi(argv[1]) : 8080, .workers = 1});
}
