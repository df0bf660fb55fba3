// The command line of httpmark-load.
#ifndef HTTPMARK_NATIVE_LOAD_OPTIONS_HPP_
#define HTTPMARK_NATIVE_LOAD_OPTIONS_HPP_

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "load/plan.hpp"
#include "shared/tls.hpp"

namespace httpmark {

struct LoadOptions {
    LoadPlan plan;  // without `tls`
    std::string url;
    std::vector<int> server_pids;
    std::optional<TlsContext> tls;
    std::size_t procs = 1;
    int start_fd = -1;  // who says when to begin; -1: nobody
    bool is_json = false;
};

// Ends the program where a word is wrong, or where only help was wanted.
LoadOptions parse_load_options(int argc, char** argv);

}  // namespace httpmark

#endif  // HTTPMARK_NATIVE_LOAD_OPTIONS_HPP_
