// A place to listen at or to connect to: an IPv4 or IPv6 literal with a port, or a Unix path.
#ifndef HTTPMARK_NATIVE_SHARED_ENDPOINT_HPP_
#define HTTPMARK_NATIVE_SHARED_ENDPOINT_HPP_

#include <sys/socket.h>

#include <cstdint>
#include <optional>
#include <string>

namespace httpmark {

struct Endpoint {
    sockaddr_storage address = {};
    socklen_t length = 0;

    int family() const { return address.ss_family; }
    const sockaddr* sockaddr_ptr() const { return reinterpret_cast<const sockaddr*>(&address); }
    std::uint16_t port() const;
    void set_port(std::uint16_t port);
    // "127.0.0.1:80", "[::1]:80" or "unix:/path".
    std::string text() const;
};

// `host` is a literal; "localhost" means 127.0.0.1. Names are not resolved: the orchestrator does.
std::optional<Endpoint> parse_endpoint(const std::string& host, std::uint16_t port);
std::optional<Endpoint> unix_endpoint(const std::string& path);
// The address a socket is bound to.
std::optional<Endpoint> bound_endpoint(int fd);

// Raises the soft limit of open descriptors to the hard one and returns it.
std::uint64_t raise_descriptor_limit();

}  // namespace httpmark

#endif  // HTTPMARK_NATIVE_SHARED_ENDPOINT_HPP_
