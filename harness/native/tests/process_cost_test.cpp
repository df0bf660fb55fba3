// Counters over threads; software events, as these every machine has.
#include "process_cost.hpp"

#include <gtest/gtest.h>
#include <linux/perf_event.h>
#include <unistd.h>

#include <ctime>
#include <thread>

namespace {

using namespace httpmark;

void burn_ms(int ms) {
  timespec now = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  const long end = now.tv_sec * 1000 + now.tv_nsec / 1'000'000 + ms;
  while (now.tv_sec * 1000 + now.tv_nsec / 1'000'000 < end) {
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  }
}

TEST(EventCounter, counts_what_our_threads_do) {
  const auto counter = EventCounter::of_self(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK);
  if (!counter) GTEST_SKIP() << "perf_event_open is not allowed here";
  std::thread([] { burn_ms(50); }).join();
  const auto nanoseconds = counter->read();
  ASSERT_TRUE(nanoseconds.has_value());
  EXPECT_GT(*nanoseconds, 45'000'000u);
  EXPECT_LT(*nanoseconds, 500'000'000u);
}

TEST(EventCounter, counts_another_process) {
  const auto counter =
      EventCounter::of_processes(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK, {getpid()});
  if (!counter) GTEST_SKIP() << "perf_event_open is not allowed here";
  burn_ms(50);
  EXPECT_GT(counter->read().value_or(0), 45'000'000u);
}

TEST(EventCounter, an_event_that_is_not_there_is_no_count) {
  EXPECT_FALSE(EventCounter::of_self(PERF_TYPE_HARDWARE, ~0ULL).has_value());
  EXPECT_FALSE(
      EventCounter::of_processes(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK, {}).has_value());
}

}  // namespace
