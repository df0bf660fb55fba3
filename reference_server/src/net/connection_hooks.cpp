// What an application has asked around the answers of its routes.
#include "app/route_hooks.hpp"
#include "net/asking.hpp"
#include "net/connection.hpp"

namespace httpmark {

// Asks the hooks of a route before its content is waited for. True where one of them has answered;
// else `reason` says whether one refuses. `ends`: the content will not be read after an answer.
bool Connections::ask_hooks(Connection& c, const Request& request, bool ends, Reason& reason) {
    ResponseOptions options = options_of(c, request);
    if (ends) {
        options.close = true;
        options.say_keep_alive = false;
    }
    ResponseWriter writer(*this, date_, options);
    const AfterHooks after(request, writer);
    asked_ = &request;
    reason = reason_of(writer, [&] { return request.route.hooks->ask_before(request, writer); });
    if (!writer.is_answered() && !writer.is_abandoned()) {
        if (reason != Reason::kNone) forget_asked();
        return false;
    }
    answer_before_end(c, request, options, writer, reason);
    return true;
}

}  // namespace httpmark
