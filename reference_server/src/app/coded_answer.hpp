// Content-Encoding of answers: gzip or deflate, by what the client accepts (RFC 9110 12.5.3).
#pragma once

#include "app/router.hpp"

namespace httpmark {

// The answer with its content coded where that is wanted and worth it, and with Vary. A constant
// one is coded once for all. Content that a handler has coded itself, that is a part (206), or that
// comes from a ContentSource, is left as it is, and so is an answer that is given by LaterAnswer. A
// strong entity tag becomes a weak one where the
// content is coded (RFC 9110 8.8.1).
Answer with_coded_content(Answer answer);

}  // namespace httpmark
