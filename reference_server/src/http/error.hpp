// Everything that can be wrong with a request, as values from one table: name, status, the clause,
// and whether the connection may live on after the answer.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace httpmark {

enum class Reason : std::uint8_t {
    kNone,
    // request-line
    kBareCrBeforeRequest,
    kMethodEmpty,
    kMethodOctet,
    kMethodTooLong,
    kTargetEmpty,
    kTargetOctet,
    kTargetPercent,
    kTargetTooLong,
    kTargetForm,
    kTargetScheme,
    kTargetAuthority,
    kTargetUserinfo,
    kTargetHostEmpty,
    kConnectTarget,
    kAsteriskMethod,
    kVersionSyntax,
    kVersionLineEnd,
    kVersionMajor,
    // field lines
    kFieldNameEmpty,
    kFieldNameOctet,
    kFieldFold,
    kFieldSpaceBeforeColon,
    kFieldValueOctet,
    kFieldBareCr,
    kFieldBareLf,
    kFieldNameTooLong,
    kFieldValueTooLong,
    kFieldLinesTooMany,
    kHeadTooLong,
    // meaning of the head
    kHostMissing,
    kHostRepeated,
    kHostInvalid,
    kHostEmpty,
    kTransferCodingSyntax,
    kTransferCodingInOldVersion,
    kTransferCodingTwice,
    kTransferCodingParameters,
    kTransferCodingNotFinal,
    kTransferCodingEmpty,
    kTransferCodingEmptyMember,
    kTransferCodingUnknown,
    kTransferCodingWithLength,
    kLengthSyntax,
    kLengthRepeated,
    kFieldRepeated,
    kLengthTooLarge,
    kMethodUnknown,
    kMisdirected,
    kContentTooLarge,
    kRequestTooLarge,
    kExpectationUnknown,
    // chunked framing
    kChunkSizeSyntax,
    kChunkSizeTooLarge,
    kChunkExtensionSyntax,
    kChunkLineTooLong,
    kChunkExtensionTooLong,
    kChunkExtensionsTooLong,
    kChunkLineEnd,
    kChunkDataEnd,
    kTrailerNameEmpty,
    kTrailerNameOctet,
    kTrailerFold,
    kTrailerSpaceBeforeColon,
    kTrailerValueOctet,
    kTrailerBareCr,
    kTrailerBareLf,
    kTrailerNameTooLong,
    kTrailerValueTooLong,
    kTrailerLinesTooMany,
    kTrailersTooLong,
    kTrailerForbidden,
    // the rest
    kIncomplete,
    kIdleTimeout,
    kHeadTimeout,
    kBodyTimeout,
    kHandlerTimeout,
    kHandlerFailed,
    kNotFound,
    kMethodNotAllowed,
    kLengthRequired,
    kMediaType,
    kUpgradeRequired,
    kHandshakeInvalid,
    kOriginForbidden,
    // files
    kPathInvalid,
    kForbidden,
    kPreconditionFailed,
    kFileBusy,
    kFileFailed,
    // content that a handler reads, and the fields that say what it is: first those with parameters
    kMediaTypeSyntax,
    kParameterSyntax,
    kParameterRepeated,
    kParametersTooMany,
    // application/x-www-form-urlencoded
    kFormPercent,
    kFormFieldsTooMany,
    kFormType,
    // multipart/form-data
    kMultipartType,
    kBoundaryMissing,
    kBoundarySyntax,
    kPreambleTooLong,
    kDelimiterLine,
    kPartsTooMany,
    kPartHeadTooLong,
    kPartFieldName,
    kPartFieldValue,
    kPartLineEnd,
    kPartFieldRepeated,
    kPartDisposition,
    kPartDispositionMissing,
    kPartNameMissing,
    kPartExtendedParameter,
    kPartTransferEncoding,
    kPartTooLarge,
    kEpilogueTooLong,
    kMultipartUnfinished,
    // Content-Encoding
    kCodingSyntax,
    kCodingUnknown,
    kCodedFormat,
    kCodedTrailing,
    kCodedUnfinished,
    kDecodedTooLarge,
    // the server as a whole
    kNoMemory,
    kTooManyConnections,
    kCount,
};

struct ErrorRow {
    Reason reason;
    const char* name;
    std::uint16_t status;
    const char* clause;
    bool connection_lives;
};

const ErrorRow& error_row(Reason reason);

// "HTTP/1.1 200 OK\r\n". The text is followed by zeros, so that it can be copied in whole steps.
struct StatusLine {
    static constexpr std::size_t kRoom = 64;
    std::array<char, kRoom> text{};
    std::uint8_t size = 0;
};
// Of the registered statuses (RFC 9110 16.2) with their phrases. Of any other from 100 to 999, with
// the phrase "Unknown", it stands until the next such call in this thread.
const StatusLine& status_line(unsigned status);
std::string_view status_phrase(unsigned status);

}  // namespace httpmark
