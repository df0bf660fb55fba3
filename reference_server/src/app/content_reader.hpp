// The content of a request, piece by piece as it comes.
#pragma once

#include <cstdint>
#include <string_view>

#include "http/error.hpp"

namespace httpmark {

struct Request;
class ResponseWriter;

// Belongs to one request, and is called by the worker of its connection alone. Handed over with
// ResponseWriter::read_content() by the handler of a route with RouteOptions::streams, which is
// asked when the head has come.
class ContentReader {
  public:
    enum class Flow : std::uint8_t {
        kMore,
        // Nothing more is read from the client, and no limit on its time runs, until a Waker of
        // this connection says so. --handler-timeout-ms limits the pause.
        kPause,
    };

    virtual ~ContentReader();
    // The next bytes, which live as long as the call. An answer may be written at any time: nothing
    // more is handed over after that, and this is destroyed.
    virtual Flow on_piece(std::string_view piece, ResponseWriter& writer) = 0;
    // All of it has come; `request` has the trailers. Answers as a handler does, at once or later,
    // but does not defer.
    virtual Reason on_end(const Request& request, ResponseWriter& writer) = 0;
    // Instead: the rest will not come. kIncomplete where the client has gone; otherwise the client
    // has been told the reason. Exactly one of the two is called, unless an answer was written
    // before.
    virtual void on_abort(Reason) {}
    // It was woken from its pause.
    virtual Flow on_woken(ResponseWriter&) { return Flow::kMore; }
};

}  // namespace httpmark
