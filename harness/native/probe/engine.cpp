#include "probe/engine.hpp"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string>

#include "shared/clock.hpp"
#include "shared/flags.hpp"

namespace httpmark {
namespace {

constexpr std::size_t kReceiveBytes = 64 * 1024;
// While talks hold this much no new case begins: memory is bounded.
constexpr std::size_t kHeldBytesMax = std::size_t{128} << 20;
constexpr std::size_t kKeptCapacity = 256 * 1024;  // of a buffer that is used again
constexpr std::uint64_t kRetryUs = 5'000;
// Ports come back from TIME_WAIT after 60 s; whoever waits twice as long waits for ever.
constexpr std::uint64_t kTroubleUsMax = 130'000'000;
constexpr int kEventsPerWait = 256;

Outcome outcome_of(const Talk& talk) {
    if (talk.is_refused) return Outcome::kRefused;
    if (!talk.received.empty()) return Outcome::kAnswered;
    if (talk.end == End::kClosed) return Outcome::kClosed;
    if (talk.end == End::kReset) return Outcome::kReset;
    return Outcome::kHung;
}

// Whether anything was left to send when the connection ended.
bool has_sends_left(const Talk& talk) {
    for (std::size_t i = talk.step; i < talk.play.steps.size(); ++i) {
        const ProbeStep& step = talk.play.steps[i];
        const std::size_t out = i == talk.step ? talk.step_sent : 0;
        if (step.op == StepOp::kSend && !step.if_open && out < step.n) return true;
    }
    return false;
}

}  // namespace

ProbeEngine::ProbeEngine(const ProbeOptions& options)
    : options_(options),
      epoll_fd_(epoll_create1(EPOLL_CLOEXEC)),
      input_(options.input_fd),
      output_(options.output_fd),
      fresh_(options.fresh_ms * kUsPerMs),
      receive_(kReceiveBytes) {}

ProbeEngine::~ProbeEngine() {
    for (auto& talk : talks_) {
        if (talk->fd >= 0) close(talk->fd);
    }
    close(epoll_fd_);
}

int ProbeEngine::run() {
    now_us_ = monotonic_us();
    input_.watch(epoll_fd_);
    output_.watch(epoll_fd_);
    epoll_event events[kEventsPerWait];
    int code = kExitEnvironment;
    for (;;) {
        now_us_ = monotonic_us();
        fresh_.age(now_us_);
        start_cases();
        if (has_failed()) break;
        const bool is_idle = in_flight_ == 0 && waiting_ == nullptr;
        if (output_.is_due(now_us_, is_idle)) {
            output_.write_some();
            continue;  // what is written makes room for new cases
        }
        if (is_idle && output_.is_empty() && input_.is_over()) {
            code = code_of_input();
            break;
        }
        const int ready = epoll_wait(epoll_fd_, events, kEventsPerWait, wait_ms());
        now_us_ = monotonic_us();
        for (int i = 0; i < ready; ++i) handle(events[i]);
        while (Talk* talk = timers_.take_due(now_us_)) on_timer(talk);
    }
    output_.unwatch();
    return code;
}

bool ProbeEngine::has_failed() const {
    if (output_.has_failed()) return true;
    if (trouble_since_us_ == 0 || now_us_ - trouble_since_us_ <= kTroubleUsMax) return false;
    std::fprintf(stderr, "httpmark-probe: cannot open connections: %s\n",
                 std::strerror(trouble_errno_));
    return true;
}

int ProbeEngine::code_of_input() const {
    if (input_.complaint().empty()) return kExitOk;
    std::fprintf(stderr, "httpmark-probe: bad input: %s\n", input_.complaint().c_str());
    return kExitUsage;
}

void ProbeEngine::handle(const epoll_event& event) {
    void* what = event.data.ptr;
    if (what == &input_) {
        input_.on_event();
    } else if (what == &output_) {
        output_.on_event();
    } else {
        on_event(static_cast<Talk*>(what), event.events);
    }
}

int ProbeEngine::wait_ms() const {
    std::uint64_t at = std::min(timers_.next_us(), output_.due_us());
    // Room for another case may come by a talk growing old, if there is a case to begin.
    if (fresh_.count() != 0 && fresh_.count() >= options_.in_flight) {
        at = std::min(at, fresh_.next_us());
    }
    if (waiting_ != nullptr) at = std::min(at, std::max(retry_us_, now_us_ + 1));
    if (at == Timers::kNoTime) return -1;
    if (at <= now_us_) return 0;
    const std::uint64_t ms = (at - now_us_ + kUsPerMs - 1) / kUsPerMs;
    return static_cast<int>(std::min<std::uint64_t>(ms, 60'000));
}

// --- the life of a talk

void ProbeEngine::start_cases() {
    while (in_flight_ < options_.in_flight_max && fresh_.count() < options_.in_flight &&
           !output_.is_full() && held_bytes_ < kHeldBytesMax) {
        Talk* talk = waiting_;
        if (talk != nullptr) {
            if (now_us_ < retry_us_) return;
            waiting_ = nullptr;
        } else {
            talk = acquire();
            if (!input_.next(&talk->play)) {
                idle_.push_back(talk);
                return;
            }
        }
        if (begin(talk) == Begin::kTryLater) {
            waiting_ = talk;
            retry_us_ = now_us_ + kRetryUs;
            if (trouble_since_us_ == 0) trouble_since_us_ = now_us_;
            return;
        }
        trouble_since_us_ = 0;
    }
}

Talk* ProbeEngine::acquire() {
    if (idle_.empty()) {
        talks_.push_back(std::make_unique<Talk>());
        idle_.push_back(talks_.back().get());
    }
    Talk* talk = idle_.back();
    idle_.pop_back();
    return talk;
}

void ProbeEngine::on_event(Talk* talk, std::uint32_t events) {
    if (talk->phase == Phase::kConnecting) {
        if ((events & (EPOLLOUT | EPOLLERR | EPOLLHUP)) == 0) return;
        if (!connected(talk)) return;
        watch_writable(talk, false);
        read_available(talk);
    } else {
        if (events & (EPOLLIN | EPOLLRDHUP | EPOLLERR | EPOLLHUP)) read_available(talk);
        if (talk->peer_fin && !talk->is_dead && (events & EPOLLERR) != 0) see_reset(talk);
    }
    advance(talk);
}

// The time of a step, of settling or of the whole case is over. What has come meanwhile and was not
// read yet counts: a probe that was kept waiting must not take an answer for silence.
void ProbeEngine::on_timer(Talk* talk) {
    if (talk->phase == Phase::kConnecting && !is_connected_late(talk)) {
        talk->flags |= kExchangeDeadline;
        refuse(talk);
        return;
    }
    read_available(talk);
    advance(talk);
}

void ProbeEngine::finish(Talk* talk) {
    now_us_ = monotonic_us();
    if (talk->phase != Phase::kSettle && talk->is_dead && has_sends_left(*talk)) {
        talk->has_unsent = true;
    }
    if (talk->has_unsent) talk->flags |= kExchangeUnsent;
    if (talk->framing.announced_close()) talk->flags |= kExchangeAnnouncedClose;

    // A session that was never agreed on is no connection.
    if (options_.tls && !talk->has_session) talk->is_refused = true;

    ProbeExchange exchange;
    exchange.number = talk->play.number;
    exchange.outcome = outcome_of(*talk);
    exchange.end = talk->end;
    exchange.flags = talk->flags;
    exchange.steps_done = static_cast<std::uint8_t>(std::min(talk->step, kStepsDoneMax));
    exchange.connect_us = talk->connect_us;
    exchange.first_us = talk->first_us;
    exchange.end_us = clamp_u32(now_us_ - talk->start_us);
    exchange.sent = talk->sent;
    exchange.final_responses = talk->final_responses;
    exchange.received = talk->received;
    exchange.events = &talk->events;
    output_.add(exchange, now_us_);
    release(talk);
}

void ProbeEngine::release(Talk* talk) {
    if (!talk->peer_fin && !talk->is_refused) {
        // Reset instead of a close of ours, which would leave the port in TIME_WAIT.
        const linger reset = {1, 0};
        setsockopt(talk->fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
    }
    talk->tls.reset();
    close(talk->fd);
    talk->fd = -1;
    talk->phase = Phase::kIdle;
    timers_.remove(talk);
    fresh_.remove(talk);
    --in_flight_;
    held_bytes_ -= talk->received.size() + talk->events.size() * sizeof(ProbeEvent);
    if (talk->received.capacity() > kKeptCapacity) std::string().swap(talk->received);
    if (talk->play.octets.capacity() > kKeptCapacity) std::string().swap(talk->play.octets);
    idle_.push_back(talk);
}

}  // namespace httpmark
