// Which requests a hook is for, and what of a router pays for it.
#include "app/hooks.hpp"

#include <optional>
#include <string>
#include <vector>

#include "app/route_hooks.hpp"
#include "http/uri.hpp"
#include "laws.hpp"
#include "routes.hpp"

namespace httpmark {
namespace {

Reason pass(const Request&, ResponseWriter&) {
    return Reason::kNone;
}
Reason answer_ok(const Request&, ResponseWriter& writer) {
    return writer.answer(200, {}, "ok");
}

// All texts of up to `size` of these pieces behind a slash.
std::vector<std::string> paths_of(const std::vector<std::string>& pieces, std::size_t size) {
    std::vector<std::string> all = {"/"};
    for (std::size_t begin = 0, i = 0; i < size; ++i) {
        const std::size_t end = all.size();
        for (; begin < end; ++begin) {
            for (const std::string& piece : pieces) all.push_back(all[begin] + piece);
        }
    }
    return all;
}

std::string meaning_of(const std::string& path) {
    std::string text = path;
    text.resize(percent_decode(path, text.data()).value_or(std::string_view()).size());
    return text;
}

TEST(Hooks, a_prefix_ends_at_an_edge_in_whatever_spelling) {
    for (const std::string& path : paths_of({"a", "b", "/", "%61", "%2F", "%2f"}, 5)) {
        for (const std::string prefix : {"", "/a", "/a/b", "/ab", "/a/a"}) {
            const std::string meant = meaning_of(path);
            const bool wanted =
                prefix.empty() || meant == prefix || meant.starts_with(prefix + "/");
            LAW(is_beneath(path, prefix) == wanted, << path << " " << prefix);
        }
    }
    LAW(!is_beneath("*", "/a") && is_beneath("*", "") && !is_beneath("", "/a"));
}

// A route is left alone only where none of its paths is beneath the prefix.
TEST(Hooks, no_path_of_a_pattern_gets_past_its_hooks) {
    const std::vector<std::string> paths = paths_of({"a", "b", "/", "%61", "%2F"}, 5);
    const std::vector<std::string> patterns = {
        "/",    "/a",       "/a/b",      "/%61",   "/%61/b", "/a%2Fb",  "/b",
        "/{x}", "/{x}/b",   "/a/{x}",    "/...",   "/a/...", "/b/...",  "/{x...}",
        "/ab",  "/{x}/...", "/b/{x...}", "/a/b/a", "/a//b",  "/{x}//a", "/a/"};
    std::size_t left_alone = 0;
    for (const std::string& pattern : patterns) {
        Router::Builder routes;
        routes.add(kAnyMethod, pattern, answer_ok);
        const auto router = built(routes);
        for (const std::string prefix : {"", "/a", "/a/b", "/ab", "/b/a"}) {
            const bool may = may_be_beneath(pattern, prefix);
            left_alone += may ? 0 : 1;
            for (const std::string& path : paths) {
                if (may || !is_beneath(path, prefix)) continue;
                const Route& found = router->find(Method::kGet, path);
                LAW(found.refusal == Reason::kNotFound, << pattern << " " << prefix << " " << path);
            }
        }
    }
    LAW(left_alone > patterns.size(), << left_alone);
}

TEST(Hooks, a_route_that_no_hook_is_for_is_as_it_would_be_without_any) {
    const auto add_routes = [](Router::Builder& routes) {
        routes.add(Method::kGet, "/constant", Answer(200, {}, "constant"));
        routes.add(Method::kGet, "/handler/{name}", answer_ok, {.wants_head = false});
        routes.add(Method::kGet, "/admin/constant", Answer(200, {}, "constant"));
    };
    Router::Builder routes;
    add_routes(routes);
    routes.before(pass, "/admin").after([](const Request&, AnswerHead&) {}, "/admin/");
    const auto router = built(routes);
    for (const Method method : {Method::kGet, Method::kHead, Method::kPost, Method::kOptions}) {
        for (const char* path : {"/constant", "/handler/x"}) {
            const Route& route = router->find(method, path);
            LAW(route.hooks == nullptr && !(route.handler && route.constant != nullptr));
            LAW((method == Method::kOptions || path[1] == 'c') || !route.options.wants_head ||
                route.refusal != Reason::kNone);
        }
        LAW(router->find(method, "/admin/constant").hooks != nullptr);
        LAW(router->find(method, "/admin/constant").constant == nullptr);
    }
    LAW(router->find(Method::kGet, "/constant").constant != nullptr);
    LAW(router->find(Method::kGet, "/nowhere").hooks != nullptr);  // it may be beneath it
    LAW(router->find_asterisk().hooks == nullptr);
    LAW(router->has_hooks());
    Router::Builder without;
    add_routes(without);
    LAW(!built(without)->has_hooks());
}

TEST(Hooks, what_cannot_be_one_is_told) {
    const auto error_of = [](Router::Builder& routes) {
        std::string error;
        LAW(routes.build(error) == nullptr);
        return error;
    };
    for (const char* prefix : {"admin", "/a b", "/%zz", "/a?b", "*"}) {
        Router::Builder routes;
        routes.before(pass, prefix);
        LAW(error_of(routes).find(prefix) != std::string::npos, << prefix);
        Router::Builder after;
        after.after([](const Request&, AnswerHead&) {}, prefix);
        LAW(error_of(after).find(prefix) != std::string::npos, << prefix);
    }
    Router::Builder routes;
    routes.before(Handler());
    LAW(error_of(routes).find("no function") != std::string::npos);
    Router::Builder after;
    after.after(AfterHook());
    LAW(error_of(after).find("no function") != std::string::npos);
    Router::Builder good;
    good.before(pass, "/").before(pass, "/a%20b/").set_error(nullptr);
    LAW(built(good)->has_hooks());
}

TEST(Hooks, what_a_refusal_says_is_the_servers_where_the_handler_fails) {
    const Refusal refusal{Reason::kNotFound,  "not-found", "RFC",  404,
                          Refusal::kNoOffset, "-",         nullptr};
    LAW(!built(*std::make_unique<Router::Builder>())->content_of(refusal));
    Router::Builder throwing;
    throwing.set_error([](const Refusal&) -> std::optional<RefusalContent> { throw 1; });
    LAW(!built(throwing)->content_of(refusal));
    Router::Builder some;
    some.set_error([](const Refusal& told) -> std::optional<RefusalContent> {
        return RefusalContent{std::string(told.name)};
    });
    LAW(built(some)->content_of(refusal)->content == "not-found");
    LAW(built(some)->content_of(refusal)->content_type == "text/plain");
}

}  // namespace
}  // namespace httpmark
