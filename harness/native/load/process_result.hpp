// What one process of a load run has counted, and how it gets to another.
#ifndef HTTPMARK_NATIVE_LOAD_PROCESS_RESULT_HPP_
#define HTTPMARK_NATIVE_LOAD_PROCESS_RESULT_HPP_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "load/counts.hpp"

namespace httpmark {

struct ProcessResult {
    LoadCounts counts;
    std::uint64_t established = 0;
    // Of the workers, from the end of the warm-up to the end of the drain; what the harness does
    // meanwhile is no cost of the load.
    std::uint64_t cpu_ns = 0;
    std::uint64_t context_switches = 0;  // likewise
    std::uint64_t began_ns = 0;          // when the last thread began to send
    double seconds = 0;                  // of the window
    double drain_seconds = 0;
    std::vector<TaskCost> threads;

    void add(const ProcessResult& other);
};

// A result as bytes, for the way from a child to its parent.
std::string pack(const ProcessResult& result);
bool unpack(std::string_view octets, ProcessResult* result);

}  // namespace httpmark

#endif  // HTTPMARK_NATIVE_LOAD_PROCESS_RESULT_HPP_
