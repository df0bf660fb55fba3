// A start that somebody else chooses, so that generators on several machines begin as one.
#ifndef HTTPMARK_NATIVE_LOAD_START_GATE_HPP_
#define HTTPMARK_NATIVE_LOAD_START_GATE_HPP_

#include <cstddef>
#include <cstdint>

namespace httpmark {

class StartGate {
  public:
    // `fd` reads and writes. This process ends when the thread that started it ends.
    explicit StartGate(int fd);

    // Says that so many connections are open.
    void tell(std::size_t established) const;
    // Waits for a line with the nanoseconds since the epoch at which to begin, and gives that time
    // of the monotonic clock: not before `earliest_ns`, and not before now. Ends the program where
    // nobody says it any more.
    std::uint64_t wait(std::uint64_t earliest_ns);
    // By how much something at this time of the monotonic clock was later than what was wanted.
    std::uint64_t late_ns(std::uint64_t at_ns) const;

  private:
    int fd_;
    std::uint64_t wanted_ns_ = 0;
};

}  // namespace httpmark

#endif  // HTTPMARK_NATIVE_LOAD_START_GATE_HPP_
