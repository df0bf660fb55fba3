#include <immintrin.h>

#include "scan/head.hpp"
#include "scan/scan.hpp"
#include "scan/tables.hpp"

namespace httpmark {

namespace {

// Both lanes from the same 16 bytes.
[[gnu::always_inline]] inline __m256i load(const NibbleTable& table) {
    return _mm256_broadcastsi128_si256(
        _mm_load_si128(reinterpret_cast<const __m128i*>(table.bits)));
}

template <int kOctet>
constexpr WideOctets kAll = make_wide(kOctet);

// A load, and not what compilers make of it: an immediate, moved to a vector register and spread.
template <int kOctet>
[[gnu::always_inline]] inline __m256i all() {
    __m256i wide;
    asm("vmovdqa %1, %0" : "=x"(wide) : "m"(kAll<kOctet>.octets));
    return wide;
}

// The two halves of a block, and the bit of each byte's high nibble.
class Block {
  public:
    Block() = default;
    [[gnu::always_inline]] explicit Block(const char* data)
        : low_(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(data))),
          high_(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(data + 32))),
          low_bits_(nibble_bits(low_)),
          high_bits_(nibble_bits(high_)) {}
    [[gnu::always_inline]] Block(const char* data, unsigned size)
        : Block(CopiedBlock(data, size).octets) {}

    [[gnu::always_inline]] std::uint64_t token() const { return member(kTokenNibbles); }
    [[gnu::always_inline]] std::uint64_t plain_target() const { return member(kTargetNibbles); }
    [[gnu::always_inline]] std::uint64_t hex() const { return member(kHexNibbles); }
    [[gnu::always_inline]] std::uint64_t host() const { return member(kHostNibbles); }
    [[gnu::always_inline]] std::uint64_t forbidden() const { return member(kForbiddenNibbles); }
    [[gnu::always_inline]] std::uint64_t colon() const { return equal<':'>(); }
    [[gnu::always_inline]] std::uint64_t cr() const { return equal<'\r'>(); }
    [[gnu::always_inline]] std::uint64_t lf() const { return equal<'\n'>(); }
    [[gnu::always_inline]] std::uint64_t percent() const { return equal<'%'>(); }

  private:
    [[gnu::always_inline]] static __m256i nibble_bits(__m256i octets) {
        const __m256i high = _mm256_and_si256(_mm256_srli_epi16(octets, 4), all<15>());
        return _mm256_shuffle_epi8(load(kHighNibbleBits), high);
    }
    [[gnu::always_inline]] static std::uint64_t mask_of(__m256i wide) {
        return static_cast<unsigned>(_mm256_movemask_epi8(wide));
    }
    [[gnu::always_inline]] static std::uint64_t missing(__m256i octets, __m256i bits,
                                                        __m256i table) {
        const __m256i hit = _mm256_and_si256(_mm256_shuffle_epi8(table, octets), bits);
        return mask_of(_mm256_cmpeq_epi8(hit, _mm256_setzero_si256()));
    }
    [[gnu::always_inline]] std::uint64_t member(const NibbleTable& nibbles) const {
        const __m256i table = load(nibbles);
        return ~(missing(low_, low_bits_, table) | missing(high_, high_bits_, table) << 32);
    }
    template <int kOctet>
    [[gnu::always_inline]] std::uint64_t equal() const {
        const __m256i wanted = all<kOctet>();
        return mask_of(_mm256_cmpeq_epi8(low_, wanted)) | mask_of(_mm256_cmpeq_epi8(high_, wanted))
                                                              << 32;
    }

    __m256i low_;
    __m256i high_;
    __m256i low_bits_;
    __m256i high_bits_;
};

bool supported() {
    return __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("bmi") != 0 &&
           __builtin_cpu_supports("bmi2") != 0 && __builtin_cpu_supports("popcnt") != 0;
}

}  // namespace

const ScanKernel kAvx2Kernel = {"avx2", HeadParser::parse_with<Block>, classify_with<Block>,
                                classify_part_with<Block>, supported};

}  // namespace httpmark
