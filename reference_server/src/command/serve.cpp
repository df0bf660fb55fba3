#include "command/serve.hpp"

#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "check.hpp"
#include "command/complain.hpp"
#include "command/listeners.hpp"
#include "limits.hpp"
#include "net/log.hpp"
#include "net/metrics.hpp"
#include "net/worker.hpp"

namespace httpmark {

namespace {

long cpu_count() {
    return std::max(sysconf(_SC_NPROCESSORS_ONLN), 1L);
}

void raise_descriptor_limit() {
    rlimit limit{};
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
}

void* run_worker(void* worker) {
    static_cast<Worker*>(worker)->run();
    return nullptr;
}

// The members stand in the order in which they are made: what is made later is gone first.
class Service {
  public:
    Service(Options& options, AddRoutes add_routes) : options_(options), add_routes_(add_routes) {}

    int run() {
        block_signals();
        raise_descriptor_limit();
        share_out();
        if (!load_certificates() || !build_router()) return kExitUsage;
        if (const int fault = find_places(options_, places_); fault != 0) return fault;
        for (const std::string& path : options_.unix_paths) {
            if (!unix_sockets_.listen_on(path, options_.settings.limits.backlog)) {
                return kExitEnvironment;
            }
        }
        for (unsigned i = 0; i < options_.workers; ++i) {
            if (!start_worker(i)) return kExitEnvironment;
        }
        unix_sockets_.close_sockets();
        if (!start_log()) return kExitEnvironment;
        start_threads();
        print_places();
        wait_for_signals();
        unix_sockets_.remove_files();
        log_writer_ = nullptr;  // the last lines first
        if (options_.stats) print_counters();
        return 0;
    }

  private:
    void block_signals() {
        sigemptyset(&signals_);
        for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGUSR1}) sigaddset(&signals_, signal);
        pthread_sigmask(SIG_BLOCK, &signals_, nullptr);
    }

    // Each worker is given its share of memory, so that no counter is shared on the way of a
    // request.
    void share_out() {
        if (options_.workers == 0) {
            options_.workers =
                static_cast<unsigned>(std::min(cpu_count(), static_cast<long>(kWorkersMax)));
        }
        options_.settings.limits.memory_max /= options_.workers;
        options_.settings.server_name = options_.server_name;
    }

    bool load_certificates() {
        if (options_.tls_port < 0) return true;
        context_ = TlsContext::load(options_.tls, error_);
        return context_ != nullptr || complain("%s", error_.c_str());
    }

    bool build_router() {
        Router::Builder routes;
        add_routes_(routes);
        if (options_.metrics) {
            routes.add(method_bit(Method::kGet), "/metrics", metrics_handler(counters_));
        }
        for (const ContentRule& rule : options_.content_rules) {
            routes.limit_content(rule.path, rule.body_max, rule.wants_length, rule.media_type);
        }
        router_ = routes.build(error_);
        if (router_ == nullptr) return complain("%s", error_.c_str());
        options_.settings.router = router_.get();
        return true;
    }

    bool start_worker(unsigned number) {
        const bool last = number + 1 == options_.workers;
        std::vector<Worker::Listener> listeners;
        for (const Place& place : places_) {
            const int fd =
                listen_on(place.address, place.port, true, options_.settings.limits.backlog);
            if (fd < 0) return false;
            listeners.push_back({fd, place.tls});
            if (options_.steer && last && !steer_by_cpu(fd, options_.workers)) return false;
        }
        for (const int fd : unix_sockets_.sockets()) listeners.push_back({dup(fd), false});
        workers_.push_back(std::make_unique<Worker>(options_.settings, options_.engine, shared_));
        Worker& worker = *workers_.back();
        if (!worker.start(std::move(listeners), context_, error_)) {
            return complain("%s", error_.c_str());
        }
        counters_.push_back(&worker.counters());
        if (!options_.access_log.empty()) {
            logs_.push_back(std::make_unique<AccessLog>(number));
            worker.set_observer(logs_.back().get());
        }
        return true;
    }

    bool start_log() {
        if (logs_.empty()) return true;
        std::vector<AccessLog*> all;
        for (const auto& log : logs_) all.push_back(log.get());
        log_writer_ = LogWriter::start(options_.access_log, std::move(all), error_);
        return log_writer_ != nullptr || complain("%s", error_.c_str());
    }

    // Leaves the process where a thread cannot be had: those before it run already.
    void start_threads() {
        pthread_attr_t attributes;
        pthread_attr_init(&attributes);
        pthread_attr_setstacksize(&attributes, kWorkerStackSize);
        for (unsigned i = 0; i < options_.workers; ++i) {
            cpu_set_t cpus;
            CPU_ZERO(&cpus);
            CPU_SET(i % static_cast<unsigned>(cpu_count()), &cpus);
            if (options_.pin) pthread_attr_setaffinity_np(&attributes, sizeof cpus, &cpus);
            pthread_t thread{};
            const int fault = pthread_create(&thread, &attributes, run_worker, workers_[i].get());
            if (fault != 0) {
                complain("cannot start a thread: %s", std::strerror(fault));
                unix_sockets_.remove_files();
                std::_Exit(kExitEnvironment);
            }
            threads_.push_back(thread);
        }
        pthread_attr_destroy(&attributes);
    }

    void print_places() const {
        for (const Place& place : places_) {
            const bool v6 = place.address.find(':') != std::string::npos;
            std::printf("listening on %s%s%s:%d%s\n", v6 ? "[" : "", place.address.c_str(),
                        v6 ? "]" : "", place.port, place.tls ? " (tls)" : "");
        }
        for (const std::string& path : options_.unix_paths) {
            std::printf("listening on unix:%s\n", path.c_str());
        }
        std::fflush(stdout);
    }

    // Until all workers have left.
    void wait_for_signals() {
        std::atomic<bool> joined = false;
        std::thread joiner;
        while (true) {
            int signal = 0;
            sigwait(&signals_, &signal);
            if (signal == SIGUSR1) {
                if (joined) break;  // sent by the joiner below
                print_counters();
            } else if (signal == SIGHUP) {
                if (log_writer_ != nullptr) log_writer_->reopen();
                if (context_ != nullptr && !joiner.joinable()) reload_certificates();
            } else {
                const bool stopping = joiner.joinable();
                for (const auto& worker : workers_) worker->request_stop(stopping);
                if (stopping) continue;
                joiner = std::thread([this, &joined, main = pthread_self()] {
                    for (const pthread_t thread : threads_) pthread_join(thread, nullptr);
                    joined = true;
                    pthread_kill(main, SIGUSR1);
                });
            }
        }
        joiner.join();
    }

    // A new pair that cannot be used leaves the old one in service.
    void reload_certificates() {
        std::shared_ptr<const TlsContext> fresh = TlsContext::load(options_.tls, error_);
        if (fresh == nullptr) {
            complain("certificates are kept as they are: %s", error_.c_str());
            return;
        }
        context_ = fresh;
        for (const auto& worker : workers_) worker->request_tls(fresh);
        std::printf("certificates read again\n");
        std::fflush(stdout);
    }

    void print_counters() const {
        const auto sum = [&](const std::atomic<std::uint64_t> Counters::*counter) {
            std::uint64_t total = 0;
            for (const auto& worker : workers_) {
                total += (worker->counters().*counter).load(std::memory_order_relaxed);
            }
            return static_cast<unsigned long long>(total);
        };
        unsigned long long lost = 0;
        for (const auto& log : logs_) lost += log->lost();
        std::printf(
            "accepted %llu closed %llu requests %llu refused %llu timeouts %llu bytes_in %llu "
            "bytes_out %llu log_lines_lost %llu\n",
            sum(&Counters::accepted), sum(&Counters::closed), sum(&Counters::requests),
            sum(&Counters::refused), sum(&Counters::timeouts), sum(&Counters::bytes_in),
            sum(&Counters::bytes_out), lost);
        for (std::size_t reason = 1; reason < static_cast<std::size_t>(Reason::kCount); ++reason) {
            unsigned long long count = 0;
            for (const auto& worker : workers_) {
                count += worker->counters().errors[reason].load(std::memory_order_relaxed);
            }
            if (count != 0) {
                std::printf("error %s %llu\n", error_row(static_cast<Reason>(reason)).name, count);
            }
        }
        std::fflush(stdout);
    }

    Options& options_;
    AddRoutes add_routes_;
    sigset_t signals_{};
    std::string error_;
    std::shared_ptr<const TlsContext> context_;
    std::vector<Place> places_;
    UnixSockets unix_sockets_;
    std::vector<const Counters*> counters_;
    std::shared_ptr<const Router> router_;
    SharedState shared_;
    std::vector<std::unique_ptr<AccessLog>> logs_;
    std::vector<std::unique_ptr<Worker>> workers_;
    std::unique_ptr<LogWriter> log_writer_;
    std::vector<pthread_t> threads_;
};

}  // namespace

int serve(Options& options, AddRoutes add_routes) {
    return Service(options, add_routes).run();
}

}  // namespace httpmark
