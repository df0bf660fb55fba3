// The example application: the routes that the capabilities of a server image ask for.
#pragma once

#include <cstdint>
#include <string_view>

#include "app/router.hpp"
#include "http/parser.hpp"
#include "http/response.hpp"

namespace httpmark {

struct Request {
    const RequestHead& head;
    const char* data;  // what the spans of `head` refer to
    std::uint32_t head_size;
    Target target;
    std::string_view content;
    std::string_view trailers;  // field lines as received, CRLF after each
    std::uint32_t number;       // on this connection, from 1
};

inline constexpr std::uint32_t kSlowAnswerMs = 500;
inline constexpr std::uint64_t kBigAnswerSize = 1048576;
inline constexpr std::string_view kHelloContent = "Hello World!";

// Writes one response. kHandlerFailed or kNoMemory when nothing could be written.
Reason answer(const Route& route, const Request& request, ResponseWriter& writer);

}  // namespace httpmark
