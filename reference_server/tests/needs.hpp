// What a test may do without: nothing that HTTPMARK_REQUIRE lists.
#pragma once

#include <cstdlib>
#include <string>
#include <string_view>

#include "laws.hpp"

namespace httpmark {

inline bool is_required(std::string_view what) {
    const char* const list = std::getenv("HTTPMARK_REQUIRE");
    const std::string all = "," + std::string(list == nullptr ? "" : list) + ",";
    return all.find("," + std::string(what) + ",") != std::string::npos;
}

// Whether the server, the engine named, has said that this machine or this build has no io_uring:
// then there is nothing to test. Anything else that it says is no reason, and epoll is everywhere.
inline bool lacks_uring(std::string_view engine, std::string_view said) {
    if (engine == "epoll" || (said.find("io_uring cannot be had here") == said.npos &&
                              said.find("this build has no io_uring") == said.npos)) {
        return false;
    }
    LAW(!is_required("uring"), << "HTTPMARK_REQUIRE lists uring: " << said);
    return true;
}

}  // namespace httpmark
