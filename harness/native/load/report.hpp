// A finished load run, as JSON and as text.
#ifndef HTTPMARK_NATIVE_LOAD_REPORT_HPP_
#define HTTPMARK_NATIVE_LOAD_REPORT_HPP_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "load/counts.hpp"
#include "load/plan.hpp"
#include "load/process_cost.hpp"
#include "load/process_result.hpp"

namespace httpmark {

struct LoadReport {
    std::string url;
    std::string failure;  // why there was no load at all
    std::size_t connections = 0;
    std::size_t established = 0;
    std::size_t depth = 1;
    std::size_t threads = 1;
    std::size_t procs = 1;
    LoadMode mode = LoadMode::kClosed;
    Refill refill = Refill::kBatch;
    double rate = 0;
    Arrivals arrivals = Arrivals::kConstant;
    std::optional<std::uint64_t> start_late_ns;  // where somebody else said when to begin
    double seconds = 0;                          // of the window
    double slice_s = 1;                          // of it
    double drain_seconds = 0;                    // after it
    int status = 0;
    bool has_date = false;
    std::string tls_version;  // empty: plain
    std::string tls_cipher;
    LoadCounts counts;
    std::uint64_t client_cpu_ns = 0;
    std::uint64_t client_context_switches = 0;
    std::vector<TaskCost> client_threads;
    // Of the processes named with --server-pid and all below them; absent when none was named.
    std::optional<TreeCost> server;

    // Where the machine has hardware counters.
    std::optional<std::uint64_t> client_instructions;
    std::optional<std::uint64_t> server_instructions;

    // What the run has counted and used.
    void take(ProcessResult result);

    double requests_per_second() const;
    double littles_law_ratio() const;
    double unanswered_ratio() const;
    // Open loop: what was due was not served as fast as it came; some was never sent, or it piled
    // up while the window lasted. That it was worked off in the drain, when nothing more came, is
    // no service of the rate.
    bool is_saturated() const;
};

std::string report_json(const LoadReport& report);
std::string report_text(const LoadReport& report);

}  // namespace httpmark

#endif  // HTTPMARK_NATIVE_LOAD_REPORT_HPP_
