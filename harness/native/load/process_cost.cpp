#include "load/process_cost.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <set>

namespace httpmark {
namespace {

std::string read_small_file(const std::string& path) {
    std::string text(4096, '\0');
    const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) return {};
    const ssize_t got = read(fd, text.data(), text.size());
    close(fd);
    text.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
    return text;
}

std::uint64_t number_after(const std::string& text, const char* name) {
    const std::size_t at = text.find(name);
    if (at == std::string::npos) return 0;
    return std::strtoull(text.c_str() + at + std::strlen(name), nullptr, 10);
}

constexpr std::uint64_t kTicksSlack = 4;

std::uint64_t tick_ns() {
    return 1'000'000'000 / static_cast<std::uint64_t>(std::max(1L, sysconf(_SC_CLK_TCK)));
}

std::uint64_t less(std::uint64_t value, std::uint64_t by) {
    return value > by ? value - by : 0;
}

// Of /proc/PID/stat, proc(5).
struct Stat {
    int parent = 0;
    std::uint64_t cpu_ns = 0;
    std::uint64_t children_ns = 0;
    std::uint64_t started = 0;
};

std::optional<Stat> read_stat(int pid) {
    const std::string text = read_small_file("/proc/" + std::to_string(pid) + "/stat");
    // The name in parentheses may hold anything, parentheses among it.
    const std::size_t at = text.rfind(')');
    if (at == std::string::npos) return std::nullopt;
    Stat stat;
    unsigned long long user = 0;
    unsigned long long system = 0;
    unsigned long long child_user = 0;
    unsigned long long child_system = 0;
    unsigned long long started = 0;
    if (std::sscanf(
            text.c_str() + at + 1,
            " %*c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu %llu %llu %*d %*d %*d %*d "
            "%llu",
            &stat.parent, &user, &system, &child_user, &child_system, &started) != 6) {
        return std::nullopt;
    }
    stat.cpu_ns = (user + system) * tick_ns();
    stat.children_ns = (child_user + child_system) * tick_ns();
    stat.started = started;
    return stat;
}

// The clock of a whole process, ended threads included: clock_getcpuclockid(3).
std::optional<std::uint64_t> read_process_clock(int pid) {
    clockid_t clock = 0;
    timespec used = {};
    if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &used) != 0) {
        return std::nullopt;
    }
    return static_cast<std::uint64_t>(used.tv_sec) * 1'000'000'000 +
           static_cast<std::uint64_t>(used.tv_nsec);
}

bool ignores_children(const std::string& status) {
    constexpr const char* kName = "\nSigIgn:";
    const std::size_t at = status.find(kName);
    if (at == std::string::npos) return false;
    const auto mask = std::strtoull(status.c_str() + at + std::strlen(kName), nullptr, 16);
    return (mask >> (SIGCHLD - 1) & 1) != 0;
}

int open_event(std::uint32_t type, std::uint64_t config, int tid, bool inherits) {
    perf_event_attr attributes = {};
    attributes.size = sizeof attributes;
    attributes.type = type;
    attributes.config = config;
    attributes.inherit = inherits ? 1 : 0;
    attributes.exclude_hv = 1;
    return static_cast<int>(
        syscall(SYS_perf_event_open, &attributes, tid, -1, -1, PERF_FLAG_FD_CLOEXEC));
}

}  // namespace

EventCounter& EventCounter::operator=(EventCounter&& other) noexcept {
    std::swap(fds_, other.fds_);
    return *this;
}

EventCounter::~EventCounter() {
    for (const int fd : fds_) close(fd);
}

std::optional<EventCounter> EventCounter::of_processes(std::uint32_t type, std::uint64_t config,
                                                       const std::vector<int>& pids) {
    EventCounter counter;
    for (const auto& [pid, process] : read_books(pids)) {
        for (const auto& [tid, cost] : process.threads) {
            const int fd = open_event(type, config, tid, true);
            if (fd < 0) return std::nullopt;
            counter.fds_.push_back(fd);
        }
    }
    if (counter.fds_.empty()) return std::nullopt;
    return counter;
}

std::optional<EventCounter> EventCounter::of_self(std::uint32_t type, std::uint64_t config) {
    EventCounter counter;
    const int fd = open_event(type, config, 0, true);
    if (fd < 0) return std::nullopt;
    counter.fds_.push_back(fd);
    return counter;
}

std::optional<EventCounter> EventCounter::instructions_of_processes(const std::vector<int>& pids) {
    return of_processes(PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS, pids);
}

std::optional<EventCounter> EventCounter::instructions_of_self() {
    return of_self(PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS);
}

std::optional<std::uint64_t> EventCounter::read() const {
    std::uint64_t sum = 0;
    for (const int fd : fds_) {
        std::uint64_t value = 0;
        if (::read(fd, &value, sizeof value) != sizeof value) return std::nullopt;
        sum += value;
    }
    return sum;
}

TaskCost read_schedstat(const std::string& path) {
    TaskCost cost;
    unsigned long long on_cpu = 0;
    unsigned long long delay = 0;
    if (std::sscanf(read_small_file(path).c_str(), "%llu %llu", &on_cpu, &delay) == 2) {
        cost.on_cpu_ns = on_cpu;
        cost.run_delay_ns = delay;
    }
    return cost;
}

TaskCost cost_of_this_thread() {
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

std::vector<int> process_tree(const std::vector<int>& roots) {
    std::multimap<int, int> children;
    if (DIR* processes = opendir("/proc"); processes != nullptr) {
        while (const dirent* entry = readdir(processes)) {
            const int pid = std::atoi(entry->d_name);
            const auto stat = pid > 0 ? read_stat(pid) : std::nullopt;
            if (stat) children.emplace(stat->parent, pid);
        }
        closedir(processes);
    }
    std::set<int> found(roots.begin(), roots.end());
    std::vector<int> queue(found.begin(), found.end());
    while (!queue.empty()) {
        const auto [first, last] = children.equal_range(queue.back());
        queue.pop_back();
        for (auto child = first; child != last; ++child) {
            if (found.insert(child->second).second) queue.push_back(child->second);
        }
    }
    return {found.begin(), found.end()};
}

Books read_books(const std::vector<int>& pids) {
    Books books;
    for (const int pid : pids) {
        const auto stat = read_stat(pid);
        if (!stat) continue;
        ProcessCost process;
        process.started = stat->started;
        process.parent = stat->parent;
        process.children_ns = stat->children_ns;
        // Before its threads: a look at hundreds of them takes as many hundredths of a millisecond,
        // and the responses of that time would be had for nothing.
        const auto clock_ns = read_process_clock(pid);
        std::uint64_t live_ns = 0;
        const std::string folder = "/proc/" + std::to_string(pid) + "/task";
        DIR* tasks = opendir(folder.c_str());
        while (const dirent* entry = tasks != nullptr ? readdir(tasks) : nullptr) {
            const int tid = std::atoi(entry->d_name);
            if (tid <= 0) continue;
            const std::string task = folder + "/" + entry->d_name;
            const std::string status = read_small_file(task + "/status");
            if (status.find("\nState:\tZ") != std::string::npos)
                continue;  // ended, not yet waited for
            TaskCost cost = read_schedstat(task + "/schedstat");
            cost.context_switches = number_after(status, "\nvoluntary_ctxt_switches:") +
                                    number_after(status, "\nnonvoluntary_ctxt_switches:");
            live_ns += cost.on_cpu_ns;
            process.ignores_children = ignores_children(status);
            process.threads[tid] = cost;
        }
        if (tasks != nullptr) closedir(tasks);
        process.cpu_ns = clock_ns.value_or(std::max(stat->cpu_ns, live_ns));
        books[pid] = std::move(process);
    }
    return books;
}

Books read_books_again(const std::vector<int>& roots, const Books& before) {
    std::vector<int> known = roots;
    for (const auto& [pid, process] : before) {
        const auto stat = read_stat(pid);
        if (stat && stat->started == process.started) known.push_back(pid);
    }
    return read_books(process_tree(known));
}

namespace {

// The same process in other books; nothing: it is not there, or its number is another's now.
const ProcessCost* find_same(const Books& books, int pid, const ProcessCost& process) {
    const auto found = books.find(pid);
    return found != books.end() && found->second.started == process.started ? &found->second
                                                                            : nullptr;
}

// A child that ends is in the books of whoever waits for it; a root is nobody's child here.
bool has_lost_root(const Books& before, const Books& after, const std::vector<int>& roots) {
    for (const int pid : roots) {
        const auto then = before.find(pid);
        if (then != before.end() && before.contains(then->second.parent)) continue;
        const auto now = after.find(pid);
        if (now != after.end() && !now->second.threads.empty() &&
            (then == before.end() || find_same(after, pid, then->second) != nullptr)) {
            continue;
        }
        return true;
    }
    return false;
}

// What a thread has used since `then`, when it may not have been there.
TaskCost used_since(const ProcessCost* then, int tid, TaskCost task) {
    if (then == nullptr || !then->threads.contains(tid)) return task;
    const TaskCost& earlier = then->threads.at(tid);
    // A number that another thread has got meanwhile begins at zero again.
    if (earlier.on_cpu_ns > task.on_cpu_ns) return task;
    task.on_cpu_ns -= earlier.on_cpu_ns;
    task.run_delay_ns = less(task.run_delay_ns, earlier.run_delay_ns);
    task.context_switches = less(task.context_switches, earlier.context_switches);
    return task;
}

}  // namespace

std::optional<TreeCost> cost_between(const Books& before, const Books& after,
                                     const std::vector<int>& roots, std::string* complaint) {
    if (has_lost_root(before, after, roots)) {
        *complaint = "a process of the server has ended";
        return std::nullopt;
    }
    TreeCost cost;
    std::uint64_t waited_for_ns = 0;
    bool is_changed = false;
    bool ignores_children = false;
    for (const auto& [pid, now] : after) {
        const ProcessCost* then = find_same(before, pid, now);
        is_changed = is_changed || then == nullptr;
        ignores_children = ignores_children || now.ignores_children;
        const std::uint64_t used = then == nullptr ? now.cpu_ns : less(now.cpu_ns, then->cpu_ns);
        cost.cpu_ns += used;
        waited_for_ns +=
            then == nullptr ? now.children_ns : less(now.children_ns, then->children_ns);
        std::uint64_t live_ns = 0;
        for (const auto& [tid, task] : now.threads) {
            cost.threads.push_back(used_since(then, tid, task));
            live_ns += cost.threads.back().on_cpu_ns;
        }
        cost.ended_ns += less(used, live_ns);
    }
    std::uint64_t gone_ns = 0;  // what they had used before
    for (const auto& [pid, then] : before) {
        if (find_same(after, pid, then) != nullptr) continue;
        is_changed = true;
        gone_ns += then.cpu_ns + then.children_ns;
    }
    if (is_changed && ignores_children) {
        *complaint =
            "a process of the server ignores SIGCHLD: what its ended children used is lost";
        return std::nullopt;
    }
    if (gone_ns > waited_for_ns + kTicksSlack * tick_ns()) {
        *complaint = "a process of the server has ended, and its parent has not waited for it";
        return std::nullopt;
    }
    cost.cpu_ns += less(waited_for_ns, gone_ns);
    cost.ended_ns += less(waited_for_ns, gone_ns);
    return cost;
}

}  // namespace httpmark
