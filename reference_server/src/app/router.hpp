// From method and path to a route: exact paths first, then the catch-all.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "http/parser.hpp"

namespace httpmark {

enum class Handler : std::uint8_t {
    kHello,
    kBody,
    kMirror,
    kEcho,
    kSlow,
    kEarly,
    kNoContent,
    kNotModified,
    kRedirect,
    kBig,
    kNotFound,
    kGetOnly,
    kTrace,
    kMetrics,
    kFunction,
};

struct Request;
class ResponseWriter;

struct Route {
    std::string_view path;
    Handler handler;
    bool wants_content;  // the handler reads it: it is gathered
    bool wants_head;     // the handler reads field lines: they are kept until the content is there
    bool early;          // answers without waiting for the content
    std::uint16_t methods;  // bit per Method
    std::string_view allow;
    // What the content must be like, where the route says so.
    std::uint64_t body_max = ~std::uint64_t{0};  // 413 above it
    bool wants_length = false;                   // 411 for content of unknown length
    std::string_view media_type = {};            // 415 for content of another type
    // For Handler::kFunction: writes one answer, kNone when done.
    Reason (*function)(const Request&, ResponseWriter&) = nullptr;
};

constexpr std::uint16_t method_bit(Method method) {
    return static_cast<std::uint16_t>(1U << static_cast<unsigned>(method));
}

// The caller's own routes come before the example's.
const Route& find_route(std::string_view path, std::span<const Route> own = {});
// TRACE reflects whatever its target.
const Route& trace_route();

struct Target {
    std::string_view path;
    std::string_view query;  // raw, without the '?'
    bool has_query = false;
};
// Path and query of a target in origin-form or absolute-form (where an empty path is "/").
Target split_target(std::string_view target, TargetForm form);

}  // namespace httpmark
