#include "load/url.hpp"

#include <charconv>

namespace httpmark {

std::optional<LoadUrl> parse_load_url(std::string_view text) {
    LoadUrl url;
    constexpr std::string_view kPlain = "http://";
    constexpr std::string_view kSecure = "https://";
    if (text.starts_with(kSecure)) {
        url.is_tls = true;
        url.port = 443;
        text.remove_prefix(kSecure.size());
    } else if (text.starts_with(kPlain)) {
        text.remove_prefix(kPlain.size());
    } else if (text.find("://") != std::string_view::npos) {
        return std::nullopt;
    }
    for (const char c : text) {
        if (static_cast<unsigned char>(c) <= 0x20 || c == 0x7f) return std::nullopt;
    }
    const std::size_t end = text.find_first_of("/?#");
    const std::string_view authority = text.substr(0, end);
    std::string_view target = end == std::string_view::npos ? "" : text.substr(end);
    target = target.substr(0, target.find('#'));
    url.authority = authority;
    url.target = target;
    if (!target.starts_with('/')) url.target.insert(0, "/");

    std::string_view host = authority;
    std::string_view port;
    if (authority.starts_with('[')) {
        const std::size_t close = authority.find(']');
        if (close == std::string_view::npos) return std::nullopt;
        host = authority.substr(1, close - 1);
        const std::string_view rest = authority.substr(close + 1);
        if (!rest.empty() && !rest.starts_with(':')) return std::nullopt;
        port = rest.empty() ? rest : rest.substr(1);
    } else if (const std::size_t colon = authority.find(':'); colon != std::string_view::npos) {
        host = authority.substr(0, colon);
        port = authority.substr(colon + 1);
    }
    if (host.empty()) return std::nullopt;
    url.host = host;
    if (!port.empty()) {
        unsigned value = 0;
        const auto [stop, error] = std::from_chars(port.data(), port.data() + port.size(), value);
        if (error != std::errc() || stop != port.data() + port.size() || value == 0 ||
            value > 65535) {
            return std::nullopt;
        }
        url.port = static_cast<std::uint16_t>(value);
    }
    return url;
}

}  // namespace httpmark
