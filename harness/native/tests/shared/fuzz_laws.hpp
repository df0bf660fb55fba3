// What the fuzz targets share: laws that end the program, and pieces of random sizes.
#ifndef HTTPMARK_NATIVE_TESTS_SHARED_FUZZ_LAWS_HPP_
#define HTTPMARK_NATIVE_TESTS_SHARED_FUZZ_LAWS_HPP_

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

// Also in a release: a fuzzer keeps the input that ends the program.
#define REQUIRE(condition)                                                                      \
    do {                                                                                        \
        if (!(condition)) {                                                                     \
            std::fprintf(stderr, "%s:%d: does not hold: %s\n", __FILE__, __LINE__, #condition); \
            std::abort();                                                                       \
        }                                                                                       \
    } while (false)

namespace httpmark {

// The sizes of pieces by a seed: mostly a few bytes, as that is where lines are cut.
inline std::vector<std::size_t> drawn_sizes(std::uint8_t seed) {
    std::uint64_t state = (seed + 1) * 0x9E3779B97F4A7C15;
    std::vector<std::size_t> sizes;
    for (int i = 0; i < 16; ++i) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        sizes.push_back(1 + (state >> 32) % (i % 4 == 0 ? 200 : 8));
    }
    return sizes;
}

}  // namespace httpmark

#endif  // HTTPMARK_NATIVE_TESTS_SHARED_FUZZ_LAWS_HPP_
