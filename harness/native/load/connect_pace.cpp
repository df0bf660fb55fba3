#include "load/connect_pace.hpp"

#include <algorithm>

#include "shared/clock.hpp"

namespace httpmark {
namespace {

constexpr std::size_t kConnectsPerPause = 64;
constexpr std::uint64_t kStallNs = 900'000'000;
constexpr double kConnectRateMin = 500;

}  // namespace

std::uint64_t ConnectPace::next_due_ns() const {
    // In bunches: a sleep for each would take longer than the connect.
    const std::size_t bunch = begun_ / kConnectsPerPause * kConnectsPerPause;
    return start_ns_ + ns_of(static_cast<double>(bunch) / rate_);
}

void ConnectPace::opened(std::uint64_t begun_ns, std::uint64_t now_ns) {
    // Those that were lost together are one full queue.
    if (now_ns - begun_ns < kStallNs || begun_ns < start_ns_) return;
    rate_ = std::max(rate_ / 2, std::min(rate_, kConnectRateMin));
    start_ns_ = now_ns;
    begun_ = 0;
}

}  // namespace httpmark
