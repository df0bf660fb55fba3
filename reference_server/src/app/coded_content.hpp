// Content-Encoding of requests, for a handler that sees none of it.
#pragma once

#include <cstdint>

#include "app/router.hpp"

namespace httpmark {

// A handler that is given decoded content, or whose coded content is answered with 415. What cannot
// be decoded, or is more than `decoded_max` bytes, never reaches it.
Handler with_plain_content(Handler handler, CodedContent choice, std::uint64_t decoded_max);

}  // namespace httpmark
