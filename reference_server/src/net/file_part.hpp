// Part of a file that is open for reading.
#pragma once

#include <cstddef>
#include <cstdint>

namespace httpmark {

struct FilePart {
    int descriptor;
    std::uint64_t offset;
    std::size_t size;
};

}  // namespace httpmark
