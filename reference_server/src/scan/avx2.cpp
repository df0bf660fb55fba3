#include <immintrin.h>

#include "../scan.hpp"
#include "tables.hpp"

namespace httpmark {

namespace {

inline __m256i load_both_lanes(const std::uint8_t* bytes) {
    return _mm256_broadcastsi128_si256(_mm_load_si128(reinterpret_cast<const __m128i*>(bytes)));
}

inline std::uint64_t member_mask(__m256i octets, __m256i high_bits, __m256i table) {
    const __m256i hit = _mm256_and_si256(_mm256_shuffle_epi8(table, octets), high_bits);
    const int missing = _mm256_movemask_epi8(_mm256_cmpeq_epi8(hit, _mm256_setzero_si256()));
    return ~static_cast<unsigned>(missing);
}

inline std::uint64_t equal_mask(__m256i octets, char c) {
    return static_cast<unsigned>(
        _mm256_movemask_epi8(_mm256_cmpeq_epi8(octets, _mm256_set1_epi8(c))));
}

inline __m256i high_bits_of(__m256i octets, __m256i high_table) {
    const __m256i high = _mm256_and_si256(_mm256_srli_epi16(octets, 4), _mm256_set1_epi8(15));
    return _mm256_shuffle_epi8(high_table, high);
}

}  // namespace

void classify_avx2(const char* block, BlockMasks* masks) {
    const __m256i low = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(block));
    const __m256i high = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(block + 32));
    const __m256i high_table = load_both_lanes(kHighNibbleBits.bits.data());
    const __m256i low_bits = high_bits_of(low, high_table);
    const __m256i high_bits = high_bits_of(high, high_table);
    const auto member = [&](const NibbleTable& nibbles) {
        const __m256i table = load_both_lanes(nibbles.bits.data());
        return member_mask(low, low_bits, table) | member_mask(high, high_bits, table) << 32;
    };
    const auto equal = [&](char c) { return equal_mask(low, c) | equal_mask(high, c) << 32; };
    masks->token = member(kTokenNibbles);
    masks->target = member(kTargetNibbles);
    masks->hex = member(kHexNibbles);
    masks->forbidden = member(kForbiddenNibbles);
    masks->colon = equal(':');
    masks->cr = equal('\r');
    masks->lf = equal('\n');
    masks->percent = equal('%');
}

}  // namespace httpmark
