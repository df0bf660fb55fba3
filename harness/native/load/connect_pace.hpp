// At what pace connections are opened.
#ifndef HTTPMARK_NATIVE_LOAD_CONNECT_PACE_HPP_
#define HTTPMARK_NATIVE_LOAD_CONNECT_PACE_HPP_

#include <cstddef>
#include <cstdint>

namespace httpmark {

// A connection that took as long as a lost SYN (RFC 6298: 1 s until it is sent again) says that the
// listen queue was full. From there on it goes at half the pace, and what was lost is not made up
// for, or the queue would be full again at once.
class ConnectPace {
  public:
    ConnectPace(double rate, std::uint64_t now_ns) : rate_(rate), start_ns_(now_ns) {}

    std::uint64_t next_due_ns() const;
    void begun() { ++begun_; }
    void opened(std::uint64_t begun_ns, std::uint64_t now_ns);
    double rate() const { return rate_; }

  private:
    double rate_;  // a second
    std::uint64_t start_ns_;
    std::size_t begun_ = 0;  // since start_ns_
};

}  // namespace httpmark

#endif  // HTTPMARK_NATIVE_LOAD_CONNECT_PACE_HPP_
