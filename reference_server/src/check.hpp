// Invariants that stay on in release builds. A failed CHECK is a bug of this program, never of a
// client: what a client does wrong is a value from error.hpp.
#pragma once

#include <cstdio>
#include <cstdlib>

namespace httpmark {

[[noreturn]] inline void check_failed(const char* expression, const char* file, int line) {
    std::fprintf(stderr, "httpmark-server: invariant broken: %s (%s:%d)\n", expression, file, line);
    std::abort();
}

}  // namespace httpmark

#define CHECK(expression)                                              \
    do {                                                               \
        if (!(expression)) [[unlikely]] {                              \
            ::httpmark::check_failed(#expression, __FILE__, __LINE__); \
        }                                                              \
    } while (false)
