#include <nmmintrin.h>

#include "../scan.hpp"
#include "tables.hpp"

namespace httpmark {

namespace {

inline __m128i load(const NibbleTable& table) {
    return _mm_load_si128(reinterpret_cast<const __m128i*>(table.bits.data()));
}

// The four quarters of a block, and the bit of each octet's high nibble.
struct Block {
    __m128i octets[4];
    __m128i high_bits[4];

    explicit Block(const char* block) {
        const __m128i high_table = load(kHighNibbleBits);
        for (unsigned i = 0; i < 4; ++i) {
            octets[i] = _mm_loadu_si128(reinterpret_cast<const __m128i*>(block + 16 * i));
            const __m128i high = _mm_and_si128(_mm_srli_epi16(octets[i], 4), _mm_set1_epi8(15));
            high_bits[i] = _mm_shuffle_epi8(high_table, high);
        }
    }
    std::uint64_t member(const NibbleTable& nibbles) const {
        const __m128i table = load(nibbles);
        std::uint64_t missing = 0;
        for (unsigned i = 0; i < 4; ++i) {
            const __m128i hit = _mm_and_si128(_mm_shuffle_epi8(table, octets[i]), high_bits[i]);
            const auto bits =
                static_cast<unsigned>(_mm_movemask_epi8(_mm_cmpeq_epi8(hit, _mm_setzero_si128())));
            missing |= std::uint64_t{bits} << (16 * i);
        }
        return ~missing;
    }
    std::uint64_t equal(char c) const {
        std::uint64_t mask = 0;
        for (unsigned i = 0; i < 4; ++i) {
            const auto bits = static_cast<unsigned>(
                _mm_movemask_epi8(_mm_cmpeq_epi8(octets[i], _mm_set1_epi8(c))));
            mask |= std::uint64_t{bits} << (16 * i);
        }
        return mask;
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
    return __builtin_cpu_supports("sse4.2") != 0;
}

}  // namespace

const ScanKernel kSse42Kernel = {"sse42", classify, classify_fields, hex, supported};

}  // namespace httpmark
