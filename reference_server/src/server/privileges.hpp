// What a server gives up before it serves: its user, and what no request needs. Each is for the
// calling thread and those that it starts from then on.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace httpmark {

struct User {
    uid_t id = 0;
    gid_t group = 0;
};

// "name", as /etc/passwd has it, "UID" (and the group of that number) or "UID:GID". No other
// source of names is asked. nullopt with `why` set.
std::optional<User> find_user(std::string_view text, std::string& why);

// The whole process is that user from now on, in that group alone, and cannot go back. False with
// `why` set.
bool become(const User& user, std::string& why);

// What a confined process may still open by its path.
struct Reach {
    // Files, or folders with all below them. In a folder of `write` files are also made and
    // removed.
    std::vector<std::string> read = {};
    std::vector<std::string> write = {};
};

// By Landlock: nothing else is opened, and from Linux 6.7 on no TCP connection or listener is made.
// By seccomp: no program is started, no socket made, no other process looked into, no file system
// mounted and no module loaded. False with `why` set where the kernel lacks either; a part of it
// may hold then.
bool confine(const Reach& reach, std::string& why);

}  // namespace httpmark
