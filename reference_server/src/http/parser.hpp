// The head of a request: request-line and field lines, every byte checked.
//
// The verdict (need more, accepted with its length, rejected with reason and offset) is a pure
// function of the bytes seen so far: no split, alignment, kernel or buffer end changes it. Rules
// that make it so:
//   - the lowest offset wins; at one offset a fault of syntax wins over a limit;
//   - a fault of syntax is raised at the byte that makes the prefix hopeless, a limit at the byte
//     that exceeds it;
//   - the form of a target that does not begin with '/' is judged at the end of the request-line,
//     after the version (505); its offset is that of the LF. Only what stands after an asterisk is
//     refused at its byte: no form goes on like that;
//   - what fields mean is collected here and judged by framing.hpp once the head is complete.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "http/error.hpp"
#include "limits.hpp"
#include "scan/scan.hpp"

namespace httpmark {

enum class Method : std::uint8_t {
    kUnknown,
    kGet,
    kHead,
    kPost,
    kPut,
    kDelete,
    kPatch,
    kOptions,
    kTrace,
    kConnect,
};

// Case-sensitive, RFC 9110 9.1.
Method method_of(std::string_view name);

enum class TargetForm : std::uint8_t { kOrigin, kAbsolute, kAuthority, kAsterisk };

struct Span {
    std::uint32_t begin = 0;
    std::uint32_t size = 0;
    std::string_view in(const char* data) const { return {data + begin, size}; }
};

// What the field lines said, gathered line by line; judge_head() turns it into a verdict.
enum HeadFlag : std::uint32_t {
    kHostSeen = 1U << 0,
    kHostSeenTwice = 1U << 1,
    kHostIsInvalid = 1U << 2,
    kHostIsEmpty = 1U << 3,
    kLengthSeen = 1U << 4,
    kLengthIsInvalid = 1U << 5,
    kLengthSeenTwice = 1U << 6,  // repeated line or list; kept apart: equal values may pass
    kLengthDiffers = 1U << 7,
    kLengthOverflows = 1U << 8,
    kCodingSeen = 1U << 9,      // a Transfer-Encoding line was there, even an empty one
    kCodingChunked = 1U << 10,  // chunked is the last coding so far
    kCodingChunkedTwice = 1U << 11,
    kCodingUnknown = 1U << 12,
    kCodingAfterChunked = 1U << 13,
    kCodingParameters = 1U << 14,  // chunked with parameters
    kCodingIsInvalid = 1U << 15,
    kCodingAny = 1U << 16,  // at least one coding was listed
    kConnectionClose = 1U << 17,
    kConnectionKeepAlive = 1U << 18,
    kConnectionUpgrade = 1U << 19,
    kExpectContinue = 1U << 20,
    kExpectOther = 1U << 21,
    kUpgradeSeen = 1U << 22,
    kTargetHttps = 1U << 23,  // absolute-form with the scheme https
    kCodingEmptyMember = 1U << 24,
};

struct RequestHead {
    Method method = Method::kUnknown;
    TargetForm form = TargetForm::kOrigin;
    std::uint8_t version_major = 0;
    std::uint8_t version_minor = 0;
    std::uint32_t flags = 0;
    Span method_name;
    Span target;
    Span authority;  // the one to be used: of an absolute-form target, else of Host
    std::uint32_t fields_begin = 0;
    std::uint32_t field_count = 0;
    std::uint64_t content_length = 0;

    bool has(std::uint32_t flag) const { return (flags & flag) != 0; }
    bool is_http_1_1() const { return version_minor >= 1; }
};

enum class Verdict : std::uint8_t { kNeedMore, kAccepted, kRejected };

struct ParseResult {
    Verdict verdict = Verdict::kNeedMore;
    Reason reason = Reason::kNone;
    std::uint32_t offset = 0;  // length of the head when accepted, the faulty byte when rejected
};

// One field line after the other, byte by byte: the plain twin of the mask algebra. It finds
// reason and offset once the masks have seen that a block is at fault, and it checks trailers.
class FieldWalker {
  public:
    struct Bounds {
        std::uint64_t name_max;
        std::uint64_t value_max;
        std::uint64_t lines_max;
        bool trailers;
    };
    enum class Phase : std::uint8_t { kLineStart, kName, kValue, kValueLf, kEndLf, kDone };

    Phase phase = Phase::kLineStart;
    std::uint32_t name_size = 0;
    std::uint32_t value_size = 0;
    std::uint32_t lines = 0;

    // kNone when the byte fits; phase is kDone after the LF that ends the section.
    Reason step(unsigned char c, const Bounds& bounds);
};

class HeadParser {
  public:
    HeadParser() = default;

    // `data` holds the request from its first byte on, all of it that is known: each call must be
    // given an extension of what the call before was given. After kAccepted or kRejected, reset().
    ParseResult parse(const char* data, std::size_t size, const Limits& limits,
                      Strictness strictness, const ScanKernel& kernel) {
        return kernel.parse(*this, data, size, limits, strictness);
    }
    // What the kernels are made of.
    template <class Block>
    static ParseResult parse_with(HeadParser& parser, const char* data, std::size_t size,
                                  const Limits& limits, Strictness strictness);
    void reset() { *this = HeadParser(); }
    // Whether a byte of the request itself has come: empty lines before it are none (RFC 9112
    // 2.2).
    bool begun() const { return phase_ > Phase::kLeadLf; }
    const RequestHead& head() const { return head_; }

  private:
    enum class Phase : std::uint8_t {
        kStart,
        kLeadLf,
        kMethod,
        kTargetStart,
        kTargetOrigin,
        kTargetOther,
        kVersion,
        kFields,
    };
    struct BlockLines;
    struct Cursor;
    struct Suspects;
    struct FirstLine;
    struct Context {
        const char* data;
        const Limits& limits;
        Strictness strictness;
    };
    struct LineState {
        std::uint32_t line_start = 0;
        std::uint32_t colon = 0;  // of the line under way; 0 when it has none yet
        std::uint32_t count = 0;
        bool after_end_cr = false;
    };

    template <class Block>
    std::uint32_t first_fields(const Block& block, const char* data, std::size_t size,
                               const Limits& limits, const FirstLine& line);
    template <class Block>
    std::uint32_t first_block(const char* data, std::size_t size, const Limits& limits);
    template <class Block>
    ParseResult rest(const Context& context, std::size_t size);
    template <class Block>
    bool long_target(const char* data, std::size_t size, const Limits& limits);
    template <class Block>
    std::uint32_t whole_blocks(const char* data, std::size_t size, const Limits& limits);
    template <class Block>
    bool any_block(const Context& context, std::size_t size, ParseResult& result);
    template <class Block>
    void take_lines(const Block& block, const char* data, std::uint32_t base,
                    const BlockLines& lines, Cursor& cursor, Suspects& suspects);
    template <class Block>
    bool take_host_by_masks(const Block& block, const char* octets, std::uint32_t base,
                            unsigned colon, unsigned cr);
    void begin_fields(std::uint32_t offset) {
        head_.version_major = 1;
        head_.version_minor = 1;
        head_.fields_begin = offset;
        phase_ = Phase::kFields;
        scan_ = offset;
        lines_.line_start = offset;
    }
    static bool is_roomy(const Limits& limits);
    static std::int64_t last_block(const Limits& limits, std::uint32_t base, const Cursor& cursor);
    bool request_line(const Context& context, const BlockMasks& masks, unsigned n, unsigned& at,
                      ParseResult& result);
    bool method(const Context& context, const BlockMasks& masks, unsigned n, unsigned& at,
                ParseResult& result);
    bool target_origin(const Context& context, const BlockMasks& masks, unsigned n, unsigned& at,
                       ParseResult& result);
    bool version(const Context& context, unsigned n, unsigned& at, ParseResult& result);
    bool target_octet(const Context& context, std::uint32_t offset, ParseResult& result);
    bool end_request_line(const Context& context, std::uint32_t offset, ParseResult& result);
    Reason judge_absolute_form(const char* data);
    Reason judge_authority_form(const char* data);
    ParseResult take_end_lf(const Context& context);
    ParseResult reject_line(const Context& context, unsigned to) const;
    ParseResult diagnose(const Context& context, unsigned to) const;
    void take_field(const char* data, std::uint32_t line_start, std::uint32_t colon,
                    std::uint32_t cr);
    void take_host(const char* data, std::uint32_t begin, std::uint32_t end);
    // The last Host line's, in whatever order they are looked at.
    void take_authority(Span host) {
        if ((head_.form == TargetForm::kOrigin || head_.form == TargetForm::kAsterisk) &&
            host.begin > head_.authority.begin) {
            head_.authority = host;
        }
    }
    bool take_short_length(const char* value, const char* end);
    void take_content_length(std::string_view value);
    void take_transfer_encoding(std::string_view value);
    void take_coding(std::string_view coding, bool parameters);
    void take_connection(std::string_view value);
    void take_expect(std::string_view value);

    std::uint32_t scan_ = 0;
    Phase phase_ = Phase::kStart;
    std::uint8_t percent_carry_ = 0;
    bool target_query_ = false;
    std::uint8_t lead_lines_ = 0;
    std::uint32_t mark_ = 0;  // where the element under way began
    LineState lines_;
    RequestHead head_;
};

// The field lines of a head or trailer section that has been accepted, in order.
class FieldReader {
  public:
    explicit FieldReader(std::string_view section) : rest_(section) {}
    bool next(std::string_view& name, std::string_view& value);

  private:
    std::string_view rest_;
};

}  // namespace httpmark
