// What the running server has given up, seen from outside.
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "command/certificate_pair.hpp"
#include "command/child.hpp"
#include "files/tree.hpp"
#include "needs.hpp"

namespace httpmark {
namespace {

std::string text_of(const std::filesystem::path& name) {
    std::ifstream file(name);
    return std::string(std::istreambuf_iterator<char>(file), {});
}
bool comes(const std::filesystem::path& name, const std::string& wanted) {
    for (unsigned i = 0; i < 300 && text_of(name).find(wanted) == std::string::npos; ++i) {
        usleep(10000);
    }
    return text_of(name).find(wanted) != std::string::npos;
}

// Whether the status of each thread of a process has this line.
bool each_thread_says(pid_t pid, const std::string& line) {
    const std::filesystem::path tasks = "/proc/" + std::to_string(pid) + "/task";
    return std::ranges::all_of(std::filesystem::directory_iterator(tasks), [&](const auto& task) {
        return text_of(task.path() / "status").find('\n' + line + '\n') != std::string::npos;
    });
}

bool lacks_landlock(const std::string& said) {
    if (said.find("this kernel has no Landlock") == std::string::npos) return false;
    LAW(!is_required("landlock"), << "HTTPMARK_REQUIRE lists landlock: " << said);
    return true;
}

TEST(ServePrivileges, it_serves_as_another_user) {
    Tree tree;
    tree.file("www/a", "for all");
    tree.file("www/b", "for root");
    CHECK(chmod(tree.at("www/b").c_str(), 0600) == 0);
    const std::vector<std::string> words{"--port", "0",           "--workers", "2",
                                         "--user", "65534:65533", "--static",  tree.at("www")};
    Child child(words);
    if (geteuid() != 0) {
        LAW(child.complaint().find("--user: cannot become") != std::string::npos);
        LAW(child.wait() == 3);
        return;
    }
    const int port = child.port();
    LAW(each_thread_says(child.pid, "Uid:\t65534\t65534\t65534\t65534"));
    LAW(each_thread_says(child.pid, "Gid:\t65533\t65533\t65533\t65533"));
    LAW(each_thread_says(child.pid, "Groups:\t "));
    LAW(each_thread_says(child.pid, "CapEff:\t0000000000000000"));
    LAW(status_of(ask(port, kLastGet)) == 200);
    LAW(ask(port, request_of("GET /static/a")).ends_with("for all"));
    LAW(status_of(ask(port, request_of("GET /static/b"))) >= 400);
    kill(child.pid, SIGTERM);
    LAW(child.wait() == 0);
    // What it could not open later, it does not open at all.
    std::vector<std::string> logged = words;
    logged.insert(logged.end(), {"--access-log", tree.at("log")});
    Child no_log(logged);
    LAW(no_log.complaint().find("Permission denied") != std::string::npos && no_log.wait() == 3);
    Child nobody({"--port", "0", "--user", "no such user"});
    LAW(nobody.complaint().find("--user: ") != std::string::npos && nobody.wait() == 2);
}

TEST(ServePrivileges, in_its_sandbox_it_serves_files_logs_and_certificates) {
    const CertificatePair pair;
    for (const char* engine : {"epoll", "uring", "uring-direct"}) {
        Tree tree;
        tree.file("www/a", "served");
        tree.directory("logs");
        const std::string unix_path = tree.at("logs/socket");
        std::vector<std::string> words{"--port",
                                       "0",
                                       "--tls-port",
                                       "0",
                                       "--workers",
                                       "2",
                                       "--engine",
                                       engine,
                                       "--sandbox",
                                       "--static",
                                       tree.at("www"),
                                       "--access-log",
                                       tree.at("logs/log"),
                                       "--unix",
                                       unix_path};
        const std::vector<std::string> tls = pair.words();
        words.insert(words.end(), tls.begin(), tls.end());
        Child child(words);
        const std::string first = child.line();
        if (lacks_uring(engine, first) || lacks_landlock(first)) continue;
        const int port = Child::port_of(first);
        LAW(each_thread_says(child.pid, "Seccomp:\t2"), << engine);
        LAW(each_thread_says(child.pid, "NoNewPrivs:\t1"), << engine);
        LAW(ask(port, request_of("GET /static/a")).ends_with("served"));
        // Opened anew: the log under its old name, and the certificate.
        std::filesystem::rename(tree.at("logs/log"), tree.at("logs/old"));
        kill(child.pid, SIGHUP);
        for (unsigned i = 0; i < 300 && !std::filesystem::exists(tree.at("logs/log")); ++i) {
            usleep(10000);
        }
        LAW(status_of(ask(port, request_of("GET /after"))) == 200);
        LAW(comes(tree.at("logs/log"), "GET /after "), << engine);
        kill(child.pid, SIGTERM);
        const std::string said = child.rest();
        LAW(said.find("certificates read again\n") != std::string::npos, << said);
        LAW(child.wait() == 0);
        LAW(!std::filesystem::exists(unix_path));
    }
}

}  // namespace
}  // namespace httpmark
