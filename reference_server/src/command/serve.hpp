// The running command: a server, and the signals that it is told of.
#pragma once

#include "command/options.hpp"
#include "command/run.hpp"

namespace httpmark {

// Until a signal ends it. The exit code; a complaint has been made where it is not 0.
int serve(Options& options, AddRoutes add_routes);

}  // namespace httpmark
