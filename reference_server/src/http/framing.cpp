#include "http/framing.hpp"

#include <algorithm>
#include <iterator>

#include "http/syntax.hpp"

namespace httpmark {

namespace {

Reason judge_host(const RequestHead& head, Strictness strictness) {
    if (!head.has(kHostSeen)) return head.is_http_1_1() ? Reason::kHostMissing : Reason::kNone;
    if (head.has(kHostSeenTwice)) return Reason::kHostRepeated;
    if (head.has(kHostIsInvalid)) return Reason::kHostInvalid;
    if (head.has(kHostIsEmpty) && strictness == Strictness::kStrict) return Reason::kHostEmpty;
    return Reason::kNone;
}

// RFC 9112 6.1 and 6.3.
Reason judge_coding(const RequestHead& head, const Choices& choices) {
    if (!head.has(kCodingSeen)) return Reason::kNone;
    if (head.has(kCodingIsInvalid)) return Reason::kTransferCodingSyntax;
    if (!head.is_http_1_1()) return Reason::kTransferCodingInOldVersion;
    if (head.has(kLengthSeen)) return Reason::kTransferCodingWithLength;
    if (head.has(kCodingChunkedTwice)) return Reason::kTransferCodingTwice;
    if (head.has(kCodingParameters)) return Reason::kTransferCodingParameters;
    if (!head.has(kCodingAny)) return Reason::kTransferCodingEmpty;
    if (!head.has(kCodingChunked) || head.has(kCodingAfterChunked)) {
        return Reason::kTransferCodingNotFinal;
    }
    if (choices.refuse_empty_codings && head.has(kCodingEmptyMember)) {
        return Reason::kTransferCodingEmptyMember;
    }
    if (head.has(kCodingUnknown)) return Reason::kTransferCodingUnknown;
    return Reason::kNone;
}

Reason judge_length(const RequestHead& head, Strictness strictness) {
    if (!head.has(kLengthSeen)) return Reason::kNone;
    if (head.has(kLengthIsInvalid)) return Reason::kLengthSyntax;
    if (head.has(kLengthSeenTwice) &&
        (strictness == Strictness::kStrict || head.has(kLengthDiffers))) {
        return Reason::kLengthRepeated;
    }
    return Reason::kNone;
}

}  // namespace

Reason judge_head(const RequestHead& head, const Limits& limits, Strictness strictness, bool tls,
                  const Choices& choices) {
    if (const Reason reason = judge_host(head, strictness); reason != Reason::kNone) return reason;
    if (const Reason reason = judge_coding(head, choices); reason != Reason::kNone) return reason;
    if (const Reason reason = judge_length(head, strictness); reason != Reason::kNone) {
        return reason;
    }
    if (head.method == Method::kUnknown || head.method == Method::kConnect ||
        (head.method == Method::kTrace && !choices.answer_trace)) {
        return Reason::kMethodUnknown;
    }
    if (head.has(kTargetHttps) && !tls) return Reason::kMisdirected;
    if (head.has(kLengthOverflows)) return Reason::kLengthTooLarge;
    if (head.content_length > limits.body_max) return Reason::kContentTooLarge;
    // RFC 9110 10.1.1: a server ignores Expect in a 1.0 request.
    if (head.has(kExpectOther) && head.is_http_1_1()) return Reason::kExpectationUnknown;
    return Reason::kNone;
}

bool repeats_a_singleton(std::string_view section) {
    constexpr std::string_view kSingletons[] = {
        "authorization",
        "content-location",
        "content-range",
        "content-type",
        "cookie",
        "date",
        "from",
        "if-modified-since",
        "if-range",
        "if-unmodified-since",
        "max-forwards",
        "origin",
        "proxy-authorization",
        "range",
        "referer",
        "user-agent",
    };
    std::uint32_t seen = 0;
    FieldReader reader(section);
    std::string_view name;
    std::string_view value;
    while (reader.next(name, value)) {
        const auto* const known =
            std::find_if(std::begin(kSingletons), std::end(kSingletons),
                         [&](std::string_view n) { return equals_ignoring_case(name, n); });
        if (known == std::end(kSingletons)) continue;
        const std::uint32_t bit = 1U << (known - std::begin(kSingletons));
        if ((seen & bit) != 0) return true;
        seen |= bit;
    }
    return false;
}

Framing framing_of(const RequestHead& head) {
    if (head.has(kCodingSeen)) return {BodyKind::kChunked, 0};
    if (head.content_length > 0) return {BodyKind::kLength, head.content_length};
    return {};
}

bool wants_persistence(const RequestHead& head) {
    if (head.has(kConnectionClose)) return false;
    return head.is_http_1_1() || head.has(kConnectionKeepAlive);
}

}  // namespace httpmark
