// A form with files, part by part as it comes.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "app/content_reader.hpp"
#include "app/request.hpp"
#include "content/multipart.hpp"
#include "http/error.hpp"
#include "http/response.hpp"
#include "limits.hpp"

namespace httpmark {

// Takes the parts of one multipart/form-data request. Belongs to that request, and is called by the
// worker of its connection alone. It may write an answer in any call: nothing more is handed over
// then, and it is destroyed. Each call but the last ones may pause, as that of a ContentReader may.
class PartReader {
  public:
    using Flow = ContentReader::Flow;

    virtual ~PartReader();
    // What its header section says; views live as long as the call.
    virtual Flow on_part(const MultipartPart& part, ResponseWriter& writer) = 0;
    // The next bytes of its content, which live as long as the call.
    virtual Flow on_piece(std::string_view piece, ResponseWriter& writer) = 0;
    virtual Flow on_part_end(ResponseWriter& writer) = 0;
    // The form is whole. Answers as a handler does, at once or later, but does not defer.
    virtual Reason on_end(const Request& request, ResponseWriter& writer) = 0;

    // Instead: what comes is no form, or goes beyond a limit, at that offset of the content. What
    // was handed over is part of a form that is none. Has to answer; unless it is told otherwise,
    // by refuse_content(): 413 for a limit, 400 or 415 for anything else.
    virtual void on_fault(Reason fault, std::uint64_t offset, ResponseWriter& writer);
    // Or: the rest will not come. kIncomplete where the client has gone; otherwise the client has
    // been told the reason.
    virtual void on_abort(Reason) {}
    // It was woken from its pause.
    virtual Flow on_woken(ResponseWriter&) { return Flow::kMore; }
};

// For the handler of a route with RouteOptions::streams: what its content is of parts goes to
// `parts`. A request of another type is refused, and `parts` destroyed. Limits beyond these are
// those of the route: RouteOptions::body_max is for the whole content.
Reason read_parts(const Request& request, ResponseWriter& writer, std::unique_ptr<PartReader> parts,
                  const MultipartLimits& limits = {});

}  // namespace httpmark
