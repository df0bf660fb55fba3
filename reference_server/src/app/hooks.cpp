#include "app/hooks.hpp"

#include <utility>

#include "app/route_hooks.hpp"
#include "http/syntax.hpp"

namespace httpmark {

namespace {

// The next byte that the path means.
unsigned char take_octet(std::string_view& path) {
    unsigned char c = octet(path.front());
    std::size_t size = 1;
    if (c == '%' && path.size() >= 3) {  // the parser has seen that there are two digits
        c = static_cast<unsigned char>(hex_value(octet(path[1])) << 4 | hex_value(octet(path[2])));
        size = 3;
    }
    path.remove_prefix(size);
    return c;
}

Reason answer(const Route& route, const Request& request, ResponseWriter& writer) {
    if (route.constant != nullptr) {
        return writer.write(*route.constant) ? Reason::kNone : writer.fault();
    }
    return route.refusal != Reason::kNone ? route.refusal : route.handler(request, writer);
}

}  // namespace

bool is_beneath(std::string_view path, std::string_view prefix) {
    if (prefix.empty()) return true;
    for (const char c : prefix) {
        if (path.empty() || take_octet(path) != octet(c)) return false;
    }
    return path.empty() || take_octet(path) == '/';
}

bool may_be_beneath(std::string_view pattern, std::string_view prefix) {
    if (prefix.empty() || !pattern.starts_with('/')) return prefix.empty();
    pattern.remove_prefix(1);
    prefix.remove_prefix(1);
    while (true) {
        const std::string_view wanted = prefix.substr(0, segment_size(prefix));
        const std::string_view segment = pattern.substr(0, segment_size(pattern));
        if (segment == "..." || segment.ends_with("...}")) return true;
        // What {name} takes may hold a slash as a percent pair, and so may a literal.
        if (segment.starts_with('{') || segment.find('%') != std::string_view::npos) return true;
        if (segment != wanted) return false;
        if (wanted.size() == prefix.size()) return true;
        if (segment.size() == pattern.size()) return false;
        prefix.remove_prefix(wanted.size() + 1);
        pattern.remove_prefix(segment.size() + 1);
    }
}

std::unique_ptr<RouteHooks> RouteHooks::of(const Hooks& all, std::string_view pattern,
                                           const Route& route) {
    auto made = std::make_unique<RouteHooks>();
    const auto take = [&](const auto& from, auto& into) {
        for (const auto& one : from) {
            if (may_be_beneath(pattern, one.prefix)) into.push_back(one);
        }
    };
    take(all.before, made->hooks.before);
    take(all.after, made->hooks.after);
    if (made->hooks.before.empty() && made->hooks.after.empty()) return nullptr;
    made->answers = route;
    Route& behind = made->behind;
    behind = route;
    behind.constant = nullptr;
    behind.options.wants_head = true;
    behind.hooks = made.get();
    behind.handler = [of = made.get()](const Request& request, ResponseWriter& writer) -> Reason {
        const AfterHooks watching(request, writer);
        return answer(of->answers, request, writer);
    };
    return made;
}

Route RouteHooks::in_front() const {
    Route front = behind;
    front.refusal = Reason::kNone;
    front.handler = [this](const Request& request, ResponseWriter& writer) -> Reason {
        const AfterHooks watching(request, writer);
        // A handler that has put its answer off has passed them.
        if (!request.asked_again) {
            const Reason reason = ask_before(request, writer);
            if (reason != Reason::kNone || !writer.is_untouched()) return reason;
        }
        return answer(answers, request, writer);
    };
    return front;
}

Reason RouteHooks::ask_before(const Request& request, ResponseWriter& writer) const {
    // They see the same whether the content has come with the head or has not.
    Request head_alone = request;
    head_alone.content = {};
    for (const Hooks::Before& one : hooks.before) {
        if (!is_beneath(request.target.path, one.prefix)) continue;
        const Reason reason = one.hook(head_alone, writer);
        if (reason != Reason::kNone || writer.is_answered()) return reason;
        // It has to answer now, or let the request pass.
        if (!writer.is_untouched() || writer.deferred_ms()) return Reason::kHandlerFailed;
    }
    return Reason::kNone;
}

AfterHooks::AfterHooks(const Request& request, ResponseWriter& writer, Reason refusal)
    : request_(request), refusal_(refusal) {
    if (request.route.hooks != nullptr && !request.route.hooks->hooks.after.empty())
        writer.watch(*this);
}

void AfterHooks::on_head(AnswerHead& head) const {
    head.refusal_ = refusal_;
    for (const Hooks::After& one : request_.route.hooks->hooks.after) {
        if (!is_beneath(request_.target.path, one.prefix)) continue;
        const std::size_t before = head.lines_.size();
        try {
            (*one.hook)(request_, head);
        } catch (...) {
            head.lines_.resize(before);
        }
    }
}

}  // namespace httpmark
