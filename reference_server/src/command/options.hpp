// What the command line asks for.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "server/privileges.hpp"
#include "server/server.hpp"

namespace httpmark {

// What the content of a path must be like.
struct ContentRule {
    std::string path;
    std::uint64_t body_max = ~std::uint64_t{0};
    bool wants_length = false;
    std::string media_type = {};
};

struct Options {
    ServerOptions server;
    std::string tls_flag;  // the first of those that only a --tls-port gives a meaning
    std::optional<ClientVerify> client_verify;
    bool client_depth = false;
    std::string static_directory;  // empty: no files are served
    std::vector<ContentRule> content_rules;
    std::optional<User> user;
    bool sandbox = false;
    bool metrics = false;
    bool print_limits = false;
    bool stats = false;
    bool help = false;
    bool version = false;
};

// False with the complaint made.
bool parse_options(int argc, const char* const* argv, Options& options);

}  // namespace httpmark
