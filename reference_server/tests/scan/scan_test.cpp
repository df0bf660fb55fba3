// Every kernel against the predicates: all bytes at all places, all surroundings, all alignments.
#include "scan/scan.hpp"

#include <array>
#include <cstring>
#include <string>

#include "http/syntax.hpp"
#include "laws.hpp"
#include "scan/tables.hpp"
#include "splits.hpp"

namespace httpmark {
namespace {

BlockMasks expect(const char* block) {
    BlockMasks e{};
    for (unsigned i = 0; i < 64; ++i) {
        const unsigned char c = octet(block[i]);
        const std::uint64_t bit = std::uint64_t{1} << i;
        if (is_tchar(c)) e.token |= bit;
        if (is_target_char(c)) e.target |= bit;
        if (is_forbidden_in_field(c)) e.forbidden |= bit;
        if (c == ':') e.colon |= bit;
        if (c == '\r') e.cr |= bit;
        if (c == '\n') e.lf |= bit;
        if (c == '%') e.percent |= bit;
        if (is_hexdig(c)) e.hex |= bit;
        if (is_unreserved(c) || is_sub_delim(c)) e.host |= bit;
    }
    return e;
}

bool same_masks(const BlockMasks& a, const BlockMasks& b) {
    return std::memcmp(&a, &b, sizeof a) == 0;
}

void check_block(const ScanKernel& kernel, const char* block) {
    const BlockMasks e = expect(block);
    BlockMasks masks;
    std::memset(&masks, 0x5A, sizeof masks);
    kernel.classify(block, &masks);
    LAW(same_masks(masks, e), << kernel.name);
}

TEST(Scan, every_octet_at_every_place_among_every_filler) {
    for (const ScanKernel* kernel : kernels()) {
        for (const char filler : {'a', '\0', '\xFF', '%', ':', '\r', '\n', ' ', '/'}) {
            std::array<char, 64> block;
            for (unsigned place = 0; place < 64; ++place) {
                for (unsigned c = 0; c < 256; ++c) {
                    block.fill(filler);
                    block[place] = static_cast<char>(c);
                    check_block(*kernel, block.data());
                }
            }
        }
    }
}

TEST(Scan, random_blocks_at_every_alignment) {
    Random random(1);
    alignas(64) std::array<char, 192> room;
    for (unsigned round = 0; round < 200; ++round) {
        for (char& c : room) c = static_cast<char>(random());
        for (unsigned offset = 0; offset < 64; ++offset) {
            for (const ScanKernel* kernel : kernels()) check_block(*kernel, room.data() + offset);
        }
    }
}

TEST(Scan, the_block_may_end_at_an_unreadable_page) {
    GuardPage guard;
    for (const ScanKernel* kernel : kernels()) {
        check_block(*kernel, guard.place(std::string(64, 'x')));
    }
}

TEST(Scan, a_part_of_a_block_is_as_if_NUL_stood_behind_it) {
    GuardPage guard;
    Random random(2);
    for (unsigned size = 1; size < 64; ++size) {
        for (unsigned round = 0; round < 64; ++round) {
            std::string part(size, ' ');
            for (char& c : part) c = static_cast<char>(random());
            std::string block = part;
            block.resize(64, '\0');
            const BlockMasks e = expect(block.data());
            for (const ScanKernel* kernel : kernels()) {
                BlockMasks masks;
                std::memset(&masks, 0x5A, sizeof masks);
                kernel->classify_part(guard.place(part), size, &masks);
                LAW(same_masks(masks, e), << kernel->name << ' ' << size);
            }
        }
    }
}

TEST(Scan, the_nibble_tables_say_what_the_predicates_say) {
    for (unsigned c = 0; c < 256; ++c) {
        const auto o = static_cast<unsigned char>(c);
        LAW(nibble_lookup(kTokenNibbles, c) == is_tchar(o));
        LAW(nibble_lookup(kTargetNibbles, c) == (is_target_char(o) && c != '%'));
        LAW(nibble_lookup(kHexNibbles, c) == is_hexdig(o));
        LAW(nibble_lookup(kHostNibbles, c) == (is_unreserved(o) || is_sub_delim(o)));
        LAW(nibble_lookup(kForbiddenNibbles, c) == is_forbidden_in_field(o));
    }
}

TEST(Scan, kernels_are_found_by_name) {
    LAW(find_scan_kernel("scalar") == &kScalarKernel);
    LAW(find_scan_kernel("none") == nullptr);
    LAW(best_scan_kernel() == kernels().back());
    for (const ScanKernel* kernel : scan_kernels()) {
        LAW(find_scan_kernel(kernel->name) == (kernel->supported() ? kernel : nullptr));
    }
}

}  // namespace
}  // namespace httpmark
