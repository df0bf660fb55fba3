// An answer that is given after the handler has returned, from any thread.
#pragma once

#include <initializer_list>
#include <memory>
#include <span>
#include <string_view>

#include "app/router.hpp"
#include "http/error.hpp"
#include "http/response.hpp"

namespace httpmark {

class AcceptEncoding;
struct WaitingRequest;

// Made by ResponseWriter::later(), after which the handler writes nothing itself. Whoever holds it
// completes it, once: the answer is written by the worker of its connection, in the order of the
// requests and framed as any other. One that is dropped without that is answered with 500. It may
// be moved to any thread, but two threads may not use one at a time.
//
// What the handler was told of the request lives as long as its call: what is needed later has to
// be copied. The limit on handlers (--handler-timeout-ms) runs meanwhile: beyond it the client gets
// a 503. A graceful stop waits for the answer as long as for any other (--drain-timeout-ms).
class LaterAnswer {
  public:
    LaterAnswer() = default;
    explicit LaterAnswer(std::shared_ptr<WaitingRequest> request) : request_(std::move(request)) {}
    LaterAnswer(LaterAnswer&& other) noexcept = default;
    LaterAnswer& operator=(LaterAnswer&& other) noexcept;
    ~LaterAnswer();

    // Whether it is still to be completed.
    explicit operator bool() const { return request_ != nullptr; }
    // Nobody waits any more: the connection is gone, or the time was over. A hint to spare the
    // work; it can become true at any time.
    bool gone() const;

    // Each gives false where the request is known to be gone, or has been answered; what is handed
    // over is dropped then. True does not say that the client will get it.
    //
    // Also false, and still to be completed, where a field would break the framing.
    bool complete(unsigned status, std::span<const Field> fields, std::string_view content);
    bool complete(unsigned status, std::initializer_list<Field> fields, std::string_view content) {
        return complete(status, std::span(fields.begin(), fields.size()), content);
    }
    bool complete(std::shared_ptr<const PreparedAnswer> answer);
    // `handler` writes the answer in the thread of the connection's worker. It is told of the
    // request again, as one that deferred is.
    bool complete(Handler handler);
    // As a handler that returns this reason.
    bool fail(Reason reason);

  private:
    friend LaterAnswer with_coded_content(LaterAnswer later, const AcceptEncoding& accept);

    std::shared_ptr<WaitingRequest> request_;
};

}  // namespace httpmark
