// A client with real sockets.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <string>

namespace httpmark {

// To the port of this machine; -1 when it is refused.
inline int connect_to(int port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0) return fd;
    close(fd);
    return -1;
}

// What comes on a connection until its end, which is closed then.
inline std::string ask_on(int fd, const std::string& request) {
    std::string out;
    (void)!write(fd, request.data(), request.size());
    char buffer[4096];
    ssize_t got = 0;
    while ((got = read(fd, buffer, sizeof buffer)) > 0)
        out.append(buffer, static_cast<std::size_t>(got));
    close(fd);
    return out;
}

inline std::string ask(int port, const std::string& request) {
    const int fd = connect_to(port);
    return fd >= 0 ? ask_on(fd, request) : std::string();
}
inline const std::string kLastGet = "GET /hello HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n";

// From the answer of `port`, or of a Unix socket.
inline int status_of(const std::string& answer) {
    return answer.starts_with("HTTP/1.1 ") ? std::atoi(answer.substr(9, 3).c_str()) : -1;
}
inline std::string request_of(const std::string& line, const std::string& fields = "",
                              const std::string& content = "") {
    return line + " HTTP/1.1\r\nHost: h\r\nConnection: close\r\n" + fields + "\r\n" + content;
}

}  // namespace httpmark
