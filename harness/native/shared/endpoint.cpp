#include "shared/endpoint.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/un.h>

#include <cstddef>
#include <cstring>

namespace httpmark {

std::uint16_t Endpoint::port() const {
    if (family() == AF_INET) return ntohs(reinterpret_cast<const sockaddr_in&>(address).sin_port);
    if (family() == AF_INET6)
        return ntohs(reinterpret_cast<const sockaddr_in6&>(address).sin6_port);
    return 0;
}

void Endpoint::set_port(std::uint16_t port) {
    if (family() == AF_INET) reinterpret_cast<sockaddr_in&>(address).sin_port = htons(port);
    if (family() == AF_INET6) reinterpret_cast<sockaddr_in6&>(address).sin6_port = htons(port);
}

std::string Endpoint::text() const {
    char buffer[INET6_ADDRSTRLEN] = {};
    if (family() == AF_INET) {
        inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in&>(address).sin_addr, buffer,
                  sizeof buffer);
        return std::string(buffer) + ":" + std::to_string(port());
    }
    if (family() == AF_INET6) {
        inet_ntop(AF_INET6, &reinterpret_cast<const sockaddr_in6&>(address).sin6_addr, buffer,
                  sizeof buffer);
        return std::string("[").append(buffer).append("]:").append(std::to_string(port()));
    }
    return std::string("unix:").append(reinterpret_cast<const sockaddr_un&>(address).sun_path);
}

std::optional<Endpoint> parse_endpoint(const std::string& host, std::uint16_t port) {
    Endpoint endpoint;
    std::string literal = host == "localhost" ? "127.0.0.1" : host;
    if (literal.size() > 2 && literal.front() == '[' && literal.back() == ']') {
        literal = literal.substr(1, literal.size() - 2);
    }
    auto& v4 = reinterpret_cast<sockaddr_in&>(endpoint.address);
    auto& v6 = reinterpret_cast<sockaddr_in6&>(endpoint.address);
    if (inet_pton(AF_INET, literal.c_str(), &v4.sin_addr) == 1) {
        v4.sin_family = AF_INET;
        endpoint.length = sizeof(sockaddr_in);
    } else if (inet_pton(AF_INET6, literal.c_str(), &v6.sin6_addr) == 1) {
        v6.sin6_family = AF_INET6;
        endpoint.length = sizeof(sockaddr_in6);
    } else {
        return std::nullopt;
    }
    endpoint.set_port(port);
    return endpoint;
}

std::optional<Endpoint> unix_endpoint(const std::string& path) {
    Endpoint endpoint;
    auto& local = reinterpret_cast<sockaddr_un&>(endpoint.address);
    if (path.empty() || path.size() >= sizeof local.sun_path) return std::nullopt;
    local.sun_family = AF_UNIX;
    std::memcpy(local.sun_path, path.c_str(), path.size() + 1);
    endpoint.length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + path.size() + 1);
    return endpoint;
}

std::optional<Endpoint> bound_endpoint(int fd) {
    Endpoint endpoint;
    endpoint.length = sizeof endpoint.address;
    if (getsockname(fd, reinterpret_cast<sockaddr*>(&endpoint.address), &endpoint.length) != 0) {
        return std::nullopt;
    }
    return endpoint;
}

std::uint64_t raise_descriptor_limit() {
    rlimit limit = {};
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return 1024;
    if (limit.rlim_cur < limit.rlim_max) {
        const rlim_t before = limit.rlim_cur;
        limit.rlim_cur = limit.rlim_max;
        if (setrlimit(RLIMIT_NOFILE, &limit) != 0) limit.rlim_cur = before;
    }
    return limit.rlim_cur;
}

}  // namespace httpmark
