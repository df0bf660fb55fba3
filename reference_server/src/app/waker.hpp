// How any thread tells a worker that something a connection waits for has come.
#pragma once

#include <memory>

namespace httpmark {

struct Sleeper;

// Made by ResponseWriter::waker(), for the connection of its request. May be copied, and kept for
// as long as one likes: once the connection is gone, it does nothing.
class Waker {
  public:
    Waker() = default;
    explicit Waker(std::shared_ptr<Sleeper> sleeper) : sleeper_(std::move(sleeper)) {}

    // From any thread, several at a time. What has paused goes on: a ContentStream that has said
    // kLater is asked again. Calls that come before the worker has looked count as one; none is
    // lost.
    void wake() const;

  private:
    std::shared_ptr<Sleeper> sleeper_;
};

}  // namespace httpmark
