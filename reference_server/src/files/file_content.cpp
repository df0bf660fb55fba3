#include "files/file_content.hpp"

#include <algorithm>
#include <memory>
#include <new>

#include "check.hpp"

namespace httpmark {

std::string_view read_file(const OpenedFile& file, std::uint64_t offset, std::size_t size) {
    // Taken by those threads that read files, and by them when they do.
    static thread_local const std::unique_ptr<char[]> room(new (std::nothrow) char[kFileReadMax]);
    CHECK(size <= kFileReadMax);
    if (room == nullptr) return {};
    return {room.get(), file.read(offset, room.get(), size)};
}

std::string_view FileContent::read(std::uint64_t offset, std::size_t most) {
    return read_file(file_, first_ + offset, std::min(most, kFileReadMax));
}

}  // namespace httpmark
