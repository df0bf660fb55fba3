#include <immintrin.h>

#include "../scan.hpp"
#include "tables.hpp"

namespace httpmark {

void classify_avx512(const char* block, BlockMasks* masks) {
    const __m512i octets = _mm512_loadu_si512(block);
    const __m512i table_low = _mm512_load_si512(kAsciiClasses.bits.data());
    const __m512i table_high = _mm512_load_si512(kAsciiClasses.bits.data() + 64);
    // obs-text has no class: the permutation looks at seven bits only, so it is masked out.
    const __mmask64 ascii = ~_mm512_movepi8_mask(octets);
    const __m512i classes =
        _mm512_maskz_permutex2var_epi8(ascii, table_low, octets, table_high);
    masks->token = _mm512_test_epi8_mask(classes, _mm512_set1_epi8(kClassToken));
    masks->target = _mm512_test_epi8_mask(classes, _mm512_set1_epi8(kClassTarget));
    masks->hex = _mm512_test_epi8_mask(classes, _mm512_set1_epi8(kClassHex));
    masks->forbidden = _mm512_test_epi8_mask(classes, _mm512_set1_epi8(kClassForbidden));
    masks->colon = _mm512_cmpeq_epi8_mask(octets, _mm512_set1_epi8(':'));
    masks->cr = _mm512_cmpeq_epi8_mask(octets, _mm512_set1_epi8('\r'));
    masks->lf = _mm512_cmpeq_epi8_mask(octets, _mm512_set1_epi8('\n'));
    masks->percent = _mm512_cmpeq_epi8_mask(octets, _mm512_set1_epi8('%'));
}

}  // namespace httpmark
