#include "websocket/mask.hpp"

#include <array>
#include <bit>
#include <cstring>

namespace httpmark::websocket {

namespace {

// Compilers make one or two vector operations of a wide one.
template <std::size_t kWords>
inline void mask_words(char* data, std::uint64_t key) {
    std::array<std::uint64_t, kWords> words;
    std::memcpy(words.data(), data, sizeof words);
    for (std::uint64_t& word : words) word ^= key;
    std::memcpy(data, words.data(), sizeof words);
}

}  // namespace

void apply_mask(char* data, std::size_t size, std::uint32_t key, std::uint64_t position) {
    const int turn = static_cast<int>(8 * (position % 4));
    const std::uint64_t turned =
        std::endian::native == std::endian::little ? std::rotr(key, turn) : std::rotl(key, turn);
    const std::uint64_t wide = turned << 32 | turned;
    char* const end = data + size;
    for (; end - data >= 32; data += 32) mask_words<4>(data, wide);
    for (; end - data >= 8; data += 8) mask_words<1>(data, wide);
    std::array<char, sizeof wide> octets;
    std::memcpy(octets.data(), &wide, sizeof wide);
    for (std::size_t i = 0; data != end; ++data, ++i) {
        *data = static_cast<char>(*data ^ octets[i]);
    }
}

}  // namespace httpmark::websocket
