// Source addresses of a load's connections: those of a CIDR, in turn.
#ifndef HTTPMARK_NATIVE_LOAD_SOURCE_HPP_
#define HTTPMARK_NATIVE_LOAD_SOURCE_HPP_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "shared/endpoint.hpp"

namespace httpmark {

// kConnectionsPerSource connections come from each address, in turn. Ports need not be unique but
// per source and target (IP_BIND_ADDRESS_NO_PORT). So many are well below half of the 28,232 ports
// there are: beyond the half the kernel walks through the taken ones for each connect, milliseconds
// at a time.
struct SourceRange {
    Endpoint first;           // port 0
    std::uint32_t count = 0;  // 0 = the kernel chooses
    std::uint32_t begin = 0;  // where in the range to begin: not where others left TIME_WAIT behind

    // The source of the connection with this number.
    Endpoint at(std::size_t number) const;
};
inline constexpr std::size_t kConnectionsPerSource = 10'000;
// So many addresses of a range are used; an IPv6 range has more than anybody has connections.
inline constexpr std::uint32_t kSourcesMax = (std::uint32_t{1} << 24) - 2;

// "127.0.0.0/8": all its addresses but the first and the last. "fd00::/64": all but the first,
// which is that of any router (RFC 4291 section 2.6.1). Without bits: one address. IPv4 takes 8 to
// 32 bits, IPv6 8 to 128; nothing for anything else.
std::optional<SourceRange> parse_source_range(const std::string& text);

}  // namespace httpmark

#endif  // HTTPMARK_NATIVE_LOAD_SOURCE_HPP_
