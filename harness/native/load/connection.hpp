// One connection of the load, and the requests that are under way on it.
#ifndef HTTPMARK_NATIVE_LOAD_CONNECTION_HPP_
#define HTTPMARK_NATIVE_LOAD_CONNECTION_HPP_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "shared/tls.hpp"

namespace httpmark {

// Requests that were sent together.
struct SendGroup {
    std::uint64_t at_ns = 0;  // open: when the requests were due
    std::uint64_t sent_ns = 0;
    std::uint64_t count = 0;
};

// A ring of them, the oldest first.
class SendGroups {
  public:
    void set_capacity(std::size_t capacity) { groups_.resize(capacity); }
    void add(const SendGroup& group) {
        groups_[(first_ + count_) % capacity()] = group;
        ++count_;
    }
    SendGroup& oldest() { return groups_[first_]; }
    const SendGroup& oldest() const { return groups_[first_]; }
    void drop_oldest() {
        first_ = (first_ + 1) % capacity();
        --count_;
    }
    std::uint32_t count() const { return count_; }
    // The `i`th oldest.
    const SendGroup& at(std::uint32_t i) const { return groups_[(first_ + i) % capacity()]; }

  private:
    std::uint32_t capacity() const { return static_cast<std::uint32_t>(groups_.size()); }

    std::uint32_t first_ = 0;
    std::uint32_t count_ = 0;
    std::vector<SendGroup> groups_;
};

struct LoadConnection {
    enum class Phase : std::uint8_t { kNone, kConnecting, kHandshake, kOpen };

    int fd = -1;
    Phase phase = Phase::kNone;
    std::uint8_t failures = 0;  // to open it, one after the other
    TlsStream tls;
    bool wants_writable = false;
    bool closing = false;  // its last answer announced close
    bool is_free = false;  // open: has room, and waits for its turn
    std::uint32_t index = 0;
    std::uint32_t queued = 0;      // requests to send, the one that is half out included
    std::uint32_t unanswered = 0;  // requests sent or queued and not answered yet
    std::uint32_t send_kind = 0;   // the request to send next
    std::uint32_t receive_kind = 0;
    std::uint64_t responses = 0;  // verified, since the window began
    std::uint64_t heard_ns = 0;   // when bytes came last
    std::size_t send_offset = 0;  // bytes of the request to send next that are out
    std::size_t need = 0;         // of partial, before looking at it again makes sense
    std::uint64_t begun_ns = 0;   // to be opened
    std::uint64_t connected_ns = 0;
    std::string partial;  // the front of an answer that is not whole yet
    SendGroups groups;

    bool is_open() const { return phase == Phase::kOpen; }
    bool is_opening() const { return phase == Phase::kConnecting || phase == Phase::kHandshake; }
    // To how many requests an answer may come: those that are out, and the one that is half out, as
    // a server may answer before it has read all of it (RFC 9112 section 9.5).
    std::uint32_t answerable() const { return unanswered + (send_offset != 0 ? 1 : 0) - queued; }
};

}  // namespace httpmark

#endif  // HTTPMARK_NATIVE_LOAD_CONNECTION_HPP_
