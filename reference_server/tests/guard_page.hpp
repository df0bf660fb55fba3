// Memory that ends where reading is fatal: a load past the end of the input kills the test.
#pragma once

#include <sys/mman.h>

#include <cstring>
#include <string_view>

#include "check.hpp"

namespace httpmark {

class GuardPage {
  public:
    GuardPage() {
        void* block = mmap(nullptr, kRoom + kPage, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        CHECK(block != MAP_FAILED);
        base_ = static_cast<char*>(block);
        CHECK(mprotect(base_ + kRoom, kPage, PROT_NONE) == 0);
    }
    ~GuardPage() { munmap(base_, kRoom + kPage); }
    GuardPage(const GuardPage&) = delete;
    GuardPage& operator=(const GuardPage&) = delete;

    // A copy of `input` whose last byte is the last one that can be read.
    const char* place(std::string_view input) {
        CHECK(input.size() <= kRoom);
        char* const at = base_ + kRoom - input.size();
        std::memcpy(at, input.data(), input.size());
        return at;
    }

  private:
    static constexpr std::size_t kPage = 4096;
    static constexpr std::size_t kRoom = 256 * 1024;
    char* base_;
};

}  // namespace httpmark
