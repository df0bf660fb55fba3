// The one clock of the measurements: CLOCK_MONOTONIC, in nanoseconds. Unix time is only for what is
// compared with a date.
#ifndef HTTPMARK_NATIVE_SHARED_CLOCK_HPP_
#define HTTPMARK_NATIVE_SHARED_CLOCK_HPP_

#include <cerrno>
#include <cstdint>
#include <ctime>

namespace httpmark {

inline constexpr std::uint64_t kNsPerMs = 1'000'000;
inline constexpr std::uint64_t kNsPerSecond = 1'000'000'000;

inline std::uint64_t ns_of(double seconds) {
    return static_cast<std::uint64_t>(seconds * 1e9);
}

inline std::uint64_t monotonic_ns() {
    timespec now = {};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 +
           static_cast<std::uint64_t>(now.tv_nsec);
}

inline std::uint64_t monotonic_us() {
    return monotonic_ns() / 1000;
}

inline std::uint64_t unix_us() {
    timespec now = {};
    clock_gettime(CLOCK_REALTIME, &now);
    return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000 +
           static_cast<std::uint64_t>(now.tv_nsec) / 1000;
}

inline void sleep_until_ns(std::uint64_t at_ns) {
    timespec at = {};
    at.tv_sec = static_cast<time_t>(at_ns / 1'000'000'000);
    at.tv_nsec = static_cast<long>(at_ns % 1'000'000'000);
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, nullptr) == EINTR) {
    }
}

}  // namespace httpmark

#endif  // HTTPMARK_NATIVE_SHARED_CLOCK_HPP_
