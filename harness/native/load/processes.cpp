#include "load/processes.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <bit>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <memory>
#include <new>
#include <thread>

#include "load/worker.hpp"
#include "shared/clock.hpp"

namespace httpmark {
namespace {

constexpr std::uint64_t kStartDelayNs = 2'000'000;
constexpr std::uint64_t kGatePollNs = 1'000'000;
constexpr std::uint64_t kBeforeWindowNs = 10'000'000;
constexpr int kProcessFailed = 9;

// In memory that parent and children share.
struct Gate {
  std::atomic<std::uint64_t> ready = 0;  // processes whose connections are open
  std::atomic<std::uint64_t> established = 0;
  std::atomic<std::uint64_t> start_ns = 0;  // 0 = not yet
  std::atomic<std::uint64_t> drained = 0;   // processes that are done but for their connections
  std::atomic<bool> may_close = false;
};

void wait_for_start(Gate* gate) {
  while (gate->start_ns.load() == 0) sleep_until_ns(monotonic_ns() + kGatePollNs);
}

void wait_for_close(Gate* gate) {
  while (!gate->may_close.load()) sleep_until_ns(monotonic_ns() + kGatePollNs);
}

void wait_for_window(const LoadPlan& plan, const Gate& gate, const Hooks& hooks) {
  const std::uint64_t at = gate.start_ns.load() + ns_of(plan.warmup_s);
  sleep_until_ns(at - kBeforeWindowNs);
  hooks.before_window();
  sleep_until_ns(at);
  hooks.window();
}

// The threads of one process. `hooks.connected` is called when its connections are open and has to
// set the start.
ProcessResult run_threads(const LoadPlan& plan, const std::vector<ResponseVerifier>& verifiers,
                          Gate* gate, const Hooks& hooks) {
  std::vector<std::unique_ptr<LoadWorker>> workers;
  std::size_t first = 0;
  for (std::size_t i = 0; i < plan.threads; ++i) {
    const std::size_t share =
        plan.connections / plan.threads + (i < plan.connections % plan.threads ? 1 : 0);
    workers.push_back(std::make_unique<LoadWorker>(plan, share, verifiers, first, i));
    first += share;
  }
  std::barrier connected(static_cast<std::ptrdiff_t>(plan.threads + 1));
  std::barrier opened(static_cast<std::ptrdiff_t>(plan.threads + 1));
  std::barrier drained(static_cast<std::ptrdiff_t>(plan.threads + 1));
  std::barrier closing(static_cast<std::ptrdiff_t>(plan.threads + 1));
  std::vector<std::thread> threads;
  for (auto& worker : workers) {
    threads.emplace_back([&worker, &connected, &opened, &drained, &closing, gate] {
      worker->connect_all();
      connected.arrive_and_wait();
      opened.arrive_and_wait();
      worker->run(gate->start_ns.load());
      drained.arrive_and_wait();
      closing.arrive_and_wait();
      worker->close_all();
    });
  }
  connected.arrive_and_wait();
  for (const auto& worker : workers) gate->established += worker->result().established;
  hooks.connected(gate->established);
  opened.arrive_and_wait();
  wait_for_window(plan, *gate, hooks);
  drained.arrive_and_wait();
  hooks.drained();
  closing.arrive_and_wait();
  for (std::thread& thread : threads) thread.join();

  ProcessResult result;
  for (const auto& worker : workers) {
    const WorkerResult& part = worker->result();
    result.counts.add(part.counts);
    result.cpu_ns += part.cost.on_cpu_ns;
    result.context_switches += part.cost.context_switches;
    result.established += part.established;
    result.threads.push_back(part.cost);
    result.seconds =
        std::max(result.seconds, static_cast<double>(part.stopped_ns - part.started_ns) / 1e9);
    result.drain_seconds = std::max(result.drain_seconds,
                                    static_cast<double>(part.drained_ns - part.stopped_ns) / 1e9);
  }
  return result;
}

bool write_all(int fd, std::string_view octets) {
  while (!octets.empty()) {
    const ssize_t sent = write(fd, octets.data(), octets.size());
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    octets.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

std::string read_all(int fd) {
  std::string octets;
  char buffer[65536];
  for (;;) {
    const ssize_t got = read(fd, buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return octets;
    octets.append(buffer, static_cast<std::size_t>(got));
  }
}

struct Child {
  pid_t pid = -1;
  int fd = -1;
};

// --- packing: numbers of eight octets, texts with their length before them

void put(std::string* out, std::uint64_t value) {
  out->append(reinterpret_cast<const char*>(&value), sizeof value);
}
void put_text(std::string* out, std::string_view text) {
  put(out, text.size());
  out->append(text);
}

struct Unpacker {
  std::string_view left;
  bool is_good = true;

  std::uint64_t number() {
    std::uint64_t value = 0;
    if (left.size() < sizeof value) {
      is_good = false;
      left = {};
      return 0;
    }
    std::memcpy(&value, left.data(), sizeof value);
    left.remove_prefix(sizeof value);
    return value;
  }
  std::string text() {
    const std::uint64_t size = number();
    if (size > left.size()) {
      is_good = false;
      left = {};
      return {};
    }
    const std::string value(left.substr(0, size));
    left.remove_prefix(size);
    return value;
  }
};

// Every number of LoadCounts and LoadErrors, in one order for both ways.
template <typename Counts, typename See>
void each_number(Counts& counts, See see) {
  see(counts.responses);
  see(counts.responses_in_window);
  see(counts.variants);
  see(counts.interim);
  see(counts.requests_sent);
  see(counts.bytes_sent);
  see(counts.bytes_received);
  see(counts.reads);
  see(counts.writes);
  see(counts.wakes);
  see(counts.reconnects);
  see(counts.resent);
  see(counts.unanswered);
  see(counts.closes_seen);
  see(counts.unsent);
  see(counts.dropped);
  see(counts.backlog_peak);
  see(counts.due);
  see(counts.due_in_second_half);
  see(counts.outstanding_middle);
  see(counts.outstanding_end);
  see(counts.errors.connect);
  see(counts.errors.closed);
  see(counts.errors.reset);
  see(counts.errors.lost);
  see(counts.errors.timeout);
  see(counts.errors.status);
  see(counts.errors.framing);
  see(counts.errors.body);
  see(counts.errors.order);
  see(counts.errors.date);
  see(counts.errors.surplus);
  see(counts.balance.connections);
  see(counts.balance.least);
  see(counts.balance.most);
}

template <typename Counts, typename See>
void each_histogram(Counts& counts, See see) {
  see(counts.response);
  see(counts.batch);
  see(counts.service);
  see(counts.lag);
  see(counts.connect);
  see(counts.handshake);
}

}  // namespace

void ProcessResult::add(const ProcessResult& other) {
  counts.add(other.counts);
  established += other.established;
  cpu_ns += other.cpu_ns;
  context_switches += other.context_switches;
  seconds = std::max(seconds, other.seconds);
  drain_seconds = std::max(drain_seconds, other.drain_seconds);
  threads.insert(threads.end(), other.threads.begin(), other.threads.end());
}

std::string pack(const ProcessResult& result) {
  std::string out;
  each_number(result.counts, [&](std::uint64_t value) { put(&out, value); });
  each_histogram(result.counts,
                 [&](const Histogram& histogram) { put_text(&out, histogram.pack()); });
  put(&out, result.counts.slices.size());
  for (const Histogram& slice : result.counts.slices) put_text(&out, slice.pack());
  put(&out, result.counts.complaints.size());
  for (const std::string& complaint : result.counts.complaints) put_text(&out, complaint);
  put(&out, std::bit_cast<std::uint64_t>(result.counts.balance.sum));
  put(&out, std::bit_cast<std::uint64_t>(result.counts.balance.sum_of_squares));
  put(&out, result.established);
  put(&out, result.cpu_ns);
  put(&out, result.context_switches);
  put(&out, std::bit_cast<std::uint64_t>(result.seconds));
  put(&out, std::bit_cast<std::uint64_t>(result.drain_seconds));
  put(&out, result.threads.size());
  for (const TaskCost& thread : result.threads) {
    put(&out, thread.on_cpu_ns);
    put(&out, thread.run_delay_ns);
    put(&out, thread.context_switches);
  }
  return out;
}

bool unpack(std::string_view octets, ProcessResult* result) {
  *result = ProcessResult();
  Unpacker in{octets};
  each_number(result->counts, [&](std::uint64_t& value) { value = in.number(); });
  each_histogram(result->counts, [&](Histogram& histogram) {
    if (!histogram.unpack(in.text())) in.is_good = false;
  });
  for (std::uint64_t count = in.number(); count != 0 && in.is_good; --count) {
    Histogram slice(kSliceCoarseBits);
    if (!slice.unpack(in.text())) in.is_good = false;
    result->counts.slices.push_back(std::move(slice));
  }
  for (std::uint64_t count = in.number(); count != 0 && in.is_good; --count) {
    result->counts.complaints.push_back(in.text());
  }
  result->counts.balance.sum = std::bit_cast<double>(in.number());
  result->counts.balance.sum_of_squares = std::bit_cast<double>(in.number());
  result->established = in.number();
  result->cpu_ns = in.number();
  result->context_switches = in.number();
  result->seconds = std::bit_cast<double>(in.number());
  result->drain_seconds = std::bit_cast<double>(in.number());
  for (std::uint64_t count = in.number(); count != 0 && in.is_good; --count) {
    TaskCost thread;
    thread.on_cpu_ns = in.number();
    thread.run_delay_ns = in.number();
    thread.context_switches = in.number();
    result->threads.push_back(thread);
  }
  return in.is_good && in.left.empty();
}

bool run_processes(const LoadPlan& plan, std::size_t procs,
                   const std::vector<ResponseVerifier>& verifiers, const Hooks& hooks,
                   ProcessResult* result) {
  if (procs <= 1) {
    Gate gate;
    Hooks own = hooks;
    own.connected = [&](std::size_t established) {
      hooks.connected(established);
      gate.start_ns = monotonic_ns() + kStartDelayNs;
    };
    *result = run_threads(plan, verifiers, &gate, own);
    return true;
  }
  void* memory =
      mmap(nullptr, sizeof(Gate), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return false;
  Gate* gate = new (memory) Gate;
  std::vector<Child> children;
  bool is_good = true;
  std::size_t first = 0;
  const pid_t parent = getpid();
  for (std::size_t i = 0; i < procs && is_good; ++i) {
    LoadPlan share = plan;
    share.connections = plan.connections / procs + (i < plan.connections % procs ? 1 : 0);
    share.threads = std::min(plan.threads, share.connections);
    share.rate = plan.rate / static_cast<double>(procs);
    share.connect_rate = plan.connect_rate / static_cast<double>(procs);
    share.first_index = first;
    share.phase = static_cast<double>(i) / static_cast<double>(procs);
    first += share.connections;
    int pipe_fds[2];
    if (pipe2(pipe_fds, O_CLOEXEC) != 0) {
      is_good = false;
      break;
    }
    const pid_t pid = fork();
    if (pid == 0) {
      // No child outlives whoever started it.
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (getppid() != parent) _exit(kProcessFailed);
      close(pipe_fds[0]);
      Hooks own;
      own.connected = [&](std::size_t) {
        ++gate->ready;
        wait_for_start(gate);
      };
      own.drained = [&] {
        ++gate->drained;
        wait_for_close(gate);
      };
      const ProcessResult part = run_threads(share, verifiers, gate, own);
      _exit(write_all(pipe_fds[1], pack(part)) ? 0 : kProcessFailed);
    }
    close(pipe_fds[1]);
    children.push_back({pid, pipe_fds[0]});
    if (pid < 0) is_good = false;
  }
  // False when a child ended before all were that far.
  const auto wait_for = [&](const std::atomic<std::uint64_t>& counter) {
    while (counter.load() < children.size()) {
      for (Child& child : children) {
        int status = 0;
        if (child.pid > 0 && waitpid(child.pid, &status, WNOHANG) == child.pid) {
          child.pid = -1;
          return false;
        }
      }
      sleep_until_ns(monotonic_ns() + kGatePollNs);
    }
    return true;
  };
  is_good = is_good && wait_for(gate->ready);
  if (is_good) {
    hooks.connected(gate->established);
    gate->start_ns = monotonic_ns() + kStartDelayNs + 2 * kGatePollNs;
    wait_for_window(plan, *gate, hooks);
    sleep_until_ns(gate->start_ns + ns_of(plan.warmup_s + plan.duration_s));
    is_good = wait_for(gate->drained);
    hooks.drained();
    gate->may_close = true;
  }
  for (Child& child : children) {
    if (!is_good && child.pid > 0) kill(child.pid, SIGKILL);
    ProcessResult part;
    if (is_good && unpack(read_all(child.fd), &part)) {
      result->add(part);
    } else {
      is_good = false;
    }
    close(child.fd);
    int status = 0;
    if (child.pid > 0) waitpid(child.pid, &status, 0);
  }
  munmap(memory, sizeof(Gate));
  return is_good;
}

}  // namespace httpmark
