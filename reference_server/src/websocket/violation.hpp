// Everything that a WebSocket peer can do wrong, as values from one table: name, the code of the
// Close frame that tells it, and the clause.
#pragma once

#include <cstdint>

namespace httpmark::websocket {

enum class Violation : std::uint8_t {
    kNone,
    // the head of a frame
    kReservedBit,
    kOpcodeUnknown,
    kControlFragmented,
    kControlTooLong,
    kContinuationOfNothing,
    kMessageNotFinished,
    kNotMasked,
    kLengthNotMinimal,
    kLengthHighBit,
    kFrameTooLarge,
    kMessageTooLarge,
    kFragmentsTooMany,
    // what a message or a Close frame holds
    kTextNotUtf8,
    kCloseTooShort,
    kCloseCode,
    kCloseReasonNotUtf8,
    kDeflateSyntax,
    kDeflateNotFinished,
    // no fault of the peer
    kNoMemory,
    kCount,
};

struct ViolationRow {
    Violation violation;
    const char* name;
    std::uint16_t code;
    const char* clause;
};

const ViolationRow& violation_row(Violation violation);

// Codes of Close frames that this server names, RFC 6455 7.4.1.
inline constexpr std::uint16_t kCloseNormal = 1000;
inline constexpr std::uint16_t kCloseGoingAway = 1001;
inline constexpr std::uint16_t kCloseProtocolError = 1002;
inline constexpr std::uint16_t kCloseNoCode = 1005;    // told to the application, never sent
inline constexpr std::uint16_t kCloseAbnormal = 1006;  // told to the application, never sent
inline constexpr std::uint16_t kCloseInvalidData = 1007;
inline constexpr std::uint16_t kCloseTooLarge = 1009;
inline constexpr std::uint16_t kCloseExtensionNeeded = 1010;
inline constexpr std::uint16_t kCloseInternalError = 1011;

// A code that a client may send: those that RFC 6455 7.4.1 defines for the wire, and the ranges for
// libraries and applications (7.4.2).
constexpr bool may_be_received(unsigned code) {
    return (code >= 1000 && code <= 1003) || (code >= 1007 && code <= 1011) ||
           (code >= 3000 && code <= 4999);
}
// 1010 is for clients only.
constexpr bool may_be_sent(unsigned code) {
    return may_be_received(code) && code != kCloseExtensionNeeded;
}

}  // namespace httpmark::websocket
