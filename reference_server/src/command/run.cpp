#include "command/run.hpp"

#include <malloc.h>

#include <cstdio>
#include <cstdlib>
#include <new>
#include <string>

#include "command/complain.hpp"
#include "command/help.hpp"
#include "command/options.hpp"
#include "command/serve.hpp"
#include "scan/scan.hpp"

namespace httpmark {

namespace {

bool choose_kernel(ServerOptions& options) {
    const char* const name = std::getenv("HTTPMARK_SIMD");
    if (name == nullptr || *name == '\0') return true;
    if (find_scan_kernel(name) == nullptr) {
        return complain("HTTPMARK_SIMD=%s is not a kernel that this machine can run", name);
    }
    options.scan_kernel = name;
    return true;
}

int run_with(int argc, const char* const* argv, AddRoutes add_routes) {
    mallopt(M_ARENA_MAX, 1);  // an arena for each thread would take address space for nothing
    Options options;
    if (!parse_options(argc, argv, options) || !choose_kernel(options.server)) return kExitUsage;
    if (options.help) {
        std::fputs(help_text().c_str(), stdout);
        return 0;
    }
    if (options.version) {
        std::printf("%s\n%s\n", version_text().c_str(), engines_text().c_str());
        return 0;
    }
    if (options.print_limits) {
        std::fputs(limits_text(options.server.limits).c_str(), stdout);
        return 0;
    }
    return serve(options, add_routes);
}

}  // namespace

int run(int argc, const char* const* argv, AddRoutes add_routes) {
    try {
        return run_with(argc, argv, add_routes);
    } catch (const std::bad_alloc&) {
        complain("there is not enough memory to start");
        return kExitEnvironment;
    }
}

}  // namespace httpmark
