// The memory that bytes pass through on their way in and out of a ring.
#pragma once

#include <liburing.h>
#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace httpmark {

// nullptr with errno set where there is none.
inline char* map_for_ring(std::size_t size, int more_flags = 0) {
    void* block = mmap(nullptr, size, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | more_flags, -1, 0);
    return block == MAP_FAILED ? nullptr : static_cast<char*>(block);
}

// Given to the kernel, which fills one for each completion of a receive.
class ReceiveBuffers {
  public:
    static constexpr int kGroup = 0;
    // A power of two, and more than one wait hands out as a rule: a receive that finds none has to
    // be armed anew. All of them can hold bytes of one client that pipelines and does not read,
    // which have to be kept: so no more, and no larger, than pays.
    static constexpr unsigned kCount = 32;
    static constexpr std::size_t kSize = 12 * 1024;

    ReceiveBuffers() = default;
    ~ReceiveBuffers() {
        if (memory_ != nullptr) munmap(memory_, kCount * kSize);
        if (ring_ != nullptr) munmap(ring_, kCount * sizeof(io_uring_buf));
    }
    ReceiveBuffers(const ReceiveBuffers&) = delete;
    ReceiveBuffers& operator=(const ReceiveBuffers&) = delete;

    // False with errno set.
    bool map() {
        // Used in turn, so all of it is touched soon, whoever comes: paid for at the start.
        memory_ = map_for_ring(kCount * kSize, MAP_POPULATE);
        ring_ = reinterpret_cast<io_uring_buf_ring*>(map_for_ring(kCount * sizeof(io_uring_buf)));
        return memory_ != nullptr && ring_ != nullptr;
    }
    int register_at(io_uring& ring) {
        io_uring_buf_reg registration{};
        registration.ring_addr = reinterpret_cast<std::uint64_t>(ring_);
        registration.ring_entries = kCount;
        registration.bgid = kGroup;
        return io_uring_register_buf_ring(&ring, &registration, 0);
    }
    void give_all() {
        io_uring_buf_ring_init(ring_);
        for (unsigned i = 0; i < kCount; ++i) give_back(static_cast<std::uint16_t>(i));
    }
    void give_back(std::uint16_t buffer) {
        io_uring_buf_ring_add(ring_, at(buffer), kSize, buffer, io_uring_buf_ring_mask(kCount), 0);
        io_uring_buf_ring_advance(ring_, 1);
    }
    char* at(std::uint16_t buffer) { return memory_ + buffer * kSize; }

  private:
    char* memory_ = nullptr;
    io_uring_buf_ring* ring_ = nullptr;
};

// One for each send that is under way.
class SendBuffers {
  public:
    static constexpr std::uint16_t kNone = 0xFFFF;
    static constexpr unsigned kCount = 32;
    static constexpr std::size_t kSize = 64 * 1024;

    SendBuffers() = default;
    ~SendBuffers() {
        if (memory_ != nullptr) munmap(memory_, kCount * kSize);
    }
    SendBuffers(const SendBuffers&) = delete;
    SendBuffers& operator=(const SendBuffers&) = delete;

    // False with errno set.
    bool map() {
        memory_ = map_for_ring(kCount * kSize);
        free_.reserve(kCount);
        for (unsigned i = kCount; i-- > 0;) free_.push_back(static_cast<std::uint16_t>(i));
        return memory_ != nullptr;
    }
    bool empty() const { return free_.empty(); }
    bool all_are_free() const { return free_.size() == kCount; }
    std::uint16_t take() {
        const std::uint16_t buffer = free_.back();
        free_.pop_back();
        return buffer;
    }
    void give_back(std::uint16_t buffer) { free_.push_back(buffer); }
    char* at(std::uint16_t buffer) { return memory_ + buffer * kSize; }

  private:
    char* memory_ = nullptr;
    std::vector<std::uint16_t> free_;
};

}  // namespace httpmark
