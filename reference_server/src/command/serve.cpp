#include "command/serve.hpp"

#include <pthread.h>
#include <sys/resource.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <thread>

#include "app/static_files.hpp"
#include "command/complain.hpp"
#include "server/server.hpp"

namespace httpmark {

namespace {

void raise_descriptor_limit() {
    rlimit limit{};
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
}

sigset_t block_signals() {
    sigset_t signals;
    sigemptyset(&signals);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGUSR1}) sigaddset(&signals, signal);
    pthread_sigmask(SIG_BLOCK, &signals, nullptr);
    return signals;
}

void print_places(const Server& server, const ServerOptions& options) {
    for (const Server::Place& place : server.places()) {
        const bool v6 = place.address.find(':') != std::string::npos;
        std::printf("listening on %s%s%s:%d%s\n", v6 ? "[" : "", place.address.c_str(),
                    v6 ? "]" : "", place.port, place.tls ? " (tls)" : "");
    }
    for (const std::string& path : options.unix_paths) {
        std::printf("listening on unix:%s\n", path.c_str());
    }
    std::fflush(stdout);
}

void print_counters(const Server& server) {
    const auto sum = [&](const std::atomic<std::uint64_t> Counters::*counter) {
        std::uint64_t total = 0;
        for (const Counters* one : server.counters()) {
            total += (one->*counter).load(std::memory_order_relaxed);
        }
        return static_cast<unsigned long long>(total);
    };
    std::printf(
        "accepted %llu closed %llu requests %llu refused %llu timeouts %llu bytes_in %llu "
        "bytes_out %llu log_lines_lost %llu\n",
        sum(&Counters::accepted), sum(&Counters::closed), sum(&Counters::requests),
        sum(&Counters::refused), sum(&Counters::timeouts), sum(&Counters::bytes_in),
        sum(&Counters::bytes_out), static_cast<unsigned long long>(server.log_lines_lost()));
    for (std::size_t reason = 1; reason < static_cast<std::size_t>(Reason::kCount); ++reason) {
        unsigned long long count = 0;
        for (const Counters* one : server.counters()) {
            count += one->errors[reason].load(std::memory_order_relaxed);
        }
        if (count != 0) {
            std::printf("error %s %llu\n", error_row(static_cast<Reason>(reason)).name, count);
        }
    }
    std::fflush(stdout);
}

// A new pair that cannot be used leaves the old one in service.
void reload_certificates(Server& server) {
    std::string error;
    if (!server.reload_certificates(error)) {
        complain("certificates are kept as they are: %s", error.c_str());
        return;
    }
    std::printf("certificates read again\n");
    std::fflush(stdout);
}

// Until all workers have left. A second request to stop does not wait for answers.
void wait_for_signals(Server& server, const sigset_t& signals) {
    std::atomic<bool> joined = false;
    std::thread joiner;
    while (true) {
        int signal = 0;
        sigwait(&signals, &signal);
        if (signal == SIGUSR1) {
            if (joined) break;  // sent by the joiner below
            print_counters(server);
        } else if (signal == SIGHUP) {
            if (joiner.joinable()) continue;
            server.reopen_access_log();
            if (server.tls_port() >= 0) reload_certificates(server);
        } else if (joiner.joinable()) {
            server.stop_at_once();
        } else {
            server.stop();
            try {
                joiner = std::thread([&server, &joined, main = pthread_self()] {
                    server.wait();
                    joined = true;
                    pthread_kill(main, SIGUSR1);
                });
            } catch (const std::system_error&) {
                server.wait();  // by this one thread: a second signal waits, too
                return;
            }
        }
    }
    joiner.join();
}

std::string folder_of(const std::filesystem::path& path) {
    return path.has_parent_path() ? path.parent_path() : ".";
}

// Of a file that may be replaced by another one of its name: its folder. Of a device, itself.
std::string place_of(const std::filesystem::path& path) {
    std::error_code ignored;
    const std::filesystem::file_status facts = std::filesystem::status(path, ignored);
    return exists(facts) && !is_regular_file(facts) ? path.string() : folder_of(path);
}

// What is opened after the start: files to be served, certificates at SIGHUP, which may have been
// replaced by renaming, and the log. The file of a Unix socket is removed at the end.
Reach reach_of(const Options& options) {
    Reach reach;
    if (!options.static_directory.empty()) reach.read.push_back(options.static_directory);
    const TlsSettings& tls = options.server.tls;
    std::vector<std::string> files{tls.client_ca, tls.key_password_file};
    for (const TlsSettings::Pair& pair : tls.pairs) {
        files.insert(files.end(), {pair.certificate, pair.key});
    }
    for (const std::string& file : files) {
        if (!file.empty()) reach.read.push_back(place_of(file));
    }
    if (!options.server.access_log.empty()) {
        reach.write.push_back(place_of(options.server.access_log));
    }
    for (const std::string& path : options.server.unix_paths) {
        reach.write.push_back(folder_of(path));
    }
    return reach;
}

bool give_up(const Options& options, std::string& why) {
    const auto told = [&](const char* flag) {
        why = flag + why;
        return false;
    };
    if (options.user && !become(*options.user, why)) return told("--user: ");
    if (options.sandbox && !confine(reach_of(options), why)) return told("--sandbox: ");
    return true;
}

}  // namespace

int run(Router::Builder& routes, const ServerOptions& options, bool prints_counters) {
    const sigset_t signals = block_signals();
    raise_descriptor_limit();
    StartError error;
    const std::unique_ptr<Server> server = Server::start(routes, options, error);
    if (server == nullptr) {
        complain("%s", error.text.c_str());
        return error.kind == StartError::Kind::kOptions ? kExitUsage : kExitEnvironment;
    }
    print_places(*server, options);
    wait_for_signals(*server, signals);
    if (prints_counters) print_counters(*server);
    return 0;
}

int serve(Options& options, AddRoutes add_routes) {
    Router::Builder routes;
    add_routes(routes);
    if (options.metrics) options.server.metrics_path = "/metrics";
    if (!options.static_directory.empty()) {
        std::string why;
        const auto files = StaticFiles::open(options.static_directory.c_str(), {}, why);
        if (files == nullptr) {
            complain("--static: %s", why.c_str());
            return kExitUsage;
        }
        StaticFiles::add(routes, "/static", files);
    }
    for (const ContentRule& rule : options.content_rules) {
        routes.limit_content(rule.path, rule.body_max, rule.wants_length, rule.media_type);
    }
    options.server.before_threads = [&options](std::string& why) { return give_up(options, why); };
    return run(routes, options.server, options.stats);
}

}  // namespace httpmark
