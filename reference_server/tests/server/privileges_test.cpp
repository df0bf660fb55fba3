#include "server/privileges.hpp"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <functional>
#include <string>
#include <thread>

#include "laws.hpp"
#include "needs.hpp"

namespace httpmark {
namespace {

TEST(Privileges, a_user_is_a_name_or_numbers) {
    std::string why;
    const auto is = [&](const char* text, uid_t id, gid_t group) {
        const auto user = find_user(text, why);
        return user && user->id == id && user->group == group;
    };
    LAW(is("root", 0, 0) && is("0", 0, 0) && is("65534:7", 65534, 7) && is("12", 12, 12));
    for (const char* text : {"", "no such user", "1:", ":1", "1:root", "-1", "4294967295",
                             "1:4294967295", "4294967296", "1:2:3", "1 "}) {
        why.clear();
        LAW(!find_user(text, why) && why.find("/etc/passwd") != why.npos, << text << " " << why);
    }
}

// What a process of its own says: 0 where all went well, else which step did not.
int said_by(const std::function<int()>& act) {
    const pid_t child = fork();
    if (child == 0) _exit(act());
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

TEST(Privileges, a_user_stays_what_it_has_become) {
    if (geteuid() != 0) {
        std::string why;
        LAW(!become({geteuid() + 1, 1}, why) && why.find("cannot become") != why.npos, << why);
        return;
    }
    const int step = said_by([] {
        std::string why;
        if (!become({65534, 65533}, why)) return 1;
        if (getuid() != 65534 || geteuid() != 65534) return 2;
        if (getgid() != 65533 || getegid() != 65533) return 3;
        if (getgroups(0, nullptr) != 0) return 4;
        if (setuid(0) == 0 || setgid(0) == 0) return 5;
        return become({0, 0}, why) ? 6 : 0;
    });
    LAW(step == 0, << step);
}

bool is_refused_by(int code, int wanted) {
    return code == -1 && errno == wanted;
}

TEST(Privileges, a_confined_process_reaches_what_was_named_and_nothing_else) {
    const std::string folder = testing::TempDir() + "httpmark-reach-" + std::to_string(getpid());
    for (const char* part : {"", "/read", "/write", "/other"}) mkdir((folder + part).c_str(), 0755);
    for (const char* name : {"/read/a", "/write/a", "/other/a", "/one"}) {
        std::ofstream(folder + name) << "text";
    }
    const auto opened = [&](const char* name, int flags) {
        const int descriptor = open((folder + name).c_str(), flags, 0644);
        if (descriptor >= 0) close(descriptor);
        return descriptor < 0 ? -1 : 0;
    };
    const int step = said_by([&] {
        std::string why;
        if (!confine({{folder + "/read", folder + "/one"}, {folder + "/write"}}, why)) return 100;
        int failed = 0;
        const auto check = [&](int number, bool holds) {
            if (!holds && failed == 0) failed = number;
        };
        // Threads that are started later are confined, too.
        std::thread([&] {
            check(1, opened("/read/a", O_RDONLY) == 0);
            check(2, opened("/one", O_RDONLY) == 0);
            check(3, opened("/write/a", O_WRONLY | O_APPEND) == 0);
            check(4, opened("/write/new", O_WRONLY | O_CREAT) == 0);
            check(5, unlink((folder + "/write/new").c_str()) == 0);
            check(6, is_refused_by(opened("/other/a", O_RDONLY), EACCES));
            check(7, is_refused_by(opened("/read/a", O_WRONLY), EACCES));
            check(8, is_refused_by(opened("/read/new", O_WRONLY | O_CREAT), EACCES));
            check(9, is_refused_by(unlink((folder + "/read/a").c_str()), EACCES));
            check(10, is_refused_by(open("/etc/passwd", O_RDONLY), EACCES));
            check(11, is_refused_by(socket(AF_INET, SOCK_STREAM, 0), EPERM));
            check(12, is_refused_by(socket(AF_UNIX, SOCK_STREAM, 0), EPERM));
            char name[] = "/bin/true";
            char* const words[] = {name, nullptr};
            check(13, is_refused_by(execv(name, words), EPERM));
        }).join();
        return failed;
    });
    for (const char* name : {"/read/a", "/write/a", "/other/a", "/one"}) {
        unlink((folder + name).c_str());
    }
    for (const char* part : {"/read", "/write", "/other", ""}) rmdir((folder + part).c_str());
    if (step == 100 && !is_required("landlock")) GTEST_SKIP() << "no Landlock or seccomp here";
    LAW(step == 0, << step);
}

TEST(Privileges, what_is_not_there_cannot_be_allowed) {
    const int step = said_by([] {
        std::string why;
        if (confine({{"/no/such/folder"}, {}}, why)) return 1;
        // Either there is no Landlock, or the path is at fault.
        const bool told =
            why.find("/no/such/folder") != why.npos || why.find("Landlock") != why.npos;
        return told ? 0 : 2;
    });
    LAW(step == 0, << step);
}

}  // namespace
}  // namespace httpmark
