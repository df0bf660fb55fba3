// The command around an application: words to options, then what they ask for.
#pragma once

#include "app/router.hpp"

namespace httpmark {

// What an application consists of. Called once, before the first worker starts.
using AddRoutes = void (*)(Router::Builder&);

// Until a signal ends it. The exit code; what is wrong is said on standard error.
int run(int argc, const char* const* argv, AddRoutes add_routes);

}  // namespace httpmark
