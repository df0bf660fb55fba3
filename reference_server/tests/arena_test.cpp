#include "arena.hpp"

#include <cstring>
#include <vector>

#include "laws.hpp"

namespace httpmark {
namespace {

TEST(Arena, blocks_hold_what_was_asked_and_do_not_overlap) {
    Arena arena(1 << 26);
    struct Block {
        char* data;
        std::size_t capacity;
        char mark;
    };
    std::vector<Block> blocks;
    Random random(3);
    for (unsigned round = 0; round < 5000; ++round) {
        if (blocks.size() < 60 || random() % 2 == 0) {
            const std::size_t size = 1 + random() % (round % 10 == 0 ? 300000 : 3000);
            std::size_t capacity = 0;
            char* const data = arena.allocate(size, capacity);
            LAW(data != nullptr && capacity >= size);
            const char mark = static_cast<char>(random());
            std::memset(data, mark, capacity);
            blocks.push_back({data, capacity, mark});
        }
        if (blocks.size() > 50) {
            std::swap(blocks[random() % blocks.size()], blocks.back());
            const Block block = blocks.back();
            blocks.pop_back();
            bool intact = true;
            for (std::size_t i = 0; i < block.capacity; ++i) intact &= block.data[i] == block.mark;
            LAW(intact);
            arena.release(block.data, block.capacity);
        }
    }
    for (const Block& block : blocks) arena.release(block.data, block.capacity);
    LAW(arena.bytes_in_use() == 0);
}

TEST(Arena, over_the_ceiling_there_is_nothing_and_below_it_there_is_again) {
    Arena arena(100000);
    std::size_t capacity = 0;
    char* const first = arena.allocate(65536, capacity);
    LAW(first != nullptr);
    std::size_t other = 0;
    LAW(arena.allocate(65536, other) == nullptr);
    LAW(arena.allocate(100000, other) == nullptr);
    arena.release(first, capacity);
    char* const again = arena.allocate(65536, capacity);
    LAW(again == first);
    arena.release(again, capacity);
}

}  // namespace
}  // namespace httpmark
