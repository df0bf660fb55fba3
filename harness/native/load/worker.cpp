#include "load/worker.hpp"

#include <algorithm>
#include <ctime>

#include "shared/clock.hpp"

namespace httpmark {
namespace {

constexpr std::uint64_t kWaitMsMax = 1000;
// An answer within so long says that others will follow.
constexpr std::uint64_t kStillAnswersNs = 500 * kNsPerMs;

std::int64_t wall_seconds() {
    timespec now = {};
    clock_gettime(CLOCK_REALTIME_COARSE, &now);
    return now.tv_sec;
}

}  // namespace

LoadWorker::LoadWorker(const LoadPlan& plan, std::size_t connections,
                       const std::vector<ResponseVerifier>& verifiers, std::size_t first_index,
                       std::size_t number)
    : plan_(plan), traffic_(plan, connections, verifiers, first_index, number) {}

void LoadWorker::run(std::uint64_t start_ns) {
    set_times(start_ns);
    sleep_until_ns(start_ns);
    traffic_.result().began_ns = monotonic_ns();
    traffic_.set_sending(true);
    if (plan_.warmup_s <= 0) traffic_.begin_window(window_ns_);
    traffic_.mode().begin(start_ns);
    for (LoadConnection& connection : traffic_.connections()) {
        if (connection.fd >= 0) traffic_.mode().start(&connection);
    }
    next_ns_ = traffic_.is_in_window() ? middle_ns_ : window_ns_;
    for (;;) {
        const std::uint64_t now = monotonic_ns();
        if (now >= next_ns_) pass_turns(now);
        if (!traffic_.is_sending() && !is_draining(now)) break;
        traffic_.mind_openings(now);
        if (traffic_.is_lost()) break;
        const std::span<const epoll_event> events = wait(now);
        ++traffic_.counts().wakes;
        traffic_.set_wall_clock(wall_seconds());
        for (const epoll_event& event : events) handle(event);
    }
    close_books();
}

void LoadWorker::set_times(std::uint64_t start_ns) {
    window_ns_ = start_ns + ns_of(plan_.warmup_s);
    stop_ns_ = window_ns_ + ns_of(plan_.duration_s);
    middle_ns_ = window_ns_ + (stop_ns_ - window_ns_) / 2;
    give_up_ns_ = stop_ns_ + ns_of(plan_.drain_max_s);
    enough_ns_ = stop_ns_ + ns_of(plan_.drain_slow_s);
}

void LoadWorker::pass_turns(std::uint64_t now_ns) {
    Mode& mode = traffic_.mode();
    const auto outstanding = [&] { return mode.backlog() + traffic_.unanswered(); };
    if (traffic_.is_sending() && !traffic_.is_in_window()) {
        traffic_.begin_window(mode.window_start_ns(window_ns_, now_ns));
        next_ns_ = middle_ns_;
    }
    if (now_ns >= middle_ns_ && !is_past_middle_) {
        is_past_middle_ = true;
        mode.send_due(now_ns, stop_ns_);
        traffic_.counts().outstanding_middle = outstanding();
        traffic_.counts().due_in_second_half = 0;
        next_ns_ = stop_ns_;
    }
    if (now_ns >= stop_ns_ && traffic_.is_sending()) {
        mode.send_due(now_ns, stop_ns_);
        traffic_.counts().outstanding_end = outstanding();
        traffic_.end_window(now_ns);
    }
}

// Whether answers are still waited for. As long as they come the server is slow, and not mute.
bool LoadWorker::is_draining(std::uint64_t now_ns) {
    const std::uint64_t last_ns = std::max(traffic_.result().stopped_ns, traffic_.heard_ns());
    next_ns_ = std::min(give_up_ns_, last_ns + ns_of(plan_.drain_s));
    Mode& mode = traffic_.mode();
    const bool is_wanted =
        now_ns < next_ns_ && mode.drains() && (traffic_.unanswered() != 0 || mode.backlog() != 0);
    if (is_wanted && now_ns >= enough_ns_ && now_ns < last_ns + kStillAnswersNs) {
        traffic_.cut_short();
        return false;
    }
    return is_wanted;
}

std::span<const epoll_event> LoadWorker::wait(std::uint64_t now_ns) {
    Mode& mode = traffic_.mode();
    const std::uint64_t until_ns = std::min(next_ns_, traffic_.next_retry_ns());
    if (!traffic_.is_sending() || !mode.has_schedule()) {
        const std::uint64_t ms = (until_ns - std::min(now_ns, until_ns)) / kNsPerMs + 1;
        return traffic_.poller().wait_ms(std::min(ms, kWaitMsMax));
    }
    mode.send_due(now_ns, stop_ns_);
    const std::uint64_t now = monotonic_ns();
    const std::uint64_t wake = std::min(mode.next_due_ns(), until_ns);
    return traffic_.poller().wait_ns(wake > now ? std::min(wake - now, kWaitMsMax * kNsPerMs) : 0);
}

void LoadWorker::handle(const epoll_event& event) {
    LoadConnection* connection = &traffic_.connection(event.data.u32);
    if (connection->is_open()) {
        traffic_.mode().on_event(connection, event.events);
    } else if (connection->fd >= 0) {
        traffic_.advance(connection);
    }
}

void LoadWorker::close_books() {
    WorkerResult& result = traffic_.result();
    result.drained_ns = monotonic_ns();
    if (result.stopped_ns == 0) {  // all connections were lost before the end
        result.counts.responses_in_window = result.counts.responses;
        result.stopped_ns = result.drained_ns;
        if (result.started_ns == 0) result.started_ns = result.drained_ns;
    }
    const TaskCost cost = cost_of_this_thread();
    result.cost.on_cpu_ns = cost.on_cpu_ns - result.cost.on_cpu_ns;
    result.cost.run_delay_ns = cost.run_delay_ns - result.cost.run_delay_ns;
    result.cost.context_switches = cost.context_switches - result.cost.context_switches;
    if (traffic_.mode().drains()) traffic_.account_for_unanswered(result.drained_ns);
    traffic_.mode().count_unsent(result.drained_ns);
    for (const LoadConnection& connection : traffic_.connections()) {
        result.counts.balance.add(connection.responses);
    }
}

}  // namespace httpmark
