// Connections that have switched to WebSocket: how they begin, what comes and goes, how they end.
#include <algorithm>
#include <new>
#include <span>
#include <utility>

#include "app/route_hooks.hpp"
#include "app/waker.hpp"
#include "app/websocket_queue.hpp"
#include "check.hpp"
#include "net/asking.hpp"
#include "net/connection.hpp"
#include "net/upgraded.hpp"
#include "websocket/handshake.hpp"

namespace httpmark {

using State = Connection::State;
using Wait = Connection::Wait;

namespace {

websocket::SessionSettings session_settings(const Limits& limits, const WebSocketRoute& route) {
    websocket::SessionSettings settings;
    settings.limits = {std::min(limits.frame_max, route.limits.frame_max),
                       std::min(limits.message_max, route.limits.message_max),
                       std::min(limits.fragments_max, route.limits.fragments_max)};
    settings.deflate = route.deflate;
    return settings;
}

// One that throws has failed: its connection is closed with 1011.
template <class Call>
void call_handler(Connection& c, Upgraded& u, const Call& call) {
    const Reason reason = reason_of([&] {
        call();
        return Reason::kNone;
    });
    if (reason == Reason::kNone) return;
    const auto sent = u.close(websocket::kCloseInternalError);
    if (sent == websocket::Sent::kNoMemory) c.set(Connection::kBroken);
}

}  // namespace

// Frames of the one that is spoken to gather as answers do; those of others wait for the end of the
// turn.
class Connections::Speaking {
  public:
    Speaking(Connections& all, std::uint32_t id) : all_(all) {
        all.current_ = &all.slot(id);
        all.current_id_ = id;
        all.speaking_ = all.upgraded_[id];
        all.sent_in_turn_ = 0;
    }
    ~Speaking() { all_.speaking_ = nullptr; }
    Speaking(const Speaking&) = delete;
    Speaking& operator=(const Speaking&) = delete;

  private:
    Connections& all_;
};

// kNone where the connection has switched; else why not.
Reason Connections::offer_websocket(Connection& c, const Request& request, const char* p,
                                    const char* end) {
    const WebSocketRoute& route = *request.route.websocket;
    websocket::Handshake handshake;
    const Reason fault = reason_of([&] {
        handshake = websocket::judge_handshake(request.head, request.fields(),
                                               {route.subprotocols, route.deflate});
        return Reason::kNone;
    });
    if (fault != Reason::kNone) return fault;
    if (handshake.refusal != websocket::Refusal::kNone) {
        const websocket::RefusalRow& row = websocket::refusal_row(handshake.refusal);
        if (row.is_no_offer) return judge_route(request, framing_of(request.head));
        return row.status == 426 ? Reason::kUpgradeRequired : Reason::kHandshakeInvalid;
    }
    const WebSocketOffer offer{request, handshake.origin, handshake.subprotocol};
    Reason reason = Reason::kNone;
    if (route.admit) reason = reason_of([&] { return route.admit(offer); });
    if (reason == Reason::kNone) reason = open_websocket(c, offer, handshake);
    if (reason != Reason::kNone) return reason;
    // What came with the request is frames.
    const Speaking speaking(*this, current_id_);
    take_frames(current_id_, p, end);
    return Reason::kNone;
}

Upgraded* Connections::make_upgraded(const Connection& c, const WebSocketRoute& route,
                                     const websocket::Handshake& handshake) {
    if (upgraded_.size() <= current_id_ && !room_for([&] { upgraded_.resize(capacity_, nullptr); }))
        return nullptr;
    std::size_t capacity = 0;
    char* const block = arena_.allocate(sizeof(Upgraded), capacity);
    if (block == nullptr) return nullptr;
    auto* const u =
        new (block) Upgraded(*this, {current_id_, c.generation}, route,
                             session_settings(settings_.limits, route), handshake.deflate, arena_);
    u->block_capacity = capacity;
    upgraded_[current_id_] = u;
    return u;
}

Reason Connections::open_websocket(Connection& c, const WebSocketOffer& offer,
                                   const websocket::Handshake& handshake) {
    std::vector<Field> fields;
    if (!room_for([&] { fields = websocket::handshake_fields(handshake); }))
        return Reason::kNoMemory;
    Upgraded* const u = make_upgraded(c, *offer.request.route.websocket, handshake);
    if (u == nullptr) return Reason::kNoMemory;
    const ResponseOptions options{.upgrade = Upgrade::kSwitched};
    ResponseWriter writer(*this, date_, options);
    const AfterHooks after(offer.request, writer);
    if (!writer.write(101, Fields(fields), {})) {
        release_upgraded(current_id_);
        return writer.fault();
    }
    if (observer_ != nullptr) tell_answer(offer.request.head, offer.request.data, writer, nullptr);
    c.state = State::kUpgraded;
    c.wait = Wait::kNothing;
    const Speaking speaking(*this, current_id_);
    if (u->route.on_open) call_handler(c, *u, [&] { u->route.on_open(*u, offer); });
    if (draining_) u->close(websocket::kCloseGoingAway);
    return Reason::kNone;
}

void Connections::release_upgraded(std::uint32_t id) {
    Upgraded* const u = std::exchange(upgraded_[id], nullptr);
    u->parked.release(arena_);
    const std::size_t capacity = u->block_capacity;
    u->~Upgraded();
    arena_.release(reinterpret_cast<char*>(u), capacity);
}

// The application hears of the end, and what is left is a connection that closes.
void Connections::end_websocket(std::uint32_t id, const websocket::Event& event) {
    Connection& c = slot(id);
    Upgraded& u = *upgraded_[id];
    u.leave_senders();
    if (u.route.on_close) call_handler(c, u, [&] { u.route.on_close(u, event); });
    if (speaking_ == &u) speaking_ = nullptr;
    release_upgraded(id);
    c.state = State::kOpen;
    c.wait = Wait::kNothing;
    c.set(Connection::kClosing);
}

// There was no closing handshake, and none will come.
void Connections::lose_websocket(std::uint32_t id) {
    websocket::Event event;
    CHECK(upgraded_[id]->session().lost(event));
    end_websocket(id, event);
}

void Connections::receive_frames(std::uint32_t id, const char* p, const char* end) {
    {
        const Speaking speaking(*this, id);
        Connection& c = slot(id);
        // The peer is there. That it reads, or answers a Close frame, is waited for all the same.
        if (c.wait == Wait::kPing || c.wait == Wait::kPong) c.wait = Wait::kNothing;
        if (upgraded_[id]->parked.size != 0) {
            park_frames(id, {p, static_cast<std::size_t>(end - p)});
        } else {
            take_frames(id, p, end);
        }
        flush();
    }
    settle(id);
}

// As far as the output has room. The buffer that bytes come in is ours until the call returns:
// payload is unmasked in place.
void Connections::take_frames(std::uint32_t id, const char* p, const char* end) {
    Connection& c = slot(id);
    Upgraded& u = *upgraded_[id];
    std::span<char> input(const_cast<char*>(p), static_cast<std::size_t>(end - p));
    websocket::Event event;
    while (!c.has(Connection::kBroken)) {
        if (static_cast<std::size_t>(end_ - at_) < kSmallReplyMax || blocked(c)) flush();
        if (blocked(c) || turn_is_over()) {
            park_frames(id, {input.data(), input.size()});
            return;
        }
        if (!u.session().receive(input, event)) return;
        if (event.kind == websocket::Event::Kind::kClosed) {
            end_websocket(id, event);
            return;
        }
        call_handler(c, u, [&] { u.route.on_message(u, {event.message, event.is_text}); });
    }
}

void Connections::park_frames(std::uint32_t id, std::string_view octets) {
    Buffer& parked = upgraded_[id]->parked;
    if (parked.size + octets.size() > kParkedMax || !parked.append(arena_, octets)) {
        slot(id).set(Connection::kBroken);
    }
}

// What had to wait for room, as far as there is some now.
void Connections::resume_frames(std::uint32_t id) {
    Connection& c = slot(id);
    const Speaking speaking(*this, id);
    while (c.state == State::kUpgraded && !blocked(c) && !c.has(Connection::kBroken) &&
           !turn_is_over()) {
        Upgraded& u = *upgraded_[id];
        if (u.parked.size != 0) {
            Buffer parked = std::exchange(u.parked, Buffer());
            take_frames(id, parked.data, parked.data + parked.size);
            parked.release(arena_);
        } else if (u.queue() != nullptr && u.queue()->has_more()) {
            send_queue(u);
        } else if (u.take_room_awaited()) {
            if (u.route.on_room) call_handler(c, u, [&] { u.route.on_room(u); });
        } else {
            return;
        }
        flush();
    }
}

// What others have given to senders of the connection, as far as the output has room.
void Connections::send_queue(Upgraded& u) {
    using Opcode = websocket::Opcode;
    WebSocketQueue& queue = *u.queue();
    while (!is_full_of(u)) {
        const WebSocketQueue::Message* const message = queue.next();
        if (message == nullptr) {
            if (queue.take_room_awaited()) u.await_room();
            return;
        }
        websocket::Session& session = u.session();
        websocket::Sent sent = websocket::Sent::kYes;
        switch (message->opcode) {
            case Opcode::kText:
                sent = session.send_text(message->octets);
                break;
            case Opcode::kBinary:
                sent = session.send_binary(message->octets);
                break;
            default:
                sent = u.close(message->code, message->octets);
        }
        if (sent == websocket::Sent::kNoMemory) {
            // Nobody would notice that one is missing.
            slot(u.own_key.slot).set(Connection::kBroken);
        }
        if (sent != websocket::Sent::kYes) queue.leave();
        if (sent != websocket::Sent::kYes || !u.is_open()) return;
        queue.drop_first();
    }
}

// It was woken; perhaps by a Waker of a request that came before the switch.
void Connections::call_queue(std::uint32_t id) {
    WebSocketQueue* const queue = upgraded_[id]->queue();
    if (queue == nullptr) return;
    queue->call();
    settle(id);
}

std::shared_ptr<WebSocketQueue> Connections::queue_for(const Upgraded& u) {
    Waker waker(std::make_shared<Sleeper>(mailbox_, u.own_key.slot, u.own_key.generation));
    return std::make_shared<WebSocketQueue>(
        std::move(waker), static_cast<std::size_t>(settings_.limits.pending_output_max));
}

// After every event, as settle() for those that speak HTTP.
void Connections::settle_websocket(std::uint32_t id) {
    Connection& c = slot(id);
    const Limits& limits = settings_.limits;
    resume_frames(id);
    if (c.has(Connection::kBroken)) {
        free_slot(id);
        return;
    }
    if (c.state == State::kUpgraded) {
        const bool ended = c.has(Connection::kPeerClosed) && upgraded_[id]->parked.size == 0;
        // TLS has failed, or the stream has ended without a Close frame.
        if (ended || c.has(Connection::kClosing)) lose_websocket(id);
    }
    if (c.state != State::kUpgraded) {
        settle(id);
        return;
    }
    const Upgraded& u = *upgraded_[id];
    const bool waits = c.output != nullptr || u.has_more();
    const bool reads = u.parked.size == 0 && !blocked(c) && !c.has(Connection::kPeerClosed);
    set_interest(id, reads, waits);
    if (waits) {
        if (c.wait != Wait::kWrite) set_wait(id, Wait::kWrite, limits.write_timeout_ms);
    } else if (!u.is_open()) {
        if (c.wait != Wait::kClose) set_wait(id, Wait::kClose, limits.close_timeout_ms);
    } else if (c.wait != Wait::kPing && c.wait != Wait::kPong) {
        set_wait(id, Wait::kPing, limits.ping_after_ms);
    }
}

// A peer that has been silent is asked for a sign of life.
void Connections::ping_peer(std::uint32_t id) {
    {
        const Speaking speaking(*this, id);
        if (upgraded_[id]->ping() == websocket::Sent::kNoMemory) slot(id).set(Connection::kBroken);
        set_wait(id, Wait::kPong, settings_.limits.pong_timeout_ms);
        flush();
    }
    settle(id);
}

// Room for a frame; of a connection that is not spoken to, in its own output.
char* Connections::frame_room(Upgraded& u, std::size_t size) {
    if (speaking_ == &u) return Sink::prepare(size);
    Connection& c = slot(u.own_key.slot);
    Output* const out = ensure_output(c, size);
    if (out == nullptr) return nullptr;
    if (!u.is_queued && !room_for([&] { queued_.push_back(u.own_key); })) return nullptr;
    u.is_queued = true;
    char* const room = out->data() + out->end;
    out->end += size;
    return room;
}

bool Connections::is_full_of(const Upgraded& u) {
    return blocked(slot(u.own_key.slot));
}

std::size_t Connections::unsent_of(const Upgraded& u) {
    const Output* const out = slot(u.own_key.slot).output;
    const std::size_t gathered =
        speaking_ == &u ? static_cast<std::size_t>(at_ - scratch_) : std::size_t{0};
    return gathered + (out == nullptr ? 0 : unsent(*out));
}

std::string Connections::peer_of(const Upgraded& u) {
    return transport_.peer(u.own_key.slot);
}

WebSocket* Connections::find_websocket(const WebSocketKey& key) {
    const bool is_there =
        is_current(key.slot, key.generation) && slot(key.slot).state == State::kUpgraded;
    return is_there ? upgraded_[key.slot] : nullptr;
}

// What was sent during this turn to connections that were not spoken to.
void Connections::push_queued() {
    // What settles may end a connection, whose handler may send to others.
    for (std::size_t i = 0; i < queued_.size(); ++i) {
        const WebSocketKey key = queued_[i];
        if (find_websocket(key) == nullptr) continue;
        upgraded_[key.slot]->is_queued = false;
        {
            const Speaking speaking(*this, key.slot);
            push_output(slot(key.slot));
        }
        settle(key.slot);
    }
    queued_.clear();
}

void Connections::drain_websocket(std::uint32_t id) {
    {
        const Speaking speaking(*this, id);
        upgraded_[id]->close(websocket::kCloseGoingAway);
        flush();
    }
    settle(id);
}

}  // namespace httpmark
