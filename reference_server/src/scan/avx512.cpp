#include <immintrin.h>

#include "scan/head.hpp"
#include "scan/scan.hpp"
#include "scan/tables.hpp"

namespace httpmark {

namespace {

template <int kOctet>
constexpr WideOctets kAll = make_wide(kOctet);

// A load, and not what compilers make of it: an immediate, moved to a vector register and spread.
template <int kOctet>
[[gnu::always_inline]] inline __m512i all() {
    __m512i wide;
    asm("vmovdqa64 %1, %0" : "=v"(wide) : "m"(kAll<kOctet>.octets));
    return wide;
}

class Block {
  public:
    Block() = default;
    [[gnu::always_inline]] explicit Block(const char* data) : Block(_mm512_loadu_si512(data)) {}
    // A masked load does not touch what is masked out, not even a page that is not there.
    [[gnu::always_inline]] Block(const char* data, unsigned size)
        : Block(_mm512_maskz_loadu_epi8(bits_below(size), data)) {}

    [[gnu::always_inline]] std::uint64_t token() const { return member<kClassToken>(); }
    [[gnu::always_inline]] std::uint64_t plain_target() const { return member<kClassTarget>(); }
    [[gnu::always_inline]] std::uint64_t hex() const { return member<kClassHex>(); }
    [[gnu::always_inline]] std::uint64_t host() const { return member<kClassHostName>(); }
    [[gnu::always_inline]] std::uint64_t forbidden() const { return member<kClassForbidden>(); }
    [[gnu::always_inline]] std::uint64_t colon() const { return equal<':'>(); }
    [[gnu::always_inline]] std::uint64_t cr() const { return equal<'\r'>(); }
    [[gnu::always_inline]] std::uint64_t lf() const { return equal<'\n'>(); }
    [[gnu::always_inline]] std::uint64_t percent() const { return equal<'%'>(); }

  private:
    // Compilers like to fold what follows into the instruction that makes the mask, which then has
    // to wait for the other operand to come over from the general registers.
    [[gnu::always_inline]] static std::uint64_t in_register(std::uint64_t mask) {
        asm("" : "+r"(mask));
        return mask;
    }
    [[gnu::always_inline]] explicit Block(__m512i octets) : octets_(octets) {
        const __m512i table_low = _mm512_load_si512(kAsciiClasses.bits);
        const __m512i table_high = _mm512_load_si512(kAsciiClasses.bits + 64);
        // obs-text has no class: the permutation looks at seven bits only, so it is masked out.
        const __mmask64 ascii = ~_mm512_movepi8_mask(octets);
        classes_ = _mm512_maskz_permutex2var_epi8(ascii, table_low, octets, table_high);
    }
    template <int kClass>
    [[gnu::always_inline]] std::uint64_t member() const {
        return in_register(_mm512_test_epi8_mask(classes_, all<kClass>()));
    }
    template <int kOctet>
    [[gnu::always_inline]] std::uint64_t equal() const {
        return in_register(_mm512_cmpeq_epi8_mask(octets_, all<kOctet>()));
    }

    __m512i octets_;
    __m512i classes_;
};

bool supported() {
    return __builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512bw") != 0 &&
           __builtin_cpu_supports("avx512vbmi") != 0 && __builtin_cpu_supports("bmi") != 0 &&
           __builtin_cpu_supports("bmi2") != 0 && __builtin_cpu_supports("popcnt") != 0;
}

}  // namespace

const ScanKernel kAvx512Kernel = {"avx512", HeadParser::parse_with<Block>, classify_with<Block>,
                                  classify_part_with<Block>, supported};

}  // namespace httpmark
