#include "shared/printable.hpp"

namespace httpmark {

std::string printable(std::string_view octets) {
    constexpr char kDigits[] = "0123456789abcdef";
    std::string text;
    for (const char octet : octets) {
        if (octet >= ' ' && octet <= '~' && octet != '\\') {
            text += octet;
            continue;
        }
        if (octet == '\r' || octet == '\n') {
            text += octet == '\r' ? "\\r" : "\\n";
            continue;
        }
        const unsigned value = static_cast<unsigned char>(octet);
        text += "\\x";
        text += kDigits[value >> 4];
        text += kDigits[value & 15];
    }
    return text;
}

}  // namespace httpmark
