// Masking, RFC 6455 5.3: byte i of a payload is XORed with byte i mod 4 of the frame's key.
#pragma once

#include <cstddef>
#include <cstdint>

namespace httpmark::websocket {

// Masks or unmasks in place. `key` holds the four bytes in the order of the wire, as memcpy()
// brings them; `position` is that of the first byte in the payload.
void apply_mask(char* data, std::size_t size, std::uint32_t key, std::uint64_t position);

}  // namespace httpmark::websocket
