#include "app/router.hpp"

#include <algorithm>

namespace httpmark {

namespace {

constexpr std::uint16_t kAny = 0xFFFF;
constexpr std::string_view kAllowAny = "GET, HEAD, POST, PUT, DELETE, PATCH, OPTIONS";

constexpr Route kRoutes[] = {
    {"/body", Handler::kBody, true, false, false, kAny, kAllowAny},
    {"/mirror", Handler::kMirror, true, true, false, kAny, kAllowAny},
    {"/echo", Handler::kEcho, false, true, false, kAny, kAllowAny},
    {"/slow", Handler::kSlow, false, false, false, kAny, kAllowAny},
    {"/early", Handler::kEarly, false, false, true, kAny, kAllowAny},
    {"/204", Handler::kNoContent, false, false, false, kAny, kAllowAny},
    {"/304", Handler::kNotModified, false, false, false, kAny, kAllowAny},
    {"/redirect", Handler::kRedirect, false, false, false, kAny, kAllowAny},
    {"/big", Handler::kBig, false, false, false, kAny, kAllowAny},
    {"/404", Handler::kNotFound, false, false, false, kAny, kAllowAny},
    {"/get-only", Handler::kGetOnly, false, false, false,
     static_cast<std::uint16_t>(method_bit(Method::kGet) | method_bit(Method::kHead)), "GET, HEAD"},
};
constexpr Route kHello = {"", Handler::kHello, false, false, false, kAny, kAllowAny};

}  // namespace

const Route& trace_route() {
    static constexpr Route kTrace = {"", Handler::kTrace, false, true, false, kAny, kAllowAny};
    return kTrace;
}

const Route& find_route(std::string_view path, std::span<const Route> own) {
    for (const Route& route : own) {
        if (route.path == path) return route;
    }
    if (path == "/hello") return kHello;
    for (const Route& route : kRoutes) {
        if (route.path == path) return route;
    }
    return kHello;
}

Target split_target(std::string_view target, TargetForm form) {
    if (form == TargetForm::kAbsolute) {
        const std::size_t authority = target.find("//") + 2;
        const std::size_t end = target.find_first_of("/?", authority);
        if (end == std::string_view::npos) return {"/", {}, false};
        target.remove_prefix(end);
        if (target.front() == '?') return {"/", target.substr(1), true};
    }
    const std::size_t mark = target.find('?');
    if (mark == std::string_view::npos) return {target, {}, false};
    return {target.substr(0, mark), target.substr(mark + 1), true};
}

}  // namespace httpmark
