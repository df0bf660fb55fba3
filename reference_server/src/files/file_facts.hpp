// What is known of a file that was opened, and why one was not.
#pragma once

#include <cstdint>

namespace httpmark {

enum class FileFault : std::uint8_t {
    kNone,
    kMissing,     // no such name
    kDirectory,   // a directory, where a file is asked for
    kNotRegular,  // a device, a pipe or a socket
    kLink,        // a symbolic link where none is followed, or too many
    kOutside,     // the name leads out of the root
    kForbidden,   // the system does not let this process read it
    kBusy,        // no descriptor or memory is left, or names were changed all the while
    kFailed,      // anything else, such as a disk that cannot be read
};

struct FileTime {
    std::int64_t seconds = 0;  // since 1970
    std::uint32_t nanoseconds = 0;
};

struct FileFacts {
    std::uint64_t size = 0;
    std::uint64_t inode = 0;
    FileTime modified;  // of the content; programs can set it to anything
    FileTime changed;   // of content or attributes; the system alone sets it
};

}  // namespace httpmark
