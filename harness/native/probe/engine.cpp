#include "probe/engine.hpp"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <limits>

#include "shared/clock.hpp"
#include "shared/flags.hpp"

namespace httpmark {
namespace {

constexpr std::size_t kReceiveBytes = 64 * 1024;
constexpr std::size_t kInputReadBytes = 256 * 1024;
constexpr std::size_t kOutputBatchBytes = 64 * 1024;
constexpr std::uint64_t kOutputDelayUs = 20'000;
// While this much waits to be written, or is held by talks, no new case begins: a reader that does
// not read costs a bounded amount of memory.
constexpr std::size_t kOutputBytesMax = std::size_t{4} << 20;
constexpr std::size_t kHeldBytesMax = std::size_t{128} << 20;
constexpr std::size_t kKeptCapacity = 256 * 1024;  // of a buffer that is used again
constexpr std::uint64_t kRetryUs = 5'000;
// Ports come back from TIME_WAIT after 60 s; whoever waits twice as long waits for ever.
constexpr std::uint64_t kTroubleUsMax = 130'000'000;
constexpr int kEventsPerWait = 256;
constexpr int kReadsPerEvent = 16;
constexpr std::uint64_t kUsPerMs = 1000;

std::uint32_t clamp_u32(std::uint64_t value) {
  return static_cast<std::uint32_t>(
      std::min<std::uint64_t>(value, std::numeric_limits<std::uint32_t>::max()));
}

// Where nobody listens at a port from which connections also start, the kernel may choose that very
// port to start from, and TCP then joins the socket to itself (RFC 9293 section 3.5, simultaneous
// open): it would answer each request with the request.
bool is_joined_to_itself(int fd, const Endpoint& server) {
  if (server.family() == AF_UNIX) return false;
  sockaddr_storage own = {};
  socklen_t size = sizeof own;
  return getsockname(fd, reinterpret_cast<sockaddr*>(&own), &size) == 0 && size == server.length &&
         std::memcmp(&own, &server.address, size) == 0;
}

// Trouble of this machine, which says nothing about the server.
bool is_local_trouble(int error) {
  return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM ||
         error == EADDRNOTAVAIL || error == EAGAIN || error == EINTR;
}

bool is_look(AwaitKind kind) {
  return kind == AwaitKind::kLookFinal || kind == AwaitKind::kLookAny;
}

}  // namespace

ProbeEngine::ProbeEngine(const ProbeOptions& options)
    : options_(options), epoll_fd_(epoll_create1(EPOLL_CLOEXEC)), receive_(kReceiveBytes) {}

ProbeEngine::~ProbeEngine() {
  for (auto& talk : talks_) {
    if (talk->fd >= 0) close(talk->fd);
  }
  close(epoll_fd_);
}

int ProbeEngine::run() {
  now_us_ = monotonic_us();
  epoll_event event = {};
  // One-shot, because a closed pipe reports itself even unasked. A plain file cannot be waited for
  // and need not be.
  event.events = EPOLLONESHOT;
  event.data.ptr = &input_;
  input_pollable_ = epoll_ctl(epoll_fd_, EPOLL_CTL_ADD, options_.input_fd, &event) == 0;
  event.data.ptr = &output_;
  output_pollable_ = epoll_ctl(epoll_fd_, EPOLL_CTL_ADD, options_.output_fd, &event) == 0;
  const int output_flags = fcntl(options_.output_fd, F_GETFL);
  if (output_pollable_) fcntl(options_.output_fd, F_SETFL, output_flags | O_NONBLOCK);

  epoll_event events[kEventsPerWait];
  int code = kExitOk;
  for (;;) {
    now_us_ = monotonic_us();
    age_fresh();
    start_cases();
    if (output_failed_) {
      code = kExitEnvironment;
      break;
    }
    if (trouble_since_us_ != 0 && now_us_ - trouble_since_us_ > kTroubleUsMax) {
      std::fprintf(stderr, "httpmark-probe: cannot open connections: %s\n",
                   std::strerror(trouble_errno_));
      code = kExitEnvironment;
      break;
    }
    const bool is_idle = in_flight_ == 0 && waiting_ == nullptr;
    if (!output_.empty() && !output_blocked_ &&
        (is_idle || output_.size() >= kOutputBatchBytes ||
         now_us_ - output_since_us_ >= kOutputDelayUs)) {
      write_output();
      continue;  // what is written makes room for new cases
    }
    if (is_idle && output_.empty() && input_ended_ &&
        (!complaint_.empty() || input_at_ == input_.size())) {
      if (complaint_.empty()) break;
      std::fprintf(stderr, "httpmark-probe: bad input: %s\n", complaint_.c_str());
      code = kExitUsage;
      break;
    }
    const int ready = epoll_wait(epoll_fd_, events, kEventsPerWait, wait_ms());
    now_us_ = monotonic_us();
    for (int i = 0; i < ready; ++i) {
      void* what = events[i].data.ptr;
      if (what == &input_) {
        input_armed_ = false;
        read_input();
      } else if (what == &output_) {
        output_blocked_ = false;
        write_output();
      } else {
        on_event(static_cast<Talk*>(what), events[i].events);
      }
    }
    fire_timers();
  }
  if (output_pollable_) fcntl(options_.output_fd, F_SETFL, output_flags);
  return code;
}

// --- standard input and output

void ProbeEngine::want_input() {
  if (input_ended_ || input_armed_) return;
  if (!input_pollable_) {
    read_input();
    return;
  }
  epoll_event event = {};
  event.events = EPOLLIN | EPOLLONESHOT;
  event.data.ptr = &input_;
  epoll_ctl(epoll_fd_, EPOLL_CTL_MOD, options_.input_fd, &event);
  input_armed_ = true;
}

void ProbeEngine::read_input() {
  if (input_at_ != 0) {
    input_.erase(0, input_at_);
    input_at_ = 0;
  }
  const std::size_t before = input_.size();
  input_.resize(before + kInputReadBytes);
  const ssize_t got = read(options_.input_fd, input_.data() + before, kInputReadBytes);
  input_.resize(before + (got > 0 ? static_cast<std::size_t>(got) : 0));
  if (got > 0 || (got < 0 && (errno == EINTR || errno == EAGAIN))) return;
  input_ended_ = true;
  if (got < 0) complaint_ = std::string("standard input: ") + std::strerror(errno);
}

void ProbeEngine::start_cases() {
  while (in_flight_ < options_.in_flight_max && fresh_count_ < options_.in_flight &&
         output_.size() - output_at_ < kOutputBytesMax && held_bytes_ < kHeldBytesMax) {
    Talk* talk = waiting_;
    if (talk != nullptr) {
      if (now_us_ < retry_us_) return;
      waiting_ = nullptr;
    } else {
      if (!complaint_.empty()) return;
      talk = acquire();
      std::size_t used = 0;
      const std::string_view rest = std::string_view(input_).substr(input_at_);
      const FrameResult result = decode_case(rest, &used, &talk->play, &complaint_);
      if (result != FrameResult::kCase) {
        idle_.push_back(talk);
        if (result == FrameResult::kMalformed) {
          input_ended_ = true;
          return;
        }
        if (input_ended_) {
          if (!rest.empty()) complaint_ = "it ends within a case frame";
          return;
        }
        want_input();
        if (input_pollable_) return;
        continue;
      }
      input_at_ += used;
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

bool ProbeEngine::write_output() {
  while (output_at_ < output_.size()) {
    const ssize_t sent =
        write(options_.output_fd, output_.data() + output_at_, output_.size() - output_at_);
    if (sent > 0) {
      output_at_ += static_cast<std::size_t>(sent);
      continue;
    }
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && errno == EAGAIN && output_pollable_) {
      epoll_event event = {};
      event.events = EPOLLOUT | EPOLLONESHOT;
      event.data.ptr = &output_;
      epoll_ctl(epoll_fd_, EPOLL_CTL_MOD, options_.output_fd, &event);
      output_blocked_ = true;
      // What is written need not be kept.
      if (output_at_ >= kOutputBatchBytes) {
        output_.erase(0, output_at_);
        output_at_ = 0;
      }
      return true;
    }
    std::fprintf(stderr, "httpmark-probe: standard output: %s\n", std::strerror(errno));
    output_failed_ = true;
    return false;
  }
  output_.clear();
  output_at_ = 0;
  if (output_.capacity() > kOutputBytesMax) output_.shrink_to_fit();
  return true;
}

// --- the life of a talk

ProbeEngine::Talk* ProbeEngine::acquire() {
  if (idle_.empty()) {
    talks_.push_back(std::make_unique<Talk>());
    idle_.push_back(talks_.back().get());
  }
  Talk* talk = idle_.back();
  idle_.pop_back();
  return talk;
}

ProbeEngine::Begin ProbeEngine::begin(Talk* talk) {
  const int family = options_.server.family();
  const int fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) {
    trouble_errno_ = errno;
    return Begin::kTryLater;
  }
  if (family != AF_UNIX) {
    const int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  }
  now_us_ = monotonic_us();
  const std::uint64_t start = now_us_;
  const int result = connect(fd, options_.server.sockaddr_ptr(), options_.server.length);
  const int error = result == 0 ? 0 : errno;
  if (error != 0 && error != EINPROGRESS && is_local_trouble(error)) {
    // EAGAIN: a Unix socket's queue is full, or all ports are taken.
    close(fd);
    trouble_errno_ = error;
    return Begin::kTryLater;
  }

  talk->fd = fd;
  talk->phase = Phase::kConnecting;
  talk->entered = false;
  talk->wants_writable = false;
  talk->peer_fin = talk->own_fin = talk->is_dead = talk->is_refused = talk->has_unsent = false;
  talk->has_session = false;
  talk->head_only = (talk->play.flags & kCaseHeadOnly) != 0;
  talk->flags = 0;
  talk->end = End::kOpen;
  talk->step = talk->step_sent = talk->responses_taken = 0;
  talk->start_us = start;
  talk->deadline_us = start + talk->play.deadline_ms * kUsPerMs;
  talk->until_us = talk->deadline_us;
  talk->first_send_us = 0;
  talk->active_us = start;
  talk->connect_us = 0;
  talk->first_us = kNever;
  talk->sent = 0;
  talk->final_responses = 0;
  talk->framing.reset();
  talk->responses.clear();
  talk->received.clear();
  talk->events.clear();

  ++in_flight_;
  fresh_append(talk);
  heap_insert(talk);
  if (error != 0 && error != EINPROGRESS) {
    refuse(talk);
    return Begin::kStarted;
  }
  // On the loopback the handshake is over before connect returns, so that a first SEND goes out
  // without a turn of the loop; where it is not, the send says so (EAGAIN).
  const bool try_now =
      error == 0 || (!options_.tls && !talk->play.steps.empty() &&
                     talk->play.steps[0].op == StepOp::kSend && talk->play.steps[0].n != 0);
  epoll_event event = {};
  event.data.ptr = talk;
  if (error == 0 && !options_.tls) talk->phase = Phase::kSteps;
  if (try_now && !options_.tls && talk->phase == Phase::kConnecting) {
    const ProbeStep& step = talk->play.steps[0];
    const ssize_t sent = send(fd, talk->play.octets.data() + step.offset, step.n, MSG_NOSIGNAL);
    if (sent >= 0 && is_joined_to_itself(fd, options_.server)) {
      refuse(talk);
      return Begin::kStarted;
    }
    if (sent >= 0) {
      now_us_ = monotonic_us();
      talk->phase = Phase::kSteps;
      talk->connect_us = clamp_u32(now_us_ - start);
      talk->first_send_us = now_us_;
      talk->entered = true;
      talk->step_sent = static_cast<std::size_t>(sent);
      talk->sent = clamp_u32(talk->step_sent);
      note(talk, EventKind::kSent, talk->step_sent);
    } else if (errno == ECONNRESET || errno == EPIPE) {
      // Only a connection that stood can be reset: a reset of the handshake is ECONNREFUSED.
      see_broken_send(talk, errno);
      finish(talk);
      return Begin::kStarted;
    } else if (!is_local_trouble(errno) && errno != EINPROGRESS && errno != ENOTCONN) {
      refuse(talk);
      return Begin::kStarted;
    }
  }
  talk->wants_writable = talk->phase == Phase::kConnecting;
  event.events = EPOLLIN | EPOLLRDHUP | EPOLLET | (talk->wants_writable ? EPOLLOUT : 0U);
  if (epoll_ctl(epoll_fd_, EPOLL_CTL_ADD, fd, &event) != 0) {
    // Nothing was sent or little: start over later, on a connection of its own.
    trouble_errno_ = errno;
    close(fd);
    talk->fd = -1;
    heap_remove(talk);
    if (talk->is_fresh) fresh_remove(talk);
    --in_flight_;
    return Begin::kTryLater;
  }
  if (talk->phase == Phase::kSteps) advance(talk);
  return Begin::kStarted;
}

void ProbeEngine::refuse(Talk* talk) {
  talk->is_refused = true;
  talk->is_dead = true;
  talk->connect_us = clamp_u32(monotonic_us() - talk->start_us);
  finish(talk);
}

bool ProbeEngine::connected(Talk* talk) {
  int error = 0;
  socklen_t size = sizeof error;
  getsockopt(talk->fd, SOL_SOCKET, SO_ERROR, &error, &size);
  if (error == ECONNRESET || error == EPIPE) {
    see_broken_send(talk, error);
  } else if (error != 0 || is_joined_to_itself(talk->fd, options_.server)) {
    refuse(talk);
    return false;
  }
  if (options_.tls && !talk->is_dead && !talk->tls.begin(*options_.tls, talk->fd)) {
    refuse(talk);
    return false;
  }
  talk->connect_us = clamp_u32(now_us_ - talk->start_us);
  talk->phase = Phase::kSteps;
  return true;
}

ssize_t ProbeEngine::send_octets(Talk* talk, const char* octets, std::size_t size) {
  return talk->tls.is_open() ? talk->tls.send(octets, size)
                             : send(talk->fd, octets, size, MSG_NOSIGNAL);
}

ssize_t ProbeEngine::receive_octets(Talk* talk, char* octets, std::size_t size) {
  if (!talk->tls.is_open()) return recv(talk->fd, octets, size, 0);
  const ssize_t got = talk->tls.receive(octets, size);
  const int error = errno;
  talk->has_session = talk->has_session || talk->tls.is_established();
  errno = error;
  if (got == 0) {
    now_us_ = monotonic_us();
    note(talk, EventKind::kCloseNotify, 0);
  } else if (got < 0 && errno == EPROTO && talk->has_session) {
    // The transport ended without close_notify: an end of the connection all the same.
    return 0;
  }
  return got;
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
  if (talk->phase == Phase::kConnecting) {
    int error = 0;
    socklen_t size = sizeof error;
    sockaddr_storage peer;
    socklen_t peer_size = sizeof peer;
    getsockopt(talk->fd, SOL_SOCKET, SO_ERROR, &error, &size);
    if (error == 0 && getpeername(talk->fd, reinterpret_cast<sockaddr*>(&peer), &peer_size) == 0) {
      talk->connect_us = clamp_u32(now_us_ - talk->start_us);
      talk->phase = Phase::kSteps;
      watch_writable(talk, false);
    } else {
      talk->flags |= kExchangeDeadline;
      refuse(talk);
      return;
    }
  }
  read_available(talk);
  advance(talk);
}

void ProbeEngine::advance(Talk* talk) {
  for (;;) {
    const std::vector<ProbeStep>& steps = talk->play.steps;
    if (talk->is_dead) {
      finish(talk);
      return;
    }
    if (talk->phase == Phase::kSettle) {
      if (talk->peer_fin || now_us_ >= talk->until_us || now_us_ >= talk->deadline_us) {
        finish(talk);
        return;
      }
      arm(talk);
      return;
    }
    if (talk->step == steps.size()) {
      settle(talk);
      continue;
    }
    if (now_us_ >= talk->deadline_us) {
      talk->flags |= kExchangeDeadline;
      finish(talk);
      return;
    }
    if (talk->tls.is_open() && !talk->has_session) {
      // No step before there is a session: a FIN of ours would cut the handshake.
      arm(talk);
      return;
    }
    const ProbeStep& step = steps[talk->step];
    bool is_done = false;
    if (!talk->entered) {
      const bool is_open = !talk->peer_fin && !talk->own_fin;
      if (step.if_open && (!is_open || talk->framing.announced_close())) {
        ++talk->step;
        continue;
      }
      if (step.if_unanswered && talk->final_responses != 0) {
        ++talk->step;
        continue;
      }
      talk->entered = true;
      talk->step_sent = 0;
      talk->until_us = talk->deadline_us;
      if (step.op != StepOp::kSend) {
        now_us_ = monotonic_us();
        talk->until_us = now_us_ + step.n * kUsPerMs;
      }
    }
    const bool is_over = now_us_ >= talk->until_us;
    switch (step.op) {
      case StepOp::kSend:
        is_done = play_send(talk, step);
        break;
      case StepOp::kPause:
        is_done = is_over;
        break;
      case StepOp::kAwait:
        is_done = take_response(talk, step.kind) || talk->peer_fin;
        if (!is_done && is_over && is_look(step.kind)) {
          is_done = true;
        } else if (!is_done && is_over) {
          talk->flags |= kExchangeAwaitRanOut;
          is_done = true;
        }
        break;
      case StepOp::kFin:
        if (!talk->own_fin) {
          talk->tls.shut_down();
          shutdown(talk->fd, SHUT_WR);
          talk->own_fin = true;
          note(talk, EventKind::kOwnFin, 0);
        }
        is_done = true;
        break;
      case StepOp::kReset:
        read_available(talk);
        ++talk->step;
        finish(talk);
        return;
      case StepOp::kWatch:
      case StepOp::kCloseWait:
        is_done = is_over || talk->peer_fin;
        break;
    }
    if (!is_done) {
      if (talk->is_dead) continue;
      arm(talk);
      return;
    }
    ++talk->step;
    talk->entered = false;
  }
}

bool ProbeEngine::play_send(Talk* talk, const ProbeStep& step) {
  const char* octets = talk->play.octets.data() + step.offset;
  if (talk->own_fin && talk->step_sent < step.n) {
    talk->has_unsent = true;
    return true;
  }
  while (talk->step_sent < step.n) {
    const ssize_t sent = send_octets(talk, octets + talk->step_sent, step.n - talk->step_sent);
    if (sent >= 0) {
      now_us_ = monotonic_us();
      if (talk->first_send_us == 0) talk->first_send_us = now_us_;
      talk->step_sent += static_cast<std::size_t>(sent);
      talk->sent = clamp_u32(std::uint64_t{talk->sent} + static_cast<std::uint64_t>(sent));
      touch(talk);
      note(talk, EventKind::kSent, static_cast<std::size_t>(sent));
      continue;
    }
    if (errno == EINTR) continue;
    if (errno == EAGAIN || errno == ENOBUFS) {
      watch_writable(talk, true);
      return false;
    }
    talk->has_unsent = true;
    see_broken_send(talk, errno);
    return false;
  }
  watch_writable(talk, false);
  return true;
}

bool ProbeEngine::take_response(Talk* talk, AwaitKind kind) {
  if (is_look(kind)) {
    const auto untaken =
        talk->responses.begin() + static_cast<std::ptrdiff_t>(talk->responses_taken);
    return kind == AwaitKind::kLookAny
               ? untaken != talk->responses.end()
               : std::find(untaken, talk->responses.end(), true) != talk->responses.end();
  }
  while (talk->responses_taken < talk->responses.size()) {
    const bool is_final = talk->responses[talk->responses_taken];
    ++talk->responses_taken;
    if (is_final || kind == AwaitKind::kAny) return true;
  }
  return false;
}

void ProbeEngine::settle(Talk* talk) {
  std::uint32_t wait_ms = talk->play.settle_ms;
  if (talk->framing.announced_close()) wait_ms = std::max(wait_ms, talk->play.close_ms);
  talk->phase = Phase::kSettle;
  now_us_ = monotonic_us();
  talk->until_us = now_us_ + wait_ms * kUsPerMs;
}

void ProbeEngine::finish(Talk* talk) {
  now_us_ = monotonic_us();
  if (talk->phase != Phase::kSettle && talk->is_dead) {
    // Whether anything was left to send.
    for (std::size_t i = talk->step; i < talk->play.steps.size(); ++i) {
      const ProbeStep& step = talk->play.steps[i];
      const std::size_t out = i == talk->step ? talk->step_sent : 0;
      if (step.op == StepOp::kSend && !step.if_open && out < step.n) talk->has_unsent = true;
    }
  }
  if (talk->has_unsent) talk->flags |= kExchangeUnsent;
  if (talk->framing.announced_close()) talk->flags |= kExchangeAnnouncedClose;

  // A session that was never agreed on is no connection.
  if (options_.tls && !talk->has_session) talk->is_refused = true;

  ProbeExchange exchange;
  exchange.number = talk->play.number;
  if (talk->is_refused) {
    exchange.outcome = Outcome::kRefused;
  } else if (!talk->received.empty()) {
    exchange.outcome = Outcome::kAnswered;
  } else if (talk->end == End::kClosed) {
    exchange.outcome = Outcome::kClosed;
  } else if (talk->end == End::kReset) {
    exchange.outcome = Outcome::kReset;
  } else {
    exchange.outcome = Outcome::kHung;
  }
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
  if (output_.empty()) output_since_us_ = now_us_;
  encode_exchange(exchange, &output_);

  if (!talk->peer_fin && !talk->is_refused) {
    // Reset instead of a close of ours, which would leave the port in TIME_WAIT.
    const linger reset = {1, 0};
    setsockopt(talk->fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
  }
  talk->tls.reset();
  close(talk->fd);
  talk->fd = -1;
  talk->phase = Phase::kIdle;
  heap_remove(talk);
  if (talk->is_fresh) fresh_remove(talk);
  --in_flight_;
  held_bytes_ -= talk->received.size() + talk->events.size() * sizeof(ProbeEvent);
  if (talk->received.capacity() > kKeptCapacity) std::string().swap(talk->received);
  if (talk->play.octets.capacity() > kKeptCapacity) std::string().swap(talk->play.octets);
  idle_.push_back(talk);
}

// --- what comes from the server

void ProbeEngine::read_available(Talk* talk) {
  if (talk->peer_fin || talk->is_dead) return;
  for (int i = 0;; ++i) {
    const ssize_t got = receive_octets(talk, receive_.data(), receive_.size());
    if (got > 0) {
      now_us_ = monotonic_us();
      const auto size = static_cast<std::size_t>(got);
      if (talk->received.empty() && talk->first_send_us != 0) {
        talk->first_us = clamp_u32(now_us_ - talk->first_send_us);
      }
      touch(talk);
      note(talk, EventKind::kReceived, size);
      const std::size_t keep = std::min(size, kReceivedBytesMax - talk->received.size());
      if (keep < size) talk->flags |= kExchangeCut;
      talk->received.append(receive_.data(), keep);
      held_bytes_ += keep;
      digest(talk, {receive_.data(), size});
      // What the session holds already makes no edge.
      if (i < kReadsPerEvent || (talk->tls.is_open() && talk->tls.has_pending())) continue;
      // Others want their turn. Setting the interest again makes an edge of what is still there.
      set_interest(talk);
      return;
    }
    if (got == 0) {
      send_reset_ ? see_reset(talk) : see_fin(talk);
      return;
    }
    if (errno == EINTR) continue;
    if (errno == EAGAIN) return;
    see_reset(talk);
    return;
  }
}

void ProbeEngine::digest(Talk* talk, std::string_view octets) {
  while (!octets.empty()) {
    switch (talk->framing.feed(&octets)) {
      case FramingEvent::kNeedMore:
      case FramingEvent::kGarbage:
        break;
      case FramingEvent::kHead: {
        const bool is_interim = talk->framing.is_interim();
        const bool is_whole = talk->framing.begin_body(kind_of_next_response(*talk));
        if (is_interim) {
          talk->responses.push_back(false);
        } else if (is_whole || talk->head_only) {
          talk->responses.push_back(true);
          ++talk->final_responses;
        }
        break;
      }
      case FramingEvent::kMessage:
        if (!talk->head_only) {
          talk->responses.push_back(true);
          ++talk->final_responses;
        }
        break;
    }
  }
}

// What the request was that the response beginning now belongs to: told by the AWAIT that will take
// it, which is as many AWAITs ahead as there are final responses that no AWAIT has taken yet.
RequestKind ProbeEngine::kind_of_next_response(const Talk& talk) const {
  std::size_t ahead = 0;
  for (std::size_t i = talk.responses_taken; i < talk.responses.size(); ++i) {
    if (talk.responses[i]) ++ahead;
  }
  for (std::size_t i = talk.step; i < talk.play.steps.size(); ++i) {
    const ProbeStep& step = talk.play.steps[i];
    if (step.op != StepOp::kAwait || step.kind == AwaitKind::kAny || is_look(step.kind)) continue;
    if (ahead-- != 0) continue;
    if (step.kind == AwaitKind::kHead) return RequestKind::kHead;
    if (step.kind == AwaitKind::kConnect) return RequestKind::kConnect;
    return RequestKind::kOrdinary;
  }
  return RequestKind::kOrdinary;
}

void ProbeEngine::see_fin(Talk* talk) {
  talk->peer_fin = true;
  talk->end = End::kClosed;
  now_us_ = monotonic_us();
  note(talk, EventKind::kFin, 0);
  if (talk->framing.finish() && !talk->head_only) {
    talk->responses.push_back(true);
    ++talk->final_responses;
  }
  if (talk->own_fin) talk->is_dead = true;
}

// A send has failed. What the server said before that is still there to be read; behind it the
// kernel, which has told the error already, reports an ordinary end: a FIN if there was one (then
// the error is EPIPE), else it stands for the reset.
void ProbeEngine::see_broken_send(Talk* talk, int error) {
  send_reset_ = error == ECONNRESET;
  read_available(talk);
  send_reset_ = false;
  if (!talk->is_dead) see_reset(talk);
}

void ProbeEngine::see_reset(Talk* talk) {
  now_us_ = monotonic_us();
  note(talk, EventKind::kRst, 0);
  if (talk->end == End::kOpen) talk->end = End::kReset;
  talk->peer_fin = true;
  talk->is_dead = true;
}

void ProbeEngine::note(Talk* talk, EventKind kind, std::size_t octets) {
  if ((talk->play.flags & kCaseTimeline) == 0 || talk->events.size() >= kEventsMax) return;
  talk->events.push_back({kind, clamp_u32(now_us_ - talk->start_us), clamp_u32(octets)});
  held_bytes_ += sizeof(ProbeEvent);
}

void ProbeEngine::watch_writable(Talk* talk, bool on) {
  if (talk->wants_writable == on) return;
  talk->wants_writable = on;
  set_interest(talk);
}

void ProbeEngine::set_interest(Talk* talk) {
  epoll_event event = {};
  event.data.ptr = talk;
  event.events = EPOLLIN | EPOLLRDHUP | EPOLLET | (talk->wants_writable ? EPOLLOUT : 0U);
  epoll_ctl(epoll_fd_, EPOLL_CTL_MOD, talk->fd, &event);
}

// --- time

std::uint64_t ProbeEngine::wake_us(const Talk& talk) const {
  return std::min(talk.until_us, talk.deadline_us);
}

// A later time than the armed one is not written into the heap: when the armed one comes, the talk
// is put back. Most talks end long before any of their times.
void ProbeEngine::arm(Talk* talk) {
  const std::uint64_t wake = wake_us(*talk);
  if (wake >= talk->armed_us) return;
  talk->armed_us = wake;
  heap_up(talk->heap_at);
}

void ProbeEngine::heap_set(std::size_t at, Talk* talk) {
  heap_[at] = talk;
  talk->heap_at = at;
}

void ProbeEngine::heap_insert(Talk* talk) {
  talk->armed_us = wake_us(*talk);
  heap_.push_back(talk);
  talk->heap_at = heap_.size() - 1;
  heap_up(talk->heap_at);
}

void ProbeEngine::heap_remove(Talk* talk) {
  const std::size_t at = talk->heap_at;
  Talk* last = heap_.back();
  heap_.pop_back();
  if (last == talk) return;
  heap_set(at, last);
  heap_up(at);
  heap_down(last->heap_at);
}

void ProbeEngine::heap_up(std::size_t at) {
  Talk* talk = heap_[at];
  while (at > 0) {
    const std::size_t parent = (at - 1) / 2;
    if (heap_[parent]->armed_us <= talk->armed_us) break;
    heap_set(at, heap_[parent]);
    at = parent;
  }
  heap_set(at, talk);
}

void ProbeEngine::heap_down(std::size_t at) {
  Talk* talk = heap_[at];
  for (;;) {
    std::size_t child = 2 * at + 1;
    if (child >= heap_.size()) break;
    if (child + 1 < heap_.size() && heap_[child + 1]->armed_us < heap_[child]->armed_us) ++child;
    if (heap_[child]->armed_us >= talk->armed_us) break;
    heap_set(at, heap_[child]);
    at = child;
  }
  heap_set(at, talk);
}

void ProbeEngine::fire_timers() {
  while (!heap_.empty() && heap_[0]->armed_us <= now_us_) {
    Talk* talk = heap_[0];
    if (wake_us(*talk) > now_us_) {
      talk->armed_us = wake_us(*talk);
      heap_down(0);
      continue;
    }
    // Whatever the talk does now, it either ends or waits for a later time.
    talk->armed_us = std::numeric_limits<std::uint64_t>::max();
    heap_down(0);
    on_timer(talk);
  }
}

int ProbeEngine::wait_ms() const {
  std::uint64_t at = std::numeric_limits<std::uint64_t>::max();
  if (!heap_.empty()) at = heap_[0]->armed_us;
  // Room for another case may come by a talk growing old, if there is a case to begin.
  if (fresh_first_ != nullptr && fresh_count_ >= options_.in_flight) {
    at = std::min(at, fresh_first_->active_us + options_.fresh_ms * kUsPerMs);
  }
  if (waiting_ != nullptr) at = std::min(at, std::max(retry_us_, now_us_ + 1));
  if (!output_.empty() && !output_blocked_) at = std::min(at, output_since_us_ + kOutputDelayUs);
  if (at == std::numeric_limits<std::uint64_t>::max()) return -1;
  if (at <= now_us_) return 0;
  const std::uint64_t ms = (at - now_us_ + kUsPerMs - 1) / kUsPerMs;
  return static_cast<int>(std::min<std::uint64_t>(ms, 60'000));
}

// --- fresh talks

void ProbeEngine::fresh_append(Talk* talk) {
  talk->is_fresh = true;
  ++fresh_count_;
  talk->fresh_before = fresh_last_;
  talk->fresh_after = nullptr;
  (fresh_last_ != nullptr ? fresh_last_->fresh_after : fresh_first_) = talk;
  fresh_last_ = talk;
}

void ProbeEngine::fresh_remove(Talk* talk) {
  talk->is_fresh = false;
  --fresh_count_;
  (talk->fresh_before != nullptr ? talk->fresh_before->fresh_after : fresh_first_) =
      talk->fresh_after;
  (talk->fresh_after != nullptr ? talk->fresh_after->fresh_before : fresh_last_) =
      talk->fresh_before;
}

void ProbeEngine::touch(Talk* talk) {
  talk->active_us = now_us_;
  if (!talk->is_fresh) return;
  fresh_remove(talk);
  fresh_append(talk);
}

void ProbeEngine::age_fresh() {
  while (fresh_first_ != nullptr &&
         now_us_ - fresh_first_->active_us >= options_.fresh_ms * kUsPerMs) {
    fresh_remove(fresh_first_);
  }
}

}  // namespace httpmark
