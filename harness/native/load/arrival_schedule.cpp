#include "load/arrival_schedule.hpp"

namespace httpmark {

ArrivalSchedule::ArrivalSchedule(std::uint64_t start_ns, Arrivals arrivals, double first_ns,
                                 double mean_ns, std::uint64_t seed)
    : start_ns_(start_ns),
      arrivals_(arrivals),
      first_ns_(first_ns),
      mean_ns_(mean_ns),
      after_ns_(first_ns),
      random_(seed) {
    if (arrivals_ == Arrivals::kConstant) return;
    after_ns_ = 0;
    advance();
}

void ArrivalSchedule::advance() {
    if (arrivals_ == Arrivals::kPoisson) {
        after_ns_ += std::exponential_distribution<double>(1)(random_) * mean_ns_;
    } else {
        after_ns_ = first_ns_ + static_cast<double>(++count_) * mean_ns_;
    }
}

}  // namespace httpmark
