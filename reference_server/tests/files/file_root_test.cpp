#include "files/file_root.hpp"

#include <linux/filter.h>
#include <linux/fs.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <map>
#include <set>
#include <thread>
#include <vector>

#include "files/tree.hpp"
#include "laws.hpp"

namespace httpmark {
namespace {

constexpr std::string_view kSecret = "the secret above the folder";

FileRoot root_at(const std::filesystem::path& folder, const FileRoot::Options& options = {}) {
    std::string error;
    std::optional<FileRoot> root = FileRoot::open(folder.c_str(), options, error);
    CHECK(root.has_value());
    return std::move(*root);
}

// A folder to be served, "served", with a secret beside it and ways that lead there.
class Site : public Tree {
  public:
    Site() {
        file("secret", kSecret);
        file("outside/file", kSecret);
        file("served/file", "a file");
        file("served/empty", "");
        file("served/.hidden", "hidden");
        file("served/sub/file", "a file below");
        file("served/sub/deep/file", "a file deep below");
        directory("served/folder");
        link("served/link", "sub/file");
        link("served/sub/up", "../file");
        link("served/link-folder", "sub");
        link("served/link-out", "../secret");
        link("served/link-out-folder", "../outside");
        link("served/link-up-and-in", "../served/file");
        link("served/link-absolute", at("served/file"));
        link("served/link-etc", "/etc");
        link("served/link-process", "/proc/self/cwd");
        link("served/link-nowhere", "nothing");
        link("served/loop", "loop");
        CHECK(mkfifo(at("served/pipe").c_str(), 0644) == 0);
        bind_socket(at("served/socket"));
    }
    FileRoot root(bool follow_links, bool walk) const {
        return root_at(at("served"), {follow_links, walk});
    }

  private:
    static void bind_socket(const std::filesystem::path& path) {
        sockaddr_un address{};
        address.sun_family = AF_UNIX;
        CHECK(path.string().size() < sizeof address.sun_path);
        path.string().copy(address.sun_path, sizeof address.sun_path - 1);
        const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        CHECK(bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
        close(fd);
    }
};

bool has_openat2() {
    static const bool has = [] {
        const Tree tree;
        return !root_at(tree.at("")).walks();
    }();
    return has;
}

// Each way of looking a name up that this kernel has: links followed or not, one call or a walk.
std::vector<FileRoot::Options> every_way() {
    if (!has_openat2()) return {{true, true}, {false, true}};
    return {{true, false}, {false, false}, {true, true}, {false, true}};
}

TEST(FileRoot, each_kind_of_name) {
    struct Row {
        const char* name;
        FileFault with_links;
        FileFault without_links;
    };
    using enum FileFault;
    const Row rows[] = {{"file", kNone, kNone},
                        {"empty", kNone, kNone},
                        {".hidden", kNone, kNone},
                        {"sub/file", kNone, kNone},
                        {"sub/deep/file", kNone, kNone},
                        {"", kDirectory, kDirectory},
                        {"folder", kDirectory, kDirectory},
                        {"sub/deep", kDirectory, kDirectory},
                        {"nothing", kMissing, kMissing},
                        {"sub/nothing", kMissing, kMissing},
                        {"nothing/file", kMissing, kMissing},
                        {"file/file", kMissing, kMissing},
                        {"FILE", kMissing, kMissing},
                        {"pipe", kNotRegular, kNotRegular},
                        {"socket", kNotRegular, kNotRegular},
                        {"link", kNone, kLink},
                        {"sub/up", kNone, kLink},
                        {"link-folder/file", kNone, kLink},
                        {"link-folder/up", kNone, kLink},
                        {"link-folder", kDirectory, kLink},
                        {"link-nowhere", kMissing, kLink},
                        {"loop", kLink, kLink},
                        {"loop/file", kLink, kLink},
                        {"link-out", kOutside, kLink},
                        {"link-out-folder/file", kOutside, kLink},
                        {"link-up-and-in", kOutside, kLink},
                        {"link-absolute", kOutside, kLink},
                        {"link-etc/passwd", kOutside, kLink},
                        {"link-process/etc/passwd", kOutside, kLink},
                        {"..", kOutside, kOutside},
                        {"../secret", kOutside, kOutside},
                        {"sub/../file", kOutside, kOutside},
                        {"sub/..", kOutside, kOutside},
                        {"./file", kOutside, kOutside},
                        {".", kOutside, kOutside},
                        {"sub//file", kOutside, kOutside},
                        {"/file", kOutside, kOutside},
                        {"/etc/passwd", kOutside, kOutside},
                        {"file/", kOutside, kOutside},
                        {"/", kOutside, kOutside}};
    const Site site;
    const std::size_t before = open_descriptors();
    for (const FileRoot::Options& way : every_way()) {
        const FileRoot root = site.root(way.follow_links, way.walk);
        LAW(root.follows_links() == (way.follow_links && !way.walk) && root.walks() == way.walk);
        for (const Row& row : rows) {
            const OpenedFile file = root.open_file(row.name);
            const FileFault due = root.follows_links() ? row.with_links : row.without_links;
            LAW(file.fault() == due, << row.name << " " << static_cast<int>(file.fault()));
            LAW((file.descriptor() >= 0) == (due == kNone), << row.name);
        }
    }
    LAW(open_descriptors() == before);
}

TEST(FileRoot, what_it_opens_is_the_file_of_that_name) {
    const Site site;
    // Its content was changed long before its attributes.
    const timespec times[2] = {{784111777, 5}, {784111777, 5}};
    CHECK(utimensat(AT_FDCWD, site.at("served/file").c_str(), times, 0) == 0);
    for (const FileRoot::Options& way : every_way()) {
        const FileRoot root = site.root(way.follow_links, way.walk);
        for (const char* name : {"file", "empty", "sub/file", "sub/deep/file"}) {
            const OpenedFile file = root.open_file(name);
            struct stat status {};
            CHECK(stat((site.at("served") / name).c_str(), &status) == 0);
            const FileFacts& facts = file.facts();
            LAW(facts.inode == status.st_ino && facts.size == read_all(file.descriptor()).size());
            LAW(facts.modified.seconds == status.st_mtim.tv_sec &&
                facts.modified.nanoseconds == status.st_mtim.tv_nsec);
            LAW(facts.changed.seconds == status.st_ctim.tv_sec &&
                facts.changed.nanoseconds == status.st_ctim.tv_nsec);
            LAW((fcntl(file.descriptor(), F_GETFD) & FD_CLOEXEC) != 0);
            LAW((fcntl(file.descriptor(), F_GETFL) & O_ACCMODE) == O_RDONLY);
        }
    }
}

// Any name of a few segments, against what the C++ library finds behind it.
TEST(FileRoot, a_file_is_opened_only_where_the_library_finds_one_beneath) {
    const char* const pieces[] = {"file", "sub", "deep", "link", "link-folder", "link-out-folder",
                                  "..",   ".",   "up",   "",     "link-etc",    "passwd"};
    const Site site;
    const std::filesystem::path folder = site.at("served");
    const std::size_t before = open_descriptors();
    for (const FileRoot::Options& way : every_way()) {
        const FileRoot root = site.root(way.follow_links, way.walk);
        for (unsigned i = 0; i < 12 * 12 * 12; ++i) {
            std::string name = pieces[i % 12];
            if (i >= 12) name += std::string("/") + pieces[i / 12 % 12];
            if (i >= 144) name += std::string("/") + pieces[i / 144];
            const OpenedFile file = root.open_file(name.c_str());
            std::error_code failed;
            const auto real = std::filesystem::canonical(folder / name, failed);
            const bool is_file = !failed && std::filesystem::is_regular_file(real);
            const bool is_beneath = real.string().starts_with(folder.string() + "/");
            const bool is_plain = !name.empty() && folder / name == real;
            if (file.fault() != FileFault::kNone) {
                LAW(!is_file || !is_beneath || !is_plain, << name);
                continue;
            }
            LAW(is_file && is_beneath && (root.follows_links() || is_plain), << name);
            std::ifstream there(real, std::ios::binary);
            const std::string text{std::istreambuf_iterator<char>(there), {}};
            LAW(read_all(file.descriptor()) == text, << name);
        }
    }
    LAW(open_descriptors() == before);
}

TEST(FileRoot, names_too_long_for_the_system_are_missing) {
    const Site site;
    for (const FileRoot::Options& way : every_way()) {
        const FileRoot root = site.root(way.follow_links, way.walk);
        LAW(root.open_file(std::string(256, 'a').c_str()).fault() == FileFault::kMissing);
        LAW(root.open_file(std::string(4095, 'a').c_str()).fault() == FileFault::kMissing);
        std::string deep = "sub";
        while (deep.size() < 4090) deep += "/sub";
        LAW(root.open_file(deep.c_str()).fault() == FileFault::kMissing);
    }
}

TEST(FileRoot, what_may_not_be_read_is_forbidden) {
    Site site;
    site.file("served/locked/file", "x");
    CHECK(chmod(site.at("served/file").c_str(), 0200) == 0);
    CHECK(chmod(site.at("served/locked").c_str(), 0600) == 0);
    const bool is_superuser = geteuid() == 0;
    if (is_superuser) CHECK(seteuid(65534) == 0);
    for (const FileRoot::Options& way : every_way()) {
        const FileRoot root = site.root(way.follow_links, way.walk);
        LAW(root.open_file("file").fault() == FileFault::kForbidden);
        LAW(root.open_file("locked/file").fault() == FileFault::kForbidden);
        LAW(root.open_file("sub/file").fault() == FileFault::kNone);
    }
    if (is_superuser) CHECK(seteuid(0) == 0);
    CHECK(chmod(site.at("served/locked").c_str(), 0700) == 0);
}

TEST(FileRoot, without_descriptors_it_is_busy_and_none_is_lost) {
    const Site site;
    for (const FileRoot::Options& way : every_way()) {
        const FileRoot root = site.root(way.follow_links, way.walk);
        const std::size_t before = open_descriptors();
        rlimit limit{};
        CHECK(getrlimit(RLIMIT_NOFILE, &limit) == 0);
        const int next = dup(0);
        close(next);
        // None, then one, then two: a walk of three steps holds two at a time.
        for (rlim_t more = 0; more < 3; ++more) {
            const rlimit few{static_cast<rlim_t>(next) + more, limit.rlim_max};
            CHECK(setrlimit(RLIMIT_NOFILE, &few) == 0);
            const FileFault fault = root.open_file("sub/deep/file").fault();
            CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
            const rlim_t needed = way.walk ? 2 : 1;
            LAW(fault == (more < needed ? FileFault::kBusy : FileFault::kNone), << more);
        }
        LAW(open_descriptors() == before);
    }
}

TEST(FileRoot, a_descriptor_is_closed_once) {
    const Site site;
    const std::size_t before = open_descriptors();
    {
        FileRoot root = site.root(true, false);
        FileRoot other = std::move(root);
        root = std::move(other);
        OpenedFile file = root.open_file("file");
        OpenedFile moved = std::move(file);
        LAW(file.descriptor() == -1 && read_all(moved.descriptor()) == "a file");
        file = std::move(moved);
        file = root.open_file("sub/file");
        LAW(read_all(file.descriptor()) == "a file below");
        LAW(open_descriptors() == before + 2);
        const int own = file.release();
        file = OpenedFile(FileFault::kMissing);
        LAW(read_all(own) == "a file below");
        close(own);
    }
    LAW(open_descriptors() == before);
}

TEST(FileRoot, a_root_that_is_no_directory_is_told) {
    const Site site;
    for (const char* name : {"nothing", "secret"}) {
        std::string error;
        LAW(!FileRoot::open(site.at(name).c_str(), {}, error));
        LAW(error.find(site.at(name).string() + ": ") != error.npos, << error);
    }
}

// While one thread swaps a directory for a link to the outside, again and again, no open leads
// there. It may find nothing.
TEST(FileRoot, a_directory_that_is_swapped_for_a_link_leads_nowhere_else) {
    for (const FileRoot::Options& way : every_way()) {
        Site site;
        site.link("served/door", "../outside");
        const std::string folder = site.at("served/sub");
        const std::string door = site.at("served/door");
        const FileRoot root = site.root(way.follow_links, way.walk);
        std::atomic<bool> stop{false};
        std::atomic<unsigned> swaps{0};
        std::thread swapper([&] {
            while (!stop.load()) {
                const long done = syscall(SYS_renameat2, AT_FDCWD, folder.c_str(), AT_FDCWD,
                                          door.c_str(), RENAME_EXCHANGE);
                CHECK(done == 0);
                ++swaps;
            }
        });
        std::set<FileFault> seen;
        unsigned opened = 0;
        for (unsigned i = 0; i < 20000 || swaps.load() < 1000; ++i) {
            const OpenedFile file = root.open_file("sub/file");
            seen.insert(file.fault());
            if (file.fault() != FileFault::kNone) continue;
            ++opened;
            LAW(read_all(file.descriptor()) == "a file below");
        }
        stop.store(true);
        swapper.join();
        LAW(opened > 0 && seen.size() > 1, << opened);
        const FileFault refused = root.follows_links() ? FileFault::kOutside : FileFault::kLink;
        for (const FileFault fault : seen) {
            LAW(fault == FileFault::kNone || fault == refused || fault == FileFault::kBusy ||
                    fault == FileFault::kMissing,
                << static_cast<int>(fault));
        }
    }
}

// A link upwards and down again, while the directory it goes through is moved out of the root.
TEST(FileRoot, a_directory_that_is_moved_out_takes_nobody_along) {
    for (const FileRoot::Options& way : every_way()) {
        Site site;
        site.file("outside/target", kSecret);
        site.file("served/target", "the target inside");
        site.link("served/sub/deep/out", "../../target");
        const std::string inside = site.at("served/sub");
        const std::string outside = site.at("outside/sub");
        const FileRoot root = site.root(way.follow_links, way.walk);
        std::atomic<bool> stop{false};
        std::atomic<unsigned> moves{0};
        std::thread mover([&] {
            while (!stop.load()) {
                CHECK(std::rename(inside.c_str(), outside.c_str()) == 0);
                CHECK(std::rename(outside.c_str(), inside.c_str()) == 0);
                ++moves;
            }
        });
        for (unsigned i = 0; i < 20000 || moves.load() < 1000; ++i) {
            const OpenedFile file = root.open_file("sub/deep/out");
            if (file.fault() != FileFault::kNone) continue;
            LAW(root.follows_links() && read_all(file.descriptor()) == "the target inside");
        }
        stop.store(true);
        mover.join();
    }
}

// As a child, for a filter cannot be taken off again: openat2(2) gives `error` from now on.
bool deny_openat2(int error) {
    sock_filter steps[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat2, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | static_cast<unsigned>(error)),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const sock_fprog program{std::size(steps), steps};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

TEST(FileRoot, where_openat2_is_denied_it_walks) {
    constexpr int kNoFilter = 77;
    const Site site;
    for (const int error : {ENOSYS, EPERM}) {
        const pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0) {
            if (!deny_openat2(error)) _exit(kNoFilter);
            const FileRoot root = site.root(true, false);
            const bool walks = root.walks() && !root.follows_links();
            const bool opens = read_all(root.open_file("sub/file").descriptor()) == "a file below";
            const bool refuses = root.open_file("link-out").fault() == FileFault::kLink;
            _exit(walks && opens && refuses ? 0 : 1);
        }
        int status = 0;
        CHECK(waitpid(child, &status, 0) == child);
        LAW(WIFEXITED(status) && (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == kNoFilter),
            << status);
        if (WIFEXITED(status) && WEXITSTATUS(status) == kNoFilter) {
            GTEST_SKIP() << "no seccomp filter can be set here";
        }
    }
}

}  // namespace
}  // namespace httpmark
