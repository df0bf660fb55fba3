// From bytes to requests: heads, content, and what has to wait before it is looked at.
#include <algorithm>
#include <cstring>
#include <new>

#include "app/route_hooks.hpp"
#include "check.hpp"
#include "net/asking.hpp"
#include "net/connection.hpp"
#include "net/exchange.hpp"

namespace httpmark {

// A request whose head has passed, and what is known of its content.
struct Connections::Arrival {
    const Request& request;
    Framing framing;
    Reason reason;  // what is to be answered instead, by a connection that lives on
    bool here;      // the content stands there whole
    bool expects;   // its sender waits for a 100
    bool early;     // the answer does not wait for it
    bool ends;      // and then ends the connection
    bool streams;   // it is handed over as it comes, if the handler wants it
};

// Bytes in, then whatever had to wait behind blocked output or a late answer, as far as it goes.
void Connections::receive(std::uint32_t id, const char* p, const char* end) {
    run(id, p, end);
    resume(id);
}

void Connections::receive_tls(std::uint32_t id, const char* data, std::size_t size) {
    Connection& c = slot(id);
    current_ = &c;
    current_id_ = id;
    std::string_view plaintext;
    const TlsSession::Status status = c.tls->receive(*pipe_, data, size, plaintext);
    send_ciphertext(c);  // handshake, alerts, answers to key updates
    if (status == TlsSession::Status::kFailed) {
        end_tls(c);
        if (c.exchange != nullptr) release_exchange(c);
        settle(id);
        return;
    }
    if (!c.tls->established()) {
        settle(id);
        return;
    }
    const std::uint32_t generation = c.generation;
    const char* const end = plaintext.data() + plaintext.size();
    if (c.state == Connection::State::kUpgraded) {
        receive_frames(id, plaintext.data(), end);
    } else {
        receive(id, plaintext.data(), end);
    }
    if (status == TlsSession::Status::kEnded && is_current(id, generation)) on_end(id);
}

void Connections::resume(std::uint32_t id) {
    Connection& c = slot(id);
    while (!blocked(c) && !c.has(Connection::kBroken | Connection::kClosing) &&
           c.exchange != nullptr && c.exchange->parked.size != 0 &&
           c.exchange->stage != Exchange::Stage::kWaiting &&
           c.exchange->stage != Exchange::Stage::kPaused) {
        Buffer parked = c.exchange->parked;
        c.exchange->parked = Buffer();
        if (c.exchange->stage == Exchange::Stage::kParked) release_exchange(c);
        run(id, parked.data, parked.data + parked.size);
        parked.release(arena_);
    }
    settle(id);
}

void Connections::run(std::uint32_t id, const char* p, const char* end) {
    Connection& c = slot(id);
    current_ = &c;
    current_id_ = id;
    while (p != end && !c.has(Connection::kClosing | Connection::kBroken)) {
        // An answer too large for the scratch stands in the output, which may not be stuck at all.
        if (static_cast<std::size_t>(end_ - at_) < kSmallReplyMax || blocked(c)) {
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

// A request as most are: nothing is wrong with it, and its content stands there whole.
[[gnu::always_inline]] inline void Connections::plain_head(
    Connection& c, const RequestHead& head, const char* data, std::uint32_t head_size,
    std::string_view path, std::string_view content, const Route& route) {
    const ResponseOptions options{head.method == Method::kHead};
    ResponseWriter writer(*this, date_, options);
    if (route.constant == nullptr || !writer.write(*route.constant)) [[unlikely]] {
        plain_answer(c, head, data, head_size, path, content, route);
    } else if (observer_ != nullptr) [[unlikely]] {
        tell_answer(head, data, writer, nullptr);
    }
    end_exchange(c);
}

[[gnu::always_inline]] inline const char* Connections::head_done(Connection& c,
                                                                 const RequestHead& head,
                                                                 const char* data,
                                                                 std::uint32_t head_size,
                                                                 const char* p, const char* end) {
    ++c.requests;
    Counters::add(counters_.requests);
    if (is_plain(head) && common_way_) [[likely]] {
        const std::string_view path = path_in(data, head.target);
        plain_head(c, head, data, head_size, path, {p, 0}, router_.find(head.method, path));
        return p;
    }
    return other_head(c, head, data, head_size, p, end);
}

// Apart, so that the way above saves no registers for what stands here.
[[gnu::noinline]] const char* Connections::other_head(Connection& c, const RequestHead& head,
                                                      const char* data, std::uint32_t head_size,
                                                      const char* p, const char* end) {
    const Limits& limits = settings_.limits;
    const auto ahead = static_cast<std::uint64_t>(end - p);
    const std::uint64_t length = head.content_length;
    if (is_plain_with_length(head) && common_way_ && length <= std::min(ahead, limits.body_max) &&
        head_size + length <= limits.request_max) {
        const std::string_view path = path_in(data, head.target);
        const Route& route = router_.find(head.method, path);
        if (route.takes_any_content()) {
            const std::string_view content(p, static_cast<std::size_t>(length));
            plain_head(c, head, data, head_size, path, content, route);
            return p + length;
        }
    }
    return route_head(c, head, data, head_size, p, end);
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
[[gnu::noinline]] const char* Connections::more_head(Connection& c, const char* p,
                                                     const char* end) {
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

// What the protocol says of the head.
Reason Connections::judge(const Connection& c, const RequestHead& head, const char* data,
                          std::uint32_t head_size) const {
    const Choices& choices = settings_.choices;
    const Reason reason =
        judge_head(head, settings_.limits, settings_.strictness, c.has(Connection::kTls), choices);
    if (choices.refuse_repeated_fields && comes_behind_repeated_fields(reason) &&
        repeats_a_singleton({data + head.fields_begin, head_size - head.fields_begin}))
        [[unlikely]] {
        return Reason::kFieldRepeated;
    }
    return reason;
}

const Route& Connections::find_route(const RequestHead& head, std::string_view path) const {
    if (head.form == TargetForm::kAsterisk) return router_.find_asterisk();
    return router_.find(head.method, path);
}

// What is known of the content of a request by its head, and by what stands behind that.
Connections::Arrival Connections::arrival_of(const Request& request, const char* p,
                                             const char* end) const {
    const RequestHead& head = request.head;
    const Framing framing = framing_of(head);
    const bool is_sized = framing.kind == BodyKind::kLength;
    const bool here = framing.kind == BodyKind::kNone ||
                      (is_sized && static_cast<std::uint64_t>(end - p) >= framing.length);
    const bool expects = head.has(kExpectContinue) && head.is_http_1_1() &&
                         framing.kind != BodyKind::kNone && p == end;
    // RFC 9110 10.1.1: a client that was promised no 100 may or may not send the content, so only a
    // close leaves no doubt about what comes next. The same holds for content that is too long to
    // be read for nothing.
    const bool ends = expects || (!here && framing.length > settings_.limits.early_drain_max);
    // A handler that takes pieces is asked before they come.
    const bool streams = request.route.options.streams && framing.kind != BodyKind::kNone &&
                         !(is_sized && framing.length == 0);
    return {request, framing, Reason::kNone, here, expects, false, ends, streams};
}

const char* Connections::route_head(Connection& c, const RequestHead& head, const char* data,
                                    std::uint32_t head_size, const char* p, const char* end) {
    Reason reason = judge(c, head, data, head_size);
    if (reason != Reason::kNone && !error_row(reason).connection_lives) {
        refuse(c, reason, head.method);
        return end;
    }
    const Target target = split_target(head.target.in(data), head.form);
    const Route& found = find_route(head, target.path);
    // Its hooks are asked here, ahead of the content, unless the protocol says no.
    const Route& route = found.hooks == nullptr    ? found
                         : reason == Reason::kNone ? found.hooks->behind
                                                   : found.hooks->answers;
    Request request{head, route, data, head_size, c.requests, target, {}, {}, false, this};
    Arrival arrival = arrival_of(request, p, end);
    const std::uint64_t length = arrival.framing.length;
    // Of chunked content the length is not known yet; without content it is 0.
    const bool total = head_size + length > settings_.limits.request_max;
    if (total || length > route.options.body_max) {
        refuse(c, total ? Reason::kRequestTooLarge : Reason::kContentTooLarge, head.method);
        return end;
    }
    const bool answered = reason == Reason::kNone && route.hooks != nullptr &&
                          ask_hooks(c, request, arrival.ends, reason);
    if (!answered && reason == Reason::kNone) {
        if (route.websocket == nullptr) {
            reason = judge_route(request, arrival.framing);
        } else {
            reason = offer_websocket(c, request, p, end);
            if (c.state == Connection::State::kUpgraded || c.has(Connection::kClosing)) {
                end_exchange(c);
                return end;
            }
        }
    }
    arrival.reason = reason;
    arrival.early = answered || reason != Reason::kNone || route.options.early || arrival.streams;
    if (arrival.early) {
        if (!answered) answer_early(c, arrival);
        if (asked_reader_ != nullptr) return await_pieces(c, arrival) ? p : end;
    } else if (arrival.here) {
        if (route.options.wants_content) request.content = {p, static_cast<std::size_t>(length)};
        respond(c, request);
    }
    if (arrival.here) {
        end_exchange(c);
        return p + length;
    }
    if (c.has(Connection::kClosing)) {
        if (c.exchange != nullptr) release_exchange(c);
        return end;
    }
    return await_rest(c, arrival) ? p : end;
}

void Connections::answer_early(Connection& c, const Arrival& arrival) {
    if (arrival.ends) c.set(Connection::kClosing);
    if (arrival.reason != Reason::kNone) {
        write_error(c, arrival.reason, arrival.request, ErrorEvent::kNoOffset);
        return;
    }
    content_is_due_ = arrival.streams;
    respond(c, arrival.request);
    content_is_due_ = false;
    if (asked_reader_ != nullptr) {
        // No answer yet: nothing has been announced.
        c.clear(Connection::kClosing);
    }
}

// For what is read of a request when the receive buffer is no longer its place.
bool Connections::keep_head(Exchange& x, const Request& request) {
    if (!request.route.needs_head() && refuses_alone_) return true;
    return x.head.append(arena_, {request.data, request.head_size});
}

// Without memory for content that is to come. A request that has its answer gets no second one.
void Connections::give_up_rest(Connection& c, const Arrival& arrival) {
    if (!arrival.early) {
        refuse(c, Reason::kNoMemory, arrival.request.head.method);
        return;
    }
    c.set(Connection::kClosing);
    if (c.exchange != nullptr) release_exchange(c);
}

// For content that is to come. False when there is no memory for it: the connection ends.
bool Connections::await_rest(Connection& c, const Arrival& arrival) {
    const Limits& limits = settings_.limits;
    const Request& request = arrival.request;
    const bool was_here = c.exchange != nullptr;
    Exchange* const x = ensure_exchange(c);
    if (x == nullptr) {
        give_up_rest(c, arrival);
        return false;
    }
    if (!was_here) {
        x->parser = parser_;
        if (!keep_head(*x, request)) {
            give_up_rest(c, arrival);
            return false;
        }
    }
    x->stage = Exchange::Stage::kBody;
    x->answered = arrival.early;
    x->route = &request.route;
    x->head_size = request.head_size;
    x->framing = arrival.framing;
    x->body_left = arrival.framing.length;
    x->chunked.set_octets_max(limits.request_max -
                              std::min<std::uint64_t>(request.head_size, limits.request_max));
    x->chunked.set_content_max(request.route.options.body_max);
    if (settings_.choices.refuse_framing_trailers) x->chunked.refuse_framing_trailers();
    x->started_ms = now_ms_;
    if (arrival.expects) {
        write_continue();
    }
    return true;
}

// The handler has taken a reader, and content is to come.
bool Connections::await_pieces(Connection& c, const Arrival& arrival) {
    std::unique_ptr<ContentReader> reader = std::move(asked_reader_);
    const bool paused = asked_to_pause_;
    Arrival awaited = arrival;
    awaited.early = false;
    awaited.expects = arrival.expects && !paused;
    if (!await_rest(c, awaited)) {
        (void)reason_of([&] {
            reader->on_abort(Reason::kNoMemory);
            return Reason::kNoMemory;
        });
        return false;
    }
    Exchange& x = *c.exchange;
    x.reader = std::move(reader);
    x.continue_due = arrival.expects && paused;
    if (paused) pause_content(x);
    return true;
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
    if (x.reader != nullptr) return hand_over(c, piece);
    if (!x.route->options.wants_content) return true;
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

[[gnu::noinline]] const char* Connections::more_body(Connection& c, const char* p,
                                                     const char* end) {
    Exchange& x = *c.exchange;
    const Limits& limits = settings_.limits;
    if (x.framing.kind == BodyKind::kLength) {
        const std::size_t size = static_cast<std::size_t>(
            std::min<std::uint64_t>(x.body_left, static_cast<std::uint64_t>(end - p)));
        x.body_left -= size;
        if (!gather(c, {p, size})) return end;
        p += size;
        if (x.body_left == 0 && x.stage == Exchange::Stage::kBody) body_done(c);
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
                if (x.stage == Exchange::Stage::kPaused) return input.data();
                break;
            case ChunkedDecoder::Status::kTrailer:
                if (!x.answered && (x.route->options.wants_content || x.reader != nullptr) &&
                    !x.trailers.append(arena_, piece)) {
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
    if (x.reader != nullptr) {
        const std::unique_ptr<ContentReader> reader = std::move(x.reader);
        respond_by(c, kept_request(c), *reader);
    } else {
        respond(c, kept_request(c));
    }
    end_exchange(c);
}

Request Connections::kept_request(const Connection& c) const {
    const Exchange& x = *c.exchange;
    const RequestHead& head = x.parser.head();
    Target target;
    if (x.head.data != nullptr) target = split_target(head.target.in(x.head.data), head.form);
    return {head,   *x.route,         x.head.data,       x.head_size, c.requests,
            target, x.content.view(), x.trailers.view(), false,       this};
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
    abort_content(*x, Reason::kIncomplete);
    x->head.release(arena_);
    x->content.release(arena_);
    x->trailers.release(arena_);
    x->parked.release(arena_);
    if (x->later != nullptr) x->later->gone.store(true, std::memory_order_release);
    const std::size_t capacity = x->block_capacity;
    x->~Exchange();
    arena_.release(reinterpret_cast<char*>(x), capacity);
    c.exchange = nullptr;
}

// Bytes that cannot be looked at before the output has moved or an answer is due.
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

}  // namespace httpmark
