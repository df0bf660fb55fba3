// The hooks of one route, and what stands behind them.
//
// A route with hooks is two: one that is found for a request, whose handler asks the hooks and then
// what is behind them; and `behind`, for a connection that has asked the hooks before the content
// has come. A route without hooks knows nothing of all this, and pays nothing for it.
#pragma once

#include <memory>
#include <string_view>

#include "app/hooks.hpp"
#include "app/router.hpp"
#include "http/answer_head.hpp"
#include "http/error.hpp"
#include "http/response.hpp"

namespace httpmark {

// Whether a path is `prefix`, or goes on behind it with a slash. Percent pairs count as the bytes
// that they stand for: a hook must not be passed by another spelling. The prefix has none, and does
// not end with a slash; without bytes it is that of all.
bool is_beneath(std::string_view path, std::string_view prefix);

// Whether a path that fits the pattern may be beneath the prefix.
bool may_be_beneath(std::string_view pattern, std::string_view prefix);

struct RouteHooks {
    Hooks hooks;    // those that are for some path of the pattern
    Route behind;   // its handler does what `answers` does, and asks the hooks after it
    Route answers;  // as it was added

    // nullptr where none of the hooks is for any path of the pattern.
    static std::unique_ptr<RouteHooks> of(const Hooks& all, std::string_view pattern,
                                          const Route& route);
    // The route that is to be found.
    Route in_front() const;
    // In the order in which they were added, until one has answered. kNone where none of them has,
    // or `writer` has been written to.
    Reason ask_before(const Request& request, ResponseWriter& writer) const;
};

// The hooks after one answer. To be kept for as long as the writer that it watches writes.
class AfterHooks final : public HeadWatcher {
  public:
    // Of the request's route, if it has any.
    AfterHooks(const Request& request, ResponseWriter& writer, Reason refusal = Reason::kNone);
    AfterHooks(const AfterHooks&) = delete;
    AfterHooks& operator=(const AfterHooks&) = delete;
    void on_head(AnswerHead& head) const override;

  private:
    const Request& request_;
    Reason refusal_;
};

}  // namespace httpmark
