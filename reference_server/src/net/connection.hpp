// Connections as pure state: bytes and the time in, bytes and orders to a Transport out. No
// sockets, no clocks. One `Connections` per worker; nothing in it is shared.
//
// An idle connection is its 64-byte slot and nothing else. What is needed while a request is
// incomplete, or output unsent, hangs off it in blocks of the arena and goes back when done.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "app/content_reader.hpp"
#include "app/mailbox.hpp"
#include "app/router.hpp"
#include "http/chunked.hpp"
#include "http/framing.hpp"
#include "http/parser.hpp"
#include "http/response.hpp"
#include "limits.hpp"
#include "net/arena.hpp"
#include "net/counters.hpp"
#include "net/file_part.hpp"
#include "net/observer.hpp"
#include "net/timers.hpp"
#include "net/tls.hpp"
#include "websocket/handshake.hpp"

namespace httpmark {

// The door to the wire. `id` is a slot index.
class Transport {
  public:
    static constexpr std::ptrdiff_t kBroken = -1;

    // Bytes taken; when fewer than `size`, ask for room by set_interest(). kBroken: the connection
    // is gone.
    virtual std::ptrdiff_t send(std::uint32_t id, const char* data, std::size_t size) = 0;
    // The same, of bytes that others will follow at once: these may be waited for.
    virtual std::ptrdiff_t send_more(std::uint32_t id, const char* data, std::size_t size) {
        return send(id, data, size);
    }
    // The same, of bytes of a file, which must have them: kBroken, too, where it ends before the
    // first. kCannot: they have to be read.
    static constexpr std::ptrdiff_t kCannot = -2;
    virtual std::ptrdiff_t send_file(std::uint32_t, const FilePart&) { return kCannot; }
    virtual void set_interest(std::uint32_t id, bool octets, bool room) = 0;
    virtual void shutdown_write(std::uint32_t id) = 0;
    virtual void close(std::uint32_t id) = 0;
    // Who is at the other end, as text; "-" where that cannot be told.
    virtual std::string peer(std::uint32_t) { return "-"; }
    // From any thread: have Connections::read_mail() called soon, by the worker's own.
    virtual void wake() {}

  protected:
    ~Transport() = default;
};

struct ServerSettings {
    Limits limits;
    Strictness strictness = Strictness::kStrict;
    const ScanKernel* kernel = &kScalarKernel;
    Choices choices;
    std::string_view server_name;    // of the Server field, which is left out when empty
    const Router* router = nullptr;  // without one, nothing is found
    // Over connections_max no more are accepted, instead of a 503 to each.
    bool wait_over_connections = false;
};

struct Exchange;
struct Output;
struct Upgraded;

struct Connection {
    enum class State : std::uint8_t { kFree, kOpen, kLinger, kUpgraded };
    enum class Wait : std::uint8_t {
        kNothing,
        kIdle,
        kHead,
        kBody,
        kHandler,
        kWrite,
        kLinger,
        kHandshake,
        kPing,    // of a WebSocket peer: anything, or it is sent a Ping
        kPong,    // anything after that
        kClose,   // the answer to a Close frame
        kStream,  // content of which there is none for now
        kPause,   // of a reader of content
    };
    enum Flag : std::uint16_t {
        kClosing = 1,     // no further request is read; close once everything is sent
        kPeerClosed = 2,  // the peer has sent FIN
        kBroken = 4,      // the transport is gone
        kReadingOff = 8,
        kTls = 16,
        kRoomAwaited = 32,
        kUncounted = 64,  // refused for want of room: holds none while its close is under way
    };

    TimerNode timer;
    std::uint32_t generation = 0;
    std::int32_t handle = -1;
    std::uint32_t deadline = 0;  // tick; of meaning while wait is not kNothing
    std::uint32_t requests = 0;
    Exchange* exchange = nullptr;
    Output* output = nullptr;
    TlsSession* tls = nullptr;
    std::uint32_t lingered = 0;
    std::uint16_t flags = 0;
    State state = State::kFree;
    Wait wait = Wait::kNothing;

    bool has(std::uint16_t flag) const { return (flags & flag) != 0; }
    void set(std::uint16_t flag) { flags = static_cast<std::uint16_t>(flags | flag); }
    void clear(std::uint16_t flag) { flags = static_cast<std::uint16_t>(flags & ~flag); }
};
static_assert(sizeof(Connection) == 64);

class Connections final : private TimerNodes,
                          private Sink,
                          private Mailbox::Reader,
                          private ClientFacts {
  public:
    static constexpr std::uint32_t kNoSlot = 0xFFFFFFFF;

    Connections(const ServerSettings& settings, Transport& transport, std::uint64_t now_ms);
    ~Connections();
    Connections(const Connections&) = delete;
    Connections& operator=(const Connections&) = delete;

    // Once per turn of the loop, before any event: a clock that never goes back, and the date.
    void set_time(std::uint64_t now_ms, std::int64_t unix_seconds);

    // Before the first connection; nullptr for none.
    void set_observer(Observer* observer);

    // What new TLS connections are served with; nullptr while there is no TLS.
    void set_tls(std::shared_ptr<const TlsContext> context);

    std::uint32_t open(std::int32_t handle, bool tls);  // kNoSlot when memory is short
    void refuse_open(std::uint32_t id);                 // 503 and close: over the ceiling
    // What stands in `data` may have been changed afterwards: frames are unmasked in place.
    void on_data(std::uint32_t id, const char* data, std::size_t size);
    void on_end(std::uint32_t id);
    void on_broken(std::uint32_t id);
    void on_sendable(std::uint32_t id);

    void run_timers();
    // Milliseconds until run_timers() has something to do, -1 for never.
    int timeout_ms() const;

    // What other threads have put down since the last time.
    void read_mail();
    // Once per turn, after all events: sends what handlers gave to connections that the event was
    // not about.
    void end_turn() {
        if (!queued_.empty()) push_queued();
    }

    // nullptr when that connection is gone, or speaks WebSocket no more.
    WebSocket* find_websocket(const WebSocketKey& key);

    // Makes room for a new connection: the one that has waited longest for its next request, of
    // those looked at, is closed. False where none of these waits.
    bool close_an_idle_one();

    void drain();  // idle connections close now, others after their answer
    void close_all();

    Connection& slot(std::uint32_t id) { return slots_[id / kChunk][id % kChunk]; }
    bool is_current(std::uint32_t id, std::uint32_t generation) {
        return id < capacity_ && slot(id).state != Connection::State::kFree &&
               slot(id).generation == generation;
    }
    std::uint64_t open_count() const { return open_count_; }
    const Counters& counters() const { return counters_; }
    const Arena& arena() const { return arena_; }

  private:
    friend struct Upgraded;
    static constexpr std::uint32_t kChunk = 1024;

    // connection_requests.cpp
    struct Arrival;
    void receive(std::uint32_t id, const char* p, const char* end);
    void receive_tls(std::uint32_t id, const char* data, std::size_t size);
    void resume(std::uint32_t id);
    void run(std::uint32_t id, const char* p, const char* end);
    const char* first_octets(Connection& c, const char* p, const char* end);
    const char* more_head(Connection& c, const char* p, const char* end);
    const char* head_done(Connection& c, const RequestHead& head, const char* data,
                          std::uint32_t head_size, const char* p, const char* end);
    void plain_head(Connection& c, const RequestHead& head, const char* data,
                    std::uint32_t head_size, std::string_view path, std::string_view content,
                    const Route& route);
    const char* other_head(Connection& c, const RequestHead& head, const char* data,
                           std::uint32_t head_size, const char* p, const char* end);
    const char* route_head(Connection& c, const RequestHead& head, const char* data,
                           std::uint32_t head_size, const char* p, const char* end);
    const Route& find_route(const RequestHead& head, std::string_view path) const;
    Reason judge(const Connection& c, const RequestHead& head, const char* data,
                 std::uint32_t head_size) const;
    Arrival arrival_of(const Request& request, const char* p, const char* end) const;
    void answer_early(Connection& c, const Arrival& arrival);
    bool keep_head(Exchange& x, const Request& request);
    Request kept_request(const Connection& c) const;
    void give_up_rest(Connection& c, const Arrival& arrival);
    bool await_rest(Connection& c, const Arrival& arrival);
    const char* more_body(Connection& c, const char* p, const char* end);
    bool gather(Connection& c, std::string_view piece);
    void body_done(Connection& c);
    void park(Connection& c, const char* p, const char* end);
    Exchange* ensure_exchange(Connection& c);
    void release_exchange(Connection& c);

    // connection_answers.cpp
    using ErrorAnswers =
        std::array<std::shared_ptr<const PreparedAnswer>, static_cast<std::size_t>(Reason::kCount)>;
    static const ErrorAnswers& error_answers();
    const PreparedAnswer& error_answer(Reason reason) const {
        return *error_answers_[static_cast<std::size_t>(reason)];
    }
    void judge_common_way();
    void plain_answer(Connection& c, const RequestHead& head, const char* data,
                      std::uint32_t head_size, std::string_view path, std::string_view content,
                      const Route& route);
    bool refuse_simply(Connection& c, Reason reason, const ResponseOptions& options);
    void respond(Connection& c, const Request& request, const ResponseOptions& options);
    void respond(Connection& c, const Request& request);
    void respond_by(Connection& c, const Request& request, const Letter& letter);
    void respond_by(Connection& c, const Request& request, ContentReader& reader);
    void answer_before_end(Connection& c, const Request& request, const ResponseOptions& options,
                           const ResponseWriter& writer, Reason reason);
    void end_answer(Connection& c, const Request& request, const ResponseOptions& options,
                    const ResponseWriter& writer, Reason reason);
    Reason respond_later(Connection& c, const Request& request, const ResponseWriter& writer);
    Reason keep_request(Connection& c, const Request& request);
    void end_exchange(Connection& c);
    void refuse(Connection& c, Reason reason, Method method,
                std::uint64_t offset = ErrorEvent::kNoOffset);
    void write_error(Connection& c, Reason reason, const Request& request, std::uint64_t offset);
    void tell_answer(const RequestHead& head, const char* data, const ResponseWriter& writer,
                     const ErrorEvent* error);
    Reason judge_route(const Request& request, const Framing& framing) const;
    ResponseOptions options_of(const Connection& c, const Request& request) const;
    ResponseOptions options_for(const Connection& c, const RequestHead& head) const;

    // connection_hooks.cpp
    bool ask_hooks(Connection& c, const Request& request, bool ends, Reason& reason);

    // connection_refusals.cpp
    static bool has_route(const Connection& c);
    void write_told_error(Connection& c, Reason reason, const Request& request,
                          std::uint64_t offset, const ResponseOptions& options);

    // connection_mail.cpp
    LaterAnswer later() override;
    void wake() override { transport_.wake(); }
    void deliver(const Letter& letter);
    void leave_waiting(std::uint32_t id);
    void forget_asked();

    // connection_client.cpp
    void ask_for_peer();
    std::string_view known_peer() {
        if (known_peer_id_ != current_id_ || known_peer_generation_ != current_->generation) {
            ask_for_peer();
        }
        return known_peer_;
    }
    std::string peer() const override;
    bool is_tls() const override;
    std::optional<TlsFacts> tls() const override;

    // connection_content.cpp
    bool read_content(std::unique_ptr<ContentReader> reader, bool paused) override;
    bool await_pieces(Connection& c, const Arrival& arrival);
    void pause_content(Exchange& x) const;
    ResponseOptions early_options(const Connection& c, const Request& request) const;
    bool hand_over(Connection& c, std::string_view piece);
    bool after_piece(Connection& c, const Request& request, const ResponseOptions& options,
                     const ResponseWriter& writer, ContentReader::Flow flow, Reason reason);
    static void abort_content(Exchange& x, Reason reason);
    void wake_content(std::uint32_t id);
    void leave_content(Connection& c);
    void write_continue();

    // connection_stream.cpp
    bool next_piece(Connection& c, std::string_view& octets);
    static bool take_piece(Output& out);
    bool append_last_chunk(Connection& c);
    static bool is_asleep(const Output& output);
    Waker waker() override;
    void wake_up(Sleeper& sleeper);

    // connection_output.cpp
    char* prepare_more(std::size_t size) override;
    void append(const LaterContent& content) override;
    Arena* memory() override { return &arena_; }
    // connection_refusals.cpp
    std::optional<RefusalContent> refusal_content(Reason reason, std::uint64_t offset) override;
    // No more may be answered before some of the output has gone.
    bool blocked(const Connection& c) const { return c.output != nullptr && is_full(*c.output); }
    static std::size_t unsent(const Output& output);
    bool is_full(const Output& output) const;
    void flush(bool more = false);
    void keep_scratch();
    void push_output(Connection& c);
    bool next_octets(Connection& c, std::size_t most, std::string_view& octets);
    static void sent_octets(Output& out, std::size_t size);
    static void release_later(Output& out);
    void push_plain(Connection& c);
    std::ptrdiff_t send_next(Connection& c, std::size_t& wanted);
    void push_tls(Connection& c);
    void send_ciphertext(Connection& c);
    void end_tls(Connection& c);
    std::ptrdiff_t send_now(Connection& c, const char* data, std::size_t size, bool more = false);
    std::ptrdiff_t count_sent(Connection& c, std::ptrdiff_t taken);
    bool append_output(Connection& c, const char* data, std::size_t size);
    Output* ensure_output(Connection& c, std::size_t room);
    Output* replace_output(Connection& c, std::size_t room);
    void release_output(Connection& c);

    // connection_waits.cpp
    static bool is_between_requests(const Connection& c);
    static bool is_idle(const Connection& c);
    void settle(std::uint32_t id);
    void await_room(std::uint32_t id);
    void await_exchange(std::uint32_t id);
    void give_up_content(Connection& c, Reason reason);
    void begin_linger(std::uint32_t id);
    void set_wait(std::uint32_t id, Connection::Wait wait, std::uint64_t ms);
    bool prolong_wait(std::uint32_t id, std::uint64_t until_ms);
    std::uint64_t content_due_ms(const Exchange& x) const;
    void on_timer(std::uint32_t id);
    std::uint64_t handler_due_ms(const Exchange& x) const;
    bool answer_waiting(std::uint32_t id);
    void set_interest(std::uint32_t id, bool octets, bool room);

    // connection_websocket.cpp
    class Speaking;
    Reason offer_websocket(Connection& c, const Request& request, const char* p, const char* end);
    Reason open_websocket(Connection& c, const WebSocketOffer& offer,
                          const websocket::Handshake& handshake);
    Upgraded* make_upgraded(const Connection& c, const WebSocketRoute& route,
                            const websocket::Handshake& handshake);
    void release_upgraded(std::uint32_t id);
    void end_websocket(std::uint32_t id, const websocket::Event& event);
    void lose_websocket(std::uint32_t id);
    void receive_frames(std::uint32_t id, const char* p, const char* end);
    void take_frames(std::uint32_t id, const char* p, const char* end);
    void park_frames(std::uint32_t id, std::string_view octets);
    void resume_frames(std::uint32_t id);
    void send_queue(Upgraded& u);
    void call_queue(std::uint32_t id);
    std::shared_ptr<WebSocketQueue> queue_for(const Upgraded& u);
    // The others have their turn before this one is sent more.
    bool turn_is_over() const { return sent_in_turn_ >= kSentInTurnMax; }
    void settle_websocket(std::uint32_t id);
    void ping_peer(std::uint32_t id);
    void drain_websocket(std::uint32_t id);
    void push_queued();
    char* frame_room(Upgraded& u, std::size_t size);
    bool is_full_of(const Upgraded& u);
    std::size_t unsent_of(const Upgraded& u);
    std::string peer_of(const Upgraded& u);

    TimerNode& timer_node(std::uint32_t id) override { return slot(id).timer; }
    void free_slot(std::uint32_t id);

    const ServerSettings& settings_;
    const Router& router_;
    const ErrorAnswers& error_answers_ = error_answers();
    Transport& transport_;
    Arena arena_;
    TimerWheel wheel_;
    Counters counters_;
    HeadParser parser_;
    DateLine date_;
    std::shared_ptr<const TlsContext> tls_context_;
    std::unique_ptr<TlsPipe> pipe_;
    std::vector<std::unique_ptr<Connection[]>> slots_;
    std::uint32_t capacity_ = 0;
    std::uint32_t free_head_ = kNoSlot;
    std::uint64_t open_count_ = 0;
    std::uint32_t looked_at_ = 0;  // the last slot, in search of an idle one
    std::uint64_t now_ms_ = 0;
    std::int64_t unix_seconds_ = 0;
    Observer* observer_ = nullptr;
    std::shared_ptr<Mailbox> mailbox_;
    std::vector<Letter> letters_;  // being read
    // Of the handler that is being asked.
    std::shared_ptr<WaitingRequest> asked_later_;
    std::unique_ptr<ContentReader> asked_reader_;
    const Request* asked_ = nullptr;  // what a handler is asked with, while it is
    bool asked_to_pause_ = false;
    bool content_is_due_ = false;
    bool draining_ = false;
    // Neither a setting nor the state of this worker has a say in common requests.
    bool common_way_ = false;
    // Nobody is told of refusals, and nothing is added to them.
    bool refuses_alone_ = false;

    Connection* current_ = nullptr;
    std::uint32_t current_id_ = kNoSlot;
    // Of the connection whose answers the observer was told of last.
    std::string known_peer_;
    std::uint32_t known_peer_id_ = kNoSlot;
    std::uint32_t known_peer_generation_ = 0;
    std::vector<Upgraded*> upgraded_;     // by slot
    std::vector<WebSocketKey> queued_;    // with frames that wait for the end of the turn
    const Upgraded* speaking_ = nullptr;  // whose frames gather in the scratch
    std::size_t sent_in_turn_ = 0;        // since it has been spoken to

    char* scratch_;  // from here to at_ stands what gathers for one send
};

}  // namespace httpmark
