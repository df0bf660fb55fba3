// When the requests of an open loop are due.
#ifndef HTTPMARK_NATIVE_LOAD_ARRIVAL_SCHEDULE_HPP_
#define HTTPMARK_NATIVE_LOAD_ARRIVAL_SCHEDULE_HPP_

#include <cstdint>
#include <random>

#include "load/plan.hpp"

namespace httpmark {

// A request is due whatever became of those before it. The sums are counted from the start: of the
// clock's nanoseconds a double has steps of four after a year.
class ArrivalSchedule {
  public:
    // Constant: at first_ns, and every mean_ns from there on. Poisson: from the start on.
    ArrivalSchedule(std::uint64_t start_ns, Arrivals arrivals, double first_ns, double mean_ns,
                    std::uint64_t seed);
    // To the nearest: what is due at the end of a window is not to be due a nanosecond before it.
    std::uint64_t due_ns() const { return start_ns_ + static_cast<std::uint64_t>(after_ns_ + 0.5); }
    void advance();

  private:
    std::uint64_t start_ns_;
    Arrivals arrivals_;
    double first_ns_;
    double mean_ns_;
    double after_ns_;
    std::uint64_t count_ = 0;
    std::mt19937_64 random_;
};

}  // namespace httpmark

#endif  // HTTPMARK_NATIVE_LOAD_ARRIVAL_SCHEDULE_HPP_
