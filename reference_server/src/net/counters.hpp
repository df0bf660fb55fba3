// What happens in one worker, in numbers.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "http/error.hpp"

namespace httpmark {

// Written by one worker, read by whoever asks.
struct Counters {
    std::atomic<std::uint64_t> accepted{0};
    std::atomic<std::uint64_t> closed{0};
    std::atomic<std::uint64_t> requests{0};
    std::atomic<std::uint64_t> refused{0};
    std::atomic<std::uint64_t> timeouts{0};
    std::atomic<std::uint64_t> made_room{0};
    std::atomic<std::uint64_t> bytes_in{0};
    std::atomic<std::uint64_t> bytes_out{0};
    std::array<std::atomic<std::uint64_t>, static_cast<std::size_t>(Reason::kCount)> errors{};

    static void add(std::atomic<std::uint64_t>& counter, std::uint64_t n = 1) {
        counter.store(counter.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
    }
};

}  // namespace httpmark
