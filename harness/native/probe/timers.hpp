// When talks have to be looked at: a heap of talks by that time.
#ifndef HTTPMARK_NATIVE_PROBE_TIMERS_HPP_
#define HTTPMARK_NATIVE_PROBE_TIMERS_HPP_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "probe/talk.hpp"

namespace httpmark {

class Timers {
  public:
    static constexpr std::uint64_t kNoTime = std::numeric_limits<std::uint64_t>::max();

    void insert(Talk* talk);
    void remove(Talk* talk);
    // To be called when the talk's time may have become an earlier one.
    void arm(Talk* talk);
    // A talk whose time has come, or nothing. Whatever the talk does then, it either ends or waits
    // for a later time.
    Talk* take_due(std::uint64_t now_us);
    // When to ask again.
    std::uint64_t next_us() const { return heap_.empty() ? kNoTime : heap_[0]->armed_us; }

  private:
    void up(std::size_t at);
    void down(std::size_t at);
    void set(std::size_t at, Talk* talk);

    std::vector<Talk*> heap_;
};

}  // namespace httpmark

#endif  // HTTPMARK_NATIVE_PROBE_TIMERS_HPP_
