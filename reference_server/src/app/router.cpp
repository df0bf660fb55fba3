#include "app/router.hpp"

#include <algorithm>

#include "app/coded_answer.hpp"
#include "app/coded_content.hpp"
#include "app/route_hooks.hpp"
#include "http/syntax.hpp"
#include "http/uri.hpp"

namespace httpmark {

namespace {

constexpr std::size_t kParametersMax = 16;

struct MethodName {
    Method method;
    std::string_view name;
};
// In the order of Allow.
constexpr MethodName kMethodNames[] = {
    {Method::kGet, "GET"},         {Method::kHead, "HEAD"},     {Method::kPost, "POST"},
    {Method::kPut, "PUT"},         {Method::kDelete, "DELETE"}, {Method::kPatch, "PATCH"},
    {Method::kOptions, "OPTIONS"}, {Method::kTrace, "TRACE"},
};

std::size_t index_of(Method method) {
    return static_cast<std::size_t>(method);
}

std::string names_of(Methods methods) {
    std::string text;
    for (const MethodName& row : kMethodNames) {
        if ((methods & method_bit(row.method)) == 0) continue;
        if (!text.empty()) text += ", ";
        text += row.name;
    }
    return text;
}

// A path as it can come: bytes of a target, percent pairs, no query.
bool is_literal(std::string_view text) {
    for (std::size_t i = 0; i < text.size(); ++i) {
        const unsigned char c = octet(text[i]);
        if (!is_target_char(c) || c == '?') return false;
        if (c == '%' && (text.size() - i < 3 || !is_hexdig(octet(text[i + 1])) ||
                         !is_hexdig(octet(text[i + 2])))) {
            return false;
        }
    }
    return true;
}

bool is_parameter_name(std::string_view name) {
    return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
        return is_alpha(octet(c)) || is_digit(octet(c)) || c == '_';
    });
}

// What one segment of a pattern is.
struct Segment {
    enum class Kind : std::uint8_t { kLiteral, kOne, kRest, kPrefix, kWrong };
    Kind kind;
    std::string_view text;  // literal or name
};
Segment segment_of(std::string_view text) {
    using Kind = Segment::Kind;
    if (text == "...") return {Kind::kPrefix, {}};
    if (!text.starts_with('{') || !text.ends_with('}')) {
        return {is_literal(text) ? Kind::kLiteral : Kind::kWrong, text};
    }
    std::string_view name = text.substr(1, text.size() - 2);
    const bool rest = name.ends_with("...");
    if (rest) name.remove_suffix(3);
    if (!is_parameter_name(name)) return {Kind::kWrong, text};
    return {rest ? Kind::kRest : Kind::kOne, name};
}

// Cuts the next segment off; `more` says whether there is one after it.
std::string_view take_segment(std::string_view& rest, bool& more) {
    const std::size_t slash = segment_size(rest);
    more = slash != rest.size();
    const std::string_view segment(rest.data(), slash);
    rest.remove_prefix(more ? slash + 1 : rest.size());
    return segment;
}

constexpr const char* kUnsafeAnswer =
    "nothing answers it, or an answer whose status is none or that has a field which would break "
    "the framing";
std::string in_lower_case(std::string text) {
    for (char& c : text) c = to_lower(c);
    return text;
}

// What it means, without a slash at the end.
std::string prefix_of_hooks(std::string_view prefix) {
    std::string text(prefix);
    text.resize(percent_decode(prefix, text.data()).value_or(std::string_view()).size());
    while (text.ends_with('/')) text.pop_back();
    return text;
}

bool answers(const Answer& answer) {
    return answer.constant != nullptr || answer.handler;
}

Route route_from(const Answer& answer, const RouteOptions& options) {
    Route route;
    route.handler = answer.handler;
    route.constant = answer.constant;
    route.options = options;
    return route;
}

}  // namespace

Router::Router() = default;
Router::~Router() = default;

const Route& Router::find_by_segments(Method method, std::string_view path) const {
    const bool rooted = path.starts_with('/');
    const std::uint32_t place = rooted ? walk(0, path.substr(1), false) : kNoPlace;
    if (place != kNoPlace) return route_of(place, method);
    return method == Method::kTrace && trace_ != nullptr ? *trace_ : not_found_;
}

// The place of the pattern that fits best from here on; `ended` when no segment is left. Each node
// is visited at most once, for there is one way to it: the patterns bound the time, not the path.
std::uint32_t Router::walk(std::uint32_t at, std::string_view rest, bool ended) const {
    const Node& node = nodes_[at];
    if (ended) {
        return node.here == kNoPlace && node.last_is_prefix ? node.last : node.here;
    }
    std::string_view after = rest;
    bool more = false;
    const std::string_view segment = take_segment(after, more);
    const std::uint32_t literal = node.has_literals ? edges_.find(segment, at) : PathTable::kNone;
    if (literal != kNoPlace) {
        const std::uint32_t found = walk(literal, after, !more);
        if (found != kNoPlace) return found;
    }
    if (node.one != kNoPlace && !segment.empty()) {
        const std::uint32_t found = walk(node.one, after, !more);
        if (found != kNoPlace) return found;
    }
    return node.last;
}

// Handlers are wrapped in what their route asks for beyond the rules of the protocol.
Answer Router::Builder::as_asked(Answer answer, RouteOptions& options) {
    options.media_type = in_lower_case(std::move(options.media_type));
    if (answer.handler && (options.wants_content || options.streams) &&
        options.coded_content != CodedContent::kAsItCame) {
        options.wants_head = true;
        // What is handed over as it comes is not decoded.
        const CodedContent choice =
            options.streams ? CodedContent::kRefused : options.coded_content;
        answer.handler = with_plain_content(std::move(answer.handler), choice, options.decoded_max);
    }
    if (options.codes_answers) {
        options.wants_head = true;
        answer = with_coded_content(std::move(answer));
    }
    return answer;
}

Router::Builder& Router::Builder::add(Methods methods, std::string_view pattern, Answer answer,
                                      RouteOptions options) {
    answer = as_asked(std::move(answer), options);
    entries_.push_back({methods, std::string(pattern), std::move(answer), std::move(options)});
    return *this;
}

Router::Builder& Router::Builder::add_websocket(std::string_view pattern, WebSocketRoute websocket,
                                                std::optional<Answer> otherwise,
                                                RouteOptions options) {
    const bool alone = !otherwise.has_value();
    Answer answer = std::move(otherwise).value_or(Answer());
    if (!alone) answer = as_asked(std::move(answer), options);
    entries_.push_back({method_bit(Method::kGet), std::string(pattern), std::move(answer),
                        std::move(options),
                        std::make_shared<const WebSocketRoute>(std::move(websocket)), alone});
    return *this;
}

Router::Builder& Router::Builder::set_not_found(Answer answer, RouteOptions options) {
    answer = as_asked(std::move(answer), options);
    not_found_ = Entry{0, "not found", std::move(answer), std::move(options)};
    return *this;
}

Router::Builder& Router::Builder::set_trace(Answer answer, RouteOptions options) {
    answer = as_asked(std::move(answer), options);
    trace_ = Entry{0, "TRACE", std::move(answer), std::move(options)};
    return *this;
}

Router::Builder& Router::Builder::set_automatic_options(bool automatic) {
    automatic_options_ = automatic;
    return *this;
}

Router::Builder& Router::Builder::limit_content(std::string_view path, std::uint64_t body_max,
                                                bool wants_length, std::string_view media_type) {
    rules_.push_back(
        {std::string(path), body_max, wants_length, in_lower_case(std::string(media_type))});
    return *this;
}

void Router::Builder::note_prefix(std::string_view prefix, bool is_there) {
    const bool is_path = prefix.empty() || (prefix.starts_with('/') && is_literal(prefix));
    if (is_path && is_there) return;
    hook_error_ = "hook " + std::string(prefix) + ": ";
    hook_error_ += is_there ? "must be for a path that begins with '/'" : "there is no function";
}

Router::Builder& Router::Builder::before(Handler hook, std::string_view prefix) {
    note_prefix(prefix, static_cast<bool>(hook));
    hooks_.before.push_back({std::move(hook), prefix_of_hooks(prefix)});
    return *this;
}

Router::Builder& Router::Builder::after(AfterHook hook, std::string_view prefix) {
    note_prefix(prefix, static_cast<bool>(hook));
    hooks_.after.push_back(
        {std::make_shared<const AfterHook>(std::move(hook)), prefix_of_hooks(prefix)});
    return *this;
}

Router::Builder& Router::Builder::set_error(RefusalHandler handler) {
    refusal_handler_ = std::move(handler);
    return *this;
}

std::uint32_t Router::Builder::new_place(Router& router, std::string_view pattern) {
    router.places_.push_back(std::make_unique<Place>());
    router.places_.back()->pattern = pattern;
    router.by_method_.emplace_back();
    return static_cast<std::uint32_t>(router.places_.size() - 1);
}

std::uint32_t Router::Builder::literal_place(Router& router, std::string_view path) {
    std::uint32_t place = router.literals_.find(path);
    if (place == kNoPlace) {
        place = new_place(router, path);
        router.literals_.add(path, 0, place);
    }
    return place;
}

std::uint32_t Router::Builder::child_of(Router& router, std::uint32_t node,
                                        std::string_view literal) {
    std::uint32_t child = router.edges_.find(literal, node);
    if (child == PathTable::kNone) {
        child = static_cast<std::uint32_t>(router.nodes_.size());
        router.nodes_.emplace_back();
        router.edges_.add(literal, node, child);
        router.nodes_[node].has_literals = true;
    }
    return child;
}

std::uint32_t Router::Builder::child_of_any(Router& router, std::uint32_t node) {
    if (router.nodes_[node].one == kNoPlace) {
        router.nodes_[node].one = static_cast<std::uint32_t>(router.nodes_.size());
        router.nodes_.emplace_back();
    }
    return router.nodes_[node].one;
}

std::uint32_t Router::Builder::last_place(Router& router, std::uint32_t node,
                                          std::string_view pattern, bool prefix, std::string& why) {
    if (router.nodes_[node].last == kNoPlace) {
        const std::uint32_t place = new_place(router, pattern);
        router.nodes_[node].last = place;
        router.nodes_[node].last_is_prefix = prefix;
    } else if (router.nodes_[node].last_is_prefix != prefix) {
        why = "contradicts one that differs only in '...'";
        return kNoPlace;
    }
    return router.nodes_[node].last;
}

// The place of a pattern, made where it is new; kNoPlace with the reason set.
std::uint32_t Router::Builder::place_of(Router& router, std::string_view pattern,
                                        Parameters& parameters, std::string& why) {
    using Kind = Segment::Kind;
    if (!pattern.starts_with('/')) {
        why = "must begin with '/'";
        return kNoPlace;
    }
    const bool marked = (std::string(pattern) + '/').find("/.../") != std::string::npos;
    if (is_literal(pattern) && !marked) return literal_place(router, pattern);
    std::string_view rest = pattern.substr(1);
    std::uint32_t node = 0;
    bool more = true;
    for (std::uint32_t number = 0; more; ++number) {
        const Segment segment = segment_of(take_segment(rest, more));
        const bool last = segment.kind == Kind::kRest || segment.kind == Kind::kPrefix;
        if (segment.kind == Kind::kWrong) {
            why = "a segment is a literal, {name}, {name...} or ...";
        } else if (last && more) {
            why = "nothing can follow what takes the rest";
        } else if (parameters.size() == kParametersMax) {
            why = "has too many names";
        } else if (std::any_of(parameters.begin(), parameters.end(), [&](const auto& known) {
                       return segment.kind != Kind::kLiteral && known.name == segment.text;
                   })) {
            why = "has a name twice";
        }
        if (!why.empty()) return kNoPlace;
        if (segment.kind == Kind::kOne || segment.kind == Kind::kRest) {
            parameters.push_back({std::string(segment.text), number, segment.kind == Kind::kRest});
        }
        if (last) return last_place(router, node, pattern, segment.kind == Kind::kPrefix, why);
        node = segment.kind == Kind::kOne ? child_of_any(router, node)
                                          : child_of(router, node, segment.text);
    }
    if (router.nodes_[node].here == kNoPlace) {
        const std::uint32_t place = new_place(router, pattern);
        router.nodes_[node].here = place;
    }
    return router.nodes_[node].here;
}

bool Router::Builder::add_entry(Router& router, const Entry& entry, std::string& error) {
    constexpr Methods kPossible = kAnyMethod | method_bit(Method::kTrace);
    std::string why;
    auto route = std::make_unique<Route>(route_from(entry.answer, entry.options));
    if (entry.methods == 0 || (entry.methods & ~kPossible) != 0) {
        why = "no route takes these methods";
    } else if (entry.websocket != nullptr && !entry.websocket->on_message) {
        why = "nothing takes its messages";
    } else if (entry.is_websocket_alone) {
        route->refusal = Reason::kUpgradeRequired;
    } else if (!answers(entry.answer)) {
        why = kUnsafeAnswer;
    }
    route->websocket = entry.websocket;
    const std::uint32_t place =
        why.empty() ? place_of(router, entry.pattern, route->parameters, why) : kNoPlace;
    for (std::size_t i = 0; place != kNoPlace && i < kMethods; ++i) {
        if ((entry.methods >> i & 1) == 0) continue;
        const Route*& taken = router.by_method_[place][i];
        if (taken != nullptr) why = "has two routes for one method";
        taken = route.get();
    }
    router.routes_.push_back({std::move(route), place});
    if (!why.empty()) error = "route " + entry.pattern + ": " + why;
    return why.empty();
}

// What routes do not say: HEAD, OPTIONS, Allow, and what the methods get that no route takes.
void Router::Builder::complete(Router& router) const {
    Methods all = method_bit(Method::kOptions);
    const std::size_t get = index_of(Method::kGet);
    const std::size_t head = index_of(Method::kHead);
    const std::size_t options = index_of(Method::kOptions);
    const auto no_content = PreparedAnswer::make(204, {}, {});
    for (std::size_t number = 0; number < router.places_.size(); ++number) {
        Place& place = *router.places_[number];
        ByMethod& routes = router.by_method_[number];
        if (routes[head] == nullptr) routes[head] = routes[get];
        place.options.constant = no_content;
        if (routes[options] == nullptr && automatic_options_) routes[options] = &place.options;
        Methods methods = 0;
        for (std::size_t i = 0; i < kMethods; ++i) {
            if (routes[i] != nullptr) methods |= static_cast<Methods>(1U << i);
        }
        all |= methods;
        place.allow = names_of(methods);
        place.wrong_method.refusal = Reason::kMethodNotAllowed;
        place.wrong_method.allow = place.options.allow = place.allow;
        const Route* const trace = router.trace_.get();
        for (std::size_t i = 0; i < kMethods; ++i) {
            if (routes[i] != nullptr) continue;
            const bool traced = i == index_of(Method::kTrace) && trace != nullptr;
            routes[i] = traced ? trace : &place.wrong_method;
        }
    }
    for (const Owned& one : router.routes_) one.route->allow = router.places_[one.place]->allow;
    router.all_methods_ = names_of(all);
    router.asterisk_.constant = no_content;
    router.asterisk_.allow = router.all_methods_;
}

// Copies of what takes the path now, with more asked of content.
bool Router::Builder::apply(Router& router, const ContentRule& rule, std::string& error) {
    ByMethod found{};
    bool any = false;
    for (std::size_t i = 0; i < kMethods; ++i) {
        found[i] = &router.find(static_cast<Method>(i), rule.path);
        any = any || found[i]->refusal == Reason::kNone;
    }
    if (!any || !is_literal(rule.path)) {
        error = "no route takes " + rule.path;
        return false;
    }
    for (const Route*& one : found) {
        if (one->refusal != Reason::kNone) continue;
        auto route = std::make_unique<Route>(*one);
        route->options.body_max = rule.body_max;
        route->options.wants_length = rule.wants_length;
        route->options.media_type = rule.media_type;
        one = route.get();
        router.routes_.push_back({std::move(route), kNoPlace});
    }
    router.by_method_[literal_place(router, rule.path)] = found;
    return true;
}

// The route itself where no hook is for the pattern.
const Route* Router::Builder::hooked(Router& router, std::string_view pattern,
                                     const Route& route) const {
    std::unique_ptr<RouteHooks> hooks = RouteHooks::of(hooks_, pattern, route);
    if (hooks == nullptr) return &route;
    auto front = std::make_unique<Route>(hooks->in_front());
    const Route* const found = front.get();
    router.hooks_.push_back(std::move(hooks));
    router.routes_.push_back({std::move(front), kNoPlace});
    return found;
}

// In the end, for all that can be found.
void Router::Builder::add_hooks(Router& router) const {
    constexpr std::string_view kAnyPath = "/...";
    router.refusal_handler_ = refusal_handler_;
    for (std::size_t number = 0; number < router.places_.size(); ++number) {
        ByMethod& routes = router.by_method_[number];
        const ByMethod before = routes;
        const std::string_view pattern = router.places_[number]->pattern;
        for (std::size_t i = 0; i < kMethods; ++i) {
            // Some methods share one.
            const auto first = std::find(before.begin(), before.end(), before[i]);
            const auto at = static_cast<std::size_t>(first - before.begin());
            routes[i] = at < i ? routes[at] : hooked(router, pattern, *before[i]);
        }
    }
    router.not_found_ = Route(*hooked(router, kAnyPath, router.not_found_));
    router.asterisk_ = Route(*hooked(router, "*", router.asterisk_));
    if (router.trace_ != nullptr) {
        *router.trace_ = Route(*hooked(router, kAnyPath, *router.trace_));
    }
}

std::optional<RefusalContent> Router::content_of(const Refusal& refusal) const {
    if (refusal_handler_ == nullptr) return std::nullopt;
    try {
        return refusal_handler_(refusal);
    } catch (...) {
        return std::nullopt;
    }
}

std::shared_ptr<const Router> Router::Builder::build(std::string& error) {
    std::shared_ptr<Router> router(new Router());
    for (const Entry& entry : entries_) {
        if (!add_entry(*router, entry, error)) return nullptr;
    }
    for (const std::optional<Entry>* entry : {&not_found_, &trace_}) {
        if (!entry->has_value() || answers(entry->value().answer)) continue;
        error = entry->value().pattern + ": " + kUnsafeAnswer;
        return nullptr;
    }
    router->not_found_.refusal = Reason::kNotFound;
    if (not_found_) router->not_found_ = route_from(not_found_->answer, not_found_->options);
    if (trace_) {
        router->trace_ = std::make_unique<Route>(route_from(trace_->answer, trace_->options));
    }
    complete(*router);
    for (const ContentRule& rule : rules_) {
        if (!apply(*router, rule, error)) return nullptr;
    }
    if (!hook_error_.empty()) {
        error = hook_error_;
        return nullptr;
    }
    add_hooks(*router);
    return router;
}

}  // namespace httpmark
