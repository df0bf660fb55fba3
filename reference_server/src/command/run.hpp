// The command around an application: words to options, then what they ask for.
#pragma once

#include "app/router.hpp"
#include "server/server.hpp"

namespace httpmark {

// What an application consists of. Called once, before the first worker starts.
using AddRoutes = void (*)(Router::Builder&);

// Until a signal ends it. The exit code; what is wrong is said on standard error.
int run(int argc, const char* const* argv, AddRoutes add_routes);

// The same without flags: says on standard output where it listens, and stops at SIGTERM or SIGINT
// as soon as all answers are out. A second one stops it at once; SIGHUP reads certificates and
// opens the access log again; SIGUSR1 prints counters.
int run(Router::Builder& routes, const ServerOptions& options, bool prints_counters = false);

}  // namespace httpmark
