#include "content/fault.hpp"

#include <array>
#include <cstddef>

#include "check.hpp"

namespace httpmark {

namespace {

constexpr auto kRows = std::to_array<ContentFaultRow>({
    {ContentFault::kNone, "none", 200, ""},
    {ContentFault::kMediaTypeSyntax, "media-type-syntax", 400, "RFC 9110 8.3.1"},
    {ContentFault::kParameterSyntax, "parameter-syntax", 400, "RFC 9110 5.6.6"},
    {ContentFault::kParameterRepeated, "parameter-repeated", 400, "RFC 9110 5.6.6"},
    {ContentFault::kParametersTooMany, "parameters-too-many", 400, "RFC 9110 5.6.6"},
    {ContentFault::kFormPercent, "form-percent", 400, "WHATWG URL 5.1"},
    {ContentFault::kFormFieldsTooMany, "form-fields-too-many", 413, "RFC 9110 15.5.14"},
    {ContentFault::kFormType, "form-type", 415, "RFC 9110 15.5.16"},
    {ContentFault::kMultipartType, "multipart-type", 415, "RFC 7578 4"},
    {ContentFault::kBoundaryMissing, "boundary-missing", 400, "RFC 7578 4.1"},
    {ContentFault::kBoundarySyntax, "boundary-syntax", 400, "RFC 2046 5.1.1"},
    {ContentFault::kPreambleTooLong, "preamble-too-long", 413, "RFC 9110 15.5.14"},
    {ContentFault::kDelimiterLine, "delimiter-line", 400, "RFC 2046 5.1.1"},
    {ContentFault::kPartsTooMany, "parts-too-many", 413, "RFC 9110 15.5.14"},
    {ContentFault::kPartHeadTooLong, "part-head-too-long", 413, "RFC 9110 15.5.14"},
    {ContentFault::kPartFieldName, "part-field-name", 400, "RFC 2046 5.1"},
    {ContentFault::kPartFieldValue, "part-field-value", 400, "RFC 2046 5.1"},
    {ContentFault::kPartLineEnd, "part-line-end", 400, "RFC 2046 5.1"},
    {ContentFault::kPartFieldRepeated, "part-field-repeated", 400, "RFC 7578 4.2"},
    {ContentFault::kPartDisposition, "part-disposition", 400, "RFC 7578 4.2"},
    {ContentFault::kPartDispositionMissing, "part-disposition-missing", 400, "RFC 7578 4.2"},
    {ContentFault::kPartNameMissing, "part-name-missing", 400, "RFC 7578 4.2"},
    {ContentFault::kPartExtendedParameter, "part-extended-parameter", 400, "RFC 7578 4.2"},
    {ContentFault::kPartTransferEncoding, "part-transfer-encoding", 415, "RFC 7578 4.7"},
    {ContentFault::kPartTooLarge, "part-too-large", 413, "RFC 9110 15.5.14"},
    {ContentFault::kEpilogueTooLong, "epilogue-too-long", 413, "RFC 9110 15.5.14"},
    {ContentFault::kMultipartUnfinished, "multipart-unfinished", 400, "RFC 2046 5.1.1"},
    {ContentFault::kCodingSyntax, "coding-syntax", 400, "RFC 9110 8.4"},
    {ContentFault::kCodingUnknown, "coding-unknown", 415, "RFC 9110 8.4"},
    {ContentFault::kCodedFormat, "coded-format", 400, "RFC 9110 8.4.1"},
    {ContentFault::kCodedTrailing, "coded-trailing", 400, "RFC 9110 8.4.1"},
    {ContentFault::kCodedUnfinished, "coded-unfinished", 400, "RFC 9110 8.4.1"},
    {ContentFault::kDecodedTooLarge, "decoded-too-large", 413, "RFC 9110 15.5.14"},
    {ContentFault::kDecoderMemory, "decoder-memory", 503, "RFC 9110 15.6.4"},
});

constexpr bool rows_are_in_order() {
    if (kRows.size() != static_cast<std::size_t>(ContentFault::kCount)) return false;
    for (std::size_t i = 0; i < kRows.size(); ++i) {
        if (static_cast<std::size_t>(kRows[i].fault) != i) return false;
    }
    return true;
}
static_assert(rows_are_in_order());

}  // namespace

const ContentFaultRow& content_fault_row(ContentFault fault) {
    CHECK(fault < ContentFault::kCount);
    return kRows[static_cast<std::size_t>(fault)];
}

}  // namespace httpmark
