// From requests to answers, refusals among them.
#include <algorithm>
#include <string>
#include <utility>

#include "app/route_hooks.hpp"
#include "check.hpp"
#include "http/syntax.hpp"
#include "net/asking.hpp"
#include "net/connection.hpp"
#include "net/exchange.hpp"

namespace httpmark {

namespace {

constexpr std::uint32_t kVersionSize = 9;  // " HTTP/1.1" behind the target

}  // namespace

// What is answered where nobody else answers: the name of the reason. Made once for all.
const Connections::ErrorAnswers& Connections::error_answers() {
    static const auto answers = [] {
        ErrorAnswers all;
        for (std::size_t i = 0; i < all.size(); ++i) {
            const ErrorRow& row = error_row(static_cast<Reason>(i));
            const Field plain{"Content-Type", "text/plain"};
            all[i] = PreparedAnswer::make(row.status, {&plain, 1}, std::string(row.name) + '\n');
            CHECK(all[i] != nullptr);
        }
        return all;
    }();
    return answers;
}

void Connections::set_time(std::uint64_t now_ms, std::int64_t unix_seconds) {
    now_ms_ = std::max(now_ms, now_ms_);
    unix_seconds_ = unix_seconds;
    date_.update(unix_seconds);
}

void Connections::judge_common_way() {
    common_way_ = !draining_ && settings_.limits.requests_per_connection == 0 &&
                  settings_.limits.request_max >= settings_.limits.head_max &&
                  !settings_.choices.refuse_repeated_fields;
    refuses_alone_ = observer_ == nullptr && !router_.has_hooks();
}

void Connections::set_observer(Observer* observer) {
    observer_ = observer;
    judge_common_way();
}

ResponseOptions Connections::options_for(const Connection& c, const RequestHead& head) const {
    const Limits& limits = settings_.limits;
    const bool last = draining_ || (limits.requests_per_connection != 0 &&
                                    c.requests >= limits.requests_per_connection);
    const bool close = last || c.has(Connection::kClosing) || !wants_persistence(head);
    const bool keep = !close && !head.is_http_1_1();
    return {head.method == Method::kHead, close, keep, {}, Upgrade::kNone, head.is_http_1_1()};
}

ResponseOptions Connections::options_of(const Connection& c, const Request& request) const {
    ResponseOptions options = options_for(c, request.head);
    if (request.head.method == Method::kOptions) options.allow = request.route.allow;
    return options;
}

// A refusal that says no more than its reason, to nobody but the client. False where it is another.
[[gnu::always_inline]] inline bool Connections::refuse_simply(Connection& c, Reason reason,
                                                              const ResponseOptions& options) {
    const ErrorRow& row = error_row(reason);
    if (!refuses_alone_ || !options.adds_nothing() || !row.connection_lives || row.status == 405 ||
        row.status == 426) {
        return false;
    }
    Counters::add(counters_.errors[static_cast<std::size_t>(reason)]);
    ResponseWriter writer(*this, date_, options);
    if (!writer.write(error_answer(reason))) c.set(Connection::kBroken);
    return true;
}

// After a handler has been asked: it may have left the answer to others.
[[gnu::always_inline]] inline void Connections::end_answer(Connection& c, const Request& request,
                                                           const ResponseOptions& options,
                                                           const ResponseWriter& writer,
                                                           Reason reason) {
    if (!writer.is_answered()) [[unlikely]] {
        if (reason != Reason::kNone && writer.is_untouched() && refuse_simply(c, reason, options)) {
            return;
        }
        if (reason == Reason::kNone) reason = respond_later(c, request, writer);
        if (reason == Reason::kNone) return;
        forget_asked();
        if (writer.is_abandoned()) {
            c.set(Connection::kBroken);  // the head is out: only a close can tell
            return;
        }
        write_error(c, reason, request, ErrorEvent::kNoOffset);
        return;
    }
    if (observer_ != nullptr) [[unlikely]]
        tell_answer(request.head, request.data, writer, nullptr);
    if (options.close) c.set(Connection::kClosing);
}

[[gnu::always_inline]] inline void Connections::respond(Connection& c, const Request& request,
                                                        const ResponseOptions& options) {
    const Route& route = request.route;
    ResponseWriter writer(*this, date_, options);
    asked_ = &request;
    Reason reason = route.refusal;
    if (route.constant != nullptr) {
        if (!writer.write(*route.constant)) reason = writer.fault();
    } else if (reason == Reason::kNone) {
        reason = reason_of(writer, [&] { return route.handler(request, writer); });
    }
    asked_ = nullptr;
    end_answer(c, request, options, writer, reason);
}

void Connections::respond(Connection& c, const Request& request) {
    respond(c, request, options_of(c, request));
}

// Of a request as most are, which has no constant answer. Apart, so that those which have one save
// no registers for what stands here.
[[gnu::noinline]] void Connections::plain_answer(Connection& c, const RequestHead& head,
                                                 const char* data, std::uint32_t head_size,
                                                 std::string_view path, std::string_view content,
                                                 const Route& route) {
    const ResponseOptions options{head.method == Method::kHead};
    // Of what came apart from the head nothing would be kept, either.
    const std::size_t wanted = route.options.wants_content ? content.size() : 0;
    const Request request{head,
                          route,
                          data,
                          head_size,
                          c.requests,
                          origin_target(path, head.target.size),
                          {content.data(), wanted},
                          {},
                          false,
                          this};
    respond(c, request, options);
}

// By the reader of content, all of which has come.
void Connections::respond_by(Connection& c, const Request& request, ContentReader& reader) {
    const ResponseOptions options = options_of(c, request);
    ResponseWriter writer(*this, date_, options);
    const AfterHooks after(request, writer);
    asked_ = &request;
    const Reason reason = reason_of(writer, [&] { return reader.on_end(request, writer); });
    asked_ = nullptr;
    end_answer(c, request, options, writer, reason);
}

// By somebody who has not waited for the rest. Anything but an answer is none.
void Connections::answer_before_end(Connection& c, const Request& request,
                                    const ResponseOptions& options, const ResponseWriter& writer,
                                    Reason reason) {
    asked_reader_ = nullptr;
    if (options.close) c.set(Connection::kClosing);
    if (reason == Reason::kNone) reason = Reason::kHandlerFailed;
    end_answer(c, request, options, writer, reason);
}

// By another thread's letter instead of the route's handler.
void Connections::respond_by(Connection& c, const Request& request, const Letter& letter) {
    const ResponseOptions options = options_of(c, request);
    ResponseWriter writer(*this, date_, options);
    const AfterHooks after(request, writer);
    asked_ = &request;
    Reason reason = letter.reason;
    if (letter.answer != nullptr) {
        if (!writer.write(*letter.answer)) reason = writer.fault();
    } else if (letter.handler) {
        reason = reason_of(writer, [&] { return letter.handler(request, writer); });
    }
    asked_ = nullptr;
    end_answer(c, request, options, writer, reason);
}

// What a route asks of a request beyond the rules of the protocol.
Reason Connections::judge_route(const Request& request, const Framing& framing) const {
    const RouteOptions& options = request.route.options;
    if (request.route.refusal != Reason::kNone) return request.route.refusal;
    if (framing.kind == BodyKind::kNone) return Reason::kNone;
    if (options.wants_length && framing.kind == BodyKind::kChunked) return Reason::kLengthRequired;
    if (options.media_type.empty()) return Reason::kNone;
    FieldReader reader(request.fields());
    std::string_view name;
    std::string_view value;
    while (reader.next(name, value)) {
        // RFC 9110 8.3.1: type and subtype without regard to case, parameters after ';'.
        if (equals_ignoring_case(name, "content-type") &&
            equals_ignoring_case(trim_ows(value.substr(0, value.find(';'))), options.media_type)) {
            return Reason::kNone;
        }
    }
    return Reason::kMediaType;
}

// For a handler that has written nothing: kNone where the answer comes later.
Reason Connections::respond_later(Connection& c, const Request& request,
                                  const ResponseWriter& writer) {
    if (writer.reads_content()) {
        if (content_is_due_) return Reason::kNone;
        const std::unique_ptr<ContentReader> reader = std::move(asked_reader_);
        if (!request.route.options.streams || request.asked_again) return Reason::kHandlerFailed;
        respond_by(c, request, *reader);
        return Reason::kNone;
    }
    const std::optional<std::uint32_t>& ms = writer.deferred_ms();
    if (ms && request.route.options.streams) return Reason::kHandlerFailed;
    if (content_is_due_) return Reason::kHandlerFailed;
    if (!writer.is_answered_later() && !ms) return Reason::kHandlerFailed;
    if (request.route.options.early) return Reason::kHandlerFailed;
    const Reason reason = keep_request(c, request);
    if (reason != Reason::kNone) return reason;
    Exchange& x = *c.exchange;
    x.due_ms = writer.is_answered_later() ? Exchange::kNever : now_ms_ + *ms;
    x.later = std::exchange(asked_later_, nullptr);
    x.stage = Exchange::Stage::kWaiting;
    return Reason::kNone;
}

// What the handler is to be asked with again, or the log is to be told; kNone when it is kept.
Reason Connections::keep_request(Connection& c, const Request& request) {
    const bool was_here = c.exchange != nullptr;
    Exchange* const x = ensure_exchange(c);
    if (x == nullptr) return Reason::kNoMemory;
    if (!request.asked_again) {
        x->started_ms = now_ms_;
        x->route = &request.route;
        x->head_size = request.head_size;
        if (!was_here) {
            x->parser = parser_;
            if (!keep_head(*x, request)) return Reason::kNoMemory;
        }
        const bool gathered = request.content.data() == x->content.data;
        if (!gathered && request.route.options.wants_content &&
            !x->content.append(arena_, request.content)) {
            return Reason::kNoMemory;
        }
    }
    return Reason::kNone;
}

// Of a request that has been answered, or whose answer is deferred.
void Connections::end_exchange(Connection& c) {
    if (c.exchange != nullptr && c.exchange->stage != Exchange::Stage::kWaiting) {
        release_exchange(c);
    }
}

void Connections::write_error(Connection& c, Reason reason, const Request& request,
                              std::uint64_t offset) {
    const ErrorRow& row = error_row(reason);
    Counters::add(counters_.errors[static_cast<std::size_t>(reason)]);
    ResponseOptions options = options_for(c, request.head);
    if (!row.connection_lives) options.close = true;
    if (options.close) {
        c.set(Connection::kClosing);
        options.say_keep_alive = false;
    }
    if (row.status == 405) options.allow = request.route.allow;  // RFC 9110 15.5.6
    if (row.status == 426) options.upgrade = Upgrade::kRequired;
    if (refuses_alone_) [[likely]] {
        ResponseWriter writer(*this, date_, options);
        if (!writer.write(error_answer(reason))) c.set(Connection::kBroken);
        return;
    }
    write_told_error(c, reason, request, offset, options);
}

// `data` is where the head stands; nullptr where it was never complete.
void Connections::tell_answer(const RequestHead& head, const char* data,
                              const ResponseWriter& writer, const ErrorEvent* error) {
    AnswerEvent event{};
    event.error = error;
    event.peer = error == nullptr ? known_peer() : error->peer;
    event.unix_seconds = unix_seconds_;
    if (data != nullptr) {
        const std::uint32_t end = head.target.begin + head.target.size + kVersionSize;
        event.request_line = {data + head.method_name.begin, end - head.method_name.begin};
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
    static const Route kNoRoute{};
    write_error(c, reason, {head, kNoRoute, nullptr, 0, c.requests, {}, {}, {}, false, this},
                offset);
    if (c.exchange == nullptr) return;
    abort_content(*c.exchange, reason);
    release_exchange(c);
}

}  // namespace httpmark
