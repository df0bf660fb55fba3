#include <immintrin.h>

#include "../scan.hpp"
#include "tables.hpp"

namespace httpmark {

namespace {

// Kept in memory on purpose: a broadcast from a general register costs more than a load.
template <int kOctet>
inline constexpr WideOctets kAll = make_wide(kOctet);

template <int kOctet>
inline __m512i all() {
    return _mm512_load_si512(kAll<kOctet>.octets.data());
}

struct Block {
    __m512i octets;
    __m512i classes;

    explicit Block(const char* block) : octets(_mm512_loadu_si512(block)) {
        const __m512i table_low = _mm512_load_si512(kAsciiClasses.bits.data());
        const __m512i table_high = _mm512_load_si512(kAsciiClasses.bits.data() + 64);
        // obs-text has no class: the permutation looks at seven bits only, so it is masked out.
        const __mmask64 ascii = ~_mm512_movepi8_mask(octets);
        classes = _mm512_maskz_permutex2var_epi8(ascii, table_low, octets, table_high);
    }
    template <int kClass>
    std::uint64_t member() const {
        return _mm512_test_epi8_mask(classes, all<kClass>());
    }
    template <int kOctet>
    std::uint64_t equal() const {
        return _mm512_cmpeq_epi8_mask(octets, all<kOctet>());
    }
};

inline void fill_fields(const Block& block, BlockMasks* masks) {
    masks->token = block.member<kClassToken>();
    masks->forbidden = block.member<kClassForbidden>();
    masks->colon = block.equal<':'>();
    masks->cr = block.equal<'\r'>();
    masks->lf = block.equal<'\n'>();
}

void classify(const char* data, BlockMasks* masks) {
    const Block block(data);
    fill_fields(block, masks);
    masks->target = block.member<kClassTarget>();
    masks->percent = block.equal<'%'>();
}
void classify_fields(const char* data, BlockMasks* masks) {
    fill_fields(Block(data), masks);
}
std::uint64_t hex(const char* data) {
    return Block(data).member<kClassHex>();
}
bool supported() {
    return __builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512bw") != 0 &&
           __builtin_cpu_supports("avx512vbmi") != 0;
}

}  // namespace

const ScanKernel kAvx512Kernel = {"avx512", classify, classify_fields, hex, supported};

}  // namespace httpmark
