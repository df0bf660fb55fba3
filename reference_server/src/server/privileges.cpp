#include "server/privileges.hpp"

#include <fcntl.h>
#include <grp.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pwd.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>

namespace httpmark {

namespace {

bool tell(std::string& why, const std::string& what) {
    why = what + ": " + std::strerror(errno);
    return false;
}

// The whole text is a number. -1 as an id means "leave it as it is" to the system: it is none.
bool parse_id(std::string_view text, std::uint32_t& id) {
    const char* const end = text.data() + text.size();
    const auto done = std::from_chars(text.data(), end, id);
    return done.ec == std::errc() && done.ptr == end && id != ~std::uint32_t{0};
}

// From the file alone: what else the C library asks for names would have to be loaded, which a
// static program cannot rely on.
std::optional<User> find_name(const std::string& name) {
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen("/etc/passwd", "re"),
                                                               std::fclose);
    if (file == nullptr) return std::nullopt;
    while (const passwd* const row = fgetpwent(file.get())) {
        if (name == row->pw_name) return User{row->pw_uid, row->pw_gid};
    }
    return std::nullopt;
}

// Landlock as the kernel documents it; the headers of older systems know less of it.
struct RulesetAttributes {
    std::uint64_t handled_files;
    std::uint64_t handled_net;
};
struct [[gnu::packed]] PathAttributes {
    std::uint64_t allowed;
    std::int32_t parent;
};
constexpr long kCreateRuleset = 444;
constexpr long kAddRule = 445;
constexpr long kRestrictSelf = 446;
constexpr unsigned kVersionFlag = 1;
constexpr unsigned kPathBeneath = 1;

constexpr std::uint64_t kWriteFile = 1U << 1;
constexpr std::uint64_t kReadFile = 1U << 2;
constexpr std::uint64_t kReadFolder = 1U << 3;
constexpr std::uint64_t kRemoveFile = 1U << 5;
constexpr std::uint64_t kMakeFile = 1U << 8;
constexpr std::uint64_t kCutFile = 1U << 14;
constexpr std::uint64_t kOfFiles = kReadFile | kWriteFile | kCutFile;
constexpr std::uint64_t kReading = kReadFile | kReadFolder;
constexpr std::uint64_t kWriting = kWriteFile | kRemoveFile | kMakeFile;
constexpr std::uint64_t kEachNet = 3;  // to bind and to connect

// What each version of Landlock can forbid of files: all but to execute and to read came with the
// first one. Moving to other folders, cutting and controls of devices came later.
constexpr std::uint64_t files_of(int version) {
    const unsigned rights = version >= 5 ? 16 : version >= 3 ? 15 : version == 2 ? 14 : 13;
    return (std::uint64_t{1} << rights) - 1;
}

bool allow(int rules, const std::string& path, std::uint64_t rights, std::string& why) {
    const int descriptor = open(path.c_str(), O_PATH | O_CLOEXEC);
    if (descriptor < 0) return tell(why, path);
    struct stat facts {};
    // Rights on folders are none that a rule for a file may name.
    if (fstat(descriptor, &facts) == 0 && !S_ISDIR(facts.st_mode)) rights &= kOfFiles;
    const PathAttributes rule{rights, descriptor};
    const bool added = syscall(kAddRule, rules, kPathBeneath, &rule, 0) == 0 || tell(why, path);
    close(descriptor);
    return added;
}

bool restrict_files(const Reach& reach, std::string& why) {
    const long version = syscall(kCreateRuleset, nullptr, 0, kVersionFlag);
    if (version < 1) return tell(why, "this kernel has no Landlock");
    const RulesetAttributes attributes{files_of(static_cast<int>(version)), kEachNet};
    const std::size_t size = version >= 4 ? sizeof attributes : sizeof attributes.handled_files;
    const int rules = static_cast<int>(syscall(kCreateRuleset, &attributes, size, 0));
    if (rules < 0) return tell(why, "Landlock");
    // Where a file may be written it may be cut, as soon as that is a right of its own.
    const std::uint64_t writing = version >= 3 ? kWriting | kCutFile : kWriting;
    const auto each = [&](const std::vector<std::string>& paths, std::uint64_t rights) {
        return std::ranges::all_of(
            paths, [&](const std::string& path) { return allow(rules, path, rights, why); });
    };
    const bool held = each(reach.read, kReading) && each(reach.write, kReading | writing) &&
                      (syscall(kRestrictSelf, rules, 0) == 0 || tell(why, "Landlock"));
    close(rules);
    return held;
}

#if defined(__x86_64__)
constexpr std::uint32_t kMachine = AUDIT_ARCH_X86_64;
constexpr std::uint32_t kOtherCalls = 0x40000000;  // of x32: the same calls by other numbers
#elif defined(__aarch64__)
constexpr std::uint32_t kMachine = AUDIT_ARCH_AARCH64;
constexpr std::uint32_t kOtherCalls = 0xFFFFFFFF;
#else
constexpr std::uint32_t kMachine = 0;
constexpr std::uint32_t kOtherCalls = 0xFFFFFFFF;
#endif

// No request needs any of them: the server listens, its threads are started by clone, and the rings
// of io_uring are made. Such a ring could still make a socket; Landlock lets it connect to nothing.
constexpr std::uint32_t kRefusedCalls[] = {
    SYS_execve,
    SYS_execveat,
    SYS_socket,
    SYS_socketpair,
    SYS_connect,
    SYS_bind,
    SYS_listen,
    SYS_ptrace,
    SYS_process_vm_readv,
    SYS_process_vm_writev,
    SYS_kcmp,
    SYS_mount,
    SYS_umount2,
    SYS_pivot_root,
    SYS_chroot,
    SYS_unshare,
    SYS_setns,
    SYS_init_module,
    SYS_finit_module,
    SYS_delete_module,
    SYS_kexec_load,
    SYS_bpf,
    SYS_perf_event_open,
    SYS_io_uring_setup,
    SYS_userfaultfd,
    SYS_add_key,
    SYS_request_key,
    SYS_keyctl,
    SYS_open_by_handle_at,
    SYS_swapon,
    SYS_swapoff,
    SYS_acct,
    SYS_quotactl,
    SYS_reboot,
#ifdef SYS_fork
    SYS_fork,
    SYS_vfork,
#endif
};

// A program of the filter: the machine, then each call; what is refused fails with EPERM.
bool refuse_calls(std::string& why) {
    if (kMachine == 0) {
        why = "the calls of this machine are not known";
        return false;
    }
    constexpr std::size_t kCalls = std::size(kRefusedCalls);
    static_assert(kCalls + 1 < 256, "a jump is a byte");
    std::array<sock_filter, kCalls + 7> program{};
    std::size_t at = 0;
    const auto add = [&](unsigned code, std::uint32_t k, std::size_t yes = 0, std::size_t no = 0) {
        program[at++] = {static_cast<std::uint16_t>(code), static_cast<std::uint8_t>(yes),
                         static_cast<std::uint8_t>(no), k};
    };
    add(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, arch));
    add(BPF_JMP | BPF_JEQ | BPF_K, kMachine, 1, 0);
    add(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
    add(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr));
    // Each goes on to the next one, or over all that are left and over what allows.
    add(BPF_JMP | BPF_JGE | BPF_K, kOtherCalls, kCalls + 1, 0);
    for (std::size_t i = 0; i < kCalls; ++i) {
        add(BPF_JMP | BPF_JEQ | BPF_K, kRefusedCalls[i], kCalls - i, 0);
    }
    add(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    add(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM);
    const sock_fprog filter{static_cast<unsigned short>(at), program.data()};
    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0 || tell(why, "seccomp");
}

}  // namespace

std::optional<User> find_user(std::string_view text, std::string& why) {
    const std::size_t colon = text.find(':');
    std::uint32_t id = 0;
    if (parse_id(text.substr(0, colon), id)) {
        std::uint32_t group = id;
        if (colon == text.npos || parse_id(text.substr(colon + 1), group)) return User{id, group};
    }
    const std::optional<User> named = find_name(std::string(text));
    if (!named) why = std::string(text) + " is no user of /etc/passwd, and no UID or UID:GID";
    return named;
}

bool become(const User& user, std::string& why) {
    const bool changed =
        setgroups(0, nullptr) == 0 && setgid(user.group) == 0 && setuid(user.id) == 0;
    if (!changed) return tell(why, "cannot become the user " + std::to_string(user.id));
    if (user.id != 0 && setuid(0) == 0) {
        why = "the user " + std::to_string(user.id) + " could become root again";
        return false;
    }
    return true;
}

bool confine(const Reach& reach, std::string& why) {
    // Without it neither can be asked for, and no program could be started with more rights.
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return tell(why, "no new privileges");
    return restrict_files(reach, why) && refuse_calls(why);
}

}  // namespace httpmark
