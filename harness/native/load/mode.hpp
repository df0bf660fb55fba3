// What the modes of a load do each in their own way: when requests go out, and what the end of a
// connection means. Everything else is Traffic's.
#ifndef HTTPMARK_NATIVE_LOAD_MODE_HPP_
#define HTTPMARK_NATIVE_LOAD_MODE_HPP_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>

#include "load/connection.hpp"

namespace httpmark {

class Traffic;

class Mode {
  public:
    static constexpr std::uint64_t kNoTime = std::numeric_limits<std::uint64_t>::max();

    explicit Mode(Traffic* traffic) : traffic_(*traffic) {}
    virtual ~Mode() = default;

    // --- the turns of a run

    // The load begins.
    virtual void begin(std::uint64_t /*start_ns*/) {}
    // When a window begins that was to begin at `planned_ns`.
    virtual std::uint64_t window_start_ns(std::uint64_t /*planned_ns*/,
                                          std::uint64_t now_ns) const {
        return now_ns;
    }
    // Whether the window's connects are its own, and not those of the whole run.
    virtual bool measures_connects() const { return false; }
    // Whether requests are due at times of their own.
    virtual bool has_schedule() const { return false; }
    // Sends what is due by now and before `until_ns`, where there is a schedule.
    virtual void send_due(std::uint64_t /*now_ns*/, std::uint64_t /*until_ns*/) {}
    // When the next request is due, where there is a schedule.
    virtual std::uint64_t next_due_ns() const { return kNoTime; }
    // Requests that were due and have no connection yet.
    virtual std::size_t backlog() const { return 0; }
    // Whether answers are waited for when the window is over.
    virtual bool drains() const { return true; }
    // The run is over: what the mode still holds was never sent.
    virtual void count_unsent(std::uint64_t /*now_ns*/) {}

    // --- the turns of a connection

    // It is open: the first requests on it, after those that another one has left over.
    virtual void start(LoadConnection* connection) = 0;
    // `events` of epoll: sends what waits, and reads. It may be another connection afterwards.
    virtual void on_event(LoadConnection* connection, std::uint32_t events);
    // Answers came: `answered` of them, or only a part of one.
    virtual void refill(LoadConnection* connection, std::uint32_t answered,
                        std::uint64_t now_ns) = 0;
    // The server has ended it. True: that is all right, and the mode has dealt with it.
    virtual bool accepts_end(LoadConnection* /*connection*/) { return false; }
    // Another one is about to take its place.
    virtual void before_replacing(LoadConnection* /*connection*/) {}
    // Whether another one takes its place at all.
    virtual bool replaces() const { return true; }

  protected:
    // Queues requests until `slots` are under way on the connection.
    void fill(LoadConnection* connection, std::size_t slots);

    Traffic& traffic_;
};

// The mode of the traffic's plan.
std::unique_ptr<Mode> make_mode(Traffic* traffic);
// Each in a file of its own.
std::unique_ptr<Mode> make_closed_mode(Traffic* traffic);
std::unique_ptr<Mode> make_open_mode(Traffic* traffic);
std::unique_ptr<Mode> make_idle_mode(Traffic* traffic);
std::unique_ptr<Mode> make_churn_mode(Traffic* traffic);
std::unique_ptr<Mode> make_slow_mode(Traffic* traffic);

}  // namespace httpmark

#endif  // HTTPMARK_NATIVE_LOAD_MODE_HPP_
