// Content that is handed over as it comes, and what pauses and resumes it.
#include <cstring>
#include <memory>
#include <utility>

#include "app/content_reader.hpp"
#include "app/route_hooks.hpp"
#include "check.hpp"
#include "net/asking.hpp"
#include "net/connection.hpp"
#include "net/exchange.hpp"

namespace httpmark {

using Flow = ContentReader::Flow;

ContentReader::~ContentReader() = default;

bool Sink::read_content(std::unique_ptr<ContentReader>, bool) {
    return false;
}

bool ResponseWriter::read_content(std::unique_ptr<ContentReader> reader, bool paused) {
    fault_ = Reason::kHandlerFailed;
    if (!is_untouched() || reader == nullptr) return false;
    if (!sink_.read_content(std::move(reader), paused)) return false;
    status_ = kReadsContent;
    return true;
}

// For the handler that is being asked; respond_later() sees what became of it.
bool Connections::read_content(std::unique_ptr<ContentReader> reader, bool paused) {
    asked_reader_ = std::move(reader);
    asked_to_pause_ = paused;
    return true;
}

void Connections::pause_content(Exchange& x) const {
    x.stage = Exchange::Stage::kPaused;
    x.due_ms = now_ms_;  // the pause began
}

// As for any answer that comes before the content: what is left of it is read for a while, or the
// answer announces the close. RFC 9110 10.1.1: a client that was promised no 100 may or may not
// send it.
ResponseOptions Connections::early_options(const Connection& c, const Request& request) const {
    ResponseOptions options = options_of(c, request);
    const Exchange& x = *c.exchange;
    if (x.continue_due || x.body_left > settings_.limits.early_drain_max) {
        options.close = true;
        options.say_keep_alive = false;
    }
    return options;
}

// False where the connection is to be closed, or has no such request any more.
bool Connections::hand_over(Connection& c, std::string_view piece) {
    const Request request = kept_request(c);
    const ResponseOptions options = early_options(c, request);
    ResponseWriter writer(*this, date_, options);
    const AfterHooks after(request, writer);
    asked_ = &request;
    ContentReader& reader = *c.exchange->reader;
    Flow flow = Flow::kMore;
    const Reason reason = reason_of(writer, [&] {
        flow = reader.on_piece(piece, writer);
        return Reason::kNone;
    });
    return after_piece(c, request, options, writer, flow, reason);
}

bool Connections::after_piece(Connection& c, const Request& request, const ResponseOptions& options,
                              const ResponseWriter& writer, ContentReader::Flow flow,
                              Reason reason) {
    Exchange& x = *c.exchange;
    if (!writer.is_untouched() || reason != Reason::kNone) {
        // Nobody else may answer before all has come.
        const std::unique_ptr<ContentReader> reader = std::move(x.reader);
        x.answered = true;
        x.body_taken = 0;
        answer_before_end(c, request, options, writer, reason);
        if (!c.has(Connection::kClosing)) return true;
        release_exchange(c);
        return false;
    }
    if (flow == Flow::kPause) pause_content(x);
    return true;
}

void Connections::abort_content(Exchange& x, Reason reason) {
    if (x.reader == nullptr) return;
    const std::unique_ptr<ContentReader> reader = std::move(x.reader);
    // It has nobody left to tell what it throws.
    (void)reason_of([&] {
        reader->on_abort(reason);
        return reason;
    });
}

// A paused reader goes on with what has come meanwhile.
void Connections::wake_content(std::uint32_t id) {
    Connection& c = slot(id);
    Exchange& x = *c.exchange;
    current_ = &c;
    current_id_ = id;
    x.stage = Exchange::Stage::kBody;
    x.started_ms += now_ms_ - x.due_ms;  // the client is not to blame for the pause
    c.wait = Connection::Wait::kNothing;
    const Request request = kept_request(c);
    const ResponseOptions options = early_options(c, request);
    ResponseWriter writer(*this, date_, options);
    const AfterHooks after(request, writer);
    asked_ = &request;
    Flow flow = Flow::kMore;
    const Reason reason = reason_of(writer, [&] {
        flow = x.reader->on_woken(writer);
        return Reason::kNone;
    });
    const bool goes_on = after_piece(c, request, options, writer, flow, reason);
    if (goes_on && x.stage == Exchange::Stage::kBody) {
        if (x.continue_due && !x.answered && x.parked.size == 0) write_continue();
        x.continue_due = false;
        if (x.framing.kind == BodyKind::kLength && x.body_left == 0) leave_content(c);
    }
    flush();
    resume(id);
}

// All had come before the pause; what follows it has waited.
void Connections::leave_content(Connection& c) {
    Buffer parked = std::exchange(c.exchange->parked, Buffer());
    body_done(c);
    if (parked.size == 0 || c.has(Connection::kClosing | Connection::kBroken)) {
        parked.release(arena_);
        return;
    }
    const bool fresh = c.exchange == nullptr;
    Exchange* const x = ensure_exchange(c);
    if (x == nullptr) {
        parked.release(arena_);
        c.set(Connection::kBroken);
        return;
    }
    if (fresh) x->stage = Exchange::Stage::kParked;
    CHECK(x->parked.size == 0);
    x->parked = parked;
}

// RFC 9110 10.1.1: all checks have passed, content is announced and none has come.
void Connections::write_continue() {
    constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
    char* const room = prepare(kContinue.size());
    if (room == nullptr) {
        current_->set(Connection::kBroken);
        return;
    }
    std::memcpy(room, kContinue.data(), kContinue.size());
}

}  // namespace httpmark
