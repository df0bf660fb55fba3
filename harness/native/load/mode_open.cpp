// Open loop: requests go out when they are due, whatever became of those before.
#include <sys/prctl.h>

#include <algorithm>
#include <deque>
#include <optional>

#include "load/arrival_schedule.hpp"
#include "load/mode.hpp"
#include "load/traffic.hpp"
#include "shared/clock.hpp"

namespace httpmark {
namespace {

class OpenMode final : public Mode {
  public:
    using Mode::Mode;

    // The schedule is absolute: the n-th request of all workers is due at start + n / rate, and
    // workers take turns; being late changes nothing of what comes after.
    void begin(std::uint64_t start_ns) override {
        const LoadPlan& plan = traffic_.plan();
        const auto number = traffic_.number();
        const double each_ns = 1e9 / plan.rate;
        schedule_.emplace(start_ns, plan.arrivals,
                          (static_cast<double>(number) + plan.phase) * each_ns,
                          static_cast<double>(plan.threads) * each_ns,
                          plan.seed * 1'000'003 + plan.first_index * 7919 + number);
        prctl(PR_SET_TIMERSLACK, 1UL);  // else the kernel may wake 50 us late
    }

    std::uint64_t window_start_ns(std::uint64_t planned_ns,
                                  std::uint64_t /*now_ns*/) const override {
        return planned_ns;
    }
    bool has_schedule() const override { return true; }
    std::uint64_t next_due_ns() const override { return schedule_->due_ns(); }
    std::size_t backlog() const override { return backlog_.size(); }

    void start(LoadConnection* connection) override {
        traffic_.flush(connection);
        set_free(connection);
        send_due(monotonic_ns(), 0);  // of the backlog only
    }

    void refill(LoadConnection* connection, std::uint32_t /*answered*/,
                std::uint64_t now_ns) override {
        set_free(connection);
        send_due(now_ns, 0);  // of the backlog only
    }

    // Oldest first, as far as connections have room.
    void send_due(std::uint64_t now_ns, std::uint64_t until_ns) override {
        std::size_t fresh = queue_due(now_ns, until_ns);
        while (!backlog_.empty() && !free_.empty()) {
            LoadConnection* connection = &traffic_.connection(free_.front());
            free_.pop_front();
            connection->is_free = false;
            if (!connection->is_open()) continue;
            const std::uint64_t due = backlog_.front();
            const bool is_fresh = backlog_.size() == fresh;
            backlog_.pop_front();
            const std::uint64_t sent = monotonic_ns();
            traffic_.enqueue(connection, 1, due, sent);
            if (!connection->wants_writable) traffic_.flush(connection);
            if (is_fresh) {
                --fresh;
                note_lag(due, sent);
            }
            set_free(connection);
        }
        if (fresh != 0) {
            const std::uint64_t seen = monotonic_ns();
            for (std::size_t i = backlog_.size() - fresh; i < backlog_.size(); ++i) {
                note_lag(backlog_[i], seen);
            }
        }
        std::uint64_t& peak = traffic_.counts().backlog_peak;
        peak = std::max<std::uint64_t>(peak, backlog_.size());
    }

    void count_unsent(std::uint64_t now_ns) override {
        for (const std::uint64_t due : backlog_) {
            if (due < traffic_.result().started_ns) continue;
            ++traffic_.counts().unsent;
            traffic_.counts().response.add(now_ns - due);
        }
    }

  private:
    // Puts into the backlog what has come due; returns how many that are. They are at its back.
    // Their lag is ours: until they are sent, or until all connections are seen to be busy.
    std::size_t queue_due(std::uint64_t now_ns, std::uint64_t until_ns) {
        std::size_t fresh = 0;
        LoadCounts& counts = traffic_.counts();
        const std::uint64_t end_ns = std::min(now_ns + 1, until_ns);
        for (std::uint64_t due = schedule_->due_ns(); due < end_ns; due = schedule_->due_ns()) {
            if (traffic_.is_in_window() && due >= traffic_.result().started_ns) {
                ++counts.due;
                ++counts.due_in_second_half;
            }
            if (backlog_.size() < traffic_.plan().backlog_max) {
                backlog_.push_back(due);
                ++fresh;
            } else {
                ++counts.dropped;
                note_lag(due, now_ns);
            }
            schedule_->advance();
        }
        return fresh;
    }

    void note_lag(std::uint64_t due, std::uint64_t at_ns) {
        if (traffic_.is_in_window() && due >= traffic_.result().started_ns) {
            traffic_.counts().lag.add(at_ns - due);
        }
    }

    void set_free(LoadConnection* connection) {
        if (connection->is_free || !connection->is_open() ||
            connection->unanswered >= traffic_.plan().depth)
            return;
        connection->is_free = true;
        free_.push_back(connection->index);
    }

    std::optional<ArrivalSchedule> schedule_;
    std::deque<std::uint64_t> backlog_;  // when each was due
    std::deque<std::uint32_t> free_;     // the connections with room for one more, in turn
};

}  // namespace

std::unique_ptr<Mode> make_open_mode(Traffic* traffic) {
    return std::make_unique<OpenMode>(traffic);
}

}  // namespace httpmark
