#include "probe/engine.hpp"

#include <linux/sockios.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string>
#include <utility>

#include "shared/clock.hpp"
#include "shared/flags.hpp"

namespace httpmark {
namespace {

constexpr std::size_t kReceiveBytes = 64 * 1024;
constexpr std::size_t kKeptCapacity = 256 * 1024;  // of a buffer that is used again
constexpr std::uint64_t kRetryUs = 5'000;
// Ports come back from TIME_WAIT after 60 s; whoever waits twice as long waits for ever.
constexpr std::uint64_t kTroubleUsMax = 130'000'000;
constexpr int kEventsPerWait = 256;
// A turn of the loop is short, so that one that was long tells how long the probe did not run: it
// was stopped, or the machine was, or others had the processors.
constexpr std::uint64_t kTurnMs = 20;
constexpr std::uint64_t kHeldUpUs = 20'000;

Outcome outcome_of(const Conversation& conversation) {
    if (conversation.is_refused) return Outcome::kRefused;
    if (!conversation.received.empty()) return Outcome::kAnswered;
    if (conversation.end == End::kClosed) return Outcome::kClosed;
    if (conversation.end == End::kReset) return Outcome::kReset;
    return Outcome::kHung;
}

// Whether anything was left to send when the connection ended.
bool has_sends_left(const Conversation& conversation) {
    for (std::size_t i = conversation.step; i < conversation.play.steps.size(); ++i) {
        const ProbeStep& step = conversation.play.steps[i];
        const std::size_t out = i == conversation.step ? conversation.step_sent : 0;
        const bool is_conditional = step.if_open || step.if_connected;
        if (step.op == StepOp::kSend && !is_conditional && out < step.n) return true;
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
    for (auto& conversation : conversations_) {
        if (conversation->fd >= 0) close(conversation->fd);
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
        tick();
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
        const int wait = wait_ms();
        const int ready = epoll_wait(epoll_fd_, events, kEventsPerWait, wait);
        tick(static_cast<std::uint64_t>(std::max(wait, 0)) * kUsPerMs);
        for (int i = 0; i < ready; ++i) handle(events[i]);
        while (Conversation* conversation = timers_.take_due(now_us_)) on_timer(conversation);
    }
    output_.unwatch();
    return code;
}

bool ProbeEngine::has_failed() const {
    if (output_.has_failed()) return true;
    if (flood_bytes_ >= kFloodBytesMax) {
        std::fprintf(stderr, "httpmark-probe: the server sends without end\n");
        return true;
    }
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
        on_event(static_cast<Conversation*>(what), event.events);
    }
}

int ProbeEngine::wait_ms() const {
    std::uint64_t at = std::min(timers_.next_us(), output_.due_us());
    // Room for another case may come by a conversation growing old, if there is a case to begin.
    if (fresh_.count() != 0 && fresh_.count() >= options_.in_flight) {
        at = std::min(at, fresh_.next_us());
    }
    if (waiting_ != nullptr) at = std::min(at, std::max(retry_us_, now_us_ + 1));
    if (in_flight_ != 0) at = std::min(at, now_us_ + kTurnMs * kUsPerMs);
    if (at == Timers::kNoTime) return -1;
    if (at <= now_us_) return 0;
    return static_cast<int>((at - now_us_ + kUsPerMs - 1) / kUsPerMs);
}

// Looks at the clock. What passed since the last look, but for the time that was waited on purpose,
// is time in which the probe did not run: nobody is to be late because of it.
void ProbeEngine::tick(std::uint64_t waited_us) {
    const std::uint64_t before_us = std::exchange(now_us_, monotonic_us());
    const std::uint64_t passed_us = now_us_ - before_us;
    if (passed_us <= waited_us + kHeldUpUs) return;
    for (auto& conversation : conversations_) {
        if (conversation->phase != Phase::kIdle) conversation->postpone(passed_us - waited_us);
    }
}

// --- the life of a conversation

void ProbeEngine::start_cases() {
    while (in_flight_ < options_.in_flight_max && fresh_.count() < options_.in_flight &&
           !output_.is_full() && held_bytes_ < kHeldBytesMax) {
        Conversation* conversation = waiting_;
        if (conversation != nullptr) {
            if (now_us_ < retry_us_) return;
            waiting_ = nullptr;
        } else {
            conversation = acquire();
            if (!input_.next(&conversation->play)) {
                idle_.push_back(conversation);
                return;
            }
        }
        if (begin(conversation) == Begin::kTryLater) {
            waiting_ = conversation;
            retry_us_ = now_us_ + kRetryUs;
            if (trouble_since_us_ == 0) trouble_since_us_ = now_us_;
            return;
        }
        trouble_since_us_ = 0;
    }
}

Conversation* ProbeEngine::acquire() {
    if (idle_.empty()) {
        conversations_.push_back(std::make_unique<Conversation>());
        idle_.push_back(conversations_.back().get());
    }
    Conversation* conversation = idle_.back();
    idle_.pop_back();
    return conversation;
}

void ProbeEngine::on_event(Conversation* conversation, std::uint32_t events) {
    if (conversation->phase == Phase::kConnecting) {
        if ((events & (EPOLLOUT | EPOLLERR | EPOLLHUP)) == 0) return;
        if (!connected(conversation)) return;
        watch_writable(conversation, false);
        read_available(conversation);
    } else {
        if (events & (EPOLLIN | EPOLLRDHUP | EPOLLERR | EPOLLHUP)) read_available(conversation);
        if (conversation->peer_fin && !conversation->is_dead && (events & EPOLLERR) != 0)
            see_reset(conversation);
    }
    advance(conversation);
}

// The time of a step, of settling or of the whole case is over. What has come meanwhile and was not
// read yet counts: a probe that was kept waiting must not take an answer for silence.
void ProbeEngine::on_timer(Conversation* conversation) {
    if (conversation->phase == Phase::kConnecting && !is_connected_late(conversation)) {
        conversation->flags |= kExchangeDeadline;
        refuse(conversation);
        return;
    }
    read_available(conversation);
    advance(conversation);
}

// Whether the other end's kernel has acknowledged all that was sent. A connection that it dropped
// for want of room acknowledges nothing.
bool ProbeEngine::has_reached(const Conversation& conversation) const {
    int left = 0;
    return conversation.sent != 0 && !conversation.is_dead && !conversation.is_refused &&
           options_.server.family() != AF_UNIX && ioctl(conversation.fd, SIOCOUTQ, &left) == 0 &&
           left == 0;
}

void ProbeEngine::finish(Conversation* conversation) {
    tick();
    if (conversation->received.empty() && has_reached(*conversation))
        conversation->flags |= kExchangeReached;
    if (conversation->phase != Phase::kSettle && conversation->is_dead &&
        has_sends_left(*conversation)) {
        conversation->has_unsent = true;
    }
    if (conversation->has_unsent) conversation->flags |= kExchangeUnsent;
    const bool ran_out = (conversation->flags & (kExchangeAwaitRanOut | kExchangeDeadline)) != 0;
    const bool is_unanswered = ran_out && conversation->final_responses == 0;
    if (conversation->came >= (is_unanswered ? kMuchBytes : kFloodBytes))
        flood_bytes_ += conversation->came;
    if (conversation->framing.announced_close()) conversation->flags |= kExchangeAnnouncedClose;

    // A session that was never agreed on is no connection.
    if (options_.tls && !conversation->has_session) conversation->is_refused = true;

    ProbeExchange exchange;
    exchange.number = conversation->play.number;
    exchange.outcome = outcome_of(*conversation);
    exchange.end = conversation->end;
    exchange.flags = conversation->flags;
    exchange.steps_done = static_cast<std::uint8_t>(std::min(conversation->step, kStepsDoneMax));
    exchange.connect_us = conversation->connect_us;
    exchange.first_us = conversation->first_us;
    exchange.end_us = clamp_u32(now_us_ - conversation->start_us);
    // Here, and not where the record is read: that may be seconds later on a busy machine.
    exchange.ended_unix_us = unix_us();
    exchange.sent = conversation->sent;
    exchange.final_responses = conversation->final_responses;
    exchange.received = conversation->received;
    exchange.events = &conversation->events;
    output_.add(exchange, now_us_);
    release(conversation);
}

void ProbeEngine::release(Conversation* conversation) {
    if (!conversation->peer_fin && !conversation->is_refused) {
        // Reset instead of a close of ours, which would leave the port in TIME_WAIT.
        const linger reset = {1, 0};
        setsockopt(conversation->fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
    }
    conversation->tls.reset();
    close(conversation->fd);
    conversation->fd = -1;
    conversation->phase = Phase::kIdle;
    timers_.remove(conversation);
    fresh_.remove(conversation);
    --in_flight_;
    held_bytes_ -= conversation->received.size() + conversation->events.size() * sizeof(ProbeEvent);
    if (conversation->received.capacity() > kKeptCapacity)
        std::string().swap(conversation->received);
    if (conversation->play.octets.capacity() > kKeptCapacity)
        std::string().swap(conversation->play.octets);
    idle_.push_back(conversation);
}

}  // namespace httpmark
