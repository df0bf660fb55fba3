// Part of an open file as the content of an answer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "files/file_root.hpp"
#include "http/response.hpp"

namespace httpmark {

// At most that much of a file is read at a time, into a room that each thread has once.
inline constexpr std::size_t kFileReadMax = 65536;

// `size` bytes from `offset` on; fewer where the file ends or cannot be read. They stay until the
// next such call in this thread. None where memory is short.
std::string_view read_file(const OpenedFile& file, std::uint64_t offset, std::size_t size);

// Of one answer, and gone with it: made by new, and deleted by release().
class FileContent final : public ContentSource {
  public:
    // The content begins at `first`.
    FileContent(OpenedFile file, std::uint64_t first) : file_(std::move(file)), first_(first) {}

    std::string_view read(std::uint64_t offset, std::size_t most) override;
    File file() const override { return {file_.descriptor(), first_}; }
    void release() override { delete this; }

  private:
    ~FileContent() = default;

    OpenedFile file_;
    std::uint64_t first_;
};

}  // namespace httpmark
