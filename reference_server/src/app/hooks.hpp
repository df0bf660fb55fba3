// What an application has done around the answers of its routes, and says where there is none.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "app/request.hpp"
#include "http/answer_head.hpp"
#include "http/error.hpp"
#include "http/response.hpp"

namespace httpmark {

// Sees what is about to be answered, by whomever, and may add fields. It is shared by all workers
// and called by several at a time. What it throws is dropped, with what it has added.
using AfterHook = std::function<void(const Request&, AnswerHead&)>;

// A request that the server answers itself, or that is not all there in time, or whose content
// refuse_content() refuses. Views live for the
// call only.
struct Refusal {
    static constexpr std::uint64_t kNoOffset = ~std::uint64_t{0};

    Reason reason;
    std::string_view name;    // of the reason: "host-missing"
    std::string_view clause;  // of the RFC
    unsigned status;
    std::uint64_t offset;  // of the byte at fault, from the first of its request, or of the content
                           // that refuse_content() is told of; kNoOffset where there is none
    std::string_view peer;   // as ClientFacts::peer()
    const Request* request;  // nullptr where its head was never complete, or broke a rule
};

// Says what stands in a refusal; nothing: the name of the reason, as without a handler. The status
// and all other fields are the server's. It is shared by all workers and called by several at a
// time. What it throws, and a content type that cannot stand in a field, count as nothing.
using RefusalHandler = std::function<std::optional<RefusalContent>(const Refusal&)>;

}  // namespace httpmark
