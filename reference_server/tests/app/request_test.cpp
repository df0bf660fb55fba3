#include "app/request.hpp"

#include <string>

#include "app/router.hpp"
#include "laws.hpp"

namespace httpmark {
namespace {

TEST(Request, targets_are_split_at_the_first_question_mark) {
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

// At every length, with one mark or two at every place: the quick way agrees with the plain one.
TEST(Request, a_target_in_a_head_is_split_as_any_other) {
    for (std::size_t size = 1; size < 40; ++size) {
        for (std::size_t first = 0; first <= size; ++first) {
            for (std::size_t second = first; second <= size; ++second) {
                std::string target(size, 'a');
                if (first < size) target[first] = '?';
                if (second < size) target[second] = '?';
                // Marks and their neighbours behind the target are none of its own.
                const std::string head = "GET " + target + " HTTP/1.1?\r\n>@";
                const Span span{4, static_cast<std::uint32_t>(size)};
                const Target quick = origin_target(path_in(head.data(), span), span.size);
                const Target plain = split_target(target, TargetForm::kOrigin);
                LAW(quick.path == plain.path && quick.query == plain.query &&
                        quick.has_query == plain.has_query,
                    << target);
            }
        }
    }
}

TEST(Request, values_are_what_stands_in_the_path) {
    Route route;
    route.parameters = {{"a", 0, false}, {"b", 2, false}, {"rest", 3, true}};
    const RequestHead head;
    const auto value = [&](std::string_view path, std::string_view name) {
        return Request{head, route, nullptr, 0, 1, {path, {}, false}, {}, {}}.value(name);
    };
    LAW(value("/x/y/z/1/2", "a") == "x" && value("/x/y/z/1/2", "b") == "z");
    LAW(value("/x/y/z/1/2", "rest") == "1/2" && value("/x/y/z/", "rest").empty());
    LAW(value("/%2f/y/z/", "a") == "%2f" && value("/x/y/z/1", "nobody").empty());
}

TEST(Request, a_field_is_found_by_its_name_in_any_case) {
    const Route route;
    RequestHead head;
    const std::string_view section = "X-One: 1\r\nx-two: 2\r\nX-ONE: 3\r\n";
    const Request request{
        head, route, section.data(), static_cast<std::uint32_t>(section.size()), 1, {}, {}, {}};
    for (const char* name : {"x-one", "X-One", "X-ONE"}) LAW(request.field(name) == "1", << name);
    for (const char* name : {"x-two", "X-Two"}) LAW(request.field(name) == "2", << name);
    for (const char* name : {"", "x-on", "x-ones", "x-One "}) LAW(!request.field(name), << name);
}

}  // namespace
}  // namespace httpmark
