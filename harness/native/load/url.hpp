// http://host:port/path?query, as far as a load generator needs it.
#ifndef HTTPMARK_NATIVE_LOAD_URL_HPP_
#define HTTPMARK_NATIVE_LOAD_URL_HPP_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace httpmark {

struct LoadUrl {
    bool is_tls = false;
    std::string host;  // without brackets
    std::uint16_t port = 80;
    std::string authority;  // for the Host field: as written
    std::string target;     // path and query
};

std::optional<LoadUrl> parse_load_url(std::string_view text);

}  // namespace httpmark

#endif  // HTTPMARK_NATIVE_LOAD_URL_HPP_
