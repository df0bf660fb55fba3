// A hierarchical timer wheel, 4 levels of 64 slots, linked by index: no allocation, no system call.
// Owners re-arm lazily: they keep their own deadline, leave the node where it is, and when it fires
// too early put it in again.
#pragma once

#include <array>
#include <cstdint>

namespace httpmark {

struct TimerNode {
    static constexpr std::uint16_t kUnqueued = 0xFFFF;
    std::uint32_t next = 0;
    std::uint32_t previous = 0;
    std::uint32_t expires = 0;  // the tick at which the wheel hands the node out
    std::uint16_t slot = kUnqueued;
    bool queued() const { return slot != kUnqueued; }
};

// Where the nodes live.
class TimerNodes {
  public:
    virtual TimerNode& timer_node(std::uint32_t id) = 0;

  protected:
    ~TimerNodes() = default;
};

class TimerWheel {
  public:
    static constexpr std::uint32_t kNone = 0xFFFFFFFF;

    TimerWheel(TimerNodes& nodes, std::uint32_t now) : nodes_(nodes), now_(now) {
        heads_.fill(kNone);
    }

    void insert(std::uint32_t id, std::uint32_t expires);
    void remove(std::uint32_t id);

    // Moves to `now` and unlinks one node that is due; kNone when there is none left. Call until
    // then. The node may be inserted again at once.
    std::uint32_t take_due(std::uint32_t now);

    // Ticks until the wheel must be looked at again, kNone when it is empty.
    std::uint32_t ticks_until_next() const;
    std::uint32_t now() const { return now_; }

  private:
    static constexpr unsigned kBits = 6;
    static constexpr unsigned kSlots = 1U << kBits;
    static constexpr unsigned kLevels = 4;

    void link(std::uint32_t id, unsigned slot);
    void cascade(unsigned level);

    TimerNodes& nodes_;
    std::uint32_t now_;
    std::array<std::uint32_t, kSlots * kLevels> heads_{};
    std::array<std::uint64_t, kLevels> occupied_{};
};

}  // namespace httpmark
