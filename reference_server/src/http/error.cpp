#include "http/error.hpp"

#include <algorithm>
#include <array>
#include <cstddef>

#include "check.hpp"

namespace httpmark {

namespace {

constexpr bool kCloses = false;
constexpr bool kLives = true;

constexpr std::array<ErrorRow, static_cast<std::size_t>(Reason::kCount)> kErrors = {{
    {Reason::kNone, "none", 200, "", kLives},
    {Reason::kBareCrBeforeRequest, "bare-cr-before-request", 400, "RFC 9112 2.2", kCloses},
    {Reason::kMethodEmpty, "method-empty", 400, "RFC 9112 3.1", kCloses},
    {Reason::kMethodOctet, "method-octet", 400, "RFC 9112 3.1", kCloses},
    {Reason::kMethodTooLong, "method-too-long", 501, "RFC 9112 3", kCloses},
    {Reason::kTargetEmpty, "target-empty", 400, "RFC 9112 3.2", kCloses},
    {Reason::kTargetOctet, "target-octet", 400, "RFC 9112 3.2", kCloses},
    {Reason::kTargetPercent, "target-percent", 400, "RFC 3986 2.1", kCloses},
    {Reason::kTargetTooLong, "target-too-long", 414, "RFC 9112 3", kCloses},
    {Reason::kTargetForm, "target-form", 400, "RFC 9112 3.2", kCloses},
    {Reason::kTargetScheme, "target-scheme", 400, "RFC 9110 4.2", kCloses},
    {Reason::kTargetAuthority, "target-authority", 400, "RFC 9110 4.2.1", kCloses},
    {Reason::kTargetUserinfo, "target-userinfo", 400, "RFC 9110 4.2.4", kCloses},
    {Reason::kTargetHostEmpty, "target-host-empty", 400, "RFC 9110 4.2.1", kCloses},
    {Reason::kConnectTarget, "connect-target", 400, "RFC 9110 9.3.6", kCloses},
    {Reason::kAsteriskMethod, "asterisk-method", 400, "RFC 9112 3.2.4", kCloses},
    {Reason::kVersionSyntax, "version-syntax", 400, "RFC 9112 2.3", kCloses},
    {Reason::kVersionLineEnd, "version-line-end", 400, "RFC 9112 3", kCloses},
    {Reason::kVersionMajor, "version-major", 505, "RFC 9110 15.6.6", kCloses},
    {Reason::kFieldNameEmpty, "field-name-empty", 400, "RFC 9112 5", kCloses},
    {Reason::kFieldNameOctet, "field-name-octet", 400, "RFC 9110 5.1", kCloses},
    {Reason::kFieldFold, "field-fold", 400, "RFC 9112 5.2", kCloses},
    {Reason::kFieldSpaceBeforeColon, "field-space-before-colon", 400, "RFC 9112 5.1", kCloses},
    {Reason::kFieldValueOctet, "field-value-octet", 400, "RFC 9110 5.5", kCloses},
    {Reason::kFieldBareCr, "field-bare-cr", 400, "RFC 9112 2.2", kCloses},
    {Reason::kFieldBareLf, "field-bare-lf", 400, "RFC 9112 2.2", kCloses},
    {Reason::kFieldNameTooLong, "field-name-too-long", 431, "RFC 6585 5", kCloses},
    {Reason::kFieldValueTooLong, "field-value-too-long", 431, "RFC 6585 5", kCloses},
    {Reason::kFieldLinesTooMany, "field-lines-too-many", 431, "RFC 6585 5", kCloses},
    {Reason::kHeadTooLong, "head-too-long", 431, "RFC 6585 5", kCloses},
    {Reason::kHostMissing, "host-missing", 400, "RFC 9112 3.2", kCloses},
    {Reason::kHostRepeated, "host-repeated", 400, "RFC 9112 3.2", kCloses},
    {Reason::kHostInvalid, "host-invalid", 400, "RFC 9112 3.2", kCloses},
    {Reason::kHostEmpty, "host-empty", 400, "RFC 9112 3.3", kCloses},
    {Reason::kTransferCodingSyntax, "transfer-coding-syntax", 400, "RFC 9112 6.1", kCloses},
    {Reason::kTransferCodingInOldVersion, "transfer-coding-in-1.0", 400, "RFC 9112 6.1", kCloses},
    {Reason::kTransferCodingTwice, "transfer-coding-twice", 400, "RFC 9112 6.1", kCloses},
    {Reason::kTransferCodingParameters, "transfer-coding-parameters", 400, "RFC 9112 7.1", kCloses},
    {Reason::kTransferCodingNotFinal, "transfer-coding-not-final", 400, "RFC 9112 6.3", kCloses},
    {Reason::kTransferCodingEmpty, "transfer-coding-empty", 400, "RFC 9112 6.3", kCloses},
    {Reason::kTransferCodingEmptyMember, "transfer-coding-empty-member", 400, "RFC 9110 5.6.1",
     kCloses},
    {Reason::kTransferCodingUnknown, "transfer-coding-unknown", 501, "RFC 9112 6.1", kCloses},
    {Reason::kTransferCodingWithLength, "transfer-coding-with-length", 400, "RFC 9112 6.1",
     kCloses},
    {Reason::kLengthSyntax, "length-syntax", 400, "RFC 9112 6.3", kCloses},
    {Reason::kLengthRepeated, "length-repeated", 400, "RFC 9110 8.6", kCloses},
    {Reason::kFieldRepeated, "field-repeated", 400, "RFC 9110 5.3", kCloses},
    {Reason::kLengthTooLarge, "length-too-large", 413, "RFC 9110 8.6", kCloses},
    {Reason::kMethodUnknown, "method-unknown", 501, "RFC 9110 9.1", kLives},
    {Reason::kMisdirected, "misdirected", 421, "RFC 9110 7.4", kLives},
    {Reason::kContentTooLarge, "content-too-large", 413, "RFC 9110 15.5.14", kCloses},
    {Reason::kRequestTooLarge, "request-too-large", 413, "RFC 9110 15.5.14", kCloses},
    {Reason::kExpectationUnknown, "expectation-unknown", 417, "RFC 9110 10.1.1", kLives},
    {Reason::kChunkSizeSyntax, "chunk-size-syntax", 400, "RFC 9112 7.1", kCloses},
    {Reason::kChunkSizeTooLarge, "chunk-size-too-large", 413, "RFC 9112 7.1", kCloses},
    {Reason::kChunkExtensionSyntax, "chunk-extension-syntax", 400, "RFC 9112 7.1.1", kCloses},
    {Reason::kChunkLineTooLong, "chunk-line-too-long", 400, "RFC 9112 7.1.1", kCloses},
    {Reason::kChunkExtensionTooLong, "chunk-extension-too-long", 400, "RFC 9112 7.1.1", kCloses},
    {Reason::kChunkExtensionsTooLong, "chunk-extensions-too-long", 400, "RFC 9112 7.1.1", kCloses},
    {Reason::kChunkLineEnd, "chunk-line-end", 400, "RFC 9112 7.1", kCloses},
    {Reason::kChunkDataEnd, "chunk-data-end", 400, "RFC 9112 7.1", kCloses},
    {Reason::kTrailerNameEmpty, "trailer-name-empty", 400, "RFC 9112 7.1.2", kCloses},
    {Reason::kTrailerNameOctet, "trailer-name-octet", 400, "RFC 9112 7.1.2", kCloses},
    {Reason::kTrailerFold, "trailer-fold", 400, "RFC 9112 5.2", kCloses},
    {Reason::kTrailerSpaceBeforeColon, "trailer-space-before-colon", 400, "RFC 9112 5.1", kCloses},
    {Reason::kTrailerValueOctet, "trailer-value-octet", 400, "RFC 9110 5.5", kCloses},
    {Reason::kTrailerBareCr, "trailer-bare-cr", 400, "RFC 9112 2.2", kCloses},
    {Reason::kTrailerBareLf, "trailer-bare-lf", 400, "RFC 9112 2.2", kCloses},
    {Reason::kTrailerNameTooLong, "trailer-name-too-long", 431, "RFC 6585 5", kCloses},
    {Reason::kTrailerValueTooLong, "trailer-value-too-long", 431, "RFC 6585 5", kCloses},
    {Reason::kTrailerLinesTooMany, "trailer-lines-too-many", 431, "RFC 6585 5", kCloses},
    {Reason::kTrailersTooLong, "trailers-too-long", 431, "RFC 6585 5", kCloses},
    {Reason::kTrailerForbidden, "trailer-forbidden", 400, "RFC 9110 6.5.1", kCloses},
    {Reason::kIncomplete, "incomplete", 400, "RFC 9112 8", kCloses},
    {Reason::kIdleTimeout, "idle-timeout", 408, "RFC 9110 15.5.9", kCloses},
    {Reason::kHeadTimeout, "head-timeout", 408, "RFC 9110 15.5.9", kCloses},
    {Reason::kBodyTimeout, "body-timeout", 408, "RFC 9110 15.5.9", kCloses},
    {Reason::kHandlerTimeout, "handler-timeout", 503, "RFC 9110 15.6.4", kCloses},
    {Reason::kHandlerFailed, "handler-failed", 500, "RFC 9110 15.6.1", kCloses},
    {Reason::kNotFound, "not-found", 404, "RFC 9110 15.5.5", kLives},
    {Reason::kMethodNotAllowed, "method-not-allowed", 405, "RFC 9110 15.5.6", kLives},
    {Reason::kLengthRequired, "length-required", 411, "RFC 9110 15.5.12", kLives},
    {Reason::kMediaType, "media-type", 415, "RFC 9110 15.5.16", kLives},
    {Reason::kUpgradeRequired, "upgrade-required", 426, "RFC 9110 15.5.22", kLives},
    {Reason::kHandshakeInvalid, "handshake-invalid", 400, "RFC 6455 4.2.1", kLives},
    {Reason::kOriginForbidden, "origin-forbidden", 403, "RFC 6455 4.2.2", kLives},
    {Reason::kPathInvalid, "path-invalid", 400, "RFC 9110 15.5.1", kLives},
    {Reason::kForbidden, "forbidden", 403, "RFC 9110 15.5.4", kLives},
    {Reason::kPreconditionFailed, "precondition-failed", 412, "RFC 9110 15.5.13", kLives},
    {Reason::kFileBusy, "file-busy", 503, "RFC 9110 15.6.4", kLives},
    {Reason::kFileFailed, "file-failed", 500, "RFC 9110 15.6.1", kLives},
    {Reason::kMediaTypeSyntax, "media-type-syntax", 400, "RFC 9110 8.3.1", kLives},
    {Reason::kParameterSyntax, "parameter-syntax", 400, "RFC 9110 5.6.6", kLives},
    {Reason::kParameterRepeated, "parameter-repeated", 400, "RFC 9110 5.6.6", kLives},
    {Reason::kParametersTooMany, "parameters-too-many", 400, "RFC 9110 5.6.6", kLives},
    {Reason::kFormPercent, "form-percent", 400, "WHATWG URL 5.1", kLives},
    {Reason::kFormFieldsTooMany, "form-fields-too-many", 413, "RFC 9110 15.5.14", kLives},
    {Reason::kFormType, "form-type", 415, "RFC 9110 15.5.16", kLives},
    {Reason::kMultipartType, "multipart-type", 415, "RFC 7578 4", kLives},
    {Reason::kBoundaryMissing, "boundary-missing", 400, "RFC 7578 4.1", kLives},
    {Reason::kBoundarySyntax, "boundary-syntax", 400, "RFC 2046 5.1.1", kLives},
    {Reason::kPreambleTooLong, "preamble-too-long", 413, "RFC 9110 15.5.14", kLives},
    {Reason::kDelimiterLine, "delimiter-line", 400, "RFC 2046 5.1.1", kLives},
    {Reason::kPartsTooMany, "parts-too-many", 413, "RFC 9110 15.5.14", kLives},
    {Reason::kPartHeadTooLong, "part-head-too-long", 413, "RFC 9110 15.5.14", kLives},
    {Reason::kPartFieldName, "part-field-name", 400, "RFC 2046 5.1", kLives},
    {Reason::kPartFieldValue, "part-field-value", 400, "RFC 2046 5.1", kLives},
    {Reason::kPartLineEnd, "part-line-end", 400, "RFC 2046 5.1", kLives},
    {Reason::kPartFieldRepeated, "part-field-repeated", 400, "RFC 7578 4.2", kLives},
    {Reason::kPartDisposition, "part-disposition", 400, "RFC 7578 4.2", kLives},
    {Reason::kPartDispositionMissing, "part-disposition-missing", 400, "RFC 7578 4.2", kLives},
    {Reason::kPartNameMissing, "part-name-missing", 400, "RFC 7578 4.2", kLives},
    {Reason::kPartExtendedParameter, "part-extended-parameter", 400, "RFC 7578 4.2", kLives},
    {Reason::kPartTransferEncoding, "part-transfer-encoding", 415, "RFC 7578 4.7", kLives},
    {Reason::kPartTooLarge, "part-too-large", 413, "RFC 9110 15.5.14", kLives},
    {Reason::kEpilogueTooLong, "epilogue-too-long", 413, "RFC 9110 15.5.14", kLives},
    {Reason::kMultipartUnfinished, "multipart-unfinished", 400, "RFC 2046 5.1.1", kLives},
    {Reason::kCodingSyntax, "coding-syntax", 400, "RFC 9110 8.4", kLives},
    {Reason::kCodingUnknown, "coding-unknown", 415, "RFC 9110 8.4", kLives},
    {Reason::kCodedFormat, "coded-format", 400, "RFC 9110 8.4.1", kLives},
    {Reason::kCodedTrailing, "coded-trailing", 400, "RFC 9110 8.4.1", kLives},
    {Reason::kCodedUnfinished, "coded-unfinished", 400, "RFC 9110 8.4.1", kLives},
    {Reason::kDecodedTooLarge, "decoded-too-large", 413, "RFC 9110 15.5.14", kLives},
    {Reason::kNoMemory, "no-memory", 503, "RFC 9110 15.6.4", kCloses},
    {Reason::kTooManyConnections, "too-many-connections", 503, "RFC 9110 15.6.4", kCloses},
}};

constexpr bool rows_stand_in_order() {
    for (std::size_t i = 0; i < kErrors.size(); ++i) {
        if (static_cast<std::size_t>(kErrors[i].reason) != i || kErrors[i].name == nullptr) {
            return false;
        }
    }
    return true;
}
static_assert(rows_stand_in_order());

struct StatusRow {
    std::uint16_t status;
    std::string_view phrase;
};
// The registry of RFC 9110 16.2, without what it calls unused.
constexpr std::array<StatusRow, 60> kStatuses = {{
    {100, "Continue"},
    {101, "Switching Protocols"},
    {102, "Processing"},
    {103, "Early Hints"},
    {200, "OK"},
    {201, "Created"},
    {202, "Accepted"},
    {203, "Non-Authoritative Information"},
    {204, "No Content"},
    {205, "Reset Content"},
    {206, "Partial Content"},
    {207, "Multi-Status"},
    {208, "Already Reported"},
    {226, "IM Used"},
    {300, "Multiple Choices"},
    {301, "Moved Permanently"},
    {302, "Found"},
    {303, "See Other"},
    {304, "Not Modified"},
    {305, "Use Proxy"},
    {307, "Temporary Redirect"},
    {308, "Permanent Redirect"},
    {400, "Bad Request"},
    {401, "Unauthorized"},
    {402, "Payment Required"},
    {403, "Forbidden"},
    {404, "Not Found"},
    {405, "Method Not Allowed"},
    {406, "Not Acceptable"},
    {407, "Proxy Authentication Required"},
    {408, "Request Timeout"},
    {409, "Conflict"},
    {410, "Gone"},
    {411, "Length Required"},
    {412, "Precondition Failed"},
    {413, "Content Too Large"},
    {414, "URI Too Long"},
    {415, "Unsupported Media Type"},
    {416, "Range Not Satisfiable"},
    {417, "Expectation Failed"},
    {421, "Misdirected Request"},
    {422, "Unprocessable Content"},
    {423, "Locked"},
    {424, "Failed Dependency"},
    {425, "Too Early"},
    {426, "Upgrade Required"},
    {428, "Precondition Required"},
    {429, "Too Many Requests"},
    {431, "Request Header Fields Too Large"},
    {451, "Unavailable For Legal Reasons"},
    {500, "Internal Server Error"},
    {501, "Not Implemented"},
    {502, "Bad Gateway"},
    {503, "Service Unavailable"},
    {504, "Gateway Timeout"},
    {505, "HTTP Version Not Supported"},
    {506, "Variant Also Negotiates"},
    {507, "Insufficient Storage"},
    {508, "Loop Detected"},
    {511, "Network Authentication Required"},
}};
constexpr std::string_view kUnknownPhrase = "Unknown";
constexpr unsigned kStatusMin = 100;
constexpr unsigned kStatusMax = 999;
constexpr std::uint8_t kNoPlace = 0xFF;

constexpr StatusLine make_status_line(unsigned status, std::string_view phrase) {
    StatusLine line;
    const auto put = [&](std::string_view text) {
        for (const char c : text) line.text[line.size++] = c;
    };
    const char digits[] = {static_cast<char>('0' + status / 100),
                           static_cast<char>('0' + status / 10 % 10),
                           static_cast<char>('0' + status % 10)};
    put("HTTP/1.1 ");
    put({digits, sizeof digits});
    put(" ");
    put(phrase);
    put("\r\n");
    return line;
}
constexpr auto kStatusLines = [] {
    std::array<StatusLine, kStatuses.size()> lines{};
    for (std::size_t i = 0; i < lines.size(); ++i) {
        lines[i] = make_status_line(kStatuses[i].status, kStatuses[i].phrase);
    }
    return lines;
}();
constexpr auto kPlaceOfStatus = [] {
    std::array<std::uint8_t, 500> places{};
    for (std::uint8_t& place : places) place = kNoPlace;
    for (std::size_t i = 0; i < kStatuses.size(); ++i) {
        places[kStatuses[i].status - kStatusMin] = static_cast<std::uint8_t>(i);
    }
    return places;
}();

[[gnu::noinline]] const StatusLine& unknown_status_line(unsigned status) {
    CHECK(status >= kStatusMin && status <= kStatusMax);
    static thread_local StatusLine other;
    other = make_status_line(status, kUnknownPhrase);
    return other;
}

}  // namespace

const ErrorRow& error_row(Reason reason) {
    CHECK(reason < Reason::kCount);
    return kErrors[static_cast<std::size_t>(reason)];
}

const StatusLine& status_line(unsigned status) {
    if (status - kStatusMin < kPlaceOfStatus.size()) [[likely]] {
        const std::uint8_t place = kPlaceOfStatus[status - kStatusMin];
        if (place != kNoPlace) [[likely]]
            return kStatusLines[place];
    }
    return unknown_status_line(status);
}

std::string_view status_phrase(unsigned status) {
    const auto row = std::find_if(kStatuses.begin(), kStatuses.end(),
                                  [&](const StatusRow& one) { return one.status == status; });
    return row == kStatuses.end() ? kUnknownPhrase : row->phrase;
}

}  // namespace httpmark
