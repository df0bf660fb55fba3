#include "arena.hpp"

#include <sys/mman.h>

#include <bit>
#include <new>

#include "check.hpp"

namespace httpmark {

namespace {

constexpr std::size_t kPage = 4096;

char* map(std::size_t size) {
    void* block = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return block == MAP_FAILED ? nullptr : static_cast<char*>(block);
}

}  // namespace

Arena::~Arena() {
    while (steps_ != nullptr) {
        StepHeader* const next = steps_->next;
        munmap(steps_, kStep);
        steps_ = next;
    }
}

char* Arena::allocate(std::size_t size, std::size_t& capacity) {
    constexpr std::size_t kLargest = kSmallest << (kClasses - 1);
    if (size > kLargest) {
        capacity = (size + kPage - 1) & ~(kPage - 1);
        if (bytes_in_use_ + capacity > bytes_max_) return nullptr;
        char* const block = map(capacity);
        if (block != nullptr) bytes_in_use_ += capacity;
        return block;
    }
    capacity = std::bit_ceil(size < kSmallest ? kSmallest : size);
    const auto index = static_cast<std::size_t>(std::countr_zero(capacity / kSmallest));
    if (bytes_in_use_ + capacity > bytes_max_) return nullptr;
    if (free_[index] != nullptr) {
        FreeBlock* const block = free_[index];
        free_[index] = block->next;
        bytes_in_use_ += capacity;
        return reinterpret_cast<char*>(block);
    }
    if (bump_left_ < capacity) {
        // What is left of the step is at most one block of each class below; keep it in use.
        for (std::size_t i = kClasses; i-- > 0;) {
            const std::size_t piece = kSmallest << i;
            if (bump_left_ >= piece) {
                free_[i] = new (bump_) FreeBlock{free_[i]};
                bump_ += piece;
                bump_left_ -= piece;
                ++i;
            }
        }
        char* const step = map(kStep);
        if (step == nullptr) return nullptr;
        steps_ = new (step) StepHeader{steps_};
        bump_ = step + kSmallest;
        bump_left_ = kStep - kSmallest;
    }
    char* const block = bump_;
    bump_ += capacity;
    bump_left_ -= capacity;
    bytes_in_use_ += capacity;
    return block;
}

void Arena::release(char* block, std::size_t capacity) {
    if (block == nullptr) return;
    CHECK(bytes_in_use_ >= capacity);
    bytes_in_use_ -= capacity;
    constexpr std::size_t kLargest = kSmallest << (kClasses - 1);
    if (capacity > kLargest) {
        munmap(block, capacity);
        return;
    }
    const auto index = static_cast<std::size_t>(std::countr_zero(capacity / kSmallest));
    free_[index] = new (block) FreeBlock{free_[index]};
}

}  // namespace httpmark
