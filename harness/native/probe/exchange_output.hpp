// Standard output: exchange frames, written many at a time.
#ifndef HTTPMARK_NATIVE_PROBE_EXCHANGE_OUTPUT_HPP_
#define HTTPMARK_NATIVE_PROBE_EXCHANGE_OUTPUT_HPP_

#include <cstddef>
#include <cstdint>
#include <string>

#include "probe/frames.hpp"

namespace httpmark {

class ExchangeOutput {
  public:
    explicit ExchangeOutput(int fd) : fd_(fd) {}

    // Its events come with this object's address.
    void watch(int epoll_fd);
    void on_event();
    // Leaves the descriptor as it was before watch().
    void unwatch();

    void add(const ProbeExchange& exchange, std::uint64_t now_us);
    // Writes as much as the reader takes.
    void write_some();

    bool is_empty() const { return text_.empty(); }
    // Whether the reader keeps us waiting with so much that no more should be made.
    bool is_full() const;
    // Bytes that are kept until they are written.
    std::size_t held() const { return text_.size(); }
    // Whether to write now. `is_idle`: nothing else is going on that more could come from.
    bool is_due(std::uint64_t now_us, bool is_idle) const;
    // When it will be due, where it only waits for more to come; else kNoTime.
    std::uint64_t due_us() const;
    // It cannot be written any more; the reason has been told.
    bool has_failed() const { return has_failed_; }

  private:
    int fd_;
    int epoll_fd_ = -1;
    int fd_flags_ = 0;
    std::string text_;
    std::size_t at_ = 0;          // up to here it is written
    std::uint64_t since_us_ = 0;  // when the oldest that waits came
    bool is_pollable_ = false;
    bool is_blocked_ = false;
    bool has_failed_ = false;
};

}  // namespace httpmark

#endif  // HTTPMARK_NATIVE_PROBE_EXCHANGE_OUTPUT_HPP_
