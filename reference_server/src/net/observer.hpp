// What a server tells while it runs: faults and answers, as they happen.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "http/error.hpp"
#include "http/response.hpp"

namespace httpmark {

// Something was refused, or not answered in time. Views live for the call only.
struct ErrorEvent {
    static constexpr std::uint64_t kNoOffset = ~std::uint64_t{0};
    Reason reason;
    std::uint64_t offset;  // of the byte at fault, from the first of its request
    std::string_view peer;
};

// A final answer has been written, or the 101 that switches to WebSocket.
struct AnswerEvent {
    const ErrorEvent* error;  // nullptr for an answer of a handler
    std::string_view peer;
    std::int64_t unix_seconds;
    std::string_view request_line;  // empty where the head was never complete
    unsigned status;
    std::uint64_t content_size;

    // The parts of the request-line, which one space each parts (RFC 9112 3).
    std::string_view method() const { return request_line.substr(0, request_line.find(' ')); }
    std::string_view target() const {
        const std::size_t begin = std::min(method().size() + 1, request_line.size());
        return request_line.substr(begin, request_line.rfind(' ') - begin);
    }
    std::string_view version() const {
        return request_line.substr(request_line.rfind(' ') + 1);  // all of an empty line
    }
};

// Told of what happens in one worker, by its own thread: nothing in it needs a lock. Whatever it
// does holds up that worker.
class Observer {
  public:
    // Once for each fault, and before its answer.
    virtual void on_error(const ErrorEvent&) {}
    // May write the answer to a fault in the server's place; false leaves it to the server.
    virtual bool answer_error(const ErrorEvent&, ResponseWriter&) { return false; }
    virtual void on_answer(const AnswerEvent&) {}

  protected:
    ~Observer() = default;
};

}  // namespace httpmark
