#include "load/mode.hpp"

#include "load/traffic.hpp"
#include "shared/clock.hpp"

namespace httpmark {

void Mode::on_event(LoadConnection* connection, std::uint32_t events) {
    if ((events & EPOLLOUT) != 0) traffic_.flush(connection);
    if (connection->is_open() && (events & ~EPOLLOUT) != 0) traffic_.on_readable(connection);
}

void Mode::fill(LoadConnection* connection, std::size_t slots) {
    if (!traffic_.is_sending() || connection->unanswered >= slots) return;
    const std::uint64_t now = monotonic_ns();
    traffic_.enqueue(connection, static_cast<std::uint32_t>(slots) - connection->unanswered, now,
                     now);
}

std::unique_ptr<Mode> make_mode(Traffic* traffic) {
    switch (traffic->plan().mode) {
        case LoadMode::kClosed:
            break;
        case LoadMode::kOpen:
            return make_open_mode(traffic);
        case LoadMode::kIdle:
            return make_idle_mode(traffic);
        case LoadMode::kChurn:
            return make_churn_mode(traffic);
        case LoadMode::kSlow:
            return make_slow_mode(traffic);
    }
    return make_closed_mode(traffic);
}

}  // namespace httpmark
