// One arena per worker for whatever outlives a read. Blocks are cut from steps by halving and are
// joined with their other half when they come back (Knuth, The Art of Computer Programming, 2.5:
// the buddy system), so that what one size gave back serves every other; the last block of a size
// that came back stays whole until memory is short, for the next one who asks. A step with nothing
// in it goes back to the system, but for one. Larger blocks are mapped and unmapped on their own.
// What is mapped is counted against the memory ceiling; never aborts.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace httpmark {

class Arena {
  public:
    explicit Arena(std::uint64_t bytes_max);
    Arena(const Arena&) = delete;
    Arena& operator=(const Arena&) = delete;
    ~Arena();

    // At least `size` bytes, `capacity` says how many; nullptr over the ceiling or out of memory.
    char* allocate(std::size_t size, std::size_t& capacity);
    void release(char* block, std::size_t capacity);

    // In blocks that are out, and all that the system has given.
    std::uint64_t bytes_in_use() const { return bytes_in_use_; }
    std::uint64_t bytes_mapped() const { return bytes_mapped_; }

  private:
    static constexpr std::size_t kClasses = 9;  // 256 B ... 64 KiB
    static constexpr std::size_t kSmallest = 256;
    struct FreeBlock {
        FreeBlock* next;
        FreeBlock* previous;
    };
    struct Step {
        Step* next;
        Step* previous;
        std::size_t in_use;
        // Behind it a byte for each kSmallest of the step: 1 + the class of the free block that
        // begins there, 0 where none does.
    };

    std::size_t class_of(std::size_t capacity) const;
    Step* step_of(char* block) const;
    std::uint8_t& mark(char* block) const;
    void put(char* block, std::size_t index);
    void take(char* block, std::size_t index);
    template <class Visit>
    void each_block_of_empty(Step* step, const Visit& visit);
    bool find_free(std::size_t index);
    void join(char* block, std::size_t index);
    void join_kept();
    bool map_step();
    void unmap_step(Step* step);
    char* allocate_alone(std::size_t size, std::size_t& capacity);

    std::array<FreeBlock*, kClasses> free_{};
    std::array<char*, kClasses> kept_{};
    unsigned classes_free_ = 0;  // bit i: free_[i] is not empty
    std::size_t step_size_;
    std::size_t largest_;  // of the blocks cut from steps
    Step* steps_ = nullptr;
    Step* empty_step_ = nullptr;  // the one that is kept
    std::uint64_t bytes_in_use_ = 0;
    std::uint64_t bytes_mapped_ = 0;
    std::uint64_t bytes_max_;
};

}  // namespace httpmark
