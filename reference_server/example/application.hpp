// The example application: the routes that the capabilities of a server image ask for, written on
// the headers of the server's library.
#pragma once

#include "app/router.hpp"

namespace httpmark::example {

void add_routes(Router::Builder& routes);

}  // namespace httpmark::example
