// A running server: workers with their sockets, around an application's routes.
//
//     httpmark::StartError error;
//     const auto server = httpmark::Server::start(routes, {.port = 0}, error);
//     if (server == nullptr) ...                     // error.text says why
//     std::printf("port %d\n", server->port());
//     server->wait();                                // until another thread, or a signal, stops it
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "app/router.hpp"
#include "limits.hpp"
#include "net/counters.hpp"
#include "net/engine.hpp"
#include "net/observer.hpp"
#include "net/tls_settings.hpp"

namespace httpmark {

struct ServerOptions {
    static constexpr int kNoPort = -1;

    std::vector<std::string> addresses = {"127.0.0.1"};  // IPv4 or IPv6
    int port = 8080;                                     // 0 takes a free one
    int tls_port = kNoPort;                              // the same, for TLS
    std::vector<std::string> unix_paths = {};            // of Unix sockets to listen on
    // Threads, each with a listener of its own: at most kWorkersMax; 0: one for each CPU.
    unsigned workers = 0;
    std::size_t stack_size = kWorkerStackSize;  // of each; handlers run there
    bool pin = false;                           // worker N stays on CPU N
    bool steer = false;  // worker N gets the connections that arrive on CPU N
    Engine engine = Engine::kEpoll;
    TlsSettings tls = {};
    Limits limits = {};
    Strictness strictness = Strictness::kStrict;
    Choices choices = {};
    // Over Limits::connections_max no more are accepted, instead of a 503 to each.
    bool wait_over_connections = false;
    std::string server_name = {};   // of the Server field; none is sent where it is empty
    std::string access_log = {};    // a file to which a line is appended for each answer
    std::string metrics_path = {};  // where counters are served for Prometheus
    // Is asked once for each worker, from 0 on, for who is told of what happens there; nullptr for
    // nobody. Observers outlive the server.
    std::function<Observer*(unsigned worker)> observer = {};
    // Is asked once, when the server listens and before its first thread: what it gives up, all
    // threads lack. False, with `why` set, and the server does not start.
    std::function<bool(std::string& why)> before_threads = {};
    std::string scan_kernel = {};  // by name; empty: the fastest that this machine runs
};

struct StartError {
    enum class Kind : std::uint8_t {
        kNone,
        kOptions,  // routes or options that cannot be used
        kMachine,  // the machine does not give what they ask for
    };
    Kind kind = Kind::kNone;
    std::string text = {};  // in one line
};

class Server {
  public:
    // Serves when it returns. nullptr with `error` set. The routes are copied, and may be served
    // again.
    static std::unique_ptr<Server> start(Router::Builder& routes, const ServerOptions& options,
                                         StartError& error);
    // Stops at once what is still running.
    ~Server();
    Server(const Server&) = delete;
    Server& operator=(const Server&) = delete;

    struct Place {
        std::string address;
        int port;
        bool tls;
    };
    // Where it listens, in the order of the options.
    const std::vector<Place>& places() const;
    // Of the first place without TLS and the first with it; ServerOptions::kNoPort without one.
    int port() const;
    int tls_port() const;

    // No more is accepted, idle connections are closed, others after their answer or after
    // Limits::drain_timeout_ms. From any thread and from a signal handler, as often as one likes.
    void stop();
    // The same without waiting for answers.
    void stop_at_once();
    // Until all workers have left, and the log is written. In one thread.
    void wait();

    // Reads the certificates of the options again. False with `error` set: those before stay.
    bool reload_certificates(std::string& error);
    // Opens the access log again: logs are rotated by renaming.
    void reopen_access_log();
    // Of each worker. They may be read at any time.
    const std::vector<const Counters*>& counters() const;
    // Lines for which the access log had no room in time.
    std::uint64_t log_lines_lost() const;

  private:
    struct State;
    explicit Server(std::unique_ptr<State> state);
    std::unique_ptr<State> state_;
};

}  // namespace httpmark
