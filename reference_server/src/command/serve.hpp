// The running server: workers with their sockets, and the signals that they are told of.
#pragma once

#include "app/router.hpp"
#include "command/options.hpp"

namespace httpmark {

// What an application consists of. Called once, before the first worker starts.
using AddRoutes = void (*)(Router::Builder&);

// Until a signal ends it. The exit code; a complaint has been made where it is not 0.
int serve(Options& options, AddRoutes add_routes);

}  // namespace httpmark
