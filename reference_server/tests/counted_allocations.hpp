// Counts what is taken from the heap. Included by one file of a program: it replaces operator new.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <new>

namespace {
std::atomic<std::uint64_t> allocations{0};
std::atomic<std::size_t> largest_allocation{0};

void count_allocation(std::size_t size) {
    allocations.fetch_add(1, std::memory_order_relaxed);
    if (size > largest_allocation.load(std::memory_order_relaxed)) {
        largest_allocation.store(size, std::memory_order_relaxed);
    }
}
}  // namespace

// Not inlined: where only one of a pair is, GCC takes them for a mismatch.
[[gnu::noinline]] void* operator new(std::size_t size) {
    count_allocation(size);
    if (void* block = std::malloc(size)) return block;
    throw std::bad_alloc();
}
[[gnu::noinline]] void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
    count_allocation(size);
    return std::malloc(size);
}
[[gnu::noinline]] void operator delete(void* block) noexcept {
    std::free(block);
}
[[gnu::noinline]] void operator delete(void* block, std::size_t) noexcept {
    std::free(block);
}
