#include "server/listeners.hpp"

#include <arpa/inet.h>
#include <linux/filter.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <iterator>

#include "check.hpp"

namespace httpmark {

namespace {

struct Address {
    sockaddr_storage storage{};
    socklen_t size = 0;
};

bool fail(StartError& error, StartError::Kind kind, std::string text) {
    error = {kind, std::move(text)};
    return false;
}
bool fail_by_machine(StartError& error, const std::string& what) {
    return fail(error, StartError::Kind::kMachine, what + ": " + std::strerror(errno));
}

bool parse_address(const std::string& text, int port, Address& address) {
    auto* const v4 = reinterpret_cast<sockaddr_in*>(&address.storage);
    auto* const v6 = reinterpret_cast<sockaddr_in6*>(&address.storage);
    if (inet_pton(AF_INET, text.c_str(), &v4->sin_addr) == 1) {
        v4->sin_family = AF_INET;
        v4->sin_port = htons(static_cast<std::uint16_t>(port));
        address.size = sizeof *v4;
        return true;
    }
    if (inet_pton(AF_INET6, text.c_str(), &v6->sin6_addr) == 1) {
        v6->sin6_family = AF_INET6;
        v6->sin6_port = htons(static_cast<std::uint16_t>(port));
        address.size = sizeof *v6;
        return true;
    }
    return false;
}

int bound_port(int socket) {
    sockaddr_storage storage{};
    socklen_t size = sizeof storage;
    CHECK(getsockname(socket, reinterpret_cast<sockaddr*>(&storage), &size) == 0);
    if (storage.ss_family == AF_INET) {
        return ntohs(reinterpret_cast<sockaddr_in*>(&storage)->sin_port);
    }
    return ntohs(reinterpret_cast<sockaddr_in6*>(&storage)->sin6_port);
}

int listen_on_path(const std::string& path, std::uint64_t backlog, StartError& error) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (path.empty() || path.size() >= sizeof address.sun_path) {
        fail(error, StartError::Kind::kMachine,
             '\'' + path + "' cannot be the path of a Unix socket");
        return -1;
    }
    std::memcpy(address.sun_path, path.data(), path.size());
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    const bool bound =
        fd >= 0 && bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
    if (bound && listen(fd, static_cast<int>(backlog)) == 0) return fd;
    fail_by_machine(error, "cannot listen on " + path);
    if (bound) unlink(path.c_str());
    if (fd >= 0) close(fd);
    return -1;
}

// Whether a connection could be meant for either, as both would take what is sent to the port.
bool overlap(const Server::Place& one, const Server::Place& other) {
    Address a;
    Address b;
    if (one.port != other.port || !parse_address(one.address, one.port, a) ||
        !parse_address(other.address, other.port, b)) {
        return false;
    }
    const auto is_any = [](const Address& address) {
        const auto& v6 = reinterpret_cast<const sockaddr_in6&>(address.storage);
        return address.storage.ss_family == AF_INET6
                   ? IN6_IS_ADDR_UNSPECIFIED(&v6.sin6_addr) != 0
                   : reinterpret_cast<const sockaddr_in&>(address.storage).sin_addr.s_addr == 0;
    };
    return a.storage.ss_family == b.storage.ss_family &&
           (is_any(a) || is_any(b) || std::memcmp(&a.storage, &b.storage, a.size) == 0);
}

std::string name_of(const Server::Place& place) {
    return place.address + " port " + std::to_string(place.port) + (place.tls ? " (tls)" : "");
}

}  // namespace

int listen_on(const std::string& text, int port, bool shared, const Limits& limits,
              StartError& error) {
    Address address;
    CHECK(parse_address(text, port, address));
    const int fd = socket(address.storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    const int on = 1;
    bool ok = fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0 &&
              setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) == 0;
    // Connections have it from their listener. A limit on unsent octets alone does not slow a long
    // path down, as SO_SNDBUF would: what is under way is not counted.
    const auto unsent = static_cast<int>(limits.kernel_unsent_max);
    ok = ok && setsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &unsent, sizeof unsent) == 0;
    if (ok && address.storage.ss_family == AF_INET6) {
        ok = setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on) == 0;
    }
    if (ok && shared) ok = setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof on) == 0;
    ok = ok && bind(fd, reinterpret_cast<sockaddr*>(&address.storage), address.size) == 0 &&
         listen(fd, static_cast<int>(limits.backlog)) == 0;
    if (ok) return fd;
    fail_by_machine(error, "cannot listen on " + text + " port " + std::to_string(port));
    if (fd >= 0) close(fd);
    return -1;
}

bool steer_by_cpu(int socket, unsigned workers, StartError& error) {
    sock_filter program[] = {
        {BPF_LD | BPF_W | BPF_ABS, 0, 0, static_cast<std::uint32_t>(SKF_AD_OFF + SKF_AD_CPU)},
        {BPF_ALU | BPF_MOD | BPF_K, 0, 0, workers},
        {BPF_RET | BPF_A, 0, 0, 0},
    };
    const sock_fprog whole{std::size(program), program};
    if (setsockopt(socket, SOL_SOCKET, SO_ATTACH_REUSEPORT_CBPF, &whole, sizeof whole) == 0) {
        return true;
    }
    return fail_by_machine(error, "cannot steer connections");
}

// SO_REUSEPORT would let another process of this user share the port in silence: the first socket
// is bound without it to find out, and to learn which port 0 has become.
bool find_places(const ServerOptions& options, std::vector<Server::Place>& places,
                 StartError& error) {
    int free_ports[2] = {-1, -1};
    struct Trials {
        std::vector<int> sockets;
        ~Trials() {
            for (const int fd : sockets) close(fd);
        }
    } trials;  // open until all are found: port 0 never becomes the same port twice
    for (const std::string& address : options.addresses) {
        if (Address parsed; !parse_address(address, 0, parsed)) {
            return fail(error, StartError::Kind::kOptions,
                        '\'' + address + "' is not an IPv4 or IPv6 address");
        }
        for (const bool tls : {false, true}) {
            int port = tls ? options.tls_port : options.port;
            if (port < 0) continue;
            if (port == 0 && free_ports[tls] > 0) port = free_ports[tls];
            const Server::Place wanted{address, port, tls};
            for (const Server::Place& place : places) {
                if (!overlap(place, wanted)) continue;
                return fail(error, StartError::Kind::kOptions,
                            name_of(place) + " and " + name_of(wanted) +
                                " overlap: give each its own port");
            }
            const int trial = listen_on(address, port, false, options.limits, error);
            if (trial < 0) return false;
            trials.sockets.push_back(trial);
            port = free_ports[tls] = bound_port(trial);
            places.push_back({address, port, tls});
        }
    }
    return true;
}

UnixSockets::~UnixSockets() {
    close_sockets();
    remove_files();
}

bool UnixSockets::listen_on(const std::string& path, std::uint64_t backlog, StartError& error) {
    const int fd = listen_on_path(path, backlog, error);
    if (fd < 0) return false;
    sockets_.push_back(fd);
    paths_.push_back(path);
    return true;
}

void UnixSockets::close_sockets() {
    for (const int fd : sockets_) close(fd);
    sockets_.clear();
}

void UnixSockets::remove_files() {
    for (const std::string& path : paths_) unlink(path.c_str());
    paths_.clear();
}

}  // namespace httpmark
