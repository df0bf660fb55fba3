// A load run's processes and threads: started together, their results merged.
#ifndef HTTPMARK_NATIVE_LOAD_PROCESSES_HPP_
#define HTTPMARK_NATIVE_LOAD_PROCESSES_HPP_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "load/counts.hpp"
#include "load/plan.hpp"
#include "load/response.hpp"

namespace httpmark {

struct ProcessResult {
  LoadCounts counts;
  std::uint64_t established = 0;
  // Of the workers, from the end of the warm-up to the end of the drain; what the harness does
  // meanwhile is no cost of the load.
  std::uint64_t cpu_ns = 0;
  std::uint64_t context_switches = 0;  // likewise
  double seconds = 0;                  // of the window
  double drain_seconds = 0;
  std::vector<TaskCost> threads;

  void add(const ProcessResult& other);
};

// What is called at the turns of a run, in the process that was asked for it.
struct Hooks {
  std::function<void(std::size_t)> connected = [](std::size_t) {};  // how many connections are open
  std::function<void()> before_window = [] {};  // shortly: time for what would disturb the window
  std::function<void()> window = [] {};         // the warm-up is over
  std::function<void()> drained = [] {};        // all is over, and the connections are still open
};

// Runs the plan in `procs` processes: this one, or, when there are more, children of it, each with
// its share of the connections and of the rate. False when a child failed.
bool run_processes(const LoadPlan& plan, std::size_t procs,
                   const std::vector<ResponseVerifier>& verifiers, const Hooks& hooks,
                   ProcessResult* result);

// A result as octets, for the way from a child to its parent.
std::string pack(const ProcessResult& result);
bool unpack(std::string_view octets, ProcessResult* result);

}  // namespace httpmark

#endif  // HTTPMARK_NATIVE_LOAD_PROCESSES_HPP_
