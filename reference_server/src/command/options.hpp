// What the command line asks for.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "net/connection.hpp"
#include "net/tls.hpp"
#include "net/worker.hpp"

namespace httpmark {

// What the content of a path must be like.
struct ContentRule {
    std::string path;
    std::uint64_t body_max = ~std::uint64_t{0};
    bool wants_length = false;
    std::string media_type = {};
};

struct Options {
    std::vector<std::string> addresses;
    std::vector<std::string> unix_paths;
    int port = 8080;
    int tls_port = -1;
    std::string tls_flag;  // the first of those that only a --tls-port gives a meaning
    std::optional<ClientVerify> client_verify;
    bool pin = false;
    bool steer = false;
    bool metrics = false;
    std::string access_log;
    std::string server_name;
    std::vector<ContentRule> content_rules;
    TlsSettings tls;
    unsigned workers = 0;
    Engine engine = Engine::kEpoll;
    bool print_limits = false;
    bool stats = false;
    bool help = false;
    bool version = false;
    ServerSettings settings;
};

// False with the complaint made.
bool parse_options(int argc, const char* const* argv, Options& options);

}  // namespace httpmark
