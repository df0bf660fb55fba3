// The running server: workers with their sockets, and the signals that they are told of.
#pragma once

#include "command/options.hpp"

namespace httpmark {

// Until a signal ends it. The exit code; a complaint has been made where it is not 0.
int serve(Options& options);

}  // namespace httpmark
