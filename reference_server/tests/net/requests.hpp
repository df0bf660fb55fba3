// Requests in a line, for tests of connections.
#pragma once

#include <string>
#include <vector>

#include "wire.hpp"

namespace httpmark {

inline const std::string kGet = "GET /hello HTTP/1.1\r\nHost: h\r\n\r\n";

inline std::string request(const std::string& line, const std::string& fields = "",
                           const std::string& content = "") {
    return line + "\r\nHost: h\r\n" + fields + "\r\n" + content;
}
inline Talk once(const std::string& octets, const ServerSettings& settings = {}) {
    return talk_in(octets, octets.size(), settings, 0);
}
using Statuses = std::vector<int>;

}  // namespace httpmark
