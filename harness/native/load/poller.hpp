// The epoll of one worker. Its events carry the index of their connection.
#ifndef HTTPMARK_NATIVE_LOAD_POLLER_HPP_
#define HTTPMARK_NATIVE_LOAD_POLLER_HPP_

#include <sys/epoll.h>

#include <array>
#include <cstdint>
#include <span>

namespace httpmark {

// As epoll_wait(2), to the nanosecond where the kernel can (`has_ns`, set to false where it
// cannot), else to the next millisecond.
int wait_for_events(int epoll_fd, epoll_event* events, int count, std::uint64_t wait_ns,
                    bool* has_ns);

class Poller {
  public:
    Poller();
    ~Poller();
    Poller(const Poller&) = delete;
    Poller& operator=(const Poller&) = delete;

    bool add(int fd, std::uint32_t index);  // for reading
    void set(int fd, std::uint32_t index, std::uint32_t events);
    void remove(int fd);

    // What has happened, until the next wait; nothing once the time is over.
    std::span<const epoll_event> wait_ns(std::uint64_t ns);
    std::span<const epoll_event> wait_ms(std::uint64_t ms);

  private:
    std::span<const epoll_event> ready(int count) const;

    int fd_;
    bool has_ns_wait_ = true;
    std::array<epoll_event, 512> events_;
};

}  // namespace httpmark

#endif  // HTTPMARK_NATIVE_LOAD_POLLER_HPP_
