#include "net/arena.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <new>
#include <utility>

#include "check.hpp"

namespace httpmark {

namespace {

constexpr std::size_t kPage = 4096;
constexpr std::size_t kStepMax = 256 * 1024;

char* map(std::size_t size, char* where = nullptr) {
    void* block = mmap(where, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return block == MAP_FAILED ? nullptr : static_cast<char*>(block);
}

char* align_down(char* block, std::size_t size) {
    return block - reinterpret_cast<std::uintptr_t>(block) % size;
}

// At a multiple of its size, a power of two.
char* map_aligned(std::size_t size) {
    char* block = map(size);
    if (block == nullptr || align_down(block, size) == block) return block;
    // Mappings grow downwards: the multiple below is free as a rule.
    munmap(block, size);
    block = map(size, align_down(block, size));
    if (block == nullptr || align_down(block, size) == block) return block;
    munmap(block, size);
    block = map(2 * size);
    if (block == nullptr) return nullptr;
    char* const aligned = align_down(block + size - 1, size);
    if (aligned != block) munmap(block, static_cast<std::size_t>(aligned - block));
    munmap(aligned + size, static_cast<std::size_t>(block + size - aligned));
    return aligned;
}

}  // namespace

// A ceiling too low for several steps of the usual size gets smaller ones.
Arena::Arena(std::uint64_t bytes_max)
    : step_size_(static_cast<std::size_t>(
          std::clamp<std::uint64_t>(std::bit_floor(bytes_max / 4), kPage, kStepMax))),
      largest_(step_size_ / 4),
      bytes_max_(bytes_max) {}

Arena::~Arena() {
    while (steps_ != nullptr) {
        Step* const next = steps_->next;
        munmap(steps_, step_size_);
        steps_ = next;
    }
}

std::size_t Arena::class_of(std::size_t capacity) const {
    return static_cast<std::size_t>(std::countr_zero(capacity / kSmallest));
}

Arena::Step* Arena::step_of(char* block) const {
    return reinterpret_cast<Step*>(align_down(block, step_size_));
}

std::uint8_t& Arena::mark(char* block) const {
    Step* const step = step_of(block);
    const auto offset = static_cast<std::size_t>(block - reinterpret_cast<char*>(step));
    return reinterpret_cast<std::uint8_t*>(step + 1)[offset / kSmallest];
}

void Arena::put(char* block, std::size_t index) {
    FreeBlock* const free = new (block) FreeBlock{free_[index], nullptr};
    if (free->next != nullptr) free->next->previous = free;
    free_[index] = free;
    classes_free_ |= 1U << index;
    mark(block) = static_cast<std::uint8_t>(index + 1);
}

void Arena::take(char* block, std::size_t index) {
    const FreeBlock* const free = reinterpret_cast<FreeBlock*>(block);
    if (free->next != nullptr) free->next->previous = free->previous;
    (free->previous != nullptr ? free->previous->next : free_[index]) = free->next;
    if (free_[index] == nullptr) classes_free_ &= ~(1U << index);
    mark(block) = 0;
}

// What a step without a block in use is made of: its head comes first, and each block begins at a
// multiple of its size.
template <class Visit>
void Arena::each_block_of_empty(Step* step, const Visit& visit) {
    std::size_t at = std::bit_ceil(sizeof(Step) + step_size_ / kSmallest);
    at = std::max(at, kSmallest);
    while (at < step_size_) {
        const std::size_t size = std::min(at & (~at + 1), largest_);
        visit(reinterpret_cast<char*>(step) + at, class_of(size));
        at += size;
    }
}

bool Arena::map_step() {
    if (bytes_mapped_ + step_size_ > bytes_max_) return false;
    char* const block = map_aligned(step_size_);
    if (block == nullptr) return false;
    bytes_mapped_ += step_size_;
    Step* const step = new (block) Step{steps_, nullptr, 0};
    if (steps_ != nullptr) steps_->previous = step;
    steps_ = step;
    empty_step_ = step;
    each_block_of_empty(step, [this](char* piece, std::size_t index) { put(piece, index); });
    return true;
}

void Arena::unmap_step(Step* step) {
    each_block_of_empty(step, [this](char* piece, std::size_t index) { take(piece, index); });
    if (step->next != nullptr) step->next->previous = step->previous;
    (step->previous != nullptr ? step->previous->next : steps_) = step->next;
    munmap(step, step_size_);
    bytes_mapped_ -= step_size_;
}

char* Arena::allocate_alone(std::size_t size, std::size_t& capacity) {
    capacity = (size + kPage - 1) & ~(kPage - 1);
    if (bytes_mapped_ + capacity > bytes_max_) {
        join_kept();
        if (empty_step_ != nullptr) unmap_step(std::exchange(empty_step_, nullptr));
        if (bytes_mapped_ + capacity > bytes_max_) return nullptr;
    }
    char* const block = map(capacity);
    if (block == nullptr) return nullptr;
    bytes_mapped_ += capacity;
    bytes_in_use_ += capacity;
    return block;
}

// A free block of this class or above, or memory for one.
bool Arena::find_free(std::size_t index) {
    if (classes_free_ >> index != 0) return true;
    join_kept();
    return classes_free_ >> index != 0 || map_step();
}

char* Arena::allocate(std::size_t size, std::size_t& capacity) {
    if (size > largest_) return allocate_alone(size, capacity);
    capacity = std::bit_ceil(std::max(size, kSmallest));
    const std::size_t wanted = class_of(capacity);
    char* block = std::exchange(kept_[wanted], nullptr);
    if (block == nullptr) {
        if (!find_free(wanted)) return nullptr;
        std::size_t index =
            wanted + static_cast<std::size_t>(std::countr_zero(classes_free_ >> wanted));
        block = reinterpret_cast<char*>(free_[index]);
        take(block, index);
        while (index > wanted) {
            --index;
            put(block + (kSmallest << index), index);
        }
        Step* const step = step_of(block);
        if (step == empty_step_) empty_step_ = nullptr;
        step->in_use += capacity;
    }
    bytes_in_use_ += capacity;
    return block;
}

void Arena::release(char* block, std::size_t capacity) {
    if (block == nullptr) return;
    CHECK(bytes_in_use_ >= capacity);
    bytes_in_use_ -= capacity;
    if (capacity > largest_) {
        munmap(block, capacity);
        bytes_mapped_ -= capacity;
        return;
    }
    const std::size_t index = class_of(capacity);
    if (kept_[index] == nullptr) {
        kept_[index] = block;
    } else {
        join(block, index);
    }
}

void Arena::join_kept() {
    for (std::size_t index = 0; index < kClasses; ++index) {
        if (kept_[index] != nullptr) join(std::exchange(kept_[index], nullptr), index);
    }
}

void Arena::join(char* block, std::size_t index) {
    Step* const step = step_of(block);
    CHECK(step->in_use >= kSmallest << index);
    step->in_use -= kSmallest << index;
    char* const base = reinterpret_cast<char*>(step);
    for (const std::size_t last = class_of(largest_); index < last; ++index) {
        const auto offset = static_cast<std::size_t>(block - base);
        char* const other = base + (offset ^ (kSmallest << index));
        // The marks of the step's head are 0 for ever.
        if (mark(other) != index + 1) break;
        take(other, index);
        block = std::min(block, other);
    }
    put(block, index);
    if (step->in_use != 0) return;
    if (empty_step_ == nullptr) {
        empty_step_ = step;
    } else {
        unmap_step(step);
    }
}

}  // namespace httpmark
