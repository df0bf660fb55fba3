// Opens regular files beneath a directory and nothing else. The only door to the file system of
// those that serve files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "files/file_facts.hpp"

namespace httpmark {

// A file open for reading, or why it is not. Closes what it holds.
class OpenedFile {
  public:
    explicit OpenedFile(FileFault fault) : fault_(fault) {}
    // Takes the descriptor over.
    OpenedFile(int descriptor, const FileFacts& facts) : descriptor_(descriptor), facts_(facts) {}
    OpenedFile(OpenedFile&& other) noexcept
        : descriptor_(other.release()), fault_(other.fault_), facts_(other.facts_) {}
    OpenedFile& operator=(OpenedFile&& other) noexcept {
        std::swap(descriptor_, other.descriptor_);
        fault_ = other.fault_;
        facts_ = other.facts_;
        return *this;
    }
    ~OpenedFile();

    FileFault fault() const { return fault_; }
    const FileFacts& facts() const { return facts_; }
    int descriptor() const { return descriptor_; }  // -1 with a fault
    // Bytes read from `offset` on: fewer than `size` only where the file ends or cannot be read.
    std::size_t read(std::uint64_t offset, char* out, std::size_t size) const;
    // The caller closes it from now on.
    int release() { return std::exchange(descriptor_, -1); }

  private:
    int descriptor_ = -1;
    FileFault fault_ = FileFault::kNone;
    FileFacts facts_;
};

class FileRoot {
  public:
    struct Options {
        // Symbolic links that stay beneath the root are followed; others never are.
        bool follow_links = true;
        // Asks for each directory by itself, as where the kernel has no openat2(2).
        bool walk = false;
    };

    // nullopt, with `error` set, where there is no such directory.
    static std::optional<FileRoot> open(const char* directory, const Options& options,
                                        std::string& error);
    FileRoot(FileRoot&& other) noexcept
        : directory_(std::exchange(other.directory_, -1)), options_(other.options_) {}
    FileRoot& operator=(FileRoot&& other) noexcept {
        std::swap(directory_, other.directory_);
        std::swap(options_, other.options_);
        return *this;
    }
    ~FileRoot();

    // `name` is one of TargetPath: segments with single slashes between them. Any other is refused
    // with kOutside, and an empty one is the root, a kDirectory. Never waits for the other end of a
    // pipe. May be called by several threads.
    OpenedFile open_file(const char* name) const;

    // False where openat2(2) cannot be had, whatever was asked: a walk follows no links.
    bool follows_links() const { return options_.follow_links && !options_.walk; }
    bool walks() const { return options_.walk; }

  private:
    FileRoot(int directory, const Options& options) : directory_(directory), options_(options) {}

    int directory_;
    Options options_;
};

}  // namespace httpmark
