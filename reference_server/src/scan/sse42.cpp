#include <nmmintrin.h>

#include "scan/head.hpp"
#include "scan/scan.hpp"
#include "scan/tables.hpp"

namespace httpmark {

namespace {

[[gnu::always_inline]] inline __m128i load(const NibbleTable& table) {
    return _mm_load_si128(reinterpret_cast<const __m128i*>(table.bits));
}

// The four quarters of a block, and the bit of each byte's high nibble.
class Block {
  public:
    Block() = default;
    [[gnu::always_inline]] explicit Block(const char* data) {
        const __m128i high_table = load(kHighNibbleBits);
        for (unsigned i = 0; i < 4; ++i) {
            octets_[i] = _mm_loadu_si128(reinterpret_cast<const __m128i*>(data + 16 * i));
            const __m128i high = _mm_and_si128(_mm_srli_epi16(octets_[i], 4), _mm_set1_epi8(15));
            high_bits_[i] = _mm_shuffle_epi8(high_table, high);
        }
    }
    [[gnu::always_inline]] Block(const char* data, unsigned size)
        : Block(CopiedBlock(data, size).octets) {}

    [[gnu::always_inline]] std::uint64_t token() const { return member(kTokenNibbles); }
    [[gnu::always_inline]] std::uint64_t plain_target() const { return member(kTargetNibbles); }
    [[gnu::always_inline]] std::uint64_t hex() const { return member(kHexNibbles); }
    [[gnu::always_inline]] std::uint64_t host() const { return member(kHostNibbles); }
    [[gnu::always_inline]] std::uint64_t forbidden() const { return member(kForbiddenNibbles); }
    [[gnu::always_inline]] std::uint64_t colon() const { return equal(':'); }
    [[gnu::always_inline]] std::uint64_t cr() const { return equal('\r'); }
    [[gnu::always_inline]] std::uint64_t lf() const { return equal('\n'); }
    [[gnu::always_inline]] std::uint64_t percent() const { return equal('%'); }

  private:
    [[gnu::always_inline]] std::uint64_t member(const NibbleTable& nibbles) const {
        const __m128i table = load(nibbles);
        std::uint64_t missing = 0;
        for (unsigned i = 0; i < 4; ++i) {
            const __m128i hit = _mm_and_si128(_mm_shuffle_epi8(table, octets_[i]), high_bits_[i]);
            const auto bits =
                static_cast<unsigned>(_mm_movemask_epi8(_mm_cmpeq_epi8(hit, _mm_setzero_si128())));
            missing |= std::uint64_t{bits} << (16 * i);
        }
        return ~missing;
    }
    [[gnu::always_inline]] std::uint64_t equal(char c) const {
        std::uint64_t mask = 0;
        for (unsigned i = 0; i < 4; ++i) {
            const auto bits = static_cast<unsigned>(
                _mm_movemask_epi8(_mm_cmpeq_epi8(octets_[i], _mm_set1_epi8(c))));
            mask |= std::uint64_t{bits} << (16 * i);
        }
        return mask;
    }

    __m128i octets_[4];
    __m128i high_bits_[4];
};

bool supported() {
    return __builtin_cpu_supports("sse4.2") != 0 && __builtin_cpu_supports("popcnt") != 0;
}

}  // namespace

const ScanKernel kSse42Kernel = {"sse42", HeadParser::parse_with<Block>, classify_with<Block>,
                                 classify_part_with<Block>, supported};

}  // namespace httpmark
