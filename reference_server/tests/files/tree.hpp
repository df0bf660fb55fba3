// A folder of files for one test, gone with it.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

#include "check.hpp"

namespace httpmark {

class Tree {
  public:
    Tree() {
        std::string pattern = std::filesystem::temp_directory_path() / "httpmark-files-XXXXXX";
        CHECK(mkdtemp(pattern.data()) != nullptr);
        folder_ = std::filesystem::canonical(pattern);
        // So that a test can look at it with fewer rights.
        CHECK(chmod(folder_.c_str(), 0755) == 0);
    }
    ~Tree() {
        std::error_code ignored;
        std::filesystem::remove_all(folder_, ignored);
    }
    Tree(const Tree&) = delete;
    Tree& operator=(const Tree&) = delete;

    std::filesystem::path at(const std::string& name) const { return folder_ / name; }
    // With the directories on the way.
    void file(const std::string& name, std::string_view text) {
        std::filesystem::create_directories(at(name).parent_path());
        std::ofstream(at(name), std::ios::binary) << text;
    }
    void directory(const std::string& name) { std::filesystem::create_directories(at(name)); }
    void link(const std::string& name, const std::string& to) {
        std::filesystem::create_directories(at(name).parent_path());
        std::filesystem::create_symlink(to, at(name));
    }

  private:
    std::filesystem::path folder_;
};

// What a file of that size may hold.
inline std::string text_of(std::size_t size) {
    std::string text;
    for (std::size_t i = 0; i < size; ++i) text += static_cast<char>('a' + i % 23);
    return text;
}

inline std::string read_all(int descriptor) {
    std::string out;
    char buffer[4096];
    ssize_t got = 0;
    while ((got = pread(descriptor, buffer, sizeof buffer, static_cast<off_t>(out.size()))) > 0) {
        out.append(buffer, static_cast<std::size_t>(got));
    }
    return out;
}

// Of this process.
inline std::size_t open_descriptors() {
    return static_cast<std::size_t>(
        std::distance(std::filesystem::directory_iterator("/proc/self/fd"),
                      std::filesystem::directory_iterator()));
}

}  // namespace httpmark
