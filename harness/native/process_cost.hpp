// What the kernel charged a process: /proc/PID/task/*/schedstat, exact to the nanosecond, where the
// split into user and system time is sampled by the tick.
#ifndef HTTPMARK_NATIVE_PROCESS_COST_HPP_
#define HTTPMARK_NATIVE_PROCESS_COST_HPP_

#include <cstdint>
#include <map>
#include <string>
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

}  // namespace httpmark

#endif  // HTTPMARK_NATIVE_PROCESS_COST_HPP_
