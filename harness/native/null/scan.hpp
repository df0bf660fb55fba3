// Counts the ends of header sections (CR LF CR LF) in a stream, across any cut. This is all the
// null server understands of HTTP.
#ifndef HTTPMARK_NATIVE_NULL_SCAN_HPP_
#define HTTPMARK_NATIVE_NULL_SCAN_HPP_

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include <bit>
#include <cstddef>
#include <cstdint>

namespace httpmark {

// How much of CR LF CR LF the stream ends with: 0 to 3 bytes. It is the whole memory the null
// server keeps of an unfinished head, however long that head is.
using HeadState = std::uint8_t;

inline std::size_t count_head_ends_plain(HeadState* state, const char* data, std::size_t size) {
    std::size_t count = 0;
    unsigned matched = *state;
    for (std::size_t i = 0; i < size; ++i) {
        const char c = data[i];
        if (c == '\n') {
            matched = (matched == 1 || matched == 3) ? matched + 1 : 0;
            if (matched == 4) {
                ++count;
                matched = 0;
            }
        } else if (c == '\r') {
            matched = matched == 2 ? 3 : 1;
        } else {
            matched = 0;
        }
    }
    *state = static_cast<HeadState>(matched);
    return count;
}

#if defined(__SSE2__)

// The same, 64 bytes at a time: one bit per byte for CR and for LF, and an end wherever the last
// four bytes are CR LF CR LF. Ends that overlap an end already counted do not count, as in the
// plain version ("CR LF CR LF CR LF" is one head and the beginning of another).
inline std::size_t count_head_ends(HeadState* state, const char* data, std::size_t size) {
    constexpr std::size_t kBlock = 64;
    if (size < kBlock) return count_head_ends_plain(state, data, size);
    // What the previous call left, as if it were the end of a block before the first.
    constexpr std::uint64_t kTop = std::uint64_t{1} << 63;
    constexpr std::uint64_t kCrOf[4] = {0, kTop, kTop >> 1, kTop | kTop >> 2};
    constexpr std::uint64_t kLfOf[4] = {0, 0, kTop, kTop >> 1};
    std::uint64_t cr_before = kCrOf[*state & 3];
    std::uint64_t lf_before = kLfOf[*state & 3];
    const __m128i cr_octets = _mm_set1_epi8('\r');
    const __m128i lf_octets = _mm_set1_epi8('\n');
    std::size_t count = 0;
    std::size_t at = 0;
    std::size_t free_from = 0;  // one past the last end that was counted
    for (; at + kBlock <= size; at += kBlock) {
        std::uint64_t cr = 0;
        std::uint64_t lf = 0;
        for (unsigned part = 0; part < 4; ++part) {
            const __m128i octets =
                _mm_loadu_si128(reinterpret_cast<const __m128i*>(data + at + 16 * part));
            const auto cr_bits =
                static_cast<unsigned>(_mm_movemask_epi8(_mm_cmpeq_epi8(octets, cr_octets)));
            const auto lf_bits =
                static_cast<unsigned>(_mm_movemask_epi8(_mm_cmpeq_epi8(octets, lf_octets)));
            cr |= static_cast<std::uint64_t>(cr_bits) << (16 * part);
            lf |= static_cast<std::uint64_t>(lf_bits) << (16 * part);
        }
        std::uint64_t ends = lf & (cr << 1 | cr_before >> 63) & (lf << 2 | lf_before >> 62) &
                             (cr << 3 | cr_before >> 61);
        while (ends != 0) {
            const std::size_t end = at + static_cast<std::size_t>(std::countr_zero(ends)) + 1;
            ends &= ends - 1;
            // The first end of a call may reach back into the bytes that `state` stands for.
            if (free_from == 0 || end - free_from >= 4) {
                ++count;
                free_from = end;
            }
        }
        cr_before = cr;
        lf_before = lf;
    }
    // The last bytes that no end has used decide the state at the block's edge.
    const std::size_t from = at - free_from > 3 ? at - 3 : free_from;
    HeadState tail = 0;
    count_head_ends_plain(&tail, data + from, at - from);
    count += count_head_ends_plain(&tail, data + at, size - at);
    *state = tail;
    return count;
}

#else

inline std::size_t count_head_ends(HeadState* state, const char* data, std::size_t size) {
    return count_head_ends_plain(state, data, size);
}

#endif

}  // namespace httpmark

#endif  // HTTPMARK_NATIVE_NULL_SCAN_HPP_
