// Refusals that an application is told of, and what it says in them.
#include "app/route_hooks.hpp"
#include "net/connection.hpp"
#include "net/exchange.hpp"

namespace httpmark {

// What the request of an exchange asked for, where that is known by now.
bool Connections::has_route(const Connection& c) {
    return c.exchange != nullptr && c.exchange->route != nullptr && !c.exchange->answered;
}

// A refusal that somebody is told of. What has come of the request is in its exchange where
// `request` stands for one that is not there whole.
void Connections::write_told_error(Connection& c, Reason reason, const Request& request,
                                   std::uint64_t offset, const ResponseOptions& options) {
    const bool is_kept = request.data == nullptr && has_route(c);
    const Request kept = is_kept ? kept_request(c) : request;
    const bool is_heard = observer_ != nullptr || router_.hears_refusals();
    const std::string peer = is_heard ? transport_.peer(current_id_) : std::string();
    const ErrorRow& row = error_row(reason);
    const ErrorEvent event{reason, offset, peer};
    if (observer_ != nullptr) observer_->on_error(event);
    const bool is_whole = kept.data != nullptr;
    const auto content = router_.content_of(
        {reason, row.name, row.clause, row.status, offset, peer, is_whole ? &kept : nullptr});
    ResponseWriter writer(*this, date_, options);
    const AfterHooks after(kept, writer, reason);
    bool written = content && writer.write(row.status, {{"Content-Type", content->content_type}},
                                           content->content);
    written = written || (observer_ != nullptr && observer_->answer_error(event, writer));
    if (!written && !writer.write(error_answer(reason))) {
        c.set(Connection::kBroken);
        return;
    }
    if (observer_ != nullptr) tell_answer(request.head, request.data, writer, &event);
}

std::optional<RefusalContent> Connections::refusal_content(Reason reason, std::uint64_t offset) {
    if (!router_.hears_refusals()) return std::nullopt;
    const ErrorRow& row = error_row(reason);
    const std::string peer = transport_.peer(current_id_);
    return router_.content_of({reason, row.name, row.clause, row.status, offset, peer, asked_});
}

}  // namespace httpmark
