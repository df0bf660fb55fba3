#include "net/timers.hpp"

#include <map>
#include <vector>

#include "laws.hpp"

namespace httpmark {
namespace {

class Nodes final : public TimerNodes {
  public:
    explicit Nodes(std::size_t count) : nodes(count) {}
    TimerNode& timer_node(std::uint32_t id) override { return nodes[id]; }
    std::vector<TimerNode> nodes;
};

// Moves tick by tick, or in one jump, and says at which tick each node came.
std::map<std::uint32_t, std::uint32_t> fire_all(TimerWheel& wheel, std::uint32_t from,
                                                std::uint32_t to, std::uint32_t step) {
    std::map<std::uint32_t, std::uint32_t> fired;
    for (std::uint32_t now = from; static_cast<std::int32_t>(to - now) >= 0; now += step) {
        for (std::uint32_t id; (id = wheel.take_due(now)) != TimerWheel::kNone;) fired[id] = now;
    }
    return fired;
}

TEST(Timers, each_fires_at_its_tick_never_before) {
    for (const std::uint32_t start : {0U, 1U, 63U, 64U, 4095U, 4096U, 0xFFFFFFF0U, 0xFFFFF000U}) {
        for (const std::uint32_t delay :
             {1U, 2U, 62U, 63U, 64U, 65U, 127U, 128U, 129U, 4095U, 4096U, 4097U, 8191U, 8192U,
              100000U, 262143U, 262144U, 262145U}) {
            Nodes nodes(1);
            TimerWheel wheel(nodes, start);
            wheel.insert(0, start + delay);
            LAW(wheel.take_due(start + delay - 1) == TimerWheel::kNone, << start << "+" << delay);
            LAW(wheel.take_due(start + delay) == 0, << start << "+" << delay);
            LAW(wheel.ticks_until_next() == TimerWheel::kNone);
        }
    }
}

TEST(Timers, the_time_to_the_next_look_never_misses_one) {
    Random random(7);
    for (unsigned round = 0; round < 300; ++round) {
        Nodes nodes(20);
        const std::uint32_t start = random();
        TimerWheel wheel(nodes, start);
        std::map<std::uint32_t, std::uint32_t> due;
        for (std::uint32_t id = 0; id < 20; ++id) {
            const std::uint32_t delay = 1 + random() % (round % 2 == 0 ? 200 : 20000);
            due[id] = delay;
            wheel.insert(id, start + delay);
        }
        std::uint32_t now = 0;
        while (!due.empty()) {
            const std::uint32_t next = wheel.ticks_until_next();
            LAW(next != TimerWheel::kNone && next != 0);
            if (next == TimerWheel::kNone) break;
            now += next;
            for (std::uint32_t id; (id = wheel.take_due(start + now)) != TimerWheel::kNone;) {
                LAW(due.count(id) == 1 && due[id] == now, << due[id] << " at " << now);
                due.erase(id);
            }
        }
    }
}

TEST(Timers, a_jump_fires_all_that_has_become_due_and_nothing_else) {
    Random random(8);
    for (const std::uint32_t step : {1U, 7U, 64U, 1000U, 50000U}) {
        Nodes nodes(500);
        TimerWheel wheel(nodes, 1000);
        std::vector<std::uint32_t> due(500);
        for (std::uint32_t id = 0; id < 500; ++id) {
            due[id] = 1001 + random() % 100000;
            wheel.insert(id, due[id]);
        }
        const auto fired = fire_all(wheel, 1000, 1000 + 150000, step);
        LAW(fired.size() == 500);
        for (const auto& [id, when] : fired) LAW(when >= due[id] && when < due[id] + step);
    }
}

TEST(Timers, what_is_removed_never_fires) {
    Random random(9);
    Nodes nodes(1000);
    TimerWheel wheel(nodes, 5);
    for (std::uint32_t id = 0; id < 1000; ++id) wheel.insert(id, 6 + random() % 10000);
    for (std::uint32_t id = 0; id < 1000; id += 2) wheel.remove(id);
    for (std::uint32_t id = 0; id < 1000; id += 2) wheel.remove(id);  // twice does no harm
    const auto fired = fire_all(wheel, 5, 20000, 3);
    LAW(fired.size() == 500);
    for (const auto& [id, when] : fired) LAW(id % 2 == 1);
    LAW(wheel.ticks_until_next() == TimerWheel::kNone);
}

TEST(Timers, a_node_may_be_put_in_again_while_it_fires) {
    Nodes nodes(1);
    TimerWheel wheel(nodes, 0);
    wheel.insert(0, 1);
    unsigned count = 0;
    for (std::uint32_t now = 0; now <= 100; ++now) {
        for (std::uint32_t id; (id = wheel.take_due(now)) != TimerWheel::kNone;) {
            ++count;
            wheel.insert(id, now + 10);
        }
    }
    LAW(count == 10);
}

}  // namespace
}  // namespace httpmark
