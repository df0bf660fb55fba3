// When conversations have to be looked at: a heap of conversations by that time.
#ifndef HTTPMARK_NATIVE_PROBE_TIMERS_HPP_
#define HTTPMARK_NATIVE_PROBE_TIMERS_HPP_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "probe/conversation.hpp"

namespace httpmark {

class Timers {
  public:
    static constexpr std::uint64_t kNoTime = std::numeric_limits<std::uint64_t>::max();

    void insert(Conversation* conversation);
    void remove(Conversation* conversation);
    // To be called when the conversation's time may have become an earlier one.
    void arm(Conversation* conversation);
    // A conversation whose time has come, or nothing. Whatever the conversation does then, it
    // either ends or waits for a later time.
    Conversation* take_due(std::uint64_t now_us);
    // When to ask again.
    std::uint64_t next_us() const { return heap_.empty() ? kNoTime : heap_[0]->armed_us; }

  private:
    void up(std::size_t at);
    void down(std::size_t at);
    void set(std::size_t at, Conversation* conversation);

    std::vector<Conversation*> heap_;
};

}  // namespace httpmark

#endif  // HTTPMARK_NATIVE_PROBE_TIMERS_HPP_
