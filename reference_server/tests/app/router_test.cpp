#include "app/router.hpp"

#include "laws.hpp"

namespace httpmark {
namespace {

TEST(Router, exact_paths_first_then_the_catch_all) {
    LAW(find_route("/body").handler == Handler::kBody);
    LAW(find_route("/mirror").handler == Handler::kMirror);
    LAW(find_route("/get-only").handler == Handler::kGetOnly);
    for (const char* path :
         {"/hello", "/", "/bodyx", "/body/", "/Body", "//body", "/a/b", "/hellox"}) {
        LAW(find_route(path).handler == Handler::kHello, << path);
    }
}

TEST(Router, get_only_names_the_methods_it_has) {
    const Route& route = find_route("/get-only");
    LAW(route.allow == "GET, HEAD");
    for (const Method method :
         {Method::kPost, Method::kPut, Method::kDelete, Method::kPatch, Method::kOptions}) {
        LAW((route.methods & method_bit(method)) == 0);
    }
    LAW((route.methods & method_bit(Method::kGet)) != 0);
    LAW((route.methods & method_bit(Method::kHead)) != 0);
}

TEST(Router, targets_are_split_at_the_first_question_mark) {
    Target target = split_target("/a?b?c", TargetForm::kOrigin);
    LAW(target.path == "/a" && target.query == "b?c" && target.has_query);
    target = split_target("/a", TargetForm::kOrigin);
    LAW(target.path == "/a" && !target.has_query);
    target = split_target("/a?", TargetForm::kOrigin);
    LAW(target.path == "/a" && target.query.empty() && target.has_query);
    target = split_target("http://h", TargetForm::kAbsolute);
    LAW(target.path == "/" && !target.has_query);
    target = split_target("http://h?q=1", TargetForm::kAbsolute);
    LAW(target.path == "/" && target.query == "q=1");
    target = split_target("http://h/p//q?r", TargetForm::kAbsolute);
    LAW(target.path == "/p//q" && target.query == "r");
    target = split_target("//a/b", TargetForm::kOrigin);
    LAW(target.path == "//a/b");
}

}  // namespace
}  // namespace httpmark
