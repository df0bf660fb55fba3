#include "server/server.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <new>
#include <utility>

#include "check.hpp"
#include "net/log.hpp"
#include "net/metrics.hpp"
#include "net/worker.hpp"
#include "scan/scan.hpp"
#include "server/listeners.hpp"

namespace httpmark {

namespace {

unsigned cpu_count() {
    return static_cast<unsigned>(std::max(sysconf(_SC_NPROCESSORS_ONLN), 1L));
}

void* run_worker(void* worker) {
    static_cast<Worker*>(worker)->run();
    return nullptr;
}

// Threads that are started meanwhile take no signal: those are for the application's own threads.
class NoSignals {
  public:
    NoSignals() {
        sigset_t all;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before_);
    }
    ~NoSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
    NoSignals(const NoSignals&) = delete;
    NoSignals& operator=(const NoSignals&) = delete;

  private:
    sigset_t before_;
};

// Tells two of the same. The first that answers a fault has answered it.
class BothObservers final : public Observer {
  public:
    BothObservers(Observer& first, Observer& second) : first_(first), second_(second) {}
    void on_error(const ErrorEvent& event) override {
        first_.on_error(event);
        second_.on_error(event);
    }
    bool answer_error(const ErrorEvent& event, ResponseWriter& writer) override {
        return first_.answer_error(event, writer) || second_.answer_error(event, writer);
    }
    void on_answer(const AnswerEvent& event) override {
        first_.on_answer(event);
        second_.on_answer(event);
    }

  private:
    Observer& first_;
    Observer& second_;
};

}  // namespace

// The members stand in the order in which they are made: what is made later is gone first.
struct Server::State {
    explicit State(const ServerOptions& asked) : options(asked) {}
    ~State() {
        stop(true);
        join();
    }

    bool start(Router::Builder& routes, StartError& error);
    bool settle(std::string& why);
    bool add_worker(unsigned number, StartError& error);
    void observe(unsigned number, Worker& worker);
    bool start_log(std::string& why);
    bool start_threads(StartError& error);
    void stop(bool at_once) {
        const int before = errno;  // a signal handler leaves it as it was
        for (const auto& worker : workers) worker->request_stop(at_once);
        errno = before;
    }
    void join() {
        for (const pthread_t thread : threads) pthread_join(thread, nullptr);
        threads.clear();
        unix_sockets.remove_files();
        log_writer = nullptr;  // the last lines first
    }

    ServerOptions options;
    ServerSettings settings;
    std::shared_ptr<const TlsContext> context;
    std::vector<Place> places;
    UnixSockets unix_sockets;
    std::vector<const Counters*> counters;
    std::shared_ptr<const Router> router;
    SharedState shared;
    std::vector<std::unique_ptr<AccessLog>> logs;
    std::vector<std::unique_ptr<BothObservers>> observers;
    std::vector<std::unique_ptr<Worker>> workers;
    std::unique_ptr<LogWriter> log_writer;
    std::vector<pthread_t> threads;
};

bool Server::State::start(Router::Builder& routes, StartError& error) {
    error = {StartError::Kind::kOptions, {}};
    if (!settle(error.text)) return false;
    Router::Builder all = routes;  // with what is this server's own
    if (!options.metrics_path.empty()) {
        all.add(method_bit(Method::kGet), options.metrics_path, metrics_handler(counters));
    }
    router = all.build(error.text);
    if (router == nullptr) return false;
    settings.router = router.get();
    if (!find_places(options, places, error)) return false;
    error.kind = StartError::Kind::kMachine;
    for (const std::string& path : options.unix_paths) {
        if (!unix_sockets.listen_on(path, options.limits.backlog, error)) return false;
    }
    for (unsigned i = 0; i < options.workers; ++i) {
        if (!add_worker(i, error)) return false;
    }
    unix_sockets.close_sockets();
    if (options.before_threads && !options.before_threads(error.text)) return false;
    const NoSignals blocked;
    if (!start_log(error.text) || !start_threads(error)) return false;
    error = {};
    return true;
}

// From what is asked for to what each worker is told. Each is given its share of memory, so that no
// counter is shared on the way of a request.
bool Server::State::settle(std::string& why) {
    if (options.workers == 0) options.workers = cpu_count();
    options.workers = std::min(options.workers, kWorkersMax);
    settings.limits = options.limits;
    settings.limits.memory_max /= options.workers;
    settings.strictness = options.strictness;
    settings.choices = options.choices;
    settings.wait_over_connections = options.wait_over_connections;
    settings.server_name = options.server_name;
    settings.kernel =
        options.scan_kernel.empty() ? best_scan_kernel() : find_scan_kernel(options.scan_kernel);
    for (const LimitRow& row : kLimitTable) {
        const std::uint64_t limit = options.limits.*row.value;
        if (limit >= row.lowest && limit <= row.highest) continue;
        why = std::string(row.flag) + " is a number from " + std::to_string(row.lowest) + " to " +
              std::to_string(row.highest);
        return false;
    }
    const bool has_port = options.port >= 0 || options.tls_port >= 0;
    for (const int port : {options.port, options.tls_port}) {
        if (port < ServerOptions::kNoPort || port > 65535)
            why = std::to_string(port) + " is no port: they go from 0 to 65535";
    }
    if (!why.empty()) return false;
    if ((options.addresses.empty() || !has_port) && options.unix_paths.empty()) {
        why = "there is nothing to listen on: no address with a port, no Unix socket";
    } else if (options.stack_size < kWorkerStackSize) {
        why = "stack_size is at least " + std::to_string(kWorkerStackSize);
    } else if (settings.kernel == nullptr) {
        why = options.scan_kernel + " is not a kernel that this machine can run";
    } else if (!engine_is_built(options.engine)) {
        why = "this build has no io_uring";
    } else if (options.server_name.size() > DateLine::kServerNameMax ||
               !field_is_safe({"Server", options.server_name})) {
        why = "the name of the server cannot stand in a field";
    } else if (options.limits.head_max < options.limits.target_max) {
        why = "head_max must not be less than target_max";
    } else if (options.tls_port >= 0) {
        context = TlsContext::load(options.tls, why);
    }
    return why.empty();
}

bool Server::State::add_worker(unsigned number, StartError& error) {
    // First of all, so that no socket is open where there is no memory for it.
    workers.push_back(std::make_unique<Worker>(settings, options.engine, shared));
    Worker& worker = *workers.back();
    const bool last = number + 1 == options.workers;
    std::vector<Worker::Listener> listeners;
    for (const Place& place : places) {
        const int fd = listen_on(place.address, place.port, true, options.limits, error);
        if (fd >= 0) listeners.push_back({fd, place.tls});
        if (fd < 0 || (options.steer && last && !steer_by_cpu(fd, options.workers, error))) {
            for (const Worker::Listener& listener : listeners) close(listener.socket);
            return false;
        }
    }
    for (const int fd : unix_sockets.sockets()) {
        listeners.push_back({fcntl(fd, F_DUPFD_CLOEXEC, 0), false});
        if (listeners.back().socket >= 0) continue;
        error.text = std::string("cannot share a Unix socket: ") + std::strerror(errno);
        listeners.pop_back();
        for (const Worker::Listener& listener : listeners) close(listener.socket);
        return false;
    }
    if (!worker.start(std::move(listeners), context, error.text)) return false;
    counters.push_back(&worker.counters());
    observe(number, worker);
    return true;
}

void Server::State::observe(unsigned number, Worker& worker) {
    Observer* observer = options.observer ? options.observer(number) : nullptr;
    if (!options.access_log.empty()) {
        logs.push_back(std::make_unique<AccessLog>(number));
        if (observer != nullptr) {
            observers.push_back(std::make_unique<BothObservers>(*logs.back(), *observer));
            observer = observers.back().get();
        } else {
            observer = logs.back().get();
        }
    }
    if (observer != nullptr) worker.set_observer(observer);
}

bool Server::State::start_log(std::string& why) {
    if (logs.empty()) return true;
    std::vector<AccessLog*> all;
    for (const auto& log : logs) all.push_back(log.get());
    log_writer = LogWriter::start(options.access_log, std::move(all), why);
    return log_writer != nullptr;
}

bool Server::State::start_threads(StartError& error) {
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    int fault = pthread_attr_setstacksize(&attributes, options.stack_size);
    for (unsigned i = 0; i < options.workers && fault == 0; ++i) {
        cpu_set_t cpus;
        CPU_ZERO(&cpus);
        CPU_SET(i % cpu_count(), &cpus);
        if (options.pin) pthread_attr_setaffinity_np(&attributes, sizeof cpus, &cpus);
        pthread_t thread{};
        fault = pthread_create(&thread, &attributes, run_worker, workers[i].get());
        if (fault == 0) threads.push_back(thread);
    }
    pthread_attr_destroy(&attributes);
    if (fault != 0) error.text = std::string("cannot start a thread: ") + std::strerror(fault);
    return fault == 0;
}

Server::Server(std::unique_ptr<State> state) : state_(std::move(state)) {}
Server::~Server() = default;

std::unique_ptr<Server> Server::start(Router::Builder& routes, const ServerOptions& options,
                                      StartError& error) {
    try {
        auto state = std::make_unique<State>(options);
        if (!state->start(routes, error)) return nullptr;
        return std::unique_ptr<Server>(new Server(std::move(state)));
    } catch (const std::bad_alloc&) {
        error = {StartError::Kind::kMachine, "there is not enough memory to start"};
        return nullptr;
    }
}

const std::vector<Server::Place>& Server::places() const {
    return state_->places;
}

int Server::port() const {
    const auto found = std::ranges::find(state_->places, false, &Place::tls);
    return found == state_->places.end() ? ServerOptions::kNoPort : found->port;
}

int Server::tls_port() const {
    const auto found = std::ranges::find(state_->places, true, &Place::tls);
    return found == state_->places.end() ? ServerOptions::kNoPort : found->port;
}

void Server::stop() {
    state_->stop(false);
}

void Server::stop_at_once() {
    state_->stop(true);
}

void Server::wait() {
    state_->join();
}

bool Server::reload_certificates(std::string& error) {
    if (state_->context == nullptr) return true;
    std::shared_ptr<const TlsContext> fresh = TlsContext::load(state_->options.tls, error);
    if (fresh == nullptr) return false;
    state_->context = fresh;
    for (const auto& worker : state_->workers) worker->request_tls(fresh);
    return true;
}

void Server::reopen_access_log() {
    if (state_->log_writer != nullptr) state_->log_writer->reopen();
}

const std::vector<const Counters*>& Server::counters() const {
    return state_->counters;
}

std::uint64_t Server::log_lines_lost() const {
    std::uint64_t lost = 0;
    for (const auto& log : state_->logs) lost += log->lost();
    return lost;
}

}  // namespace httpmark
