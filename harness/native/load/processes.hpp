// A load run's processes and threads: started together, their results merged.
#ifndef HTTPMARK_NATIVE_LOAD_PROCESSES_HPP_
#define HTTPMARK_NATIVE_LOAD_PROCESSES_HPP_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "load/plan.hpp"
#include "load/process_result.hpp"
#include "load/response.hpp"

namespace httpmark {

// What is called at the turns of a run, in the process that was asked for it.
struct Hooks {
    std::function<void(std::size_t)> connected = [](std::size_t) {
    };  // how many connections are open
    // When to begin: not before it is told, once all connections are open.
    std::function<std::uint64_t(std::uint64_t)> start = [](std::uint64_t earliest_ns) {
        return earliest_ns;
    };
    std::function<void()> before_window = [] {};  // shortly: time for what would disturb the window
    std::function<void()> window = [] {};         // the warm-up is over
    std::function<void()> drained = [] {};        // all is over, and the connections are still open
};

// Runs the plan in `procs` processes: this one, or, when there are more, children of it, each with
// its share of the connections and of the rate. False when a child failed.
bool run_processes(const LoadPlan& plan, std::size_t procs,
                   const std::vector<ResponseVerifier>& verifiers, const Hooks& hooks,
                   ProcessResult* result);

}  // namespace httpmark

#endif  // HTTPMARK_NATIVE_LOAD_PROCESSES_HPP_
