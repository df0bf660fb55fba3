#include <immintrin.h>

#include "../scan.hpp"
#include "tables.hpp"

namespace httpmark {

namespace {

// Both lanes from the same 16 octets.
inline __m256i load(const NibbleTable& table) {
    return _mm256_broadcastsi128_si256(
        _mm_load_si128(reinterpret_cast<const __m128i*>(table.bits.data())));
}

// The two halves of a block, and the bit of each octet's high nibble.
struct Block {
    __m256i low;
    __m256i high;
    __m256i low_bits;
    __m256i high_bits;

    explicit Block(const char* block)
        : low(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(block))),
          high(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(block + 32))),
          low_bits(nibble_bits(low)),
          high_bits(nibble_bits(high)) {}

    static __m256i nibble_bits(__m256i octets) {
        const __m256i high = _mm256_and_si256(_mm256_srli_epi16(octets, 4), _mm256_set1_epi8(15));
        return _mm256_shuffle_epi8(load(kHighNibbleBits), high);
    }
    static std::uint64_t mask_of(__m256i wide) {
        return static_cast<unsigned>(_mm256_movemask_epi8(wide));
    }
    static std::uint64_t missing(__m256i octets, __m256i bits, __m256i table) {
        const __m256i hit = _mm256_and_si256(_mm256_shuffle_epi8(table, octets), bits);
        return mask_of(_mm256_cmpeq_epi8(hit, _mm256_setzero_si256()));
    }
    std::uint64_t member(const NibbleTable& nibbles) const {
        const __m256i table = load(nibbles);
        return ~(missing(low, low_bits, table) | missing(high, high_bits, table) << 32);
    }
    std::uint64_t equal(char c) const {
        const __m256i wanted = _mm256_set1_epi8(c);
        return mask_of(_mm256_cmpeq_epi8(low, wanted)) | mask_of(_mm256_cmpeq_epi8(high, wanted))
                                                             << 32;
    }
};

inline void fill_fields(const Block& block, BlockMasks* masks) {
    masks->token = block.member(kTokenNibbles);
    masks->forbidden = block.member(kForbiddenNibbles);
    masks->colon = block.equal(':');
    masks->cr = block.equal('\r');
    masks->lf = block.equal('\n');
}

void classify(const char* data, BlockMasks* masks) {
    const Block block(data);
    fill_fields(block, masks);
    masks->target = block.member(kTargetNibbles);
    masks->percent = block.equal('%');
}
void classify_fields(const char* data, BlockMasks* masks) {
    fill_fields(Block(data), masks);
}
std::uint64_t hex(const char* data) {
    return Block(data).member(kHexNibbles);
}
bool supported() {
    return __builtin_cpu_supports("avx2") != 0;
}

}  // namespace

const ScanKernel kAvx2Kernel = {"avx2", classify, classify_fields, hex, supported};

}  // namespace httpmark
