// What a complete head means: the verdict on its fields in one fixed order, how the content is
// framed (RFC 9112 6), and whether the connection persists (RFC 9112 9.3).
#pragma once

#include <cstdint>
#include <string_view>

#include "http/error.hpp"
#include "http/parser.hpp"
#include "limits.hpp"

namespace httpmark {

enum class BodyKind : std::uint8_t { kNone, kLength, kChunked };

struct Framing {
    BodyKind kind = BodyKind::kNone;
    std::uint64_t length = 0;
};

// kNone, or the first of: 400 Host, 400/501 Transfer-Encoding, 400 Content-Length, 501 method,
// 421, 413, 417.
Reason judge_head(const RequestHead& head, const Limits& limits, Strictness strictness, bool tls,
                  const Choices& choices = {});

// A field of which a message holds at most one (RFC 9110 5.3, RFC 6265 5.4, RFC 6454 7) stands
// twice in the section. A refusal for it comes after those of Content-Length.
bool repeats_a_singleton(std::string_view section);
constexpr bool comes_behind_repeated_fields(Reason reason) {
    return reason == Reason::kNone || reason > Reason::kFieldRepeated;
}

// A head as most are, in which judge_head() finds nothing wrong, whatever the limits: one valid
// Host, a target in origin-form, nothing said of content, and a method that is known. The
// connection persists.
inline bool is_plain(const RequestHead& head, std::uint32_t also = 0) {
    return (head.flags & ~(kConnectionKeepAlive | also)) == kHostSeen && head.is_http_1_1() &&
           head.form == TargetForm::kOrigin && head.method >= Method::kGet &&
           head.method <= Method::kPatch;
}
// As above, with a Content-Length: wrong is only a length above the limit.
inline bool is_plain_with_length(const RequestHead& head) {
    return is_plain(head, kLengthSeen);
}

// For a head that judge_head() has let pass, or refused with a reason that leaves the framing
// known.
Framing framing_of(const RequestHead& head);

// RFC 9112 9.3: close wins; 1.1 persists; 1.0 only when asked.
bool wants_persistence(const RequestHead& head);

}  // namespace httpmark
