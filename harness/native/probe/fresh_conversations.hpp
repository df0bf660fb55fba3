// The conversations that count against in_flight: those on which something went or came a short
// while ago. A list, the one that has been silent longest first.
#ifndef HTTPMARK_NATIVE_PROBE_FRESH_TALKS_HPP_
#define HTTPMARK_NATIVE_PROBE_FRESH_TALKS_HPP_

#include <cstddef>
#include <cstdint>

#include "probe/conversation.hpp"

namespace httpmark {

class FreshConversations {
  public:
    explicit FreshConversations(std::uint64_t fresh_us) : fresh_us_(fresh_us) {}

    std::size_t count() const { return count_; }
    void append(Conversation* conversation);
    void remove(Conversation* conversation);
    // Something went or came.
    void touch(Conversation* conversation, std::uint64_t now_us);
    // Takes out those that have been silent too long.
    void age(std::uint64_t now_us);
    // When the first one will have been; there has to be one.
    std::uint64_t next_us() const { return first_->active_us + fresh_us_; }

  private:
    std::uint64_t fresh_us_;
    std::size_t count_ = 0;
    Conversation* first_ = nullptr;
    Conversation* last_ = nullptr;
};

}  // namespace httpmark

#endif  // HTTPMARK_NATIVE_PROBE_FRESH_TALKS_HPP_
