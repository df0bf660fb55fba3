// What other threads have to tell a worker. They put it down here and wake the worker, which takes
// it in its own thread: no connection is ever touched by another one.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "app/router.hpp"
#include "content/content_coding.hpp"
#include "http/error.hpp"
#include "http/response.hpp"

namespace httpmark {

class Mailbox;

// A connection. Its slot may be another's by the time somebody writes: the generation tells.
struct Address {
    Address(std::shared_ptr<Mailbox> box, std::uint32_t slot, std::uint32_t of_slot)
        : mailbox(std::move(box)), id(slot), generation(of_slot) {}

    const std::shared_ptr<Mailbox> mailbox;
    const std::uint32_t id;
    const std::uint32_t generation;
};

// A request that waits for its answer. The worker asks besides whether it is this one that waits
// on the connection.
struct WaitingRequest : Address {
    using Address::Address;
    std::atomic<bool> gone{false};  // set by the worker: nobody waits any more
    // What the client accepts, where the answer may be coded. Set before the handler has the token.
    std::optional<AcceptEncoding> accepts = {};
};

// What waits on a connection until it is woken.
struct Sleeper : Address {
    using Address::Address;
    std::atomic<bool> posted{false};  // its letter is under way
};

// To wake a sleeper, or the answer to a request: one that is prepared, or who writes it, or why
// there is none.
struct Letter {
    std::shared_ptr<WaitingRequest> request = nullptr;
    std::shared_ptr<const PreparedAnswer> answer = nullptr;
    Handler handler = {};
    Reason reason = Reason::kNone;
    std::shared_ptr<Sleeper> sleeper = nullptr;
};

// Shared by the worker and by all who may write to it; it may outlive the worker.
class Mailbox {
  public:
    class Reader {
      public:
        virtual void wake() = 0;  // from any thread

      protected:
        ~Reader() = default;
    };
    explicit Mailbox(Reader& reader) : reader_(&reader) {}
    Mailbox(const Mailbox&) = delete;
    Mailbox& operator=(const Mailbox&) = delete;

    // From any thread. False where nobody reads any more.
    bool put(Letter&& letter);
    // By the reader, whose vector is empty: all that has come since the last time, in order.
    void take(std::vector<Letter>& letters);
    // By the reader, which is called no more after this.
    void close();

  private:
    std::mutex lock_;
    std::vector<Letter> letters_;
    Reader* reader_;  // nullptr once closed
};

}  // namespace httpmark
