// The command as a process of its own.
#pragma once

#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "check.hpp"
#include "client.hpp"
#include "laws.hpp"

namespace httpmark {

struct Child {
    pid_t pid = -1;
    int out = -1;

    explicit Child(std::vector<std::string> arguments, const char* simd = nullptr,
                   rlim_t descriptors = 0) {
        int pipe_ends[2];
        CHECK(pipe(pipe_ends) == 0);
        pid = fork();
        CHECK(pid >= 0);
        if (pid == 0) {
            dup2(pipe_ends[1], 1);
            dup2(pipe_ends[1], 2);
            close(pipe_ends[0]);
            close(pipe_ends[1]);
            if (descriptors != 0) {
                const rlimit limit{descriptors, descriptors};
                setrlimit(RLIMIT_NOFILE, &limit);
            }
            if (simd != nullptr) setenv("HTTPMARK_SIMD", simd, 1);
            std::vector<char*> argv{const_cast<char*>(HTTPMARK_SERVER_BINARY)};
            for (std::string& argument : arguments) argv.push_back(argument.data());
            argv.push_back(nullptr);
            execv(HTTPMARK_SERVER_BINARY, argv.data());
            _exit(127);
        }
        close(pipe_ends[1]);
        out = pipe_ends[0];
    }
    ~Child() {
        if (pid > 0) {
            kill(pid, SIGKILL);
            waitpid(pid, nullptr, 0);
        }
        close(out);
    }
    std::string line() {
        std::string text;
        char c = 0;
        while (read(out, &c, 1) == 1 && c != '\n') text += c;
        return text;
    }
    std::string rest() {
        std::string text;
        char c = 0;
        while (read(out, &c, 1) == 1) text += c;
        return text;
    }
    int wait() {
        int status = 0;
        CHECK(waitpid(pid, &status, 0) == pid);
        pid = -1;
        return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    }
    // The first line of one that is to leave by itself; where it listens instead, it is ended.
    std::string complaint() {
        const std::string text = line();
        if (text.starts_with("listening on ")) kill(pid, SIGKILL);
        return text;
    }
    int port() { return port_of(line()); }
    // From "listening on 127.0.0.1:PORT".
    static int port_of(const std::string& text) {
        LAW(text.starts_with("listening on "), << text);
        return std::atoi(text.substr(text.rfind(':') + 1).c_str());
    }
};

}  // namespace httpmark
