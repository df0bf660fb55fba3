#include "net/arena.hpp"

#include <unistd.h>

#include <cstring>
#include <fstream>
#include <utility>
#include <vector>

#include "laws.hpp"

namespace httpmark {
namespace {

TEST(Arena, blocks_hold_what_was_asked_and_do_not_overlap) {
    // The low ceilings leave room for a few blocks: then some get none.
    for (const std::uint64_t ceiling : {1U << 26, 1U << 20, 200000U, 1U << 14, 4096U}) {
        Arena arena(ceiling);
        struct Block {
            char* data;
            std::size_t capacity;
            char mark;
        };
        std::vector<Block> blocks;
        Random random(3);
        unsigned refused = 0;
        for (unsigned round = 0; round < 5000; ++round) {
            if (blocks.size() < 60 || random() % 2 == 0) {
                const std::size_t size = 1 + random() % (round % 10 == 0 ? 300000 : 3000);
                std::size_t capacity = 0;
                char* const data = arena.allocate(size, capacity);
                if (data != nullptr) {
                    LAW(capacity >= size);
                    const char mark = static_cast<char>(random());
                    std::memset(data, mark, capacity);
                    blocks.push_back({data, capacity, mark});
                } else {
                    ++refused;
                }
            }
            LAW(arena.bytes_in_use() <= arena.bytes_mapped() && arena.bytes_mapped() <= ceiling);
            if (blocks.size() > 50 || (refused != 0 && !blocks.empty() && random() % 2 == 0)) {
                std::swap(blocks[random() % blocks.size()], blocks.back());
                const Block block = blocks.back();
                blocks.pop_back();
                bool intact = true;
                for (std::size_t i = 0; i < block.capacity; ++i)
                    intact &= block.data[i] == block.mark;
                LAW(intact);
                arena.release(block.data, block.capacity);
            }
        }
        LAW((refused == 0) == (ceiling == 1U << 26), << ceiling << " refused " << refused);
        for (const Block& block : blocks) arena.release(block.data, block.capacity);
        LAW(arena.bytes_in_use() == 0);
        // All of it has come back.
        std::size_t capacity = 0;
        char* const whole = arena.allocate(ceiling & ~4095ULL, capacity);
        LAW(whole != nullptr && arena.bytes_mapped() == capacity);
        arena.release(whole, capacity);
    }
}

// Of this process, in bytes.
std::uint64_t resident() {
    std::ifstream file("/proc/self/statm");
    std::uint64_t all = 0;
    std::uint64_t here = 0;
    file >> all >> here;
    return here * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

TEST(Arena, no_more_memory_than_the_ceiling_whatever_sizes_come_in_turn) {
    constexpr std::uint64_t kCeiling = 16 << 20;
    std::vector<std::pair<char*, std::size_t>> blocks;
    blocks.reserve(kCeiling / 256);
    Arena arena(kCeiling);
    const std::uint64_t before = resident();
    for (const std::size_t size :
         {256U, 512U, 1024U, 2048U, 4096U, 8192U, 16384U, 32768U, 65536U, 300000U}) {
        std::size_t capacity = 0;
        std::uint64_t total = 0;
        while (char* const block = arena.allocate(size, capacity)) {
            std::memset(block, 1, capacity);
            blocks.emplace_back(block, capacity);
            total += capacity;
        }
        // What the size before gave back serves this one.
        LAW(total >= kCeiling * 3 / 4, << size << ": " << total);
        LAW(resident() < before + kCeiling + (2 << 20), << size << ": " << resident() - before);
        for (const auto& [block, had] : blocks) arena.release(block, had);
        blocks.clear();
    }
    LAW(arena.bytes_in_use() == 0);
    LAW(resident() < before + (3 << 20), << resident() - before);
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
    LAW(again != nullptr);
    arena.release(again, capacity);
}

}  // namespace
}  // namespace httpmark
