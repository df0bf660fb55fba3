#include "net/connection.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <new>

#include "check.hpp"
#include "http/syntax.hpp"

namespace httpmark {

namespace {

// A growing run of octets in the arena.
struct Buffer {
    char* data = nullptr;
    std::size_t size = 0;
    std::size_t capacity = 0;

    bool append(Arena& arena, std::string_view octets) {
        if (octets.empty()) return true;
        if (!reserve(arena, size + octets.size())) return false;
        std::memcpy(data + size, octets.data(), octets.size());
        size += octets.size();
        return true;
    }
    bool reserve(Arena& arena, std::size_t wanted) {
        if (wanted <= capacity) return true;
        std::size_t grown_capacity = 0;
        char* const grown = arena.allocate(std::max(wanted, capacity * 2), grown_capacity);
        if (grown == nullptr) return false;
        if (size != 0) std::memcpy(grown, data, size);
        arena.release(data, capacity);
        data = grown;
        capacity = grown_capacity;
        return true;
    }
    void release(Arena& arena) {
        arena.release(data, capacity);
        *this = Buffer();
    }
    std::string_view view() const { return {data, size}; }
};

constexpr std::string_view kHelloPath = "/hello";
inline bool is_hello(std::string_view target) {  // its size known when it is compared: no call
    return target.size() == kHelloPath.size() &&
           std::memcmp(target.data(), kHelloPath.data(), kHelloPath.size()) == 0;
}
constexpr std::size_t kHeadStep = 256;
constexpr std::size_t kParkedMax = 1024 * 1024;

alignas(64) constexpr auto kFill = [] {
    std::array<char, 16384> fill{};
    for (char& c : fill) c = kFillOctet;
    return fill;
}();

// In 31 bits: no connection's token is ever one of those the loop keeps for itself.
std::uint32_t next_generation(const Connection& c) {
    return (c.generation + 1) & 0x7FFFFFFF;
}

char* map_scratch(std::size_t size) {
    void* block = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(block != MAP_FAILED);
    return static_cast<char*>(block);
}

}  // namespace

// A request that is not all there yet, or whose answer is due later.
struct Exchange {
    enum class Stage : std::uint8_t { kHead, kBody, kWaiting, kParked };

    Stage stage = Stage::kHead;
    bool answered = false;  // the rest of the content is only read to stay in step
    const Route* route = nullptr;
    std::uint32_t head_size = 0;
    std::size_t block_capacity = 0;
    Framing framing;
    std::uint64_t body_left = 0;
    std::uint64_t body_taken = 0;
    std::uint64_t started_ms = 0;
    HeadParser parser;
    ChunkedDecoder chunked;
    Buffer head;
    Buffer content;
    Buffer trailers;
    Buffer parked;  // octets behind this request, received while it could not be left
};

// Octets that the wire did not take.
struct Output {
    char* data() { return reinterpret_cast<char*>(this) + sizeof(Output); }
    std::size_t capacity = 0;  // of data()
    std::size_t block_capacity = 0;
    std::size_t begin = 0;
    std::size_t end = 0;
    std::uint64_t fill = 0;  // octets of filling behind them
    // On a TLS connection the above is plaintext, and this what is encrypted already and goes
    // first.
    Buffer cipher;
    std::size_t cipher_begin = 0;
};

Connections::Connections(const ServerSettings& settings, Transport& transport, std::uint64_t now_ms)
    : settings_(settings),
      transport_(transport),
      arena_(settings.limits.memory_max),
      wheel_(*this, static_cast<std::uint32_t>(now_ms / kTickMs)),
      date_(settings.server_name),
      now_ms_(now_ms),
      scratch_(map_scratch(kOutputScratchSize)),
      scratch_at_(scratch_),
      scratch_end_(scratch_ + kOutputScratchSize) {}

Connections::~Connections() {
    close_all();
    munmap(scratch_, kOutputScratchSize);
}

void Connections::set_time(std::uint64_t now_ms, std::int64_t unix_seconds) {
    now_ms_ = std::max(now_ms, now_ms_);
    unix_seconds_ = unix_seconds;
    if (!date_.update(unix_seconds)) return;
    // The whole answer of /hello, made once a second; with its own kind of Sink, so that it comes
    // from the same writer as every other answer.
    struct Fixed final : Sink {
        explicit Fixed(std::array<char, 128>& room_in) : room(room_in) {}
        char* prepare(std::size_t wanted) override {
            size = wanted;
            return wanted <= room.size() ? room.data() : nullptr;
        }
        bool append_fill(std::uint64_t) override { return false; }
        std::array<char, 128>& room;
        std::size_t size = 0;
    } fixed(hello_);
    ResponseWriter writer(fixed, date_, {});
    // A long Server field leaves no room for it; then it is made each time.
    const bool fits = writer.write(200, {{"Content-Type", "text/plain"}}, kHelloContent);
    hello_size_ = fits ? fixed.size : 0;
    judge_hello();
}

void Connections::judge_hello() {
    const std::vector<Route>& own = settings_.routes;
    hello_is_fixed_ =
        hello_size_ != 0 && !draining_ && observer_ == nullptr &&
        settings_.limits.requests_per_connection == 0 &&
        settings_.limits.request_max >= settings_.limits.head_max &&
        !settings_.choices.refuse_repeated_fields &&
        std::none_of(own.begin(), own.end(), [](const Route& r) { return r.path == kHelloPath; });
}

void Connections::set_observer(Observer* observer) {
    observer_ = observer;
    judge_hello();
}

std::uint32_t Connections::open(std::int32_t handle, bool tls) {
    std::unique_ptr<TlsSession> session;
    if (tls) {
        CHECK(tls_context_ != nullptr);
        session.reset(TlsSession::make(tls_context_, *pipe_));
        if (session == nullptr) return kNoSlot;
    }
    if (free_head_ == kNoSlot) {
        std::unique_ptr<Connection[]> chunk(new (std::nothrow) Connection[kChunk]);
        if (chunk == nullptr) return kNoSlot;
        slots_.push_back(std::move(chunk));
        for (std::uint32_t i = kChunk; i-- > 0;) {
            slots_.back()[i].deadline = free_head_;
            free_head_ = capacity_ + i;
        }
        capacity_ += kChunk;
    }
    const std::uint32_t id = free_head_;
    Connection& c = slot(id);
    free_head_ = c.deadline;
    const std::uint32_t generation = next_generation(c);
    c = Connection();
    c.generation = generation;
    c.handle = handle;
    c.state = Connection::State::kOpen;
    ++open_count_;
    Counters::add(counters_.accepted);
    if (!tls) {
        set_wait(id, Connection::Wait::kIdle, settings_.limits.idle_timeout_ms);
        return id;
    }
    c.set(Connection::kTls);
    c.tls = session.release();
    set_wait(id, Connection::Wait::kHandshake, settings_.limits.handshake_timeout_ms);
    return id;
}

void Connections::set_tls(std::shared_ptr<const TlsContext> context) {
    tls_context_ = std::move(context);
    if (pipe_ == nullptr) pipe_ = std::make_unique<TlsPipe>();
}

void Connections::refuse_open(std::uint32_t id) {
    current_ = &slot(id);
    current_id_ = id;
    if (current_->tls != nullptr) {  // before the handshake there is nothing to answer in
        free_slot(id);
        return;
    }
    refuse(*current_, Reason::kTooManyConnections, Method::kUnknown);
    flush();
    settle(id);
}

void Connections::free_slot(std::uint32_t id) {
    Connection& c = slot(id);
    CHECK(c.state != Connection::State::kFree);
    wheel_.remove(id);
    release_exchange(c);
    release_output(c);
    delete c.tls;
    c.tls = nullptr;
    transport_.close(id);
    c.state = Connection::State::kFree;
    c.generation = next_generation(c);
    c.deadline = free_head_;
    free_head_ = id;
    --open_count_;
    Counters::add(counters_.closed);
}

void Connections::close_all() {
    for (std::uint32_t id = 0; id < capacity_; ++id) {
        if (slot(id).state != Connection::State::kFree) free_slot(id);
    }
}

// ---------------------------------------------------------------- events

void Connections::on_data(std::uint32_t id, const char* data, std::size_t size) {
    Connection& c = slot(id);
    Counters::add(counters_.bytes_in, size);
    if (c.state == Connection::State::kLinger) {
        // RFC 9112 9.6: read and thrown away, so that no RST overtakes the last answer.
        c.lingered += static_cast<std::uint32_t>(size);
        if (c.lingered > settings_.limits.linger_max) free_slot(id);
        return;
    }
    if (c.tls != nullptr) {
        receive_tls(id, data, size);
    } else {
        receive(id, data, data + size);
    }
}

void Connections::receive_tls(std::uint32_t id, const char* data, std::size_t size) {
    Connection& c = slot(id);
    current_ = &c;
    current_id_ = id;
    std::string_view plaintext;
    const TlsSession::Status status = c.tls->receive(*pipe_, data, size, plaintext);
    send_ciphertext(c);  // handshake, alerts, answers to key updates
    if (status == TlsSession::Status::kFailed) {
        c.set(Connection::kClosing);
        delete c.tls;
        c.tls = nullptr;
        if (c.exchange != nullptr) release_exchange(c);
        settle(id);
        return;
    }
    if (!c.tls->established()) {
        settle(id);
        return;
    }
    const std::uint32_t generation = c.generation;
    receive(id, plaintext.data(), plaintext.data() + plaintext.size());
    if (status == TlsSession::Status::kEnded && is_current(id, generation)) on_end(id);
}

void Connections::on_end(std::uint32_t id) {
    Connection& c = slot(id);
    if (c.state == Connection::State::kLinger) {
        free_slot(id);
        return;
    }
    c.set(Connection::kPeerClosed);
    current_ = &c;
    current_id_ = id;
    resume(id);
}

void Connections::on_broken(std::uint32_t id) {
    free_slot(id);
}

void Connections::on_sendable(std::uint32_t id) {
    Connection& c = slot(id);
    current_ = &c;
    current_id_ = id;
    push_output(c);
    resume(id);
}

// Octets in, then whatever had to wait behind blocked output or a late answer, as far as it goes.
void Connections::receive(std::uint32_t id, const char* p, const char* end) {
    run(id, p, end);
    resume(id);
}

void Connections::resume(std::uint32_t id) {
    Connection& c = slot(id);
    while (!blocked(c) && !c.has(Connection::kBroken | Connection::kClosing) &&
           c.exchange != nullptr && c.exchange->parked.size != 0 &&
           c.exchange->stage != Exchange::Stage::kWaiting) {
        Buffer parked = c.exchange->parked;
        c.exchange->parked = Buffer();
        if (c.exchange->stage == Exchange::Stage::kParked) release_exchange(c);
        run(id, parked.data, parked.data + parked.size);
        parked.release(arena_);
    }
    settle(id);
}

// ---------------------------------------------------------------- requests

void Connections::run(std::uint32_t id, const char* p, const char* end) {
    Connection& c = slot(id);
    current_ = &c;
    current_id_ = id;
    while (p != end && !c.has(Connection::kClosing | Connection::kBroken)) {
        // An answer too large for the scratch stands in the output, which may not be stuck at all.
        if (static_cast<std::size_t>(scratch_end_ - scratch_at_) < kSmallReplyMax || blocked(c)) {
            flush();
        }
        Exchange* const x = c.exchange;
        if (blocked(c) ||
            (x != nullptr && (x->stage >= Exchange::Stage::kWaiting || x->parked.size != 0))) {
            park(c, p, end);
            break;
        }
        if (x == nullptr) {
            p = first_octets(c, p, end);
        } else if (x->stage == Exchange::Stage::kHead) {
            p = more_head(c, p, end);
        } else {
            p = more_body(c, p, end);
        }
    }
    flush();
}

const char* Connections::first_octets(Connection& c, const char* p, const char* end) {
    parser_.reset();
    const ParseResult result = parser_.parse(p, static_cast<std::size_t>(end - p), settings_.limits,
                                             settings_.strictness, *settings_.kernel);
    if (result.verdict == Verdict::kAccepted) [[likely]] {
        return head_done(c, parser_.head(), p, result.offset, p + result.offset, end);
    }
    if (result.verdict == Verdict::kRejected) {
        refuse(c, result.reason, parser_.head().method, result.offset);
        return end;
    }
    Exchange* const x = ensure_exchange(c);
    if (x == nullptr || !x->head.append(arena_, {p, static_cast<std::size_t>(end - p)})) {
        refuse(c, Reason::kNoMemory, parser_.head().method);
        return end;
    }
    x->parser = parser_;
    return end;
}

// Only an incomplete head is copied, and only as much of what follows as it may need.
const char* Connections::more_head(Connection& c, const char* p, const char* end) {
    Exchange& x = *c.exchange;
    const std::size_t known = x.head.size;
    const std::size_t step =
        std::min(static_cast<std::size_t>(end - p), std::max(kHeadStep, known));
    if (!x.head.append(arena_, {p, step})) {
        refuse(c, Reason::kNoMemory, x.parser.head().method);
        return end;
    }
    if (!x.parser.begun()) x.started_ms = now_ms_;
    const ParseResult result = x.parser.parse(x.head.data, x.head.size, settings_.limits,
                                              settings_.strictness, *settings_.kernel);
    if (result.verdict == Verdict::kNeedMore) return p + step;
    if (result.verdict == Verdict::kRejected) {
        refuse(c, result.reason, x.parser.head().method, result.offset);
        return end;
    }
    CHECK(result.offset > known);
    x.head.size = result.offset;
    return head_done(c, x.parser.head(), x.head.data, result.offset, p + (result.offset - known),
                     end);
}

ResponseOptions Connections::options_for(Connection& c, const RequestHead& head) {
    const Limits& limits = settings_.limits;
    const bool last = draining_ || (limits.requests_per_connection != 0 &&
                                    c.requests >= limits.requests_per_connection);
    const bool close = last || c.has(Connection::kClosing) || !wants_persistence(head);
    return {head.method == Method::kHead, close, !close && !head.is_http_1_1()};
}

const char* Connections::head_done(Connection& c, const RequestHead& head, const char* data,
                                   std::uint32_t head_size, const char* p, const char* end) {
    const Limits& limits = settings_.limits;
    ++c.requests;
    Counters::add(counters_.requests);
    // A plain GET of the fixed answer: its octets are ready, made once a second.
    if (is_plain(head) && head.method == Method::kGet && is_hello(head.target.in(data)) &&
        hello_is_fixed_) [[likely]] {
        std::memcpy(scratch_at_, hello_.data(), hello_.size());
        scratch_at_ += hello_size_;
        if (c.exchange != nullptr) release_exchange(c);
        return p;
    }
    Reason reason =
        judge_head(head, limits, settings_.strictness, c.has(Connection::kTls), settings_.choices);
    if (settings_.choices.refuse_repeated_fields && comes_behind_repeated_fields(reason) &&
        repeats_a_singleton({data + head.fields_begin, head_size - head.fields_begin}))
        [[unlikely]] {
        reason = Reason::kFieldRepeated;
    }
    if (reason != Reason::kNone && !error_row(reason).connection_lives) {
        refuse(c, reason, head.method);
        return end;
    }
    const Framing framing = framing_of(head);
    const Request request{head, data, head_size, split_target(head.target.in(data), head.form),
                          {},   {},   c.requests};
    const Route& route = head.method == Method::kTrace
                             ? trace_route()
                             : find_route(request.target.path, settings_.routes);
    // Of chunked content the length is not known yet; without content it is 0.
    const bool total = head_size + framing.length > limits.request_max;
    if (total || framing.length > route.body_max) {
        refuse(c, total ? Reason::kRequestTooLarge : Reason::kContentTooLarge, head.method);
        return end;
    }
    if (reason == Reason::kNone) reason = judge_route(route, request, framing);
    const bool here =
        framing.kind == BodyKind::kNone || (framing.kind == BodyKind::kLength &&
                                            static_cast<std::uint64_t>(end - p) >= framing.length);
    const bool expects = head.has(kExpectContinue) && head.is_http_1_1() &&
                         framing.kind != BodyKind::kNone && p == end;
    const bool early = reason != Reason::kNone || route.early;
    if (early) {
        // RFC 9110 10.1.1: who was promised no 100 may or may not send the content; only a close
        // leaves no doubt about what comes next. So it is with content that is too long to be read
        // for nothing.
        if (expects || (!here && framing.length > limits.early_drain_max)) {
            c.set(Connection::kClosing);
        }
        if (reason != Reason::kNone) {
            write_error(c, reason, request, route.allow, ErrorEvent::kNoOffset);
        } else {
            respond(c, route, request);
        }
    } else if (here && route.handler != Handler::kSlow) {
        Request whole = request;
        whole.content = {p, static_cast<std::size_t>(framing.length)};
        respond(c, route, whole);
    }
    if ((early || route.handler != Handler::kSlow) && here) {
        if (c.exchange != nullptr) release_exchange(c);
        return p + framing.length;
    }
    if (c.has(Connection::kClosing)) {
        if (c.exchange != nullptr) release_exchange(c);
        return end;
    }
    const bool was_here = c.exchange != nullptr;
    Exchange* const x = ensure_exchange(c);
    if (x == nullptr) {
        refuse(c, Reason::kNoMemory, head.method);
        return end;
    }
    if (!was_here) {
        x->parser = parser_;
        const bool keeps_head = route.wants_head || observer_ != nullptr;
        if (keeps_head && !x->head.append(arena_, {data, head_size})) {
            refuse(c, Reason::kNoMemory, head.method);
            return end;
        }
    }
    x->stage = Exchange::Stage::kBody;
    x->answered = early;
    x->route = &route;
    x->head_size = head_size;
    x->framing = framing;
    x->body_left = framing.length;
    x->chunked.set_octets_max(limits.request_max -
                              std::min<std::uint64_t>(head_size, limits.request_max));
    x->chunked.set_content_max(route.body_max);
    if (settings_.choices.refuse_framing_trailers) x->chunked.refuse_framing_trailers();
    x->started_ms = now_ms_;
    if (framing.kind == BodyKind::kNone) {
        respond_later(c);
    } else if (expects) {
        // RFC 9110 10.1.1: all checks have passed, content is announced and none has come.
        constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
        std::memcpy(scratch_at_, kContinue.data(), kContinue.size());
        scratch_at_ += kContinue.size();
    }
    return p;
}

bool Connections::gather(Connection& c, std::string_view piece) {
    Exchange& x = *c.exchange;
    x.body_taken += piece.size();
    if (x.answered) {
        if (x.body_taken <= settings_.limits.early_drain_max) return true;
        c.set(Connection::kClosing);
        release_exchange(c);
        return false;
    }
    if (!x.route->wants_content) return true;
    if (x.content.capacity == 0 && x.framing.kind == BodyKind::kLength &&
        !x.content.reserve(arena_, static_cast<std::size_t>(std::min<std::uint64_t>(
                                       x.framing.length, kReceiveBufferSize)))) {
        refuse(c, Reason::kNoMemory, x.parser.head().method);
        return false;
    }
    if (x.content.append(arena_, piece)) return true;
    refuse(c, Reason::kNoMemory, x.parser.head().method);
    return false;
}

const char* Connections::more_body(Connection& c, const char* p, const char* end) {
    Exchange& x = *c.exchange;
    const Limits& limits = settings_.limits;
    if (x.framing.kind == BodyKind::kLength) {
        const std::size_t size = static_cast<std::size_t>(
            std::min<std::uint64_t>(x.body_left, static_cast<std::uint64_t>(end - p)));
        if (!gather(c, {p, size})) return end;
        x.body_left -= size;
        p += size;
        if (x.body_left == 0) body_done(c);
        return p;
    }
    std::string_view input(p, static_cast<std::size_t>(end - p));
    while (true) {
        std::string_view piece;
        switch (x.chunked.decode(input, limits, piece)) {
            case ChunkedDecoder::Status::kNeedMore:
                return end;
            case ChunkedDecoder::Status::kContent:
                if (!gather(c, piece)) return end;
                break;
            case ChunkedDecoder::Status::kTrailer:
                if (!x.answered && x.route->wants_content && !x.trailers.append(arena_, piece)) {
                    refuse(c, Reason::kNoMemory, x.parser.head().method);
                    return end;
                }
                break;
            case ChunkedDecoder::Status::kRejected:
                if (x.answered) {
                    c.set(Connection::kClosing);
                    release_exchange(c);
                } else {
                    refuse(c, x.chunked.reason(), x.parser.head().method,
                           x.head_size + x.chunked.offset());
                }
                return end;
            case ChunkedDecoder::Status::kDone:
                body_done(c);
                return input.data();
        }
    }
}

void Connections::body_done(Connection& c) {
    Exchange& x = *c.exchange;
    if (x.answered) {
        release_exchange(c);
        return;
    }
    if (x.route->handler == Handler::kSlow) {
        respond_later(c);
        return;
    }
    const RequestHead& head = x.parser.head();
    Request request{head,      x.head.data, x.head_size, {}, x.content.view(), x.trailers.view(),
                    c.requests};
    if (x.head.data != nullptr) {
        request.target = split_target(head.target.in(x.head.data), head.form);
    }
    respond(c, *x.route, request);
    if (c.exchange != nullptr) release_exchange(c);
}

void Connections::respond(Connection& c, const Route& route, const Request& request) {
    ResponseOptions options = options_for(c, request.head);
    if (request.head.method == Method::kOptions) options.allow = route.allow;
    ResponseWriter writer(*this, date_, options);
    Reason reason = Reason::kNone;
    if (route.handler == Handler::kMetrics) [[unlikely]] {
        answer_metrics(writer);
        reason = writer.fault();
    } else {
        reason = answer(route, request, writer);
    }
    if (reason != Reason::kNone) {
        write_error(c, reason, request, route.allow, ErrorEvent::kNoOffset);
        return;
    }
    if (observer_ != nullptr) [[unlikely]]
        tell_answer(c, request, writer, nullptr);
    if (options.close) c.set(Connection::kClosing);
}

// What a route asks of a request beyond the rules of the protocol.
Reason Connections::judge_route(const Route& route, const Request& request,
                                const Framing& framing) const {
    if ((route.methods & method_bit(request.head.method)) == 0) return Reason::kMethodNotAllowed;
    if (framing.kind == BodyKind::kNone) return Reason::kNone;
    if (route.wants_length && framing.kind == BodyKind::kChunked) return Reason::kLengthRequired;
    if (route.media_type.empty()) return Reason::kNone;
    FieldReader reader(
        {request.data + request.head.fields_begin, request.head_size - request.head.fields_begin});
    std::string_view name;
    std::string_view value;
    while (reader.next(name, value)) {
        // RFC 9110 8.3.1: type and subtype without regard to case, parameters behind ';'.
        if (equals_ignoring_case(name, "content-type") &&
            equals_ignoring_case(trim_ows(value.substr(0, value.find(';'))), route.media_type)) {
            return Reason::kNone;
        }
    }
    return Reason::kMediaType;
}

void Connections::respond_later(Connection& c) {
    c.exchange->stage = Exchange::Stage::kWaiting;
    c.exchange->started_ms = now_ms_;
}

void Connections::write_error(Connection& c, Reason reason, const Request& request,
                              std::string_view allow, std::uint64_t offset) {
    const ErrorRow& row = error_row(reason);
    Counters::add(counters_.errors[static_cast<std::size_t>(reason)]);
    ResponseOptions options = options_for(c, request.head);
    if (!row.connection_lives) options.close = true;
    if (options.close) {
        c.set(Connection::kClosing);
        options.say_keep_alive = false;
    }
    if (row.status == 405) options.allow = allow;  // RFC 9110 15.5.6
    ResponseWriter writer(*this, date_, options);
    const std::string peer = observer_ == nullptr ? std::string() : transport_.peer(current_id_);
    const ErrorEvent event{reason, offset, peer};
    if (observer_ != nullptr) observer_->on_error(event);
    if (observer_ == nullptr || !observer_->answer_error(event, writer)) {
        std::array<char, 64> content{};
        const std::string_view name(row.name);
        CHECK(name.size() + 1 <= content.size());
        std::memcpy(content.data(), name.data(), name.size());
        content[name.size()] = '\n';
        const std::string_view text(content.data(), name.size() + 1);
        if (!writer.write(row.status, {{"Content-Type", "text/plain"}}, text)) {
            c.set(Connection::kBroken);
            return;
        }
    }
    if (observer_ != nullptr) tell_answer(c, request, writer, &event);
}

void Connections::tell_answer(Connection&, const Request& request, const ResponseWriter& writer,
                              const ErrorEvent* error) {
    const RequestHead& head = request.head;
    const std::string peer = error == nullptr ? transport_.peer(current_id_) : std::string();
    AnswerEvent event{};
    event.error = error;
    event.peer = error == nullptr ? std::string_view(peer) : error->peer;
    event.unix_seconds = unix_seconds_;
    if (request.data != nullptr) {
        event.method = head.method_name.in(request.data);
        event.target = head.target.in(request.data);
        event.version = {request.data + head.target.begin + head.target.size + 1, 8};
    }
    event.status = writer.status();
    event.content_size = writer.content_size();
    observer_->on_answer(event);
}

// The stream is of no further use: one answer, then the staged close. `method` is what is known of
// the request's, which decides whether the answer has content (RFC 9110 9.3.2).
void Connections::refuse(Connection& c, Reason reason, Method method, std::uint64_t offset) {
    Counters::add(counters_.refused);
    CHECK(!error_row(reason).connection_lives);
    RequestHead head;
    head.method = method;
    head.version_minor = 1;
    write_error(c, reason, {head, nullptr, 0, {}, {}, {}, c.requests}, {}, offset);
    if (c.exchange != nullptr) release_exchange(c);
}

// All workers' counters in the text format that Prometheus reads.
void Connections::answer_metrics(ResponseWriter& writer) {
    constexpr struct {
        std::atomic<std::uint64_t> Counters::*counter;
        const char* name;
        const char* meaning;
    } kRows[] = {
        {&Counters::accepted, "connections_accepted", "Connections accepted"},
        {&Counters::closed, "connections_closed", "Connections closed"},
        {&Counters::requests, "requests", "Requests whose head was complete"},
        {&Counters::refused, "refused", "Refusals that end the connection"},
        {&Counters::timeouts, "timeouts", "Timeouts of any kind"},
        {&Counters::bytes_in, "received_bytes", "Octets received"},
        {&Counters::bytes_out, "sent_bytes", "Octets sent"},
    };
    std::string text;
    for (const auto& row : kRows) {
        const std::string name = std::string("httpmark_") + row.name + "_total";
        text += "# HELP " + name + ' ' + row.meaning + "\n# TYPE " + name + " counter\n";
        for (std::size_t i = 0; i < settings_.metrics->size(); ++i) {
            text += name + "{worker=\"" + std::to_string(i) + "\"} " +
                    std::to_string(
                        ((*settings_.metrics)[i]->*row.counter).load(std::memory_order_relaxed)) +
                    '\n';
        }
    }
    text +=
        "# HELP httpmark_errors_total Error answers by reason\n"
        "# TYPE httpmark_errors_total counter\n";
    for (std::size_t reason = 1; reason < static_cast<std::size_t>(Reason::kCount); ++reason) {
        std::uint64_t sum = 0;
        for (const Counters* counters : *settings_.metrics) {
            sum += counters->errors[reason].load(std::memory_order_relaxed);
        }
        if (sum == 0) continue;
        text += std::string("httpmark_errors_total{reason=\"") +
                error_row(static_cast<Reason>(reason)).name + "\"} " + std::to_string(sum) + '\n';
    }
    writer.write(200, {{"Content-Type", "text/plain; version=0.0.4"}}, text);
}

// ---------------------------------------------------------------- output

char* Connections::prepare(std::size_t size) {
    if (static_cast<std::size_t>(scratch_end_ - scratch_at_) < size || blocked(*current_)) {
        flush();
        if (size > kOutputScratchSize || blocked(*current_)) {
            Output* const out = ensure_output(*current_, size);
            if (out == nullptr) return nullptr;
            char* const room = out->data() + out->end;
            out->end += size;
            return room;
        }
    }
    char* const room = scratch_at_;
    scratch_at_ += size;
    return room;
}

bool Connections::append_fill(std::uint64_t size) {
    flush();
    Output* const out = ensure_output(*current_, 0);
    if (out == nullptr) {
        current_->set(Connection::kBroken);  // the head is out: only a close can tell
        return true;
    }
    out->fill += size;
    return true;
}

// What has gathered in the scratch goes out in one send; what the wire leaves is copied.
void Connections::flush() {
    Connection& c = *current_;
    const auto size = static_cast<std::size_t>(scratch_at_ - scratch_);
    scratch_at_ = scratch_;
    if (c.has(Connection::kBroken)) return;
    if (size != 0) {
        if (c.output != nullptr) {
            if (!append_output(c, scratch_, size)) {
                c.set(Connection::kBroken);
            } else if (!c.has(Connection::kRoomAwaited)) {
                push_output(c);
            }
            return;
        }
        if (c.tls != nullptr) {
            if (!c.tls->send(*pipe_, scratch_, size)) c.set(Connection::kBroken);
            send_ciphertext(c);
            return;
        }
        const std::ptrdiff_t sent = send_now(c, scratch_, size);
        if (sent >= 0 && static_cast<std::size_t>(sent) < size &&
            !append_output(c, scratch_ + sent, size - static_cast<std::size_t>(sent))) {
            c.set(Connection::kBroken);
        }
        return;
    }
    push_output(c);
}

std::ptrdiff_t Connections::send_now(Connection& c, const char* data, std::size_t size) {
    const std::ptrdiff_t taken = transport_.send(current_id_, data, size);
    if (taken < 0) {
        c.set(Connection::kBroken);
        return taken;
    }
    Counters::add(counters_.bytes_out, static_cast<std::uint64_t>(taken));
    if (taken > 0 && c.wait == Connection::Wait::kWrite) {
        set_wait(current_id_, Connection::Wait::kWrite, settings_.limits.write_timeout_ms);
    }
    return taken;
}

// Sends what stands in the pipe behind what waits already.
void Connections::send_ciphertext(Connection& c) {
    const std::string_view cipher = pipe_->ciphertext();
    std::size_t sent = 0;
    const bool waiting = c.output != nullptr && c.output->cipher.size != c.output->cipher_begin;
    if (!cipher.empty() && !waiting && !c.has(Connection::kBroken)) {
        sent = static_cast<std::size_t>(
            std::max<std::ptrdiff_t>(send_now(c, cipher.data(), cipher.size()), 0));
    }
    if (sent < cipher.size() && !c.has(Connection::kBroken)) {
        Output* const out = ensure_output(c, 0);
        if (out == nullptr || !out->cipher.append(arena_, cipher.substr(sent))) {
            c.set(Connection::kBroken);
        }
    }
    pipe_->clear();
}

void Connections::push_output(Connection& c) {
    if (c.tls != nullptr || (c.output != nullptr && c.output->cipher.size != 0)) {
        push_tls(c);
    } else {
        push_plain(c);
    }
}

void Connections::push_plain(Connection& c) {
    while (c.output != nullptr && !c.has(Connection::kBroken)) {
        Output& out = *c.output;
        const bool filling = out.begin == out.end;
        if (filling && out.fill == 0) {
            release_output(c);
            return;
        }
        const char* const data = filling ? kFill.data() : out.data() + out.begin;
        const std::size_t size =
            filling ? static_cast<std::size_t>(std::min<std::uint64_t>(out.fill, kFill.size()))
                    : out.end - out.begin;
        const std::ptrdiff_t taken = send_now(c, data, size);
        if (taken < 0) return;
        const auto sent = static_cast<std::size_t>(taken);
        if (filling) {
            out.fill -= sent;
        } else {
            out.begin += sent;
        }
        if (sent < size) return;
    }
}

// As above, a record at a time: no more is encrypted than the wire has room for.
void Connections::push_tls(Connection& c) {
    while (c.output != nullptr && !c.has(Connection::kBroken)) {
        Output& out = *c.output;
        const std::size_t waiting = out.cipher.size - out.cipher_begin;
        if (waiting != 0) {
            const std::ptrdiff_t taken = send_now(c, out.cipher.data + out.cipher_begin, waiting);
            if (taken < 0) return;
            out.cipher_begin += static_cast<std::size_t>(taken);
            if (static_cast<std::size_t>(taken) < waiting) return;
            out.cipher.size = 0;
            out.cipher_begin = 0;
        }
        const bool filling = out.begin == out.end;
        if (c.tls == nullptr || (filling && out.fill == 0)) {
            release_output(c);
            return;
        }
        const char* const data = filling ? kFill.data() : out.data() + out.begin;
        const std::size_t size = static_cast<std::size_t>(
            std::min<std::uint64_t>(filling ? out.fill : out.end - out.begin, kTlsRecordMax));
        if (!c.tls->send(*pipe_, data, size)) {
            c.set(Connection::kBroken);
            return;
        }
        if (filling) {
            out.fill -= size;
        } else {
            out.begin += size;
        }
        send_ciphertext(c);
    }
}

bool Connections::is_full(const Output& output) const {
    const std::size_t unsent = output.end - output.begin + output.cipher.size - output.cipher_begin;
    // Behind filling nothing can be appended.
    return output.fill != 0 || unsent > settings_.limits.pending_output_max;
}

Output* Connections::ensure_output(Connection& c, std::size_t room) {
    Output* const old = c.output;
    if (old != nullptr && old->capacity - old->end >= room) return old;
    const std::size_t kept = old == nullptr ? 0 : old->end - old->begin;
    std::size_t capacity = 0;
    char* const block = arena_.allocate(sizeof(Output) + kept + room, capacity);
    if (block == nullptr) return nullptr;
    Output* const out = new (block) Output();
    out->block_capacity = capacity;
    out->capacity = capacity - sizeof(Output);
    if (old != nullptr) {
        std::memcpy(out->data(), old->data() + old->begin, kept);
        out->end = kept;
        out->fill = old->fill;
        out->cipher = old->cipher;
        out->cipher_begin = old->cipher_begin;
        old->cipher = Buffer();
        release_output(c);
    }
    c.output = out;
    return out;
}

bool Connections::append_output(Connection& c, const char* data, std::size_t size) {
    Output* const out = ensure_output(c, size);
    if (out == nullptr) return false;
    CHECK(out->fill == 0);
    std::memcpy(out->data() + out->end, data, size);
    out->end += size;
    return true;
}

void Connections::release_output(Connection& c) {
    if (c.output == nullptr) return;
    c.output->cipher.release(arena_);
    arena_.release(reinterpret_cast<char*>(c.output), c.output->block_capacity);
    c.output = nullptr;
}

Exchange* Connections::ensure_exchange(Connection& c) {
    if (c.exchange != nullptr) return c.exchange;
    std::size_t capacity = 0;
    char* const block = arena_.allocate(sizeof(Exchange), capacity);
    if (block == nullptr) return nullptr;
    c.exchange = new (block) Exchange();
    c.exchange->block_capacity = capacity;
    c.exchange->started_ms = now_ms_;
    return c.exchange;
}

void Connections::release_exchange(Connection& c) {
    Exchange* const x = c.exchange;
    if (x == nullptr) return;
    x->head.release(arena_);
    x->content.release(arena_);
    x->trailers.release(arena_);
    x->parked.release(arena_);
    const std::size_t capacity = x->block_capacity;
    x->~Exchange();
    arena_.release(reinterpret_cast<char*>(x), capacity);
    c.exchange = nullptr;
}

// Octets that cannot be looked at before the output has moved or an answer is due.
void Connections::park(Connection& c, const char* p, const char* end) {
    const auto size = static_cast<std::size_t>(end - p);
    const bool fresh = c.exchange == nullptr;
    Exchange* const x = ensure_exchange(c);
    if (x == nullptr) {
        c.set(Connection::kBroken);
        return;
    }
    if (fresh) x->stage = Exchange::Stage::kParked;
    if (x->parked.size + size > kParkedMax || !x->parked.append(arena_, {p, size})) {
        c.set(Connection::kBroken);
    }
}

// ---------------------------------------------------------------- what next

void Connections::set_interest(std::uint32_t id, bool octets, bool room) {
    Connection& c = slot(id);
    if (octets == !c.has(Connection::kReadingOff) && room == c.has(Connection::kRoomAwaited)) {
        return;
    }
    c.clear(Connection::kReadingOff | Connection::kRoomAwaited);
    if (!octets) c.set(Connection::kReadingOff);
    if (room) c.set(Connection::kRoomAwaited);
    transport_.set_interest(id, octets, room);
}

// No request is under way; empty lines before one are none (RFC 9112 2.2).
bool Connections::is_between_requests(const Connection& c) {
    return c.exchange == nullptr ||
           (c.exchange->stage == Exchange::Stage::kHead && !c.exchange->parser.begun());
}

void Connections::settle(std::uint32_t id) {
    Connection& c = slot(id);
    const Limits& limits = settings_.limits;
    if (c.state != Connection::State::kOpen) return;
    if (c.has(Connection::kBroken)) {
        free_slot(id);
        return;
    }
    if (c.output != nullptr) {
        // What waits is little and nothing else is in the way: the next requests may come.
        const bool reads =
            !blocked(c) && !c.has(Connection::kClosing | Connection::kPeerClosed) &&
            (c.exchange == nullptr ||
             (c.exchange->parked.size == 0 && c.exchange->stage < Exchange::Stage::kWaiting));
        set_interest(id, reads, true);
        if (c.wait != Connection::Wait::kWrite) {
            set_wait(id, Connection::Wait::kWrite, limits.write_timeout_ms);
        }
        return;
    }
    if (c.has(Connection::kClosing)) {
        begin_linger(id);
        return;
    }
    if ((c.has(Connection::kPeerClosed) || draining_) && is_between_requests(c)) {
        release_exchange(c);
    }
    const Exchange* const x = c.exchange;
    if (c.has(Connection::kPeerClosed) && x != nullptr && x->stage < Exchange::Stage::kWaiting) {
        // RFC 9112 8: the rest of this request will never come.
        if (x->answered) {
            c.set(Connection::kClosing);
            release_exchange(c);
        } else {
            refuse(c, Reason::kIncomplete, x->parser.head().method);
        }
        flush();
        settle(id);
        return;
    }
    if (c.tls != nullptr && !c.tls->established() && !c.has(Connection::kPeerClosed)) {
        set_interest(id, true, false);
        if (c.wait != Connection::Wait::kHandshake) {
            set_wait(id, Connection::Wait::kHandshake, limits.handshake_timeout_ms);
        }
        return;
    }
    if (x == nullptr) {
        if (c.has(Connection::kPeerClosed) || draining_) {
            // The peer's FIN is answered by ours, in TLS by an alert before it.
            begin_linger(id);
            return;
        }
        set_interest(id, true, false);
        set_wait(id, Connection::Wait::kIdle, limits.idle_timeout_ms);
        return;
    }
    switch (x->stage) {
        case Exchange::Stage::kHead:
            set_interest(id, true, false);
            if (is_between_requests(c)) {
                set_wait(id, Connection::Wait::kIdle, limits.idle_timeout_ms);
            } else if (c.wait != Connection::Wait::kHead) {
                set_wait(id, Connection::Wait::kHead, limits.head_timeout_ms);
            }
            break;
        case Exchange::Stage::kBody:
            set_interest(id, true, false);
            if (c.wait != Connection::Wait::kBody) {
                set_wait(id, Connection::Wait::kBody, limits.body_timeout_ms);
            }
            break;
        case Exchange::Stage::kWaiting:
            set_interest(id, x->parked.size == 0 && !c.has(Connection::kPeerClosed), false);
            if (c.wait != Connection::Wait::kHandler) {
                const std::uint64_t limit = limits.handler_timeout_ms;
                const std::uint64_t whole =
                    limit == 0 ? kSlowAnswerMs : std::min<std::uint64_t>(limit, kSlowAnswerMs);
                const std::uint64_t waited = now_ms_ - x->started_ms;
                set_wait(id, Connection::Wait::kHandler, waited < whole ? whole - waited : 1);
            }
            break;
        case Exchange::Stage::kParked:
            break;
    }
}

void Connections::begin_linger(std::uint32_t id) {
    Connection& c = slot(id);
    current_ = &c;
    current_id_ = id;
    if (c.tls != nullptr) {
        c.tls->shut(*pipe_);
        send_ciphertext(c);
        delete c.tls;
        c.tls = nullptr;
        c.set(Connection::kClosing);
        if (c.output != nullptr) {  // the alert did not fit: shut when it has gone
            settle(id);
            return;
        }
    }
    if (c.has(Connection::kPeerClosed) || c.has(Connection::kBroken)) {
        free_slot(id);
        return;
    }
    transport_.shutdown_write(id);
    c.state = Connection::State::kLinger;
    set_interest(id, true, false);
    set_wait(id, Connection::Wait::kLinger, settings_.limits.linger_timeout_ms);
}

// ---------------------------------------------------------------- time

// No list operation for a later deadline: the node fires at its old tick and is put in again.
void Connections::set_wait(std::uint32_t id, Connection::Wait wait, std::uint64_t ms) {
    Connection& c = slot(id);
    c.wait = wait;
    if (ms == 0) {
        c.wait = Connection::Wait::kNothing;
        return;
    }
    c.deadline = static_cast<std::uint32_t>((now_ms_ + ms + kTickMs - 1) / kTickMs);
    if (c.timer.queued()) {
        if (static_cast<std::int32_t>(c.timer.expires - c.deadline) <= 0) return;
        wheel_.remove(id);
    }
    wheel_.insert(id, c.deadline);
}

int Connections::timeout_ms() const {
    const std::uint32_t ticks = wheel_.ticks_until_next();
    if (ticks == TimerWheel::kNone) return -1;
    const std::uint64_t due =
        (static_cast<std::uint64_t>(now_ms_ / kTickMs) -
         (static_cast<std::uint32_t>(now_ms_ / kTickMs) - wheel_.now()) + ticks) *
        kTickMs;
    return due <= now_ms_ ? 0 : static_cast<int>(std::min<std::uint64_t>(due - now_ms_, 3600000));
}

void Connections::run_timers() {
    const auto tick = static_cast<std::uint32_t>(now_ms_ / kTickMs);
    while (true) {
        const std::uint32_t id = wheel_.take_due(tick);
        if (id == TimerWheel::kNone) return;
        Connection& c = slot(id);
        if (c.wait == Connection::Wait::kNothing) continue;
        if (static_cast<std::int32_t>(c.deadline - tick) > 0) {
            wheel_.insert(id, c.deadline);
            continue;
        }
        on_timer(id);
    }
}

void Connections::on_timer(std::uint32_t id) {
    Connection& c = slot(id);
    const Limits& limits = settings_.limits;
    current_ = &c;
    current_id_ = id;
    switch (c.wait) {
        case Connection::Wait::kHead: {
            // The wait may have begun with a request before this one.
            const Exchange& x = *c.exchange;
            const std::uint64_t until = x.started_ms + limits.head_timeout_ms;
            if (until > now_ms_) {
                set_wait(id, Connection::Wait::kHead, until - now_ms_);
                return;
            }
            Counters::add(counters_.timeouts);
            refuse(c, Reason::kHeadTimeout, x.parser.head().method);
            break;
        }
        case Connection::Wait::kBody: {
            const Exchange& x = *c.exchange;
            const std::uint64_t taken = x.framing.kind == BodyKind::kChunked
                                            ? x.chunked.offset()
                                            : x.framing.length - x.body_left;
            const std::uint64_t earned =
                limits.body_rate_min == 0 ? 0 : taken * 1000 / limits.body_rate_min;
            const std::uint64_t until = x.started_ms + limits.body_timeout_ms + earned;
            if (until > now_ms_) {
                set_wait(id, Connection::Wait::kBody, until - now_ms_);
                return;
            }
            Counters::add(counters_.timeouts);
            if (x.answered) {
                c.set(Connection::kClosing);
                release_exchange(c);
            } else {
                refuse(c, Reason::kBodyTimeout, x.parser.head().method);
            }
            break;
        }
        case Connection::Wait::kHandler: {
            Exchange& x = *c.exchange;
            const RequestHead head = x.parser.head();
            const Request request{head, x.head.data, x.head_size, {}, {}, {}, c.requests};
            c.wait = Connection::Wait::kNothing;
            if (limits.handler_timeout_ms != 0 && limits.handler_timeout_ms < kSlowAnswerMs) {
                refuse(c, Reason::kHandlerTimeout, head.method);
                break;
            }
            respond(c, *x.route, request);
            if (x.parked.size != 0 && !c.has(Connection::kClosing)) {
                x.stage = Exchange::Stage::kParked;
            } else {
                release_exchange(c);
            }
            flush();
            resume(id);
            return;
        }
        case Connection::Wait::kIdle:
            // Said in TLS by an alert, and staged, so that a request under way to us is no RST.
            Counters::add(counters_.timeouts);
            if (settings_.choices.answer_idle) {
                refuse(c, Reason::kIdleTimeout, Method::kUnknown);
                break;
            }
            release_exchange(c);
            begin_linger(id);
            return;
        case Connection::Wait::kWrite:
        case Connection::Wait::kLinger:
        case Connection::Wait::kHandshake:
        case Connection::Wait::kNothing:
            Counters::add(counters_.timeouts);
            free_slot(id);
            return;
    }
    flush();
    settle(id);
}

void Connections::drain() {
    draining_ = true;
    judge_hello();
    for (std::uint32_t id = 0; id < capacity_; ++id) {
        Connection& c = slot(id);
        if (c.state != Connection::State::kOpen || c.output != nullptr) continue;
        if (is_between_requests(c)) release_exchange(c);
        if (c.exchange == nullptr) begin_linger(id);
    }
}

}  // namespace httpmark
