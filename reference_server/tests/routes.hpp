// Routers for tests.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "app/router.hpp"
#include "check.hpp"
#include "example/application.hpp"
#include "net/connection.hpp"

namespace httpmark {

inline std::shared_ptr<const Router> built(Router::Builder& routes) {
    std::string error;
    std::shared_ptr<const Router> router = routes.build(error);
    if (router == nullptr) check_failed(error.c_str(), __FILE__, __LINE__);
    return router;
}

inline const Router& example_router() {
    static const std::shared_ptr<const Router> router = [] {
        Router::Builder routes;
        example::add_routes(routes);
        return built(routes);
    }();
    return *router;
}

// Settings that name no router serve the example.
inline ServerSettings with_routes(ServerSettings settings) {
    if (settings.router == nullptr) settings.router = &example_router();
    return settings;
}

}  // namespace httpmark
