// A whole connection on a wire that gives room in bits: the transcript is the one of a wide wire.
#include <algorithm>
#include <cctype>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "check.hpp"
#include "example/application.hpp"
#include "net/connection.hpp"

namespace {

using namespace httpmark;

class OneWire final : public Transport {
  public:
    explicit OneWire(const ServerSettings& settings) : connections(settings, *this, 1000) {
        connections.set_time(1000, 784111777);
        id = connections.open(3, false);
    }
    std::ptrdiff_t send(std::uint32_t, const char* data, std::size_t size) override {
        CHECK(!shut && !closed);
        const std::size_t taken = std::min(size, room);
        sent.append(data, taken);
        room -= taken;
        return static_cast<std::ptrdiff_t>(taken);
    }
    void set_interest(std::uint32_t, bool octets, bool wanted) override {
        reading = octets;
        wants_room = wanted;
    }
    void shutdown_write(std::uint32_t) override { shut = true; }
    void close(std::uint32_t) override { closed = true; }

    std::string sent;
    std::size_t room = ~std::size_t{0} >> 1;
    bool reading = true;
    bool wants_room = false;
    bool shut = false;
    bool closed = false;
    std::uint32_t id = 0;
    Connections connections;
};

std::shared_ptr<const Router> router_of(Router::Builder& routes) {
    example::add_routes(routes);
    std::string error;
    auto router = routes.build(error);
    CHECK(router != nullptr);
    return router;
}

// The routes of the example.
const Router& example_router() {
    static const std::shared_ptr<const Router> router = [] {
        Router::Builder routes;
        return router_of(routes);
    }();
    return *router;
}

// The same behind hooks that change nothing.
const Router& hooked_router() {
    static const std::shared_ptr<const Router> router = [] {
        Router::Builder routes;
        routes.before([](const Request& request, ResponseWriter& writer) {
            CHECK(request.data != nullptr && writer.is_untouched());
            return Reason::kNone;
        });
        routes.after([](const Request& request, AnswerHead& head) {
            CHECK(request.data != nullptr && (head.status() >= 200 || head.status() == 101));
            CHECK(!head.add("Content-Length", "0") && !head.add("X", "\n"));
        });
        routes.set_error([](const Refusal& refusal) -> std::optional<RefusalContent> {
            CHECK(refusal.reason != Reason::kNone && refusal.status >= 400);
            return std::nullopt;
        });
        return router_of(routes);
    }();
    return *router;
}

// Sees all and changes nothing.
class Witness final : public Observer {
  public:
    void on_error(const ErrorEvent& event) override {
        CHECK(event.reason != Reason::kNone);
        ++errors;
    }
    void on_answer(const AnswerEvent& event) override {
        CHECK(event.status >= 200 || event.status == 101);
        if (event.error != nullptr) --errors;
        CHECK(event.target().empty() || event.version().starts_with("HTTP/1."));
    }
    int errors = 0;
};

std::string talk(std::string_view input, std::size_t step, std::size_t room,
                 const ServerSettings& settings, Witness* witness = nullptr) {
    OneWire wire(settings);
    wire.connections.set_observer(witness);
    if (room != 0) wire.room = room;
    while (!input.empty() && !wire.closed) {
        const std::vector<char> part(
            input.begin(),
            input.begin() + static_cast<std::ptrdiff_t>(std::min(step, input.size())));
        input.remove_prefix(part.size());
        wire.connections.on_data(wire.id, part.data(), part.size());
        for (unsigned turn = 0; turn < 100000 && !wire.closed && wire.wants_room; ++turn) {
            wire.room = room;
            wire.connections.on_sendable(wire.id);
        }
    }
    for (unsigned turn = 0; turn < 20 && !wire.closed; ++turn) {
        // Time passes: late answers come, and in the end everything is given up.
        wire.connections.set_time(1000 + turn * 600 + (turn > 15 ? 1000000 * turn : 0), 784111777);
        wire.connections.run_timers();
        for (unsigned k = 0; k < 100000 && !wire.closed && wire.wants_room; ++k) {
            wire.room = std::max<std::size_t>(room, 1000);
            wire.connections.on_sendable(wire.id);
        }
    }
    CHECK(wire.closed);
    CHECK(wire.connections.open_count() == 0 && wire.connections.arena().bytes_in_use() == 0);
    return wire.sent;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* octets, std::size_t size) {
    if (size < 3) return 0;
    const std::string_view input(reinterpret_cast<const char*>(octets + 3), size - 3);
    ServerSettings settings;
    settings.router = &example_router();
    settings.limits.body_max = 5000;
    settings.strictness = static_cast<Strictness>(octets[0] % 3);
    settings.choices.refuse_empty_codings = (octets[0] & 0x10) != 0;
    settings.choices.refuse_framing_trailers = (octets[0] & 0x20) != 0;
    settings.choices.refuse_repeated_fields = (octets[0] & 0x40) != 0;
    settings.choices.answer_trace = (octets[0] & 0x80) != 0;
    if ((octets[2] & 1) != 0) settings.limits.pending_output_max = 200;
    const std::string whole = talk(input, input.size() + 1, 0, settings);
    Witness witness;
    const std::string parts = talk(input, 1 + octets[1], 100 + octets[2] * 10U, settings, &witness);
    CHECK(witness.errors == 0);
    settings.router = &hooked_router();
    CHECK(talk(input, 1 + octets[1], 100 + octets[2] * 10U, settings) == parts);
    // A 100 depends on whether the content was there already.
    std::string lower(input);
    for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    if (lower.find("100-continue") == std::string::npos) CHECK(parts == whole);
    return 0;
}
