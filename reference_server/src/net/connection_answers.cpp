// From requests to answers, refusals among them.
#include <algorithm>
#include <cstring>
#include <string>

#include "check.hpp"
#include "http/syntax.hpp"
#include "net/connection.hpp"
#include "net/exchange.hpp"

namespace httpmark {

namespace {

constexpr std::string_view kHelloPath = "/hello";

}  // namespace

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

// A plain GET of the fixed answer: its bytes are ready, made once a second.
bool Connections::answer_hello(const RequestHead& head, std::string_view target) {
    // The size is known when the bytes are compared, so that it takes no call.
    if (!is_plain(head) || head.method != Method::kGet || target.size() != kHelloPath.size() ||
        std::memcmp(target.data(), kHelloPath.data(), kHelloPath.size()) != 0 || !hello_is_fixed_) {
        return false;
    }
    std::memcpy(scratch_at_, hello_.data(), hello_.size());
    scratch_at_ += hello_size_;
    return true;
}

void Connections::set_observer(Observer* observer) {
    observer_ = observer;
    judge_hello();
}

ResponseOptions Connections::options_for(Connection& c, const RequestHead& head) {
    const Limits& limits = settings_.limits;
    const bool last = draining_ || (limits.requests_per_connection != 0 &&
                                    c.requests >= limits.requests_per_connection);
    const bool close = last || c.has(Connection::kClosing) || !wants_persistence(head);
    return {head.method == Method::kHead, close, !close && !head.is_http_1_1()};
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
        tell_answer(request, writer, nullptr);
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
        // RFC 9110 8.3.1: type and subtype without regard to case, parameters after ';'.
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
    if (observer_ != nullptr) tell_answer(request, writer, &event);
}

void Connections::tell_answer(const Request& request, const ResponseWriter& writer,
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
        {&Counters::bytes_in, "received_bytes", "Bytes received"},
        {&Counters::bytes_out, "sent_bytes", "Bytes sent"},
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

}  // namespace httpmark
