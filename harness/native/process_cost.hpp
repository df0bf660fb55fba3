// What the kernel charged a process: /proc/PID/task/*/schedstat, exact to the nanosecond, where the
// split into user and system time is sampled by the tick.
#ifndef HTTPMARK_NATIVE_PROCESS_COST_HPP_
#define HTTPMARK_NATIVE_PROCESS_COST_HPP_

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

// All threads of all the processes, by thread id. Nothing of a process that is gone.
std::map<int, TaskCost> read_process_costs(const std::vector<int>& pids);

// "run time, run delay" of one schedstat file; zeros when it cannot be read.
TaskCost read_schedstat(const std::string& path);

// A hardware or software counter over threads, as perf_event_open(2) offers it. Most virtual
// machines have no hardware counters: then there is no count, which is not the count 0.
class EventCounter {
 public:
  EventCounter() = default;
  EventCounter(EventCounter&& other) noexcept : fds_(std::exchange(other.fds_, {})) {}
  EventCounter& operator=(EventCounter&& other) noexcept;
  ~EventCounter();

  // All threads of these processes as they are now.
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

#endif  // HTTPMARK_NATIVE_PROCESS_COST_HPP_
