// The command around an application: words to options, then what they ask for.
#pragma once

#include "command/serve.hpp"

namespace httpmark {

// The exit code.
int run(int argc, const char* const* argv, AddRoutes add_routes);

}  // namespace httpmark
