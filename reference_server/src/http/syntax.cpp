#include "http/syntax.hpp"

namespace httpmark {

namespace {

constexpr unsigned kPortMax = 65535;

// dec-octet "." dec-octet "." dec-octet "." dec-octet
bool is_ipv4_address(std::string_view text) {
    int parts = 0;
    std::size_t i = 0;
    while (true) {
        const std::size_t begin = i;
        unsigned value = 0;
        while (i < text.size() && is_digit(octet(text[i])) && i - begin < 3) {
            value = value * 10 + (octet(text[i]) - unsigned{'0'});
            ++i;
        }
        if (i == begin || value > 255) return false;
        if (i - begin > 1 && text[begin] == '0') return false;
        if (++parts == 4) return i == text.size();
        if (i == text.size() || text[i] != '.') return false;
        ++i;
    }
}

// "v" 1*HEXDIG "." 1*( unreserved / sub-delims / ":" )
bool is_ip_future(std::string_view text) {
    if (text.size() < 4 || to_lower(text[0]) != 'v') return false;
    std::size_t i = 1;
    while (i < text.size() && is_hexdig(octet(text[i]))) ++i;
    if (i == 1 || i + 1 >= text.size() || text[i] != '.') return false;
    for (++i; i < text.size(); ++i) {
        const unsigned char c = octet(text[i]);
        if (!is_unreserved(c) && !is_sub_delim(c) && c != ':') return false;
    }
    return true;
}

bool is_port(std::string_view digits) {
    unsigned value = 0;
    for (const char c : digits) {
        if (!is_digit(octet(c))) return false;
        value = value * 10 + (octet(c) - unsigned{'0'});
        if (value > kPortMax) return false;
    }
    return true;
}

}  // namespace

bool is_ipv6_address(std::string_view text) {
    unsigned groups = 0;
    bool elided = false;
    std::size_t i = 0;
    if (text.size() >= 2 && text[0] == ':' && text[1] == ':') {
        elided = true;
        i = 2;
        if (i == text.size()) return true;
    }
    while (true) {
        const std::size_t begin = i;
        while (i < text.size() && is_hexdig(octet(text[i])) && i - begin < 5) ++i;
        if (i == begin || i - begin > 4) return false;
        if (i < text.size() && text[i] == '.') {  // ls32 as an IPv4address
            if (!is_ipv4_address(text.substr(begin))) return false;
            groups += 2;
            return elided ? groups < 8 : groups == 8;
        }
        if (++groups > 8) return false;
        if (i == text.size()) return elided ? groups < 8 : groups == 8;
        if (text[i] != ':') return false;
        ++i;
        if (i < text.size() && text[i] == ':') {
            if (elided) return false;
            elided = true;
            ++i;
            if (i == text.size()) return groups < 8;
        }
    }
}

HostKind judge_host_value(std::string_view text) {
    const auto is_name_octet = [&](std::size_t k) {
        return kClassTable[octet(text[k])] & kClassHostName;
    };
    std::size_t i = 0;
    while (i + 4 <= text.size() && (is_name_octet(i) & is_name_octet(i + 1) & is_name_octet(i + 2) &
                                    is_name_octet(i + 3)) != 0) {
        i += 4;
    }
    while (i < text.size() && is_name_octet(i) != 0) ++i;
    if (i == 0 || (i < text.size() && text[i] != ':')) return parse_host(text).kind;
    if (i == text.size()) return HostKind::kValid;
    const std::string_view port = text.substr(i + 1);
    const auto is_stranger = [&](std::size_t k) {
        return octet(port[k]) - unsigned{'0'} > 9 ? 1U : 0U;
    };
    if (port.size() == 4) {  // by far the most common length that is said at all
        const unsigned bad = is_stranger(0) | is_stranger(1) | is_stranger(2) | is_stranger(3);
        return bad != 0 ? HostKind::kInvalid : HostKind::kValid;
    }
    return is_port(port) ? HostKind::kValid : HostKind::kInvalid;
}

HostParts parse_host(std::string_view text) {
    HostParts parts;
    std::size_t i = 0;
    if (!text.empty() && text[0] == '[') {
        const std::size_t close = text.find(']');
        if (close == std::string_view::npos) return parts;
        const std::string_view literal = text.substr(1, close - 1);
        if (!is_ipv6_address(literal) && !is_ip_future(literal)) return parts;
        i = close + 1;
    } else {
        for (; i < text.size(); ++i) {
            const unsigned char c = octet(text[i]);
            if ((kClassTable[c] & kClassHostName) != 0) continue;
            if (c != '%') break;
            if (i + 2 >= text.size() || !is_hexdig(octet(text[i + 1])) ||
                !is_hexdig(octet(text[i + 2]))) {
                return parts;
            }
            i += 2;
        }
    }
    parts.host = text.substr(0, i);
    if (i < text.size()) {
        if (text[i] != ':') return parts;
        parts.port = text.substr(i + 1);
        parts.has_port = true;
        if (!is_port(parts.port)) return parts;
    }
    parts.kind = parts.host.empty() ? HostKind::kEmpty : HostKind::kValid;
    return parts;
}

}  // namespace httpmark
