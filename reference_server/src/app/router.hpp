// From method and path to a route. A router is built once, shared by all workers and then only
// read; a look-up allocates nothing.
//
// A pattern begins with '/' and is compared with the path as it came, byte by byte, without regard
// to what percent pairs mean. A segment of it may be
//   {name}      any one segment that is not empty;
//   {name...}   as the last: all that follows, slashes and nothing at all included;
//   ...         as the last: a prefix, up to the edge of a segment. /a/... fits /a, /a/ and /a/b/c.
// Where several patterns fit, the first segment in which they differ decides: a literal comes
// before {name}, that before the other two. The methods are looked at after that: a path that fits
// is answered with 405 and Allow, where none of its routes takes the method.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "app/hooks.hpp"
#include "app/path_table.hpp"
#include "app/request.hpp"
#include "app/websocket.hpp"
#include "http/error.hpp"
#include "http/parser.hpp"
#include "http/response.hpp"
#include "limits.hpp"

namespace httpmark {

// A set of methods.
using Methods = std::uint16_t;
constexpr Methods method_bit(Method method) {
    return static_cast<Methods>(1U << static_cast<unsigned>(method));
}
constexpr Methods methods_of(std::initializer_list<Method> all) {
    unsigned set = 0;
    for (const Method method : all) set |= method_bit(method);
    return static_cast<Methods>(set);
}
// All that a route may be asked with; TRACE is not among them, because it reflects what may be
// secret (RFC 9110 9.3.8).
inline constexpr Methods kAnyMethod =
    methods_of({Method::kGet, Method::kHead, Method::kPost, Method::kPut, Method::kDelete,
                Method::kPatch, Method::kOptions});

// Writes one answer, or defers it: kNone when done, else why there is none, which is then answered
// with the status of that reason. Any callable with this signature; it is shared by all workers and
// called by several at a time.
class Handler {
  public:
    Handler() = default;
    template <class Function>
    requires std::is_invocable_r_v<Reason, const Function&, const Request&, ResponseWriter&>
    Handler(Function function) {
        // An empty std::function and no function at all are no handler.
        if constexpr (std::is_pointer_v<Function>) {
            if (function == nullptr) return;
        } else if constexpr (requires { function.operator bool(); }) {
            if (!function) return;
        }
        owned_ = std::make_shared<const Function>(std::move(function));
        call_ = [](const void* owned, const Request& request, ResponseWriter& writer) -> Reason {
            return (*static_cast<const Function*>(owned))(request, writer);
        };
    }
    explicit operator bool() const { return call_ != nullptr; }
    Reason operator()(const Request& request, ResponseWriter& writer) const {
        return call_(owned_.get(), request, writer);
    }

  private:
    std::shared_ptr<const void> owned_;
    Reason (*call_)(const void*, const Request&, ResponseWriter&) = nullptr;
};

// What answers: a handler, or an answer that is the same each time.
struct Answer {
    Handler handler;
    std::shared_ptr<const PreparedAnswer> constant;

    template <class Function>
    requires std::is_constructible_v<Handler, Function> Answer(Function function)
        : handler(std::move(function)) {}
    // Fields that would break the framing are told by Builder::build().
    Answer(unsigned status, std::span<const Field> fields, std::string_view content)
        : constant(PreparedAnswer::make(status, fields, content)) {}
    Answer() = default;  // none
    Answer(unsigned status, std::initializer_list<Field> fields, std::string_view content)
        : Answer(status, std::span(fields.begin(), fields.size()), content) {}
};

// What becomes of content with a Content-Encoding (RFC 9110 8.4).
enum class CodedContent : std::uint8_t {
    kRefused,   // 415: the handler reads content as it is meant
    kDecoded,   // gzip and deflate; 415 for any other. As kRefused on a route that streams
    kAsItCame,  // the handler reads the field itself, and may use a ContentDecoder
};

struct RouteOptions {
    bool wants_content = false;  // the handler reads it: it is gathered
    bool wants_head = true;  // false: the handler does not read the head, which is then not kept
                             // where the content comes later
    bool early = false;      // answers without waiting for the content
    bool streams = false;    // takes the content piece by piece: ResponseWriter::read_content()
    // Of a route that wants content, or streams it.
    CodedContent coded_content = CodedContent::kRefused;
    std::uint64_t decoded_max = kDecodedContentMax;  // 413 above it
    // Answers are sent as gzip or deflate, where the client prefers that and it is worth it.
    bool codes_answers = false;
    // What the content must be like, where the route says so.
    std::uint64_t body_max = ~std::uint64_t{0};  // 413 above it
    bool wants_length = false;                   // 411 for content of unknown length
    std::string media_type = {};  // 415 for content of another type, whatever its parameters
};

// What is asked around the answers of routes: of those beneath a path, in this order.
struct Hooks {
    struct Before {
        Handler hook;
        std::string prefix;  // as is_beneath() has it
    };
    struct After {
        std::shared_ptr<const AfterHook> hook;
        std::string prefix;
    };
    std::vector<Before> before;
    std::vector<After> after;
};
struct RouteHooks;

struct PathParameter {
    std::string name;
    std::uint32_t segment;
    bool takes_rest;
};

struct Route {
    Handler handler;
    std::shared_ptr<const PreparedAnswer> constant;
    std::shared_ptr<const WebSocketRoute> websocket;  // for requests that offer it
    RouteOptions options;
    Reason refusal = Reason::kNone;  // why there is neither handler nor constant answer
    std::string_view allow;          // the methods of the path
    std::vector<PathParameter> parameters;
    const RouteHooks* hooks = nullptr;  // the router's; nullptr where no hook is for the path

    bool needs_head() const { return handler && options.wants_head; }
    // Nothing is asked of content but that the limits of the server let it pass.
    bool takes_any_content() const {
        return options.body_max == ~std::uint64_t{0} && !options.wants_length &&
               options.media_type.empty() && !options.streams;
    }
};

class Router {
  public:
    class Builder;
    ~Router();
    Router(const Router&) = delete;
    Router& operator=(const Router&) = delete;

    // Always a route; where none takes the method or the path, one with a refusal.
    [[gnu::always_inline]] const Route& find(Method method, std::string_view path) const {
        const std::uint32_t place = literals_.find(path);
        if (place != PathTable::kNone) [[likely]]
            return route_of(place, method);
        return find_by_segments(method, path);
    }
    // OPTIONS * (RFC 9110 9.3.7): of the server as a whole.
    const Route& find_asterisk() const { return asterisk_; }

    // Whether somebody besides the routes has a say in answers.
    bool has_hooks() const { return !hooks_.empty() || hears_refusals(); }
    bool hears_refusals() const { return refusal_handler_ != nullptr; }
    // What stands in a refusal; nothing where that is left to the server.
    std::optional<RefusalContent> content_of(const Refusal& refusal) const;

  private:
    static constexpr std::size_t kMethods = 16;  // a power of two, to be found by a shift
    static constexpr std::uint32_t kNoPlace = PathTable::kNone;

    // All routes of one pattern, by method.
    using ByMethod = std::array<const Route*, kMethods>;
    // What goes with them.
    struct Place {
        std::string pattern;
        std::string allow;
        Route wrong_method;
        Route options;  // automatic
    };
    // What may follow after some segments of patterns that are no literals.
    struct Node {
        std::uint32_t one = kNoPlace;   // node after {name}
        std::uint32_t here = kNoPlace;  // place of the pattern that ends here
        std::uint32_t last = kNoPlace;  // place of {name...} or of the prefix
        bool last_is_prefix = false;
        bool has_literals = false;
    };

    Router();
    const Route& route_of(std::uint32_t place, Method method) const {
        return *by_method_[place][static_cast<std::size_t>(method)];
    }
    const Route& find_by_segments(Method method, std::string_view path) const;
    std::uint32_t walk(std::uint32_t node, std::string_view rest, bool ended) const;

    PathTable literals_;
    PathTable edges_;  // from a node (the space) by a literal segment to a node
    std::vector<Node> nodes_ = std::vector<Node>(1);
    std::vector<ByMethod> by_method_;
    std::vector<std::unique_ptr<Place>> places_;  // as many
    struct Owned {
        std::unique_ptr<Route> route;
        std::uint32_t place;
    };
    std::vector<Owned> routes_;
    Route not_found_;
    Route asterisk_;
    std::string all_methods_;
    std::unique_ptr<Route> trace_;
    std::vector<std::unique_ptr<RouteHooks>> hooks_;
    RefusalHandler refusal_handler_;
};

// Gathers routes. What is wrong with one is told by build().
class Router::Builder {
  public:
    // Of a path that has GET and no HEAD, HEAD is answered by the route of GET, without content.
    Builder& add(Methods methods, std::string_view pattern, Answer answer,
                 RouteOptions options = {});
    Builder& add(Method method, std::string_view pattern, Answer answer,
                 RouteOptions options = {}) {
        return add(method_bit(method), pattern, std::move(answer), std::move(options));
    }
    // What GET is answered with that does not offer WebSocket is `otherwise`, else 426.
    Builder& add_websocket(std::string_view pattern, WebSocketRoute websocket,
                           std::optional<Answer> otherwise = {}, RouteOptions options = {});
    // What answers where no pattern fits; otherwise 404 with the name of the reason.
    Builder& set_not_found(Answer answer, RouteOptions options = {});
    // What answers TRACE, whatever its target, where no route takes it.
    Builder& set_trace(Answer answer, RouteOptions options = {});
    // OPTIONS is answered with 204 and Allow where no route takes it (the default), else with 405.
    Builder& set_automatic_options(bool automatic);
    // What asks more of the content of one path, whatever pattern fits it.
    Builder& limit_content(std::string_view path, std::uint64_t body_max, bool wants_length,
                           std::string_view media_type);

    // Hooks around all routes, or those of a path and what is beneath it: "/admin" is for /admin
    // and /admin/x, in whatever spelling, and not for /administer. They are asked in the order in
    // which they are added, for what has no route (404, 405) and for automatic answers (OPTIONS),
    // too.
    //
    // Before: when the head of a request has come, and ahead of all that its route asks of its
    // content. A hook that writes an answer, or gives a reason for a refusal, has answered: neither
    // further hooks nor the route are asked. It cannot put its answer off.
    Builder& before(Handler hook, std::string_view prefix = {});
    // After: right before the head of the answer is written, which may get more fields. Once for
    // each request that the hooks before were asked for, unless its connection breaks.
    Builder& after(AfterHook hook, std::string_view prefix = {});
    // Is told of each refusal, and may say what stands in it. Not of an answer that a handler has
    // written, whatever its status.
    Builder& set_error(RefusalHandler handler);

    // nullptr with `error` set: a pattern that is none, two routes for one method of a pattern, an
    // answer that breaks the framing, a hook for what is no path.
    std::shared_ptr<const Router> build(std::string& error);

  private:
    struct Entry {
        Methods methods;
        std::string pattern;
        Answer answer;
        RouteOptions options;
        std::shared_ptr<const WebSocketRoute> websocket = {};
        bool is_websocket_alone = false;  // GET has no other answer
    };
    struct ContentRule {
        std::string path;
        std::uint64_t body_max;
        bool wants_length;
        std::string media_type;
    };

    using Parameters = std::vector<PathParameter>;
    static Answer as_asked(Answer answer, RouteOptions& options);
    static bool add_entry(Router& router, const Entry& entry, std::string& error);
    static std::uint32_t new_place(Router& router, std::string_view pattern);
    static std::uint32_t literal_place(Router& router, std::string_view path);
    static std::uint32_t place_of(Router& router, std::string_view pattern, Parameters& parameters,
                                  std::string& why);
    static std::uint32_t child_of(Router& router, std::uint32_t node, std::string_view literal);
    static std::uint32_t child_of_any(Router& router, std::uint32_t node);
    static std::uint32_t last_place(Router& router, std::uint32_t node, std::string_view pattern,
                                    bool prefix, std::string& why);
    static bool apply(Router& router, const ContentRule& rule, std::string& error);
    void complete(Router& router) const;
    void note_prefix(std::string_view prefix, bool is_there);
    const Route* hooked(Router& router, std::string_view pattern, const Route& route) const;
    void add_hooks(Router& router) const;

    std::vector<Entry> entries_;
    std::vector<ContentRule> rules_;
    std::optional<Entry> not_found_;
    std::optional<Entry> trace_;
    Hooks hooks_;
    RefusalHandler refusal_handler_;
    std::string hook_error_;
    bool automatic_options_ = true;
};

}  // namespace httpmark
