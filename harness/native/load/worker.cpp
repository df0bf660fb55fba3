#include "load/worker.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>

#include "shared/clock.hpp"

namespace httpmark {
namespace {

constexpr std::size_t kReceiveBytes = 256 * 1024;
// An unfinished answer up to this size is moved in front of the next read; a larger one is
// collected apart.
constexpr std::size_t kCarryBytesMax = 8 * 1024;
constexpr int kEventsPerWait = 512;
constexpr int kPoursPerTurn = 8;
constexpr std::size_t kConnectsPerPause = 64;
constexpr std::uint64_t kStallNs = 900'000'000;
constexpr double kConnectRateMin = 500;
constexpr std::uint64_t kOpenNsMax = 10'000'000'000;  // connect and handshake
constexpr std::uint8_t kOpenFailuresMax = 3;
constexpr std::uint64_t kRetryNs = 100'000'000;
// Of the first connections so many are under way at a time: a listen queue is not endless.
constexpr std::size_t kOpeningMax = 64;
constexpr std::size_t kComplaintsMax = 5;
constexpr std::size_t kGone = std::string_view::npos;
constexpr std::uint64_t kNsPerMs = 1'000'000;
constexpr std::uint64_t kDateStillNsMax = std::uint64_t{kDateSkewSecondsMax} * 1'000'000'000;

std::int64_t wall_seconds() {
  timespec now = {};
  clock_gettime(CLOCK_REALTIME_COARSE, &now);
  return now.tv_sec;
}

std::int64_t seconds_of(std::uint64_t ns) { return static_cast<std::int64_t>(ns / 1'000'000'000); }

std::uint64_t ns_of(double seconds) { return static_cast<std::uint64_t>(seconds * 1e9); }

// What the calling thread has used so far.
TaskCost own_cost() {
  TaskCost cost = read_schedstat("/proc/thread-self/schedstat");
  // The file's CPU time is as old as the last tick.
  timespec used = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  cost.on_cpu_ns = static_cast<std::uint64_t>(used.tv_sec) * 1'000'000'000 +
                   static_cast<std::uint64_t>(used.tv_nsec);
  rusage usage = {};
  getrusage(RUSAGE_THREAD, &usage);
  cost.context_switches = static_cast<std::uint64_t>(usage.ru_nvcsw + usage.ru_nivcsw);
  return cost;
}

}  // namespace

void Balance::add(std::uint64_t responses) {
  least = connections == 0 ? responses : std::min(least, responses);
  most = std::max(most, responses);
  ++connections;
  const auto value = static_cast<double>(responses);
  sum += value;
  sum_of_squares += value * value;
}

void Balance::merge(const Balance& other) {
  if (other.connections == 0) return;
  least = connections == 0 ? other.least : std::min(least, other.least);
  most = std::max(most, other.most);
  connections += other.connections;
  sum += other.sum;
  sum_of_squares += other.sum_of_squares;
}

double Balance::jain_index() const {
  if (sum_of_squares <= 0) return 1;
  return sum * sum / (static_cast<double>(connections) * sum_of_squares);
}

void LoadErrors::add(const LoadErrors& other) {
  connect += other.connect;
  closed += other.closed;
  reset += other.reset;
  lost += other.lost;
  timeout += other.timeout;
  status += other.status;
  framing += other.framing;
  body += other.body;
  order += other.order;
  date += other.date;
  surplus += other.surplus;
}

void LoadCounts::add(const LoadCounts& other) {
  responses += other.responses;
  responses_in_window += other.responses_in_window;
  variants += other.variants;
  interim += other.interim;
  requests_sent += other.requests_sent;
  bytes_sent += other.bytes_sent;
  bytes_received += other.bytes_received;
  reads += other.reads;
  writes += other.writes;
  wakes += other.wakes;
  reconnects += other.reconnects;
  unanswered += other.unanswered;
  closes_seen += other.closes_seen;
  unsent += other.unsent;
  dropped += other.dropped;
  backlog_peak += other.backlog_peak;
  due += other.due;
  due_in_second_half += other.due_in_second_half;
  outstanding_middle += other.outstanding_middle;
  outstanding_end += other.outstanding_end;
  resent += other.resent;
  errors.add(other.errors);
  balance.merge(other.balance);
  response.merge(other.response);
  batch.merge(other.batch);
  service.merge(other.service);
  lag.merge(other.lag);
  connect.merge(other.connect);
  handshake.merge(other.handshake);
  slices.resize(std::max(slices.size(), other.slices.size()), Histogram(kSliceCoarseBits));
  for (std::size_t i = 0; i < other.slices.size(); ++i) slices[i].merge(other.slices[i]);
  for (const std::string& complaint : other.complaints) {
    if (complaints.size() < kComplaintsMax) complaints.push_back(complaint);
  }
}

LoadWorker::LoadWorker(const LoadPlan& plan, std::size_t connections,
                       const std::vector<ResponseVerifier>& verifiers, std::size_t first_index,
                       std::size_t number)
    : plan_(plan),
      first_index_(plan.first_index + first_index),
      number_(number),
      epoll_fd_(epoll_create1(EPOLL_CLOEXEC)),
      connections_(connections),
      verifiers_(verifiers),
      dates_(verifiers.size()),
      receive_(kReceiveBytes) {
  for (std::size_t i = 0; i < plan_.depth + plan_.requests.size(); ++i) {
    block_at_.push_back(block_.size());
    block_ += plan_.requests[i % plan_.requests.size()].octets;
  }
  block_at_.push_back(block_.size());
  // Now, and not in the window.
  result_.counts.slices.assign(plan_.slices(), Histogram(kSliceCoarseBits));
  for (std::size_t i = 0; i < connections; ++i) {
    connections_[i].index = static_cast<std::uint32_t>(i);
    // A window can be as many groups as it has requests; a batch is one.
    const bool is_batch = plan_.refill == Refill::kBatch && plan_.mode != LoadMode::kOpen;
    connections_[i].groups.resize(is_batch ? 1 : plan_.depth);
  }
}

LoadWorker::~LoadWorker() {
  close_all();
  close(epoll_fd_);
}

int LoadWorker::open_socket(std::uint32_t index) {
  const int fd = socket(plan_.server.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) return -1;
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  if (plan_.source.count != 0) {
    const Endpoint source = plan_.source.at(first_index_ + index);
    setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof on);  // of IPv6, too
    // An IPv6 range that is only routed to this machine has no addresses that bind() knows.
    if (source.family() == AF_INET6) setsockopt(fd, IPPROTO_IPV6, IPV6_FREEBIND, &on, sizeof on);
    if (bind(fd, source.sockaddr_ptr(), source.length) != 0) {
      close(fd);
      return -1;
    }
  }
  if (connect(fd, plan_.server.sockaddr_ptr(), plan_.server.length) != 0 && errno != EINPROGRESS) {
    const int error = errno;
    close(fd);
    errno = error;
    return -1;
  }
  return fd;
}

void LoadWorker::open(Connection* connection) {
  connection->begun_ns = monotonic_ns();
  connection->fd = open_socket(connection->index);
  if (connection->fd < 0) {
    give_up_opening(connection, std::string("connect: ") + std::strerror(errno));
    return;
  }
  ++live_;
  connection->phase = Phase::kConnecting;
  if (!watch_reading(*connection)) {
    give_up_opening(connection, std::string("epoll: ") + std::strerror(errno));
    return;
  }
  opening_.push_back({connection->index, connection->begun_ns});
  advance(connection);
}

void LoadWorker::advance(Connection* connection) {
  if (connection->phase == Phase::kConnecting) {
    // Asked a second time connect() tells what became of the first: on loopback, all at once.
    if (connect(connection->fd, plan_.server.sockaddr_ptr(), plan_.server.length) != 0 &&
        errno != EISCONN) {
      if (errno == EALREADY || errno == EINPROGRESS || errno == EINTR) {
        watch_writable(connection, true);
      } else {
        give_up_opening(connection, std::string("connect: ") + std::strerror(errno));
      }
      return;
    }
    connection->connected_ns = monotonic_ns();
    result_.counts.connect.add(connection->connected_ns - connection->begun_ns);
    if (pace_ != nullptr) pace_->opened(connection->begun_ns, connection->connected_ns);
    if (plan_.tls != nullptr && !connection->tls.begin(*plan_.tls, connection->fd)) {
      give_up_opening(connection, "TLS: no session");
      return;
    }
    connection->phase = plan_.tls != nullptr ? Phase::kHandshake : Phase::kOpen;
  }
  if (connection->phase == Phase::kHandshake) {
    std::string complaint;
    switch (connection->tls.handshake(&complaint)) {
      case TlsStream::Progress::kAgain:
        watch_writable(connection, connection->tls.wants_to_send());
        return;
      case TlsStream::Progress::kFailed:
        give_up_opening(connection, complaint);
        return;
      case TlsStream::Progress::kDone:
        result_.counts.handshake.add(monotonic_ns() - connection->connected_ns);
        connection->phase = Phase::kOpen;
    }
  }
  connection->failures = 0;
  watch_writable(connection, false);
  if (pace_ != nullptr) {
    ++result_.established;
  } else {
    start(connection);
  }
}

void LoadWorker::close_socket(Connection* connection) {
  if (connection->fd < 0) return;
  connection->tls.reset();
  close(connection->fd);
  connection->fd = -1;
  connection->phase = Phase::kNone;
  connection->wants_writable = false;
  --live_;
}

// Under load it is tried again, a few times: a slot that is empty for good would be load that
// nobody sees missing.
void LoadWorker::give_up_opening(Connection* connection, const std::string& why) {
  const std::uint64_t now = monotonic_ns();
  close_socket(connection);
  ++result_.counts.errors.connect;
  if (result_.counts.complaints.size() < kComplaintsMax) result_.counts.complaints.push_back(why);
  if (pace_ == nullptr && ++connection->failures < kOpenFailuresMax) {
    retries_.push_back({connection->index, now + kRetryNs});
    return;
  }
  lose(connection, connection->unanswered);
  connection->queued = 0;
}

void LoadWorker::mind_openings(std::uint64_t now_ns) {
  while (!opening_.empty()) {
    Connection* connection = &connections_[opening_.front().index];
    const bool is_opening =
        connection->begun_ns == opening_.front().at_ns &&
        (connection->phase == Phase::kConnecting || connection->phase == Phase::kHandshake);
    if (is_opening && now_ns - connection->begun_ns < kOpenNsMax) break;
    opening_.pop_front();
    if (is_opening) {
      give_up_opening(connection, connection->phase == Phase::kConnecting
                                      ? "connect: timed out"
                                      : "TLS handshake: timed out");
    }
  }
  while (!retries_.empty() && retries_.front().at_ns <= now_ns) {
    Connection* connection = &connections_[retries_.front().index];
    retries_.pop_front();
    const bool is_wanted = is_sending_ || connection->unanswered != 0 || !backlog_.empty();
    if (connection->fd < 0 && is_wanted) open(connection);
  }
}

ssize_t LoadWorker::transmit(Connection* connection, const char* data, std::size_t size) {
  if (connection->tls.is_open()) return connection->tls.send(data, size);
  return send(connection->fd, data, size, MSG_NOSIGNAL);
}

ssize_t LoadWorker::receive(Connection* connection, char* data, std::size_t size) {
  if (connection->tls.is_open()) return connection->tls.receive(data, size);
  return recv(connection->fd, data, size, 0);
}

std::uint64_t ConnectPace::next_due_ns() const {
  // In bunches: a sleep for each would take longer than the connect.
  const std::size_t bunch = begun_ / kConnectsPerPause * kConnectsPerPause;
  return start_ns_ + ns_of(static_cast<double>(bunch) / rate_);
}

void ConnectPace::opened(std::uint64_t begun_ns, std::uint64_t now_ns) {
  // Those that were lost together are one full queue.
  if (now_ns - begun_ns < kStallNs || begun_ns < start_ns_) return;
  rate_ = std::max(rate_ / 2, std::min(rate_, kConnectRateMin));
  start_ns_ = now_ns;
  begun_ = 0;
}

void LoadWorker::connect_all() {
  ConnectPace pace(plan_.connect_rate / static_cast<double>(plan_.threads), monotonic_ns());
  pace_ = &pace;
  epoll_event events[kEventsPerWait];
  std::vector<std::uint32_t> early;
  std::size_t begun = 0;
  for (;;) {
    std::uint64_t now = monotonic_ns();
    const auto settled = [&] { return result_.established + result_.counts.errors.connect; };
    const auto may_begin = [&] {
      // A target that has never answered is not asked ten thousand times.
      const bool is_hopeless = result_.established == 0 && settled() != 0;
      return begun < connections_.size() && begun - settled() < kOpeningMax && !is_hopeless;
    };
    for (; may_begin() && pace.next_due_ns() <= now; now = monotonic_ns()) {
      pace.begun();
      open(&connections_[begun++]);
    }
    mind_openings(now);
    if (begun == settled() && !may_begin()) break;
    const std::uint64_t due = may_begin() ? pace.next_due_ns() : now + 100 * kNsPerMs;
    const int ready = wait(events, due > now ? std::min(due - now, 100 * kNsPerMs) : 0);
    for (int i = 0; i < ready; ++i) {
      Connection* connection = &connections_[events[i].data.u32];
      if (connection->phase == Phase::kConnecting || connection->phase == Phase::kHandshake) {
        advance(connection);
      } else {
        // A server may speak first (TLS tickets, a close). It is heard once the load begins; told
        // of it at each turn until then, the time it takes would be in other connections'
        // handshakes.
        epoll_ctl(epoll_fd_, EPOLL_CTL_DEL, connection->fd, nullptr);
        early.push_back(connection->index);
      }
    }
  }
  for (const std::uint32_t index : early) watch_reading(connections_[index]);
  pace_ = nullptr;
}

int wait_for_events(int epoll_fd, epoll_event* events, int count, std::uint64_t wait_ns,
                    bool* has_ns) {
  if (*has_ns) {
    const timespec timeout = {static_cast<time_t>(wait_ns / 1'000'000'000),
                              static_cast<long>(wait_ns % 1'000'000'000)};
    const int ready = epoll_pwait2(epoll_fd, events, count, &timeout, nullptr);
    // Linux below 5.11 does not know it, and a container's filter may forbid what it does not know.
    if (ready >= 0 || (errno != ENOSYS && errno != EPERM)) return ready;
    *has_ns = false;
  }
  return epoll_wait(epoll_fd, events, count, static_cast<int>((wait_ns + kNsPerMs - 1) / kNsPerMs));
}

int LoadWorker::wait(epoll_event* events, std::uint64_t wait_ns) {
  return wait_for_events(epoll_fd_, events, kEventsPerWait, wait_ns, &has_ns_wait_);
}

void LoadWorker::run(std::uint64_t start_ns) {
  const std::uint64_t window_ns = start_ns + ns_of(plan_.warmup_s);
  const std::uint64_t stop_ns = window_ns + ns_of(plan_.duration_s);
  const std::uint64_t middle_ns = window_ns + (stop_ns - window_ns) / 2;
  const std::uint64_t give_up_ns = stop_ns + ns_of(plan_.drain_max_s);
  epoll_event events[kEventsPerWait];
  sleep_until_ns(start_ns);
  is_sending_ = true;
  std::uint64_t now = monotonic_ns();
  if (plan_.warmup_s <= 0) begin_window(window_ns);
  if (plan_.mode == LoadMode::kOpen) {
    schedule_first(start_ns);
    prctl(PR_SET_TIMERSLACK, 1UL);  // else the kernel may wake 50 us late
  }
  for (Connection& connection : connections_) {
    if (connection.fd < 0) continue;
    start(&connection);
  }
  bool is_past_middle = false;
  std::uint64_t next_ns = is_in_window_ ? middle_ns : window_ns;
  for (;;) {
    now = monotonic_ns();
    if (now >= next_ns) {
      if (is_sending_ && !is_in_window_) {
        begin_window(plan_.mode == LoadMode::kOpen ? window_ns : now);
        next_ns = middle_ns;
      }
      if (now >= middle_ns && !is_past_middle) {
        is_past_middle = true;
        if (plan_.mode == LoadMode::kOpen) dispatch(now, stop_ns);
        result_.counts.outstanding_middle = backlog_.size() + unanswered_;
        result_.counts.due_in_second_half = 0;
        next_ns = stop_ns;
      }
      if (now >= stop_ns && is_sending_) {
        if (plan_.mode == LoadMode::kOpen) dispatch(now, stop_ns);
        result_.counts.outstanding_end = backlog_.size() + unanswered_;
        is_sending_ = false;
        is_in_window_ = false;
        result_.counts.responses_in_window = result_.counts.responses;
        result_.stopped_ns = now;
      }
    }
    if (!is_sending_) {
      // As long as answers come the server is slow, and not mute.
      next_ns =
          std::min(give_up_ns, std::max(result_.stopped_ns, heard_ns_) + ns_of(plan_.drain_s));
      if (now >= next_ns) break;
    }
    if (!is_sending_ && (plan_.mode == LoadMode::kSlow || (unanswered_ == 0 && backlog_.empty()))) {
      break;
    }
    mind_openings(now);
    if (live_ == 0 && retries_.empty()) break;
    const std::uint64_t until_ns =
        retries_.empty() ? next_ns : std::min(next_ns, retries_.front().at_ns);
    int ready = 0;
    if (plan_.mode == LoadMode::kOpen && is_sending_) {
      dispatch(now, stop_ns);
      now = monotonic_ns();
      const std::uint64_t wake = std::min(schedule_->due_ns(), until_ns);
      ready = wait(events, wake > now ? std::min(wake - now, 1000 * kNsPerMs) : 0);
    } else {
      const std::uint64_t wait_ms = (until_ns - std::min(now, until_ns)) / kNsPerMs + 1;
      ready = epoll_wait(epoll_fd_, events, kEventsPerWait,
                         static_cast<int>(std::min<std::uint64_t>(wait_ms, 1000)));
    }
    ++result_.counts.wakes;
    wall_seconds_ = wall_seconds();
    for (int i = 0; i < ready; ++i) {
      Connection* connection = &connections_[events[i].data.u32];
      if (connection->phase != Phase::kOpen) {
        if (connection->fd >= 0) advance(connection);
        continue;
      }
      if (plan_.mode == LoadMode::kSlow) {
        pour(connection);
        continue;
      }
      if ((events[i].events & EPOLLOUT) != 0) flush(connection);
      if (connection->phase == Phase::kOpen && (events[i].events & ~EPOLLOUT) != 0)
        on_readable(connection);
    }
  }
  result_.drained_ns = monotonic_ns();
  if (result_.stopped_ns == 0) {  // all connections were lost before the end
    result_.counts.responses_in_window = result_.counts.responses;
    result_.stopped_ns = result_.drained_ns;
    if (result_.started_ns == 0) result_.started_ns = result_.drained_ns;
  }
  const TaskCost cost = own_cost();
  result_.cost.on_cpu_ns = cost.on_cpu_ns - result_.cost.on_cpu_ns;
  result_.cost.run_delay_ns = cost.run_delay_ns - result_.cost.run_delay_ns;
  result_.cost.context_switches = cost.context_switches - result_.cost.context_switches;
  account_for_unanswered(result_.drained_ns);
  for (const Connection& connection : connections_) {
    result_.counts.balance.add(connection.responses);
  }
}

void LoadWorker::close_all() {
  for (Connection& connection : connections_) {
    if (connection.fd < 0) continue;
    if (connection.unanswered != 0) {
      // What may still come is of no interest, and TIME_WAIT would keep the port.
      const linger reset = {1, 0};
      setsockopt(connection.fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
    }
    close_socket(&connection);
  }
}

void LoadWorker::begin_window(std::uint64_t now_ns) {
  // Errors are errors, in the warm-up, too.
  LoadCounts counts;
  counts.complaints = std::move(result_.counts.complaints);
  counts.errors = result_.counts.errors;
  counts.reconnects = result_.counts.reconnects;
  counts.slices = std::move(result_.counts.slices);
  if (plan_.mode != LoadMode::kChurn) {
    counts.connect = std::move(result_.counts.connect);
    counts.handshake = std::move(result_.counts.handshake);
  }
  result_.counts = std::move(counts);
  for (Connection& connection : connections_) connection.responses = 0;
  result_.started_ns = now_ns;
  result_.cost = own_cost();
  is_in_window_ = true;
  slice_end_ns_ = now_ns + ns_of(plan_.slice_s());
}

void LoadWorker::note_response(std::uint64_t ns, std::uint64_t count, std::uint64_t now_ns) {
  LoadCounts& counts = result_.counts;
  counts.response.add(ns, count);
  if (!is_in_window_) return;
  while (now_ns >= slice_end_ns_ && slice_ + 1 < counts.slices.size()) {
    ++slice_;
    slice_end_ns_ += ns_of(plan_.slice_s());
  }
  counts.slices[slice_].add(ns, count);
}

// The first requests on a new connection, behind those that another one has left over.
void LoadWorker::start(Connection* connection) {
  switch (plan_.mode) {
    case LoadMode::kClosed:
    case LoadMode::kChurn:
    case LoadMode::kIdle: {
      const std::size_t slots = plan_.mode == LoadMode::kIdle ? 1 : plan_.depth;
      const bool is_batch = plan_.mode != LoadMode::kClosed || plan_.refill == Refill::kBatch;
      const std::uint32_t left = connection->unanswered;
      if (is_sending_ && left < slots && (left == 0 || !is_batch)) {
        const std::uint64_t now = monotonic_ns();
        enqueue(connection, static_cast<std::uint32_t>(slots) - left, now, now);
      }
      flush(connection);
      break;
    }
    case LoadMode::kOpen:
      flush(connection);
      set_free(connection);
      dispatch(monotonic_ns(), 0);  // of the backlog only
      break;
    case LoadMode::kSlow:
      watch_for_writing_only(connection);
      break;
  }
}

void LoadWorker::watch_for_writing_only(Connection* connection) {
  connection->wants_writable = true;
  epoll_event event = {};
  event.events = EPOLLOUT;
  event.data.u32 = connection->index;
  epoll_ctl(epoll_fd_, EPOLL_CTL_MOD, connection->fd, &event);
}

// Sends without end and never reads. What the server holds for such a client is the question.
void LoadWorker::pour(Connection* connection) {
  if (!is_sending_) return;
  const std::size_t size = block_at_[plan_.depth];
  for (int turn = 0; turn < kPoursPerTurn; ++turn) {
    const std::size_t from = connection->send_offset;
    const ssize_t sent = transmit(connection, block_.data() + from, size - from);
    if (sent < 0) {
      if (errno == EAGAIN || errno == EINTR) return;
      // The server would not have it: that is an answer, too.
      ++result_.counts.closes_seen;
      close_socket(connection);
      return;
    }
    ++result_.counts.writes;
    result_.counts.bytes_sent += static_cast<std::uint64_t>(sent);
    connection->send_offset = (from + static_cast<std::size_t>(sent)) % size;
  }
}

// --- open loop

ArrivalSchedule::ArrivalSchedule(std::uint64_t start_ns, Arrivals arrivals, double first_ns,
                                 double mean_ns, std::uint64_t seed)
    : start_ns_(start_ns),
      arrivals_(arrivals),
      first_ns_(first_ns),
      mean_ns_(mean_ns),
      after_ns_(first_ns),
      random_(seed) {
  if (arrivals_ == Arrivals::kConstant) return;
  after_ns_ = 0;
  advance();
}

void ArrivalSchedule::advance() {
  if (arrivals_ == Arrivals::kPoisson) {
    after_ns_ += std::exponential_distribution<double>(1)(random_) * mean_ns_;
  } else {
    after_ns_ = first_ns_ + static_cast<double>(++count_) * mean_ns_;
  }
}

// The schedule is absolute: the n-th request of all workers is due at start + n / rate, and workers
// take turns; being late changes nothing of what comes after.
void LoadWorker::schedule_first(std::uint64_t start_ns) {
  const double each_ns = 1e9 / plan_.rate;
  schedule_.emplace(start_ns, plan_.arrivals,
                    (static_cast<double>(number_) + plan_.phase) * each_ns,
                    static_cast<double>(plan_.threads) * each_ns,
                    plan_.seed * 1'000'003 + plan_.first_index * 7919 + number_);
}

// Sends what is due by now and before `until_ns`, oldest first, as far as connections have room.
void LoadWorker::dispatch(std::uint64_t now_ns, std::uint64_t until_ns) {
  // Those that came in this turn are at the back of the backlog. Their lag is ours: until they are
  // sent, or until all connections are seen to be busy.
  std::size_t fresh = 0;
  const auto note_lag = [&](std::uint64_t due, std::uint64_t at_ns) {
    if (is_in_window_ && due >= result_.started_ns) result_.counts.lag.add(at_ns - due);
  };
  const std::uint64_t end_ns = std::min(now_ns + 1, until_ns);
  for (std::uint64_t due = schedule_->due_ns(); due < end_ns; due = schedule_->due_ns()) {
    if (is_in_window_ && due >= result_.started_ns) {
      ++result_.counts.due;
      ++result_.counts.due_in_second_half;
    }
    if (backlog_.size() < plan_.backlog_max) {
      backlog_.push_back(due);
      ++fresh;
    } else {
      ++result_.counts.dropped;
      note_lag(due, now_ns);
    }
    schedule_->advance();
  }
  while (!backlog_.empty() && !free_.empty()) {
    Connection* connection = &connections_[free_.front()];
    free_.pop_front();
    connection->is_free = false;
    if (connection->phase != Phase::kOpen) continue;
    const std::uint64_t due = backlog_.front();
    const bool is_fresh = backlog_.size() == fresh;
    backlog_.pop_front();
    const std::uint64_t sent = monotonic_ns();
    enqueue(connection, 1, due, sent);
    if (!connection->wants_writable) flush(connection);
    if (is_fresh) {
      --fresh;
      note_lag(due, sent);
    }
    set_free(connection);
  }
  if (fresh != 0) {
    const std::uint64_t seen = monotonic_ns();
    for (std::size_t i = backlog_.size() - fresh; i < backlog_.size(); ++i) {
      note_lag(backlog_[i], seen);
    }
  }
  result_.counts.backlog_peak =
      std::max<std::uint64_t>(result_.counts.backlog_peak, backlog_.size());
}

void LoadWorker::set_free(Connection* connection) {
  if (connection->is_free || connection->phase != Phase::kOpen ||
      connection->unanswered >= plan_.depth)
    return;
  connection->is_free = true;
  free_.push_back(connection->index);
}

// What a server does not answer is an error, unless it was busy with others until the end; in an
// open loop there is the time it has waited: a server does not get better percentiles by not
// answering.
void LoadWorker::account_for_unanswered(std::uint64_t now_ns) {
  if (plan_.mode == LoadMode::kSlow) return;
  LoadCounts& counts = result_.counts;
  const std::uint64_t patience_ns = ns_of(plan_.drain_s);
  const bool is_mute = now_ns >= std::max(result_.stopped_ns, heard_ns_) + patience_ns;
  for (const Connection& connection : connections_) {
    // One from which nothing came in the whole drain is not slow either.
    const bool is_lost = is_mute || (now_ns >= result_.stopped_ns + patience_ns &&
                                     connection.heard_ns < result_.stopped_ns);
    (is_lost ? counts.errors.timeout : counts.unanswered) += connection.unanswered;
    if (plan_.mode != LoadMode::kOpen) continue;
    const std::size_t capacity = connection.groups.size();
    for (std::size_t i = 0; i < connection.group_count; ++i) {
      const SendGroup& group = connection.groups[(connection.group_first + i) % capacity];
      if (group.at_ns < result_.started_ns) continue;
      counts.response.add(now_ns - group.at_ns, group.count);
      counts.service.add(now_ns - group.sent_ns, group.count);
    }
  }
  for (const std::uint64_t due : backlog_) {
    if (due < result_.started_ns) continue;
    ++counts.unsent;
    counts.response.add(now_ns - due);
  }
}

void LoadWorker::enqueue(Connection* connection, std::uint32_t count, std::uint64_t at_ns,
                         std::uint64_t sent_ns) {
  connection->queued += count;
  connection->unanswered += count;
  unanswered_ += count;
  const auto capacity = static_cast<std::uint32_t>(connection->groups.size());
  const std::uint32_t at = (connection->group_first + connection->group_count) % capacity;
  connection->groups[at] = {at_ns, sent_ns, count};
  ++connection->group_count;
}

void LoadWorker::flush(Connection* connection) {
  const auto kinds = static_cast<std::uint32_t>(plan_.requests.size());
  while (connection->queued != 0) {
    const std::size_t from = block_at_[connection->send_kind] + connection->send_offset;
    std::size_t to = block_at_[connection->send_kind + connection->queued];
    if (plan_.split_bytes != 0) to = std::min(to, from + plan_.split_bytes);
    const ssize_t sent = transmit(connection, block_.data() + from, to - from);
    if (sent < 0) {
      if (errno == EINTR) continue;
      if (errno == EAGAIN) {
        watch_writable(connection, true);
        return;
      }
      // The reading side will say what happened, after what the server still had to say.
      watch_writable(connection, false);
      return;
    }
    ++result_.counts.writes;
    result_.counts.bytes_sent += static_cast<std::uint64_t>(sent);
    std::uint32_t done = 0;
    if (from + static_cast<std::size_t>(sent) ==
        block_at_[connection->send_kind + connection->queued]) {
      done = connection->queued;
      connection->send_offset = 0;
    } else {
      const std::size_t reached = from + static_cast<std::size_t>(sent);
      while (block_at_[connection->send_kind + done + 1] <= reached) ++done;
      connection->send_offset = reached - block_at_[connection->send_kind + done];
    }
    connection->queued -= done;
    connection->send_kind = (connection->send_kind + done) % kinds;
    result_.counts.requests_sent += done;
    if (plan_.split_bytes != 0 && connection->queued != 0) {
      watch_writable(connection, true);  // the next piece in the next turn
      return;
    }
  }
  watch_writable(connection, false);
}

// What TLS has read and not given out yet is not told by epoll.
void LoadWorker::on_readable(Connection* connection) {
  while (read_once(connection) && connection->tls.is_open() && connection->tls.has_pending()) {
  }
}

// False when there is nothing more, or the connection is another one now.
bool LoadWorker::read_once(Connection* connection) {
  std::string& partial = connection->partial;
  const bool is_carried = partial.size() <= kCarryBytesMax;
  const std::size_t carried = is_carried ? partial.size() : 0;
  if (carried != 0) std::memcpy(receive_.data(), partial.data(), carried);
  const ssize_t got = receive(connection, receive_.data() + carried, receive_.size() - carried);
  const std::uint64_t now = monotonic_ns();
  if (got <= 0) {
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return false;
    on_end(connection, got < 0);
    return false;
  }
  const auto size = static_cast<std::size_t>(got);
  connection->heard_ns = heard_ns_ = now;
  ++result_.counts.reads;
  result_.counts.bytes_received += size;
  const std::uint32_t before = connection->unanswered;
  if (is_carried) {
    const std::string_view octets(receive_.data(), carried + size);
    std::size_t done = 0;
    if (octets.size() >= connection->need) {
      done = digest(connection, octets, now);
      if (done == kGone) return false;
    }
    if (done < octets.size()) {
      partial.assign(octets.substr(done));
    } else if (carried != 0) {
      partial.clear();
    }
  } else {
    partial.append(receive_.data(), size);
    if (partial.size() < connection->need) return true;
    const std::size_t done = digest(connection, partial, now);
    if (done == kGone) return false;
    partial.erase(0, done);
  }
  if (partial.empty()) connection->need = 0;
  if (connection->closing) {
    // RFC 9112 section 9.6: the client closes once it has read that answer.
    reopen_and_resend(connection);
    return false;
  }
  refill(connection, before - connection->unanswered, now);
  return true;
}

std::size_t LoadWorker::digest(Connection* connection, std::string_view octets,
                               std::uint64_t now_ns) {
  std::size_t at = 0;
  const bool is_one_kind = verifiers_.size() == 1;
  while (at < octets.size()) {
    ResponseVerifier& verifier = verifiers_[connection->receive_kind];
    const std::string_view rest = octets.substr(at);
    const std::uint32_t limit = answerable(*connection);
    if (limit == 0) {
      ++result_.counts.errors.surplus;
      CheckResult surplus;
      surplus.why = "octets that no request asked for";
      complain(*connection, surplus, rest);
      reopen(connection);
      return kGone;
    }
    const std::uint64_t sent_ns = connection->groups[connection->group_first].sent_ns;
    verifier.set_wall_clock(wall_seconds_, wall_seconds_ - seconds_of(now_ns - sent_ns));
    const std::size_t equal = verifier.count_equal(
        rest, is_one_kind && !verifier.announced_close() ? limit : std::size_t{1});
    if (equal != 0) {
      at += equal * verifier.learned_size();
      answered(connection, equal, now_ns, true);
      if (!verifier.announced_close()) continue;
      connection->closing = true;
      return at;
    }
    const CheckResult result = verifier.check(rest);
    LoadErrors& errors = result_.counts.errors;
    switch (result.kind) {
      case CheckKind::kNeedMore:
        connection->need = result.need;
        return at;
      case CheckKind::kVariant:
        ++result_.counts.variants;
        [[fallthrough]];
      case CheckKind::kVerified:
        answered(connection, 1, now_ns, true);
        break;
      case CheckKind::kInterim:
        ++result_.counts.interim;
        break;
      case CheckKind::kStatus:
      case CheckKind::kBody:
      case CheckKind::kDate: {
        complain(*connection, result, rest);
        bool is_other = false;
        if (result.kind == CheckKind::kBody) {
          for (const ResponseVerifier& other : verifiers_) {
            // Whatever there is ends with the nothing that answers a HEAD.
            if (!other.body().empty() && other.body() != verifier.body() &&
                rest.substr(0, result.size).ends_with(other.body())) {
              is_other = true;
            }
          }
        }
        ++(is_other                            ? errors.order
           : result.kind == CheckKind::kStatus ? errors.status
           : result.kind == CheckKind::kBody   ? errors.body
                                               : errors.date);
        answered(connection, 1, now_ns, false);
        break;
      }
      case CheckKind::kFraming:
        ++errors.framing;
        complain(*connection, result, rest);
        reopen(connection);
        return kGone;
    }
    at += result.size;
    if (result.announced_close && result.kind != CheckKind::kInterim) {
      connection->closing = true;
      return at;  // whatever comes behind it is no answer
    }
  }
  return at;
}

void LoadWorker::answered(Connection* connection, std::uint64_t count, std::uint64_t now_ns,
                          bool verified) {
  connection->unanswered -= static_cast<std::uint32_t>(count);
  unanswered_ -= count;
  if (verified) look_at_date(connection, now_ns);
  if (verifiers_.size() > 1) {
    connection->receive_kind = (connection->receive_kind + static_cast<std::uint32_t>(count)) %
                               static_cast<std::uint32_t>(verifiers_.size());
  }
  // An open loop's window is cut by when requests were due, not by when their answers come.
  const bool is_open = plan_.mode == LoadMode::kOpen;
  if (verified) connection->responses += count;
  if (verified && !is_open) result_.counts.responses += count;
  while (count != 0) {
    SendGroup& group = connection->groups[connection->group_first];
    const std::uint64_t part = std::min(count, group.count);
    // What belongs to nothing right is in no latency either.
    if (verified && !is_open) note_response(now_ns - group.at_ns, part, now_ns);
    if (verified && is_open && result_.started_ns != 0 && group.at_ns >= result_.started_ns) {
      result_.counts.responses += part;
      note_response(now_ns - group.at_ns, part, now_ns);
      result_.counts.service.add(now_ns - group.sent_ns, part);
    }
    group.count -= part;
    count -= part;
    if (group.count != 0) continue;
    if (plan_.refill == Refill::kBatch && !is_open) result_.counts.batch.add(now_ns - group.at_ns);
    drop_group(connection);
  }
}

// A Date near the clock that does not move with it is that of an answer which was made once.
void LoadWorker::look_at_date(Connection* connection, std::uint64_t now_ns) {
  const ResponseVerifier& verifier = verifiers_[connection->receive_kind];
  DateSpan& span = dates_[connection->receive_kind];
  if (!verifier.has_date() || span.since_ns == 0 || span.changes != verifier.date_changes()) {
    span = {verifier.date_changes(), now_ns};
  }
  // By when the request was sent: what was asked before it was first seen may well have it.
  const std::uint64_t sent_ns = connection->groups[connection->group_first].sent_ns;
  if (sent_ns <= span.since_ns + kDateStillNsMax) return;
  span.since_ns = now_ns;
  ++result_.counts.errors.date;
  CheckResult still;
  still.why = "the Date has not moved for over two seconds";
  complain(*connection, still, {});
}

void LoadWorker::refill(Connection* connection, std::uint32_t answered_count,
                        std::uint64_t now_ns) {
  if (plan_.mode == LoadMode::kOpen) {
    set_free(connection);
    dispatch(now_ns, 0);  // of the backlog only
    return;
  }
  if (!is_sending_ || connection->closing || connection->fd < 0) return;
  if (plan_.mode == LoadMode::kIdle) return;
  if (plan_.mode == LoadMode::kChurn) {
    if (connection->unanswered == 0) reopen(connection);
    return;
  }
  if (plan_.refill == Refill::kBatch) {
    if (connection->unanswered != 0) return;
    answered_count = static_cast<std::uint32_t>(plan_.depth);
  }
  if (answered_count == 0) return;
  enqueue(connection, answered_count, now_ns, now_ns);
  if (!connection->wants_writable) flush(connection);
}

void LoadWorker::on_end(Connection* connection, bool is_reset) {
  if (plan_.mode == LoadMode::kIdle && connection->unanswered == 0) {
    // A server may end an idle connection (RFC 9112 section 9.5); it is no longer held, though.
    ++result_.counts.closes_seen;
    close_socket(connection);
    return;
  }
  LoadErrors& errors = result_.counts.errors;
  CheckResult end;
  if (is_reset) {
    ++errors.reset;
    end.why = "connection reset";
    complain(*connection, end, connection->partial);
  } else if (connection->unanswered != 0) {
    ++errors.closed;
    end.why = "connection closed with requests unanswered";
    complain(*connection, end, connection->partial);
  }
  reopen(connection);
}

// To how many requests an answer may come: those that are out, and the one that is half out, as a
// server may answer before it has read all of it (RFC 9112 section 9.5).
std::uint32_t LoadWorker::answerable(const Connection& connection) {
  return connection.unanswered + (connection.send_offset != 0 ? 1 : 0) - connection.queued;
}

// The request that is half out and has its answer is not to be sent on another connection.
void LoadWorker::end_answered_half(Connection* connection) {
  if (connection->queued <= connection->unanswered) return;
  --connection->queued;
  connection->send_kind =
      (connection->send_kind + 1) % static_cast<std::uint32_t>(plan_.requests.size());
  ++result_.counts.requests_sent;
}

void LoadWorker::reopen_and_resend(Connection* connection) {
  end_answered_half(connection);
  result_.counts.resent += connection->unanswered - connection->queued;
  connection->queued = connection->unanswered;
  connection->send_kind = connection->receive_kind;
  replace(connection);
}

void LoadWorker::reopen(Connection* connection) {
  end_answered_half(connection);
  lose(connection, connection->unanswered - connection->queued);
  connection->receive_kind = connection->send_kind;
  replace(connection);
}

// The oldest `count` requests of a connection will not be answered. They are errors, and in an open
// loop there is the time they waited: a server does not get better percentiles by hanging up.
void LoadWorker::lose(Connection* connection, std::uint32_t count) {
  result_.counts.errors.lost += count;
  connection->unanswered -= count;
  unanswered_ -= count;
  const std::uint64_t now = monotonic_ns();
  std::uint64_t left = count;
  while (left != 0) {
    SendGroup& group = connection->groups[connection->group_first];
    const std::uint64_t part = std::min(left, group.count);
    if (plan_.mode == LoadMode::kOpen && result_.started_ns != 0 &&
        group.at_ns >= result_.started_ns) {
      result_.counts.response.add(now - group.at_ns, part);
      result_.counts.service.add(now - group.sent_ns, part);
    }
    group.count -= part;
    left -= part;
    if (group.count == 0) drop_group(connection);
  }
}

void LoadWorker::drop_group(Connection* connection) {
  connection->group_first =
      (connection->group_first + 1) % static_cast<std::uint32_t>(connection->groups.size());
  --connection->group_count;
}

// Another connection in the place of this one, with its requests that are to be sent.
void LoadWorker::replace(Connection* connection) {
  if (plan_.mode == LoadMode::kChurn) {
    // A close of ours would leave the port in TIME_WAIT, and there are 28,000 of them.
    const linger reset = {1, 0};
    setsockopt(connection->fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
  }
  close_socket(connection);
  connection->send_offset = connection->need = 0;
  connection->closing = false;
  connection->partial.clear();
  // In the drain only for what is still to be answered.
  if (!is_sending_ && connection->unanswered == 0 && backlog_.empty()) return;
  if (plan_.mode == LoadMode::kIdle) {
    lose(connection, connection->unanswered);
    connection->queued = 0;
    return;
  }
  ++result_.counts.reconnects;
  open(connection);
}

void LoadWorker::complain(const Connection& connection, const CheckResult& result,
                          std::string_view octets) {
  if (result_.counts.complaints.size() >= kComplaintsMax) return;
  std::string text = "connection " + std::to_string(connection.index) + ": " + result.why;
  if (result.why_at != 0) text += " at octet " + std::to_string(result.why_at);
  constexpr std::size_t kShown = 160;
  if (!octets.empty()) text += ": ";
  for (const char c : octets.substr(0, kShown)) {
    char escaped[8];
    if (c == '\r' || c == '\n') {
      text += c == '\r' ? "\\r" : "\\n";
    } else if (c >= 0x20 && c < 0x7f) {
      text += c;
    } else {
      std::snprintf(escaped, sizeof escaped, "\\x%02x", static_cast<unsigned char>(c));
      text += escaped;
    }
  }
  result_.counts.complaints.push_back(text);
}

bool LoadWorker::watch_reading(const Connection& connection) const {
  epoll_event event = {};
  event.events = EPOLLIN;
  event.data.u32 = connection.index;
  return epoll_ctl(epoll_fd_, EPOLL_CTL_ADD, connection.fd, &event) == 0;
}

void LoadWorker::watch_writable(Connection* connection, bool on) {
  if (connection->wants_writable == on) return;
  connection->wants_writable = on;
  epoll_event event = {};
  event.events = EPOLLIN | (on ? EPOLLOUT : 0U);
  event.data.u32 = connection->index;
  epoll_ctl(epoll_fd_, EPOLL_CTL_MOD, connection->fd, &event);
}

}  // namespace httpmark
