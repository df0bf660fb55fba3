#include "load/arrival_schedule.hpp"

#include <gtest/gtest.h>

#include <cstdint>

namespace httpmark {
namespace {

TEST(ArrivalSchedule, the_rate_is_as_exact_on_a_machine_that_has_been_up_for_years) {
    constexpr std::uint64_t kSecond = 1'000'000'000;
    for (const std::uint64_t start : {kSecond, 100'000'000 * kSecond}) {
        // The second of three workers, 2,200,000 a second in all.
        constexpr double kEach = 1e9 / 2'200'000;
        ArrivalSchedule constant(start, Arrivals::kConstant, kEach, 3 * kEach, 1);
        EXPECT_EQ(constant.due_ns(), start + 455);
        for (int i = 0; i < 2'200'000; ++i) constant.advance();
        EXPECT_EQ(constant.due_ns(), start + 3 * kSecond + 455);
        ArrivalSchedule poisson(start, Arrivals::kPoisson, kEach, kEach, 1);
        EXPECT_GT(poisson.due_ns(), start);
        for (int i = 0; i < 2'200'000; ++i) poisson.advance();
        EXPECT_NEAR(static_cast<double>(poisson.due_ns() - start), 1e9, 5e6);  // over five sigma
    }
}

TEST(ArrivalSchedule, as_many_are_due_in_a_window_as_its_rate_and_length_say) {
    for (const double seconds : {0.3, 0.7, 1.1, 2.0, 3.0}) {
        for (int count = 1; count < 2000; ++count) {
            const double rate = count / seconds;
            ArrivalSchedule schedule(5, Arrivals::kConstant, 0, 1e9 / rate, 1);
            for (int i = 1; i < count; ++i) schedule.advance();
            const auto end = static_cast<std::uint64_t>(5 + seconds * 1e9);
            EXPECT_LT(schedule.due_ns(), end) << count;
            schedule.advance();
            EXPECT_GE(schedule.due_ns(), end) << count;
        }
    }
}

}  // namespace
}  // namespace httpmark
