// What can be wrong with the content of a request, and with the fields that say what it is: name,
// status and clause, as values from one table.
#pragma once

#include <cstdint>

namespace httpmark {

enum class ContentFault : std::uint8_t {
    kNone,
    // fields with parameters
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
    kDecoderMemory,
    kCount,
};

struct ContentFaultRow {
    ContentFault fault;
    const char* name;
    std::uint16_t status;
    const char* clause;
};

const ContentFaultRow& content_fault_row(ContentFault fault);

}  // namespace httpmark
