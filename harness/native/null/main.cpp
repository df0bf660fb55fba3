// httpmark-null: the control server. See null/server.hpp.
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "null/server.hpp"
#include "shared/endpoint.hpp"
#include "shared/flags.hpp"

namespace {

using httpmark::die;
using httpmark::Endpoint;

constexpr const char* kUsage =
    "usage: httpmark-null --address A --port P [--workers N] [--tls-cert F --tls-key F\n"
    "                     [--tls-port P]]\n"
    "Answers every header section it can find the end of with 200 and \"Hello World!\",\n"
    "validates nothing, and costs as little as it can: the floor of every measurement.\n"
    "  --address A  IPv4 or IPv6 literal (127.0.0.1)\n"
    "  --port P     0 takes a free one (8080)\n"
    "  --workers N  threads, each with a listener of its own (1)\n"
    "  --tls-cert F, --tls-key F  PEM files: speak TLS on the port instead\n"
    "  --tls-port P  speak TLS there, and plain on the other; as many threads more\n";

int listen_at(const Endpoint& endpoint, bool shared) {
    const int fd = socket(endpoint.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    const int on = 1;
    if (fd < 0) return -1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (shared) setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof on);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);  // accepted sockets inherit it
    if (bind(fd, endpoint.sockaddr_ptr(), endpoint.length) != 0 ||
        (shared && listen(fd, httpmark::kNullBacklog) != 0)) {
        const int error = errno;
        close(fd);
        errno = error;
        return -1;
    }
    return fd;
}

// Workers, each with a listener and a thread of its own.
class Pool {
  public:
    Pool() : stop_fd_(eventfd(0, EFD_CLOEXEC)) {}
    ~Pool() { close(stop_fd_); }
    Pool(const Pool&) = delete;
    Pool& operator=(const Pool&) = delete;

    // `count` more, at `where`; returns where that is, as a port 0 means any.
    Endpoint add(Endpoint where, std::uint64_t count, const httpmark::TlsContext* context);
    void start() {
        for (auto& worker : workers_) threads_.emplace_back([&worker] { worker->run(); });
    }
    // False: they could not be told.
    bool stop();

  private:
    int stop_fd_;
    std::vector<std::unique_ptr<httpmark::NullWorker>> workers_;
    std::vector<std::thread> threads_;
};

Endpoint Pool::add(Endpoint where, std::uint64_t count, const httpmark::TlsContext* context) {
    const auto complain = [&] {
        die(httpmark::kExitEnvironment,
            "cannot listen on " + where.text() + ": " + std::strerror(errno));
    };
    // SO_REUSEPORT would let two servers share a port in silence; a first bind without it finds out
    // whether the port is somebody else's.
    const int trial = listen_at(where, false);
    if (trial < 0) complain();
    close(trial);
    for (std::uint64_t i = 0; i < count; ++i) {
        const int listener = listen_at(where, true);
        if (listener < 0) complain();
        if (i == 0) where = httpmark::bound_endpoint(listener).value_or(where);
        workers_.push_back(std::make_unique<httpmark::NullWorker>(listener, stop_fd_, context));
    }
    return where;
}

bool Pool::stop() {
    const std::uint64_t one = 1;
    if (write(stop_fd_, &one, sizeof one) != sizeof one) return false;
    for (std::thread& thread : threads_) thread.join();
    return true;
}

}  // namespace

int main(int argc, char** argv) {
    httpmark::Flags flags(argc, argv);
    if (flags.take_switch("--help")) {
        std::fputs(kUsage, stdout);
        return httpmark::kExitOk;
    }
    const std::string address = flags.take_string("--address", "127.0.0.1");
    const auto port = static_cast<std::uint16_t>(flags.take_number("--port", 8080, 0, 65535));
    const std::uint64_t workers = flags.take_number("--workers", 1, 1, 1024);
    const std::string certificate = flags.take_string("--tls-cert", "");
    const std::string key = flags.take_string("--tls-key", "");
    const auto tls_port = static_cast<std::uint16_t>(flags.take_number("--tls-port", 0, 0, 65535));
    flags.finish();
    if (tls_port != 0 && certificate.empty()) {
        die(httpmark::kExitUsage, "--tls-port needs --tls-cert and --tls-key");
    }
    if (certificate.empty() != key.empty()) {
        die(httpmark::kExitUsage, "--tls-cert and --tls-key belong together");
    }
    std::optional<httpmark::TlsContext> tls;
    if (!certificate.empty()) {
        std::string complaint;
        tls = httpmark::TlsContext::server(certificate, key, &complaint);
        if (!tls) die(httpmark::kExitUsage, complaint);
        signal(SIGPIPE, SIG_IGN);  // OpenSSL writes without MSG_NOSIGNAL
    }
    std::optional<Endpoint> endpoint = httpmark::parse_endpoint(address, port);
    if (!endpoint)
        die(httpmark::kExitUsage, "--address takes an IP address, not '" + address + "'");
    httpmark::raise_descriptor_limit();

    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    pthread_sigmask(SIG_BLOCK, &signals, nullptr);

    const httpmark::TlsContext* context = tls ? &*tls : nullptr;
    Pool pool;
    endpoint = pool.add(*endpoint, workers, tls_port == 0 ? context : nullptr);
    if (tls_port != 0) {
        pool.add(*httpmark::parse_endpoint(address, tls_port), workers, context);
    }
    std::printf("listening on %s\n", endpoint->text().c_str());
    std::fflush(stdout);

    pool.start();
    int signal_number = 0;
    sigwait(&signals, &signal_number);
    // Without a word to its workers the process ends all the same, and at once.
    if (!pool.stop()) std::_Exit(httpmark::kExitEnvironment);
    return httpmark::kExitOk;
}
