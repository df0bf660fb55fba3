#include "load/poller.hpp"

#include <gtest/gtest.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <cstdint>

#include "shared/clock.hpp"

namespace httpmark {
namespace {

TEST(WaitForEvents, waits_as_long_as_it_is_asked_to_with_and_without_nanoseconds) {
    const int epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    epoll_event event = {};
    for (bool has_ns : {true, false}) {
        const std::uint64_t begun = monotonic_ns();
        EXPECT_EQ(wait_for_events(epoll_fd, &event, 1, 1'500'000, &has_ns), 0);
        const std::uint64_t waited = monotonic_ns() - begun;
        EXPECT_GE(waited, 1'500'000u);
        EXPECT_LT(waited, 500'000'000u);
    }
    close(epoll_fd);
}

}  // namespace
}  // namespace httpmark
