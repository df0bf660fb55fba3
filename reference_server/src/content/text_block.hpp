// Up to 16 bytes of a text, looked at together: what the quick ways of forms and of JSON are made
// of. Which bytes are of a kind is told by a mask, a bit for each, the lowest for the first.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace httpmark {

inline constexpr std::size_t kTextBlockSize = 16;

constexpr unsigned text_block_bits(std::size_t size) {
    return (1U << size) - 1;
}

constexpr std::size_t lowest_text_bit(unsigned mask) {
    return static_cast<std::size_t>(std::countr_zero(mask));
}

// For any machine.
class PlainTextBlock {
  public:
    explicit PlainTextBlock(const char* text) { std::memcpy(octets_, text, kTextBlockSize); }
    // Fewer bytes than a block has: nothing behind them is read, and NUL stands there.
    PlainTextBlock(const char* text, std::size_t size) {
        for (std::size_t i = 0; i < size; ++i) octets_[i] = text[i];
    }

    // Any of these.
    template <char... kEach>
    unsigned like() const {
        return mask([](char c) { return ((c == kEach) || ...); });
    }
    // These, and what is below the space or above 0x7F.
    template <char... kEach>
    unsigned controls_high_and() const {
        return mask([](char c) {
            const auto octet = static_cast<unsigned char>(c);
            return octet < 0x20 || octet >= 0x80 || ((c == kEach) || ...);
        });
    }
    // All 16 bytes.
    void store(char* out) const { std::memcpy(out, octets_, kTextBlockSize); }

  private:
    template <class Is>
    unsigned mask(const Is& is) const {
        unsigned bits = 0;
        for (std::size_t i = 0; i < kTextBlockSize; ++i) {
            if (is(octets_[i])) bits |= 1U << i;
        }
        return bits;
    }

    char octets_[kTextBlockSize] = {};
};

#ifdef __SSE2__

// The same in one register.
class VectorTextBlock {
  public:
    [[gnu::always_inline]] explicit VectorTextBlock(const char* text) {
        std::memcpy(&octets_, text, kTextBlockSize);
    }
    // Two words that may have bytes of the middle in common.
    [[gnu::always_inline]] VectorTextBlock(const char* text, std::size_t size) {
        std::uint64_t low = 0;
        std::uint64_t high = 0;
        if (size >= 8) {
            low = load<std::uint64_t>(text);
            high = load<std::uint64_t>(text + size - 8) >> (8 * (15 - size)) >> 8;
        } else if (size >= 4) {
            low = load<std::uint32_t>(text) | load<std::uint32_t>(text + size - 4)
                                                  << (8 * (size - 4));
        } else if (size != 0) {
            low = load<std::uint8_t>(text) | load<std::uint8_t>(text + size / 2)
                                                 << (8 * (size / 2));
            low |= load<std::uint8_t>(text + size - 1) << (8 * (size - 1));
        }
        // Shifted into its place: where two words are joined, GCC takes one of them through memory,
        // and the load waits for the store.
        octets_ = _mm_or_si128(
            _mm_cvtsi64_si128(static_cast<long long>(low)),
            _mm_slli_si128(_mm_cvtsi64_si128(static_cast<long long>(high)), sizeof high));
    }

    template <char... kEach>
    [[gnu::always_inline]] unsigned like() const {
        return mask((equal(kEach) | ...));
    }
    // As signed numbers, the high ones are below the space, too.
    template <char... kEach>
    [[gnu::always_inline]] unsigned controls_high_and() const {
        return mask((_mm_cmplt_epi8(octets_, _mm_set1_epi8(' ')) | ... | equal(kEach)));
    }
    [[gnu::always_inline]] void store(char* out) const {
        std::memcpy(out, &octets_, kTextBlockSize);
    }

  private:
    template <class Word>
    [[gnu::always_inline]] static std::uint64_t load(const char* p) {
        Word word;
        std::memcpy(&word, p, sizeof word);
        return word;
    }
    [[gnu::always_inline]] __m128i equal(char c) const {
        return _mm_cmpeq_epi8(octets_, _mm_set1_epi8(c));
    }
    [[gnu::always_inline]] static unsigned mask(__m128i octets) {
        return static_cast<unsigned>(_mm_movemask_epi8(octets));
    }

    __m128i octets_;
};
using TextBlock = VectorTextBlock;

#else

using TextBlock = PlainTextBlock;

#endif

}  // namespace httpmark
