// Bits of the mask of a block, and short texts as words. As head.hpp, it is compiled for each
// kernel anew: all of it has internal linkage.
#pragma once

#include <cstdint>
#include <cstring>

#include "http/parser.hpp"

namespace httpmark {

namespace {

constexpr unsigned kBlockSize = 64;
constexpr std::uint64_t kOne = 1;

[[gnu::always_inline]] inline std::uint64_t bits_from(unsigned n) {  // n < 64
    return ~std::uint64_t{0} << n;
}
[[gnu::always_inline]] inline std::uint64_t bits_below(unsigned n) {  // 0 < n <= 64
    return ~std::uint64_t{0} >> (kBlockSize - n);
}
[[gnu::always_inline]] inline std::uint64_t first_of(std::uint64_t mask) {  // mask != 0
#if defined(__BMI__)
    return __builtin_ia32_tzcnt_u64(mask);
#else
    return static_cast<std::uint64_t>(__builtin_ctzll(mask));
#endif
}
[[gnu::always_inline]] inline std::uint64_t first_or_64(std::uint64_t mask) {
#if defined(__BMI__)
    return __builtin_ia32_tzcnt_u64(mask);
#else
    return mask == 0 ? kBlockSize : first_of(mask);
#endif
}
template <class Word>
[[gnu::always_inline]] inline Word load_word(const char* p) {
    Word word;
    std::memcpy(&word, p, sizeof word);
    return word;
}
// The same word from text, whatever the order of bytes is here.
template <class Word>
constexpr Word word_of(const char (&text)[sizeof(Word) + 1]) {
    Word word = 0;
    for (unsigned i = 0; i < sizeof word; ++i) {
        const unsigned shift = 8 * (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
                                        ? i
                                        : static_cast<unsigned>(sizeof word) - 1 - i);
        word = static_cast<Word>(word | static_cast<Word>(static_cast<unsigned char>(text[i]))
                                            << shift);
    }
    return word;
}

// Up to seven bytes of eight, and NUL in the place of the others.
[[gnu::always_inline]] inline std::uint64_t first_octets(const char* p, unsigned size) {
    const auto word = load_word<std::uint64_t>(p);
    if (size == 0) return 0;
    const std::uint64_t kept = bits_below(8 * size);
    return word & (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? kept : __builtin_bswap64(kept));
}

// The methods with names of up to seven bytes, but for GET; each word ends in NUL.
[[gnu::always_inline]] inline Method method_of_word(std::uint64_t word) {
    switch (word) {
        case word_of<std::uint64_t>("HEAD\0\0\0\0"):
            return Method::kHead;
        case word_of<std::uint64_t>("POST\0\0\0\0"):
            return Method::kPost;
        case word_of<std::uint64_t>("PUT\0\0\0\0\0"):
            return Method::kPut;
        case word_of<std::uint64_t>("DELETE\0\0"):
            return Method::kDelete;
        case word_of<std::uint64_t>("PATCH\0\0\0"):
            return Method::kPatch;
        case word_of<std::uint64_t>("OPTIONS\0"):
            return Method::kOptions;
        case word_of<std::uint64_t>("TRACE\0\0\0"):
            return Method::kTrace;
        case word_of<std::uint64_t>("CONNECT\0"):
            return Method::kConnect;
        default:
            return Method::kUnknown;
    }
}

}  // namespace

}  // namespace httpmark
