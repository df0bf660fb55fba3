#include "load/source.hpp"

#include <netinet/in.h>

#include <algorithm>
#include <charconv>

namespace httpmark {
namespace {

// The bytes of an address, the most significant first.
std::uint8_t* octets_of(Endpoint* endpoint) {
    if (endpoint->family() == AF_INET) {
        auto& v4 = reinterpret_cast<sockaddr_in&>(endpoint->address);
        return reinterpret_cast<std::uint8_t*>(&v4.sin_addr);
    }
    return reinterpret_cast<sockaddr_in6&>(endpoint->address).sin6_addr.s6_addr;
}

std::size_t size_of(const Endpoint& endpoint) {
    return endpoint.family() == AF_INET ? 4 : 16;
}

}  // namespace

Endpoint SourceRange::at(std::size_t number) const {
    Endpoint endpoint = first;
    std::uint8_t* octets = octets_of(&endpoint);
    std::uint64_t carry = (begin + number / kConnectionsPerSource) % count;
    for (std::size_t i = size_of(endpoint); i-- != 0 && carry != 0;) {
        carry += octets[i];
        octets[i] = static_cast<std::uint8_t>(carry & 0xff);
        carry >>= 8;
    }
    return endpoint;
}

std::optional<SourceRange> parse_source_range(const std::string& text) {
    const std::size_t slash = text.find('/');
    const std::string literal = text.substr(0, slash);
    const auto address = literal == "localhost" || literal.starts_with('[')
                             ? std::nullopt
                             : parse_endpoint(literal, 0);
    if (!address) return std::nullopt;
    SourceRange range;
    range.first = *address;
    const std::size_t bits_max = size_of(*address) * 8;
    std::size_t bits = bits_max;
    if (slash != std::string::npos) {
        const char* end = text.data() + text.size();
        const auto [stop, error] = std::from_chars(text.data() + slash + 1, end, bits);
        if (error != std::errc() || stop != end || bits < 8 || bits > bits_max) return std::nullopt;
    }
    std::uint8_t* octets = octets_of(&range.first);
    for (std::size_t bit = bits; bit < bits_max; ++bit) {
        octets[bit / 8] &= static_cast<std::uint8_t>(~(0x80U >> bit % 8));
    }
    const std::size_t host_bits = std::min<std::size_t>(bits_max - bits, 32);
    std::uint64_t size = std::uint64_t{1} << host_bits;
    if (host_bits >= 2) {
        octets[size_of(range.first) - 1] |= 1;
        size -= range.first.family() == AF_INET ? 2 : 1;
    }
    range.count = static_cast<std::uint32_t>(std::min<std::uint64_t>(size, kSourcesMax));
    return range;
}

}  // namespace httpmark
