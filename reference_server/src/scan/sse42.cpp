#include <nmmintrin.h>

#include "../scan.hpp"
#include "tables.hpp"

namespace httpmark {

namespace {

inline __m128i load(const std::uint8_t* bytes) {
    return _mm_load_si128(reinterpret_cast<const __m128i*>(bytes));
}

inline std::uint64_t member_mask(__m128i octets, __m128i high_bits, __m128i table) {
    const __m128i hit = _mm_and_si128(_mm_shuffle_epi8(table, octets), high_bits);
    const int missing = _mm_movemask_epi8(_mm_cmpeq_epi8(hit, _mm_setzero_si128()));
    return ~static_cast<unsigned>(missing) & 0xFFFFU;
}

inline std::uint64_t equal_mask(__m128i octets, char c) {
    return static_cast<unsigned>(_mm_movemask_epi8(_mm_cmpeq_epi8(octets, _mm_set1_epi8(c))));
}

}  // namespace

void classify_sse42(const char* block, BlockMasks* masks) {
    const __m128i token = load(kTokenNibbles.bits.data());
    const __m128i target = load(kTargetNibbles.bits.data());
    const __m128i hex = load(kHexNibbles.bits.data());
    const __m128i forbidden = load(kForbiddenNibbles.bits.data());
    const __m128i high_table = load(kHighNibbleBits.bits.data());
    BlockMasks out{};
    for (unsigned i = 0; i < 64; i += 16) {
        const __m128i octets = _mm_loadu_si128(reinterpret_cast<const __m128i*>(block + i));
        const __m128i high = _mm_and_si128(_mm_srli_epi16(octets, 4), _mm_set1_epi8(15));
        const __m128i high_bits = _mm_shuffle_epi8(high_table, high);
        out.token |= member_mask(octets, high_bits, token) << i;
        out.target |= member_mask(octets, high_bits, target) << i;
        out.hex |= member_mask(octets, high_bits, hex) << i;
        out.forbidden |= member_mask(octets, high_bits, forbidden) << i;
        out.colon |= equal_mask(octets, ':') << i;
        out.cr |= equal_mask(octets, '\r') << i;
        out.lf |= equal_mask(octets, '\n') << i;
        out.percent |= equal_mask(octets, '%') << i;
    }
    *masks = out;
}

}  // namespace httpmark
