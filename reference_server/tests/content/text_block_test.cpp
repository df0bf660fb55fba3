#include "content/text_block.hpp"

#include <string>
#include <string_view>

#include "guard_page.hpp"
#include "laws.hpp"

namespace httpmark {
namespace {

// Of the first 16 bytes, NUL standing where the text has none.
template <class Is>
unsigned mask_of(std::string_view text, const Is& is) {
    unsigned bits = 0;
    for (std::size_t i = 0; i < kTextBlockSize; ++i) {
        if (is(i < text.size() ? text[i] : '\0')) bits |= 1U << i;
    }
    return bits;
}

template <class Block>
void expect_block(const Block& block, std::string_view text) {
    const auto is_odd = [](char c) {
        return static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) > 0x7F;
    };
    LAW(block.template like<'&'>() == mask_of(text, [](char c) { return c == '&'; }),
        << visible(text));
    LAW((block.template like<'\xFF', '\0'>()) ==
            mask_of(text, [](char c) { return c == '\xFF' || c == '\0'; }),
        << visible(text));
    LAW((block.template controls_high_and<'"', '\\'>()) ==
            mask_of(text, [&](char c) { return is_odd(c) || c == '"' || c == '\\'; }),
        << visible(text));
    std::string out(kTextBlockSize + 1, '#');
    block.store(out.data());
    std::string whole(text);
    whole.resize(kTextBlockSize);
    LAW(out == whole + '#', << visible(text));
}

// Each size, at a page that cannot be read.
template <class Block>
void expect_blocks() {
    GuardPage guard;
    Random random(17);
    for (unsigned i = 0; i < 40000; ++i) {
        std::string text;
        for (std::size_t k = i % (kTextBlockSize + 1); k > 0; --k) {
            text += random() % 2 == 0 ? static_cast<char>(random())
                                      : "&\xFF\0\"\\ \x1F\x7F\x80"[random() % 9];
        }
        const char* const placed = guard.place(text);
        if (text.size() == kTextBlockSize) {
            expect_block(Block(placed), text);
        } else {
            expect_block(Block(placed, text.size()), text);
        }
    }
    expect_block(Block(nullptr, 0), "");
}

TEST(TextBlock, masks_tell_each_byte) {
    expect_blocks<PlainTextBlock>();
    expect_blocks<TextBlock>();
}

TEST(TextBlock, bits_of_a_size) {
    LAW(text_block_bits(0) == 0 && text_block_bits(1) == 1 && text_block_bits(16) == 0xFFFF);
    LAW(lowest_text_bit(1) == 0 && lowest_text_bit(0x8000) == 15 && lowest_text_bit(0x90) == 4);
}

}  // namespace
}  // namespace httpmark
