// What the kernel charged processes. Their CPU time is that of the process' clock, exact to the
// nanosecond and with threads that have ended in it, where /proc/PID/task/*/schedstat knows only
// those that live, and the split into user and system time is sampled by the tick.
#ifndef HTTPMARK_NATIVE_LOAD_PROCESS_COST_HPP_
#define HTTPMARK_NATIVE_LOAD_PROCESS_COST_HPP_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace httpmark {

struct TaskCost {
    std::uint64_t on_cpu_ns = 0;
    std::uint64_t run_delay_ns = 0;
    std::uint64_t context_switches = 0;
};

struct ProcessCost {
    std::uint64_t started = 0;  // ticks since boot: tells a process from a later one of its number
    int parent = 0;
    bool ignores_children = false;    // SIGCHLD: nobody is told what its ended children used
    std::uint64_t cpu_ns = 0;         // threads that have ended included
    std::uint64_t children_ns = 0;    // of the children it has waited for, to the tick
    std::map<int, TaskCost> threads;  // that live; none: it has ended, and was not yet waited for
};
using Books = std::map<int, ProcessCost>;

// The processes `roots` and all their descendants that live now.
std::vector<int> process_tree(const std::vector<int>& roots);

// What these processes have used so far. Nothing of one that is gone.
Books read_books(const std::vector<int>& pids);
// Likewise of `roots`, of those in `before` that still live, and of all their descendants.
Books read_books_again(const std::vector<int>& roots, const Books& before);

struct TreeCost {
    std::uint64_t cpu_ns = 0;       // threads and processes that ended meanwhile included
    std::uint64_t ended_ns = 0;     // the part of those
    std::vector<TaskCost> threads;  // that live at the end
};

// What a process tree used between two looks. A process that is not in `before` has begun
// meanwhile. Nothing, with a complaint of one line, where a part of it cannot be known: one of
// `roots` has ended, or what an ended child used went to nobody.
std::optional<TreeCost> cost_between(const Books& before, const Books& after,
                                     const std::vector<int>& roots, std::string* complaint);

// "run time, run delay" of one schedstat file; zeros when it cannot be read.
TaskCost read_schedstat(const std::string& path);
// What the calling thread has used so far.
TaskCost cost_of_this_thread();

// A hardware or software counter over threads, as perf_event_open(2) offers it. Most virtual
// machines have no hardware counters: then there is no count, which is not the count 0.
class EventCounter {
  public:
    EventCounter() = default;
    EventCounter(EventCounter&& other) noexcept : fds_(std::exchange(other.fds_, {})) {}
    EventCounter& operator=(EventCounter&& other) noexcept;
    ~EventCounter();

    // All threads of these processes as they are now, and whatever they start from now on.
    static std::optional<EventCounter> of_processes(std::uint32_t type, std::uint64_t config,
                                                    const std::vector<int>& pids);
    // The calling thread, and whatever it starts from now on.
    static std::optional<EventCounter> of_self(std::uint32_t type, std::uint64_t config);
    static std::optional<EventCounter> instructions_of_processes(const std::vector<int>& pids);
    static std::optional<EventCounter> instructions_of_self();

    // What was counted so far; nothing when it cannot be read.
    std::optional<std::uint64_t> read() const;

  private:
    std::vector<int> fds_;
};

}  // namespace httpmark

#endif  // HTTPMARK_NATIVE_LOAD_PROCESS_COST_HPP_
