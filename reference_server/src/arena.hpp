// One arena per worker for whatever outlives a read: size classes carved from 256 KiB steps, larger
// blocks mapped and unmapped on their own. Counted against the memory ceiling, never aborts.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace httpmark {

class Arena {
  public:
    explicit Arena(std::uint64_t bytes_max) : bytes_max_(bytes_max) {}
    Arena(const Arena&) = delete;
    Arena& operator=(const Arena&) = delete;
    ~Arena();

    // At least `size` octets, `capacity` says how many; nullptr over the ceiling or out of memory.
    char* allocate(std::size_t size, std::size_t& capacity);
    void release(char* block, std::size_t capacity);

    std::uint64_t bytes_in_use() const { return bytes_in_use_; }
    void set_bytes_max(std::uint64_t bytes_max) { bytes_max_ = bytes_max; }

  private:
    static constexpr std::size_t kClasses = 9;  // 256 B ... 64 KiB
    static constexpr std::size_t kSmallest = 256;
    static constexpr std::size_t kStep = 256 * 1024;
    struct FreeBlock {
        FreeBlock* next;
    };
    struct StepHeader {
        StepHeader* next;
    };

    std::array<FreeBlock*, kClasses> free_{};
    StepHeader* steps_ = nullptr;
    char* bump_ = nullptr;
    std::size_t bump_left_ = 0;
    std::uint64_t bytes_in_use_ = 0;
    std::uint64_t bytes_max_;
};

}  // namespace httpmark
