#include "load/processes.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <cerrno>
#include <csignal>
#include <memory>
#include <new>
#include <string>
#include <string_view>
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
        result.began_ns = std::max(result.began_ns, part.began_ns);
        result.threads.push_back(part.cost);
        result.seconds =
            std::max(result.seconds, static_cast<double>(part.stopped_ns - part.started_ns) / 1e9);
        result.drain_seconds = std::max(
            result.drain_seconds, static_cast<double>(part.drained_ns - part.stopped_ns) / 1e9);
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

// The share of the plan that process `number` of `procs` has; its connections begin at `first`.
LoadPlan share_of(const LoadPlan& plan, std::size_t number, std::size_t procs, std::size_t first) {
    LoadPlan share = plan;
    share.connections = plan.connections / procs + (number < plan.connections % procs ? 1 : 0);
    share.threads = std::min(plan.threads, share.connections);
    share.rate = plan.rate / static_cast<double>(procs);
    share.connect_rate = plan.connect_rate / static_cast<double>(procs);
    share.first_index = first;
    share.phase += static_cast<double>(number) / static_cast<double>(procs);
    return share;
}

// Child processes that each run a share.
class Children {
  public:
    explicit Children(Gate* gate) : gate_(*gate) {}

    // False: there is no other child to be had.
    bool start(const LoadPlan& share, const std::vector<ResponseVerifier>& verifiers);
    // Until all were that far. False when a child ended before.
    bool wait_for(const std::atomic<std::uint64_t>& counter);
    // Waits for all of them, or ends them. False: not all results are there.
    bool collect(bool is_good, ProcessResult* result);

  private:
    struct Child {
        pid_t pid = -1;
        int fd = -1;
    };

    [[noreturn]] void play_child(const LoadPlan& share,
                                 const std::vector<ResponseVerifier>& verifiers, int fd);

    Gate& gate_;
    std::vector<Child> children_;
};

bool Children::start(const LoadPlan& share, const std::vector<ResponseVerifier>& verifiers) {
    const pid_t parent = getpid();
    int pipe_fds[2];
    if (pipe2(pipe_fds, O_CLOEXEC) != 0) return false;
    const pid_t pid = fork();
    if (pid == 0) {
        // No child outlives whoever started it.
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent) _exit(kProcessFailed);
        close(pipe_fds[0]);
        play_child(share, verifiers, pipe_fds[1]);
    }
    close(pipe_fds[1]);
    children_.push_back({pid, pipe_fds[0]});
    return pid >= 0;
}

void Children::play_child(const LoadPlan& share, const std::vector<ResponseVerifier>& verifiers,
                          int fd) {
    Hooks own;
    own.connected = [&](std::size_t) {
        ++gate_.ready;
        wait_for_start(&gate_);
    };
    own.drained = [&] {
        ++gate_.drained;
        wait_for_close(&gate_);
    };
    const ProcessResult part = run_threads(share, verifiers, &gate_, own);
    _exit(write_all(fd, pack(part)) ? 0 : kProcessFailed);
}

bool Children::wait_for(const std::atomic<std::uint64_t>& counter) {
    while (counter.load() < children_.size()) {
        for (Child& child : children_) {
            int status = 0;
            if (child.pid > 0 && waitpid(child.pid, &status, WNOHANG) == child.pid) {
                child.pid = -1;
                return false;
            }
        }
        sleep_until_ns(monotonic_ns() + kGatePollNs);
    }
    return true;
}

bool Children::collect(bool is_good, ProcessResult* result) {
    for (Child& child : children_) {
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
    return is_good;
}

ProcessResult run_here(const LoadPlan& plan, const std::vector<ResponseVerifier>& verifiers,
                       const Hooks& hooks) {
    Gate gate;
    Hooks own = hooks;
    own.connected = [&](std::size_t established) {
        hooks.connected(established);
        gate.start_ns = hooks.start(monotonic_ns() + kStartDelayNs);
    };
    return run_threads(plan, verifiers, &gate, own);
}

}  // namespace

bool run_processes(const LoadPlan& plan, std::size_t procs,
                   const std::vector<ResponseVerifier>& verifiers, const Hooks& hooks,
                   ProcessResult* result) {
    if (procs <= 1) {
        *result = run_here(plan, verifiers, hooks);
        return true;
    }
    void* memory =
        mmap(nullptr, sizeof(Gate), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return false;
    Gate* gate = new (memory) Gate;
    Children children(gate);
    bool is_good = true;
    std::size_t first = 0;
    for (std::size_t i = 0; i < procs && is_good; ++i) {
        const LoadPlan share = share_of(plan, i, procs, first);
        first += share.connections;
        is_good = children.start(share, verifiers);
    }
    is_good = is_good && children.wait_for(gate->ready);
    if (is_good) {
        hooks.connected(gate->established);
        gate->start_ns = hooks.start(monotonic_ns() + kStartDelayNs + 2 * kGatePollNs);
        wait_for_window(plan, *gate, hooks);
        sleep_until_ns(gate->start_ns + ns_of(plan.warmup_s + plan.duration_s));
        is_good = children.wait_for(gate->drained);
        hooks.drained();
        gate->may_close = true;
    }
    is_good = children.collect(is_good, result);
    munmap(memory, sizeof(Gate));
    return is_good;
}

}  // namespace httpmark
