// A table from short texts to numbers, made once and then only read: the paths and the segments of
// paths that a router knows. A look-up costs a hash of eight bytes at a time and one comparison,
// however many texts there are. What is asked for comes from clients, but what is in the table does
// not, so nobody can make its chains long.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace httpmark {

class PathTable {
  public:
    static constexpr std::uint32_t kNone = 0xFFFFFFFF;

    // Each text is added once for each `space`, which tells apart what only looks alike.
    void add(std::string_view text, std::uint32_t space, std::uint32_t number);
    [[gnu::always_inline]] std::uint32_t find(std::string_view text,
                                              std::uint32_t space = 0) const {
        const char* const p = text.data();
        const std::size_t size = text.size();
        const std::uint64_t key = key_of(size, space);
        const std::uint64_t end = last_word(p, size);
        for (std::size_t at = hash(p, size, key, end) & mask_;; at = (at + 1) & mask_) {
            const Slot& slot = slots_[at];
            if (slot.key == key && slot.end == end && starts_alike(slot.text, p, size)) {
                return slot.number;
            }
            if (slot.text == nullptr) return kNone;
        }
    }

  private:
    struct Slot {
        const char* text = nullptr;
        std::uint64_t key = ~std::uint64_t{0};
        std::uint64_t end = 0;
        std::uint32_t number = kNone;
    };
    static constexpr std::uint64_t kMultiplier = 0x9E3779B97F4A7C15;  // 2^64 / the golden ratio

    template <class Word>
    [[gnu::always_inline]] static std::uint64_t load(const char* p) {
        Word word;
        std::memcpy(&word, p, sizeof word);
        return word;
    }
    [[gnu::always_inline]] static std::uint64_t key_of(std::size_t size, std::uint32_t space) {
        return size | std::uint64_t{space} << 32;
    }
    // The last eight bytes of a text, or all of them, where some may stand twice.
    [[gnu::always_inline]] static std::uint64_t last_word(const char* p, std::size_t size) {
        if (size >= 8) return load<std::uint64_t>(p + size - 8);
        if (size >= 4) {
            return load<std::uint32_t>(p) | load<std::uint32_t>(p + size - 4) << 32;
        }
        if (size == 0) return 0;
        return load<std::uint8_t>(p) | load<std::uint8_t>(p + size / 2) << 8 |
               load<std::uint8_t>(p + size - 1) << 16;
    }
    [[gnu::always_inline]] static std::size_t hash(const char* p, std::size_t size,
                                                   std::uint64_t key, std::uint64_t end) {
        std::uint64_t sum = (key ^ end) * kMultiplier;
        for (std::size_t at = 0; at + 8 < size; at += 8) {
            sum = ((sum ^ sum >> 32) ^ load<std::uint64_t>(p + at)) * kMultiplier;
        }
        return static_cast<std::size_t>(sum >> 32);
    }
    // Where the last words are the same.
    [[gnu::always_inline]] static bool starts_alike(const char* known, const char* p,
                                                    std::size_t size) {
        for (std::size_t at = 0; at + 8 < size; at += 8) {
            if (load<std::uint64_t>(known + at) != load<std::uint64_t>(p + at)) return false;
        }
        return true;
    }
    void insert(const Slot& slot);

    std::vector<Slot> slots_ = std::vector<Slot>(2);  // a power of two of them
    std::size_t mask_ = 1;
    std::size_t count_ = 0;
    // A text each, behind one pointer, so that it stays where it is.
    std::vector<std::vector<char>> texts_;
};

}  // namespace httpmark
