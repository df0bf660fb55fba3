#include "files/file_root.hpp"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string_view>

namespace httpmark {

namespace {

// No pipe is waited for, and no terminal becomes this process's own.
constexpr int kFileFlags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
constexpr int kDirectoryFlags = O_PATH | O_DIRECTORY | O_CLOEXEC;
// openat2(2) gives up with EAGAIN where a name on the way is moved meanwhile, and any call may be
// interrupted by a signal.
constexpr int kTriesMax = 16;

FileFault fault_of(int error) {
    switch (error) {
        case ENOENT:
        case ENOTDIR:
        case ENAMETOOLONG:
            return FileFault::kMissing;
        case ELOOP:
            return FileFault::kLink;
        case EXDEV:
            return FileFault::kOutside;
        case EACCES:
        case EPERM:
            return FileFault::kForbidden;
        case ENXIO:
        case ENODEV:
            return FileFault::kNotRegular;
        case EMFILE:
        case ENFILE:
        case ENOMEM:
        case EAGAIN:
        case EINTR:
            return FileFault::kBusy;
        default:
            return FileFault::kFailed;
    }
}

// No segment is empty, "." or "..": a walk would follow them, and nobody should ask for them.
bool leads_down(std::string_view name) {
    while (true) {
        const std::size_t slash = name.find('/');
        const std::string_view segment = name.substr(0, slash);
        if (segment.empty() || segment == "." || segment == "..") return false;
        if (slash == name.npos) return true;
        name.remove_prefix(slash + 1);
    }
}

// As a descriptor, or -1 with errno set.
int open_beneath(int directory, const char* name, int flags, bool follow_links) {
    open_how how{};
    how.flags = static_cast<std::uint64_t>(flags);
    how.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS;
    if (!follow_links) how.resolve |= RESOLVE_NO_SYMLINKS;
    for (int tries = 1;; ++tries) {
        const long got = syscall(SYS_openat2, directory, name, &how, sizeof how);
        if (got >= 0 || (errno != EAGAIN && errno != EINTR) || tries == kTriesMax) {
            return static_cast<int>(got);
        }
    }
}

int open_no_link(int directory, const char* name, int flags) {
    for (int tries = 1;; ++tries) {
        const int got = openat(directory, name, flags | O_NOFOLLOW);
        if (got >= 0 || errno != EINTR || tries == kTriesMax) return got;
    }
}

// The system says of a link only that it is no directory.
int error_on_the_way(int directory, const char* name) {
    const int error = errno;
    struct stat status {};
    if (error == ENOTDIR && fstatat(directory, name, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
        S_ISLNK(status.st_mode)) {
        return ELOOP;
    }
    return error;
}

// Directory after directory, so that no link is followed and each step is one down.
int open_by_steps(int root, std::string_view name) {
    int directory = root;
    int got = -1;
    int error = 0;
    std::string segment;
    while (true) {
        const std::size_t slash = name.find('/');
        const bool is_last = slash == name.npos;
        segment = name.substr(0, slash);
        got = open_no_link(directory, segment.c_str(), is_last ? kFileFlags : kDirectoryFlags);
        if (got < 0) error = is_last ? errno : error_on_the_way(directory, segment.c_str());
        if (directory != root) close(directory);
        if (is_last || got < 0) break;
        directory = got;
        name.remove_prefix(slash + 1);
    }
    errno = error;
    return got;
}

FileTime time_of(const timespec& time) {
    return {time.tv_sec, static_cast<std::uint32_t>(time.tv_nsec)};
}

OpenedFile look_at(int descriptor) {
    struct stat status {};
    if (fstat(descriptor, &status) != 0) {
        const int error = errno;
        close(descriptor);
        return OpenedFile(fault_of(error));
    }
    if (!S_ISREG(status.st_mode)) {
        close(descriptor);
        return OpenedFile(S_ISDIR(status.st_mode) ? FileFault::kDirectory : FileFault::kNotRegular);
    }
    FileFacts facts;
    facts.size = static_cast<std::uint64_t>(status.st_size);
    facts.inode = status.st_ino;
    facts.modified = time_of(status.st_mtim);
    facts.changed = time_of(status.st_ctim);
    return OpenedFile(descriptor, facts);
}

}  // namespace

OpenedFile::~OpenedFile() {
    if (descriptor_ >= 0) close(descriptor_);
}

std::size_t OpenedFile::read(std::uint64_t offset, char* out, std::size_t size) const {
    std::size_t done = 0;
    while (done < size) {
        const ssize_t got =
            pread(descriptor_, out + done, size - done, static_cast<off_t>(offset + done));
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) break;
        done += static_cast<std::size_t>(got);
    }
    return done;
}

FileRoot::~FileRoot() {
    if (directory_ >= 0) close(directory_);
}

std::optional<FileRoot> FileRoot::open(const char* directory, const Options& options,
                                       std::string& error) {
    const int descriptor = ::open(directory, kDirectoryFlags);
    if (descriptor < 0) {
        error = std::string("cannot open the directory ") + directory + ": " + std::strerror(errno);
        return std::nullopt;
    }
    FileRoot root(descriptor, options);
    // Kernels before 5.6 and the filters of some containers do not have it.
    const int self = open_beneath(descriptor, ".", kDirectoryFlags, options.follow_links);
    if (self < 0) {
        root.options_.walk = true;
    } else {
        close(self);
    }
    return root;
}

OpenedFile FileRoot::open_file(const char* name) const {
    if (*name == '\0') return OpenedFile(FileFault::kDirectory);
    if (!leads_down(name)) return OpenedFile(FileFault::kOutside);
    const int got = options_.walk
                        ? open_by_steps(directory_, name)
                        : open_beneath(directory_, name, kFileFlags, options_.follow_links);
    return got < 0 ? OpenedFile(fault_of(errno)) : look_at(got);
}

}  // namespace httpmark
