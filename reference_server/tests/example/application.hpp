// The routes of the example server, which stands in one file with its main().
#pragma once

#include "app/router.hpp"

namespace httpmark::example {

void add_routes(Router::Builder& routes);

}  // namespace httpmark::example
