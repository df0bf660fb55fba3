// Content-Encoding of answers: gzip or deflate, by what the client accepts (RFC 9110 12.5.3).
#pragma once

#include "app/later_answer.hpp"
#include "app/router.hpp"
#include "content/content_coding.hpp"

namespace httpmark {

// The answer with its content coded where that is wanted and worth it, and with Vary. A constant
// one is coded once for all. A ContentStream is coded piece by piece, and what it has given is sent
// before it is waited for; it takes 256 KiB for as long as it lasts. Content that a handler has
// coded itself, that is a part (206), or that comes from a ContentSource, is left as it is. A
// strong entity tag becomes a weak one where the content is coded (RFC 9110 8.8.1), and in a 304 to
// a client that would have got it so. The same holds for answers that are given later, and by those
// who read content.
Answer with_coded_content(Answer answer);

// What is completed by it, for a client that accepts that.
LaterAnswer with_coded_content(LaterAnswer later, const AcceptEncoding& accept);

// By whoever completes such an answer, in his own thread. nullptr where memory is short.
std::shared_ptr<const PreparedAnswer> coded_for(const AcceptEncoding& accept,
                                                const PreparedAnswer& answer);

}  // namespace httpmark
