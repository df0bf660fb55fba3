#include "app/router.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "laws.hpp"
#include "routes.hpp"

namespace httpmark {
namespace {

constexpr Methods kGetOnly = method_bit(Method::kGet);

// A handler that is told from others by what it refuses with.
Handler marked(int mark) {
    return [mark](const Request&, ResponseWriter&) { return static_cast<Reason>(mark); };
}
constexpr int kNobody = -1;
int mark_of(const Route& route) {
    static const RequestHead head;
    struct Nowhere final : Sink {
        void append(const LaterContent&) override {}
        char* prepare_more(std::size_t) override { return nullptr; }
    } sink;
    if (!route.handler) return kNobody;
    const DateLine date;
    const ResponseOptions options;
    ResponseWriter writer(sink, date, options);
    return static_cast<int>(route.handler({head, route, nullptr, 0, 1, {}, {}, {}}, writer));
}
std::shared_ptr<const Router> with(const std::vector<std::string>& patterns) {
    Router::Builder routes;
    for (std::size_t i = 0; i < patterns.size(); ++i) {
        routes.add(kGetOnly, patterns[i], marked(static_cast<int>(i)));
    }
    return built(routes);
}

TEST(Router, literals_come_before_names_and_those_before_rests) {
    const auto router =
        with({"/a/b", "/a/{x}", "/a/{rest...}", "/a/{x}/c", "/{x}/b", "/p/...", "/p/q/{x}", "/"});
    const std::map<std::string, int> wanted = {
        {"/a/b", 0},   {"/a/bb", 1},     {"/a/b/", 2},    {"/a/", 2},       {"/a/b/c", 3},
        {"/a/b/d", 2}, {"/c/b", 4},      {"/a", kNobody}, {"/p", 5},        {"/p/", 5},
        {"/p/x/y", 5}, {"/pp", kNobody}, {"/p/q/r", 6},   {"/p/q/", 5},     {"/p/q", 5},
        {"/", 7},      {"//", kNobody},  {"", kNobody},   {"a/b", kNobody}, {"//b", kNobody},
        {"/A/b", 4},   {"/p/q/r/s", 5},  {"/p/b", 5},
    };
    for (const auto& [path, mark] : wanted) {
        LAW(mark_of(router->find(Method::kGet, path)) == mark, << path);
    }
    LAW(router->find(Method::kGet, "/a").refusal == Reason::kNotFound);
}

// A pattern against a path, by recursion, as the header says it.
using Segments = std::vector<std::string>;
Segments segments_of(std::string text) {
    Segments all;
    text.erase(0, 1);
    for (std::size_t at = 0;;) {
        const std::size_t slash = text.find('/', at);
        all.push_back(text.substr(at, slash - at));
        if (slash == std::string::npos) return all;
        at = slash + 1;
    }
}
bool fits(const Segments& pattern, const Segments& path) {
    for (std::size_t i = 0; i < pattern.size(); ++i) {
        if (pattern[i] == "...") return i <= path.size();
        if (pattern[i] == "{r...}") return i < path.size();
        if (i >= path.size()) return false;
        if (pattern[i].starts_with('{') ? path[i].empty() : pattern[i] != path[i]) return false;
    }
    return pattern.size() == path.size();
}
int rank(const std::string& segment) {
    return segment == "..." || segment == "{r...}" ? 2 : segment.starts_with('{') ? 1 : 0;
}
bool comes_before(const Segments& a, const Segments& b) {
    for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
        if (rank(a[i]) != rank(b[i])) return rank(a[i]) < rank(b[i]);
    }
    return a.size() < b.size();  // the longer one is a prefix that begins at the end of the path
}

TEST(Router, agrees_with_a_naive_one) {
    Random random(11);
    const char* const words[] = {"a", "b", "{x}", "c", ""};
    for (unsigned round = 0; round < 400; ++round) {
        std::map<std::string, int> patterns;
        std::vector<std::string> order;
        Router::Builder routes;
        const unsigned count = 1 + random() % 12;
        for (unsigned i = 0; i < count; ++i) {
            std::string pattern;
            const unsigned size = 1 + random() % 3;
            for (unsigned k = 0; k < size; ++k) {
                std::string word = words[random() % 5];
                if (word == "{x}") word = "{x" + std::to_string(k) + "}";
                pattern += "/" + word;
            }
            if (random() % 3 == 0) pattern += round % 2 == 0 ? "/..." : "/{r...}";
            if (!patterns.emplace(pattern, static_cast<int>(order.size())).second) continue;
            routes.add(kGetOnly, pattern, marked(static_cast<int>(order.size())));
            order.push_back(pattern);
        }
        const auto router = built(routes);
        for (unsigned i = 0; i < 60; ++i) {
            std::string path;
            const unsigned size = 1 + random() % 4;
            for (unsigned k = 0; k < size; ++k) {
                path += std::string("/") + (random() % 6 == 0 ? "" : random() % 2 ? "a" : "b");
            }
            int best = kNobody;
            for (std::size_t k = 0; k < order.size(); ++k) {
                if (!fits(segments_of(order[k]), segments_of(path))) continue;
                const auto known = static_cast<std::size_t>(std::max(best, 0));
                if (best == kNobody ||
                    comes_before(segments_of(order[k]), segments_of(order[known]))) {
                    best = static_cast<int>(k);
                }
            }
            LAW(mark_of(router->find(Method::kGet, path)) == best, << path << " " << best);
        }
    }
}

TEST(Router, methods_are_looked_at_after_the_path) {
    Router::Builder routes;
    routes.add(kGetOnly, "/a", marked(1));
    routes.add(method_bit(Method::kPost), "/a", marked(2));
    routes.add(kAnyMethod, "/{rest...}", marked(3));
    const auto router = built(routes);
    LAW(mark_of(router->find(Method::kGet, "/a")) == 1);
    LAW(mark_of(router->find(Method::kHead, "/a")) == 1);
    LAW(mark_of(router->find(Method::kPost, "/a")) == 2);
    LAW(router->find(Method::kPost, "/a").allow == "GET, HEAD, POST, OPTIONS");
    const Route& put = router->find(Method::kPut, "/a");
    LAW(put.refusal == Reason::kMethodNotAllowed && put.allow == "GET, HEAD, POST, OPTIONS");
    const Route& options = router->find(Method::kOptions, "/a");
    LAW(options.constant != nullptr && options.constant->status() == 204 &&
        options.allow == "GET, HEAD, POST, OPTIONS");
    LAW(mark_of(router->find(Method::kPut, "/b")) == 3);
    LAW(router->find(Method::kTrace, "/b").refusal == Reason::kMethodNotAllowed);
    LAW(router->find_asterisk().allow == "GET, HEAD, POST, PUT, DELETE, PATCH, OPTIONS");
}

TEST(Router, what_no_route_takes_can_be_answered_by_one_of_its_own) {
    Router::Builder routes;
    routes.add(kGetOnly, "/a", marked(1));
    routes.set_not_found(marked(2)).set_trace(marked(3)).set_automatic_options(false);
    const auto router = built(routes);
    LAW(mark_of(router->find(Method::kGet, "/b")) == 2);
    LAW(mark_of(router->find(Method::kTrace, "/a")) == 3);
    LAW(mark_of(router->find(Method::kTrace, "/b")) == 3);
    const Route& options = router->find(Method::kOptions, "/a");
    LAW(options.refusal == Reason::kMethodNotAllowed && options.allow == "GET, HEAD");
}

std::optional<std::string> error_of(const std::vector<std::string>& patterns) {
    Router::Builder routes;
    for (const std::string& pattern : patterns) routes.add(kGetOnly, pattern, marked(1));
    std::string error;
    return routes.build(error) == nullptr ? std::optional(error) : std::nullopt;
}

TEST(Router, patterns_that_are_none_or_contradict_each_other_are_told) {
    for (const char* good : {"/", "/a", "/%41", "/a//b", "/{x}", "/{x}/{y}", "/...", "/a/...",
                             "/{x...}", "/a.b/~c", "/{x}/"}) {
        LAW(!error_of({good}), << good);
        LAW(error_of({good, good}), << good);
    }
    for (const char* bad :
         {"", "a", "/a b", "/a?b", "/%4", "/%zz", "/{x", "/x}", "/{}", "/{...}", "/a{x}", "/{x}b",
          "/{x}/{x}", "/{x...}/a", "/.../a", "/{a b}", "/\x01", "/a#b"}) {
        const auto error = error_of({bad});
        LAW(error && error->find(bad) != std::string::npos, << bad);
    }
    LAW(error_of({"/a/...", "/a/{x...}"}) && error_of({"/a/{x}", "/a/{y}"}));
    LAW(!error_of({"/a/...", "/b/{x...}"}) && !error_of({"/a/{x}", "/a/b"}));
    std::string many;
    for (unsigned i = 0; i < 17; ++i) many += "/{x" + std::to_string(i) + "}";
    LAW(error_of({many}) && !error_of({many.substr(0, many.rfind('/'))}));
}

TEST(Router, answers_that_nobody_can_give_are_told) {
    std::string error;
    const std::function<Reason(const Request&, ResponseWriter&)> nobody;
    Reason (*const nothing)(const Request&, ResponseWriter&) = nullptr;
    for (const Answer& answer :
         {Answer(nobody), Answer(nothing), Answer(), Answer(100, {}, ""), Answer(1000, {}, "")}) {
        error.clear();
        LAW(Router::Builder().add(kGetOnly, "/a", answer).build(error) == nullptr &&
            error.find("/a") != error.npos);
        LAW(Router::Builder().set_not_found(answer).build(error) == nullptr);
    }
}

TEST(Router, answers_that_would_break_the_framing_are_told) {
    std::string error;
    const Answer unsafe(200, {{"Connection", "close"}}, "");
    LAW(Router::Builder().add(kGetOnly, "/a", unsafe).build(error) == nullptr);
    LAW(error.find("/a") != std::string::npos);
    LAW(Router::Builder().set_not_found(unsafe).build(error) == nullptr);
    LAW(Router::Builder().set_trace(unsafe).build(error) == nullptr);
    LAW(Router::Builder().add(0, "/a", marked(1)).build(error) == nullptr);
    LAW(Router::Builder().add(method_bit(Method::kConnect), "/a", marked(1)).build(error) ==
        nullptr);
}

TEST(Router, more_can_be_asked_of_the_content_of_a_path) {
    Router::Builder routes;
    routes.add(kAnyMethod, "/{x}", marked(1)).add(kGetOnly, "/a", marked(2));
    routes.limit_content("/a", 5, true, "A/B").limit_content("/q", 6, false, "");
    const auto router = built(routes);
    const Route& known = router->find(Method::kGet, "/a");
    LAW(mark_of(known) == 2 && known.options.body_max == 5 && known.options.wants_length &&
        known.options.media_type == "a/b" && known.allow == "GET, HEAD, OPTIONS");
    LAW(router->find(Method::kPost, "/a").refusal == Reason::kMethodNotAllowed);
    const Route& other = router->find(Method::kPost, "/q");
    LAW(mark_of(other) == 1 && other.options.body_max == 6 && other.parameters.size() == 1);
    LAW(router->find(Method::kPost, "/z").takes_any_content() && !other.takes_any_content());
    std::string error;
    LAW(Router::Builder().limit_content("/a", 5, false, "").build(error) == nullptr);
    // A type is the same in any case (RFC 9110 8.3.1).
    const auto typed =
        built(Router::Builder().add(kGetOnly, "/t", marked(1), {.media_type = "A/B"}));
    LAW(typed->find(Method::kGet, "/t").options.media_type == "a/b");
}

}  // namespace
}  // namespace httpmark
