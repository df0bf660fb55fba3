#include "websocket/violation.hpp"

#include <array>
#include <cstddef>

#include "check.hpp"

namespace httpmark::websocket {

namespace {

constexpr std::array<ViolationRow, static_cast<std::size_t>(Violation::kCount)> kViolations = {{
    {Violation::kNone, "none", kCloseNormal, ""},
    {Violation::kReservedBit, "reserved-bit", kCloseProtocolError, "RFC 6455 5.2"},
    {Violation::kOpcodeUnknown, "opcode-unknown", kCloseProtocolError, "RFC 6455 5.2"},
    {Violation::kControlFragmented, "control-fragmented", kCloseProtocolError, "RFC 6455 5.5"},
    {Violation::kControlTooLong, "control-too-long", kCloseProtocolError, "RFC 6455 5.5"},
    {Violation::kContinuationOfNothing, "continuation-of-nothing", kCloseProtocolError,
     "RFC 6455 5.4"},
    {Violation::kMessageNotFinished, "message-not-finished", kCloseProtocolError, "RFC 6455 5.4"},
    {Violation::kNotMasked, "not-masked", kCloseProtocolError, "RFC 6455 5.1"},
    {Violation::kLengthNotMinimal, "length-not-minimal", kCloseProtocolError, "RFC 6455 5.2"},
    {Violation::kLengthHighBit, "length-high-bit", kCloseProtocolError, "RFC 6455 5.2"},
    {Violation::kFrameTooLarge, "frame-too-large", kCloseTooLarge, "RFC 6455 10.4"},
    {Violation::kMessageTooLarge, "message-too-large", kCloseTooLarge, "RFC 6455 10.4"},
    {Violation::kFragmentsTooMany, "fragments-too-many", kCloseTooLarge, "RFC 6455 10.4"},
    {Violation::kTextNotUtf8, "text-not-utf-8", kCloseInvalidData, "RFC 6455 8.1"},
    {Violation::kCloseTooShort, "close-too-short", kCloseProtocolError, "RFC 6455 5.5.1"},
    {Violation::kCloseCode, "close-code", kCloseProtocolError, "RFC 6455 7.4"},
    {Violation::kCloseReasonNotUtf8, "close-reason-not-utf-8", kCloseInvalidData, "RFC 6455 8.1"},
    {Violation::kDeflateSyntax, "deflate-syntax", kCloseInvalidData, "RFC 7692 7.2.2"},
    {Violation::kDeflateNotFinished, "deflate-not-finished", kCloseInvalidData, "RFC 7692 7.2.2"},
    {Violation::kNoMemory, "no-memory", kCloseInternalError, "RFC 6455 7.4.1"},
}};

constexpr bool rows_are_in_order() {
    for (std::size_t i = 0; i < kViolations.size(); ++i) {
        if (kViolations[i].violation != static_cast<Violation>(i)) return false;
    }
    return true;
}
static_assert(rows_are_in_order());

}  // namespace

const ViolationRow& violation_row(Violation violation) {
    CHECK(violation < Violation::kCount);
    return kViolations[static_cast<std::size_t>(violation)];
}

}  // namespace httpmark::websocket
