#include "http/parser.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "check.hpp"
#include "http/syntax.hpp"

namespace httpmark {

namespace {

constexpr unsigned kBlock = 64;
constexpr std::string_view kVersionPattern = "HTTP/d.d\r\n";
constexpr std::uint8_t kLeadLinesStrict = 1;
constexpr std::uint8_t kLeadLinesTolerant = 8;

constexpr std::uint64_t low_bits(unsigned n) {
    return n >= kBlock ? ~std::uint64_t{0} : (std::uint64_t{1} << n) - 1;
}
constexpr std::uint64_t high_bits_from(unsigned n) {
    return n >= kBlock ? 0 : ~std::uint64_t{0} << n;
}
inline unsigned lowest(std::uint64_t mask) {
    return static_cast<unsigned>(std::countr_zero(mask));
}

inline std::uint64_t load8(const char* p) {
    std::uint64_t word;
    std::memcpy(&word, p, sizeof word);
    return word;
}

bool reject(ParseResult& result, Reason reason, std::uint64_t offset) {
    result.verdict = Verdict::kRejected;
    result.reason = reason;
    result.offset = static_cast<std::uint32_t>(offset);
    return false;
}

}  // namespace

Method method_of(std::string_view name) {
    switch (name.size()) {
        case 3:
            if (name == "GET") return Method::kGet;
            if (name == "PUT") return Method::kPut;
            break;
        case 4:
            if (name == "HEAD") return Method::kHead;
            if (name == "POST") return Method::kPost;
            break;
        case 5:
            if (name == "PATCH") return Method::kPatch;
            if (name == "TRACE") return Method::kTrace;
            break;
        case 6:
            if (name == "DELETE") return Method::kDelete;
            break;
        case 7:
            if (name == "OPTIONS") return Method::kOptions;
            if (name == "CONNECT") return Method::kConnect;
            break;
        default:
            break;
    }
    return Method::kUnknown;
}

Reason FieldWalker::step(unsigned char c, const Bounds& bounds) {
    const auto pick = [&](Reason field, Reason trailer) {
        return bounds.trailers ? trailer : field;
    };
    switch (phase) {
        case Phase::kLineStart:
            if (c == '\r') {
                phase = Phase::kEndLf;
                return Reason::kNone;
            }
            if (is_ows(c)) return pick(Reason::kFieldFold, Reason::kTrailerFold);
            if (c == ':') return pick(Reason::kFieldNameEmpty, Reason::kTrailerNameEmpty);
            if (c == '\n') return pick(Reason::kFieldBareLf, Reason::kTrailerBareLf);
            if (!is_tchar(c)) return pick(Reason::kFieldNameOctet, Reason::kTrailerNameOctet);
            if (lines >= bounds.lines_max) {
                return pick(Reason::kFieldLinesTooMany, Reason::kTrailerLinesTooMany);
            }
            ++lines;
            name_size = 1;
            phase = Phase::kName;
            return Reason::kNone;
        case Phase::kName:
            if (c == ':') {
                phase = Phase::kValue;
                value_size = 0;
                return Reason::kNone;
            }
            if (is_ows(c)) {
                return pick(Reason::kFieldSpaceBeforeColon, Reason::kTrailerSpaceBeforeColon);
            }
            if (c == '\n') return pick(Reason::kFieldBareLf, Reason::kTrailerBareLf);
            if (!is_tchar(c)) return pick(Reason::kFieldNameOctet, Reason::kTrailerNameOctet);
            if (++name_size > bounds.name_max) {
                return pick(Reason::kFieldNameTooLong, Reason::kTrailerNameTooLong);
            }
            return Reason::kNone;
        case Phase::kValue:
            if (c == '\r') {
                phase = Phase::kValueLf;
                return Reason::kNone;
            }
            if (c == '\n') return pick(Reason::kFieldBareLf, Reason::kTrailerBareLf);
            if (is_forbidden_in_field(c)) {
                return pick(Reason::kFieldValueOctet, Reason::kTrailerValueOctet);
            }
            if (++value_size > bounds.value_max) {
                return pick(Reason::kFieldValueTooLong, Reason::kTrailerValueTooLong);
            }
            return Reason::kNone;
        case Phase::kValueLf:
            if (c != '\n') return pick(Reason::kFieldBareCr, Reason::kTrailerBareCr);
            phase = Phase::kLineStart;
            return Reason::kNone;
        case Phase::kEndLf:
            if (c != '\n') return pick(Reason::kFieldBareCr, Reason::kTrailerBareCr);
            phase = Phase::kDone;
            return Reason::kNone;
        case Phase::kDone:
            break;
    }
    CHECK(false);
}

// Goes as far as the request-line reaches in this block; false when the verdict is in `result`.
bool HeadParser::request_line(const Context& context, const BlockMasks& masks, unsigned n,
                              unsigned& at, ParseResult& result) {
    const char* block = context.data + scan_;
    while (at < n) {
        switch (phase_) {
            case Phase::kStart:
                if (block[at] == '\r' && lead_lines_ < (context.strictness == Strictness::kStrict
                                                            ? kLeadLinesStrict
                                                            : kLeadLinesTolerant)) {
                    phase_ = Phase::kLeadLf;
                    ++at;
                } else {
                    phase_ = Phase::kMethod;
                    mark_ = scan_ + at;
                }
                break;
            case Phase::kLeadLf:
                if (block[at] != '\n') {
                    return reject(result, Reason::kBareCrBeforeRequest, scan_ + at);
                }
                ++lead_lines_;
                ++at;
                phase_ = Phase::kStart;
                break;
            case Phase::kMethod: {
                const std::uint64_t stop = ~masks.token & low_bits(n) & high_bits_from(at);
                const unsigned end = stop == 0 ? n : lowest(stop);
                const std::uint32_t length = scan_ + end - mark_;
                if (length > context.limits.method_max) {
                    return reject(result, Reason::kMethodTooLong,
                                  mark_ + context.limits.method_max);
                }
                at = end;
                if (stop == 0) break;
                if (block[end] != ' ') return reject(result, Reason::kMethodOctet, scan_ + end);
                if (length == 0) return reject(result, Reason::kMethodEmpty, scan_ + end);
                head_.method_name = {mark_, length};
                head_.method = method_of(head_.method_name.in(context.data));
                phase_ = Phase::kTargetStart;
                ++at;
                break;
            }
            case Phase::kTargetStart: {
                const unsigned char c = octet(block[at]);
                mark_ = scan_ + at;
                if (c == '/' && context.strictness != Strictness::kBrowser) {
                    phase_ = Phase::kTargetOrigin;
                } else if (c == ' ') {
                    return reject(result, Reason::kTargetEmpty, mark_);
                } else {
                    phase_ = Phase::kTargetOther;
                }
                break;
            }
            case Phase::kTargetOrigin: {
                const std::uint64_t range = low_bits(n) & high_bits_from(at);
                const std::uint64_t stop = ~masks.target & range;
                const unsigned end = stop == 0 ? n : lowest(stop);
                const std::uint64_t inside = range & low_bits(end);
                const std::uint64_t percent = masks.percent & inside;
                const std::uint64_t must_be_hex =
                    ((percent << 1) | (percent << 2) | percent_carry_) & range &
                    (low_bits(end) | (end < n ? std::uint64_t{1} << end : 0));
                const std::uint64_t bad = must_be_hex & ~masks.hex;
                const std::uint64_t limit = mark_ + context.limits.target_max;
                const std::uint32_t bad_offset = scan_ + (bad != 0 ? lowest(bad) : end);
                if (bad_offset > limit) return reject(result, Reason::kTargetTooLong, limit);
                if (bad != 0) return reject(result, Reason::kTargetPercent, bad_offset);
                if (stop == 0) {
                    const unsigned last = n - 1;
                    const unsigned before = n >= 2 ? static_cast<unsigned>(percent >> (n - 2)) & 1U
                                                   : static_cast<unsigned>(percent_carry_ >> 1);
                    const unsigned final_one = static_cast<unsigned>(percent >> last) & 1U;
                    percent_carry_ =
                        static_cast<std::uint8_t>((before | final_one) | (final_one << 1));
                    at = n;
                    break;
                }
                if (block[end] != ' ') return reject(result, Reason::kTargetOctet, scan_ + end);
                percent_carry_ = 0;
                head_.target = {mark_, scan_ + end - mark_};
                mark_ = scan_ + end + 1;
                at = end + 1;
                phase_ = Phase::kVersion;
                break;
            }
            case Phase::kTargetOther:
                if (!target_octet(context, scan_ + at, result)) return false;
                ++at;
                break;
            case Phase::kVersion: {
                constexpr std::uint64_t kHttp11 = 0x312E312F50545448;  // "HTTP/1.1", little endian
                if (std::endian::native == std::endian::little && mark_ == scan_ + at &&
                    n - at >= 10 && load8(block + at) == kHttp11 && block[at + 8] == '\r' &&
                    block[at + 9] == '\n') {
                    head_.version_major = 1;
                    head_.version_minor = 1;
                    at += 10;
                    if (!end_request_line(context, scan_ + at - 1, result)) return false;
                    return true;
                }
                const unsigned index = scan_ + at - mark_;
                const unsigned char c = octet(block[at]);
                const char pattern = kVersionPattern[index];
                if (pattern == 'd') {
                    if (!is_digit(c)) return reject(result, Reason::kVersionSyntax, scan_ + at);
                    const auto digit = static_cast<std::uint8_t>(c - '0');
                    (index == 5 ? head_.version_major : head_.version_minor) = digit;
                } else if (c != octet(pattern)) {
                    return reject(result,
                                  index < 8 ? Reason::kVersionSyntax : Reason::kVersionLineEnd,
                                  scan_ + at);
                }
                ++at;
                if (index == 9) return end_request_line(context, scan_ + at - 1, result);
                break;
            }
            case Phase::kFields:
                return true;
        }
    }
    return true;
}

// Targets that do not begin with '/', and every target in browser strictness: octet by octet.
bool HeadParser::target_octet(const Context& context, std::uint32_t offset, ParseResult& result) {
    const unsigned char c = octet(context.data[offset]);
    const bool origin = context.data[mark_] == '/';
    const bool asterisk = context.data[mark_] == '*';
    if (percent_carry_ != 0) {
        if (!is_hexdig(c)) return reject(result, Reason::kTargetPercent, offset);
        percent_carry_ = static_cast<std::uint8_t>(percent_carry_ >> 1);
    } else if (c == ' ') {
        head_.target = {mark_, offset - mark_};
        mark_ = offset + 1;
        phase_ = Phase::kVersion;
        return true;
    } else if (c == '%') {
        if (asterisk) return reject(result, Reason::kTargetForm, offset);
        percent_carry_ = 3;
    } else if (c == '?' && !asterisk) {
        target_query_ = true;
    } else if (asterisk && offset != mark_) {
        return reject(result, is_target_char(c) ? Reason::kTargetForm : Reason::kTargetOctet,
                      offset);
    } else if (!is_target_char(c)) {
        const bool browser_query =
            context.strictness == Strictness::kBrowser && target_query_ && is_browser_query_char(c);
        const bool ip_literal = !origin && !target_query_ && (c == '[' || c == ']');
        if (!browser_query && !ip_literal) return reject(result, Reason::kTargetOctet, offset);
    }
    if (offset - mark_ >= context.limits.target_max) {
        return reject(result, Reason::kTargetTooLong, offset);
    }
    return true;
}

bool HeadParser::end_request_line(const Context& context, std::uint32_t offset,
                                  ParseResult& result) {
    if (head_.version_major != 1) return reject(result, Reason::kVersionMajor, offset);
    if (context.data[head_.target.begin] != '/') [[unlikely]] {
        Reason reason = Reason::kNone;
        if (head_.method == Method::kConnect) {
            reason = judge_authority_form(context.data);
        } else if (head_.target.in(context.data) == "*") {
            head_.form = TargetForm::kAsterisk;
            if (head_.method != Method::kOptions) reason = Reason::kAsteriskMethod;
        } else {
            reason = judge_absolute_form(context.data);
        }
        if (reason != Reason::kNone) return reject(result, reason, offset);
    } else if (head_.method == Method::kConnect) [[unlikely]] {
        return reject(result, Reason::kConnectTarget, offset);
    }
    phase_ = Phase::kFields;
    head_.fields_begin = offset + 1;
    lines_.line_start = offset + 1;
    return true;
}

// absolute-URI with the scheme http or https and an authority, RFC 9112 3.2.2, RFC 9110 4.2.
Reason HeadParser::judge_absolute_form(const char* data) {
    const std::string_view target = head_.target.in(data);
    const std::size_t colon = target.find(':');
    if (colon == std::string_view::npos) return Reason::kTargetForm;
    const std::string_view scheme = target.substr(0, colon);
    if (equals_ignoring_case(scheme, "https")) {
        head_.flags |= kTargetHttps;
    } else if (!equals_ignoring_case(scheme, "http")) {
        return Reason::kTargetScheme;
    }
    std::string_view rest = target.substr(colon + 1);
    if (!rest.starts_with("//")) return Reason::kTargetForm;
    rest.remove_prefix(2);
    const std::size_t end = std::min(rest.find_first_of("/?"), rest.size());
    const std::string_view authority = rest.substr(0, end);
    if (authority.find('@') != std::string_view::npos) return Reason::kTargetUserinfo;
    const HostParts parts = parse_host(authority);
    if (parts.kind == HostKind::kEmpty) return Reason::kTargetHostEmpty;
    if (parts.kind == HostKind::kInvalid) return Reason::kTargetAuthority;
    // Square brackets were let through for an IP literal; behind the authority there is none.
    const std::string_view behind = rest.substr(end);
    const std::size_t path_end = std::min(behind.find('?'), behind.size());
    if (behind.substr(0, path_end).find_first_of("[]") != std::string_view::npos) {
        return Reason::kTargetOctet;
    }
    head_.form = TargetForm::kAbsolute;
    head_.authority = {static_cast<std::uint32_t>(authority.data() - data),
                       static_cast<std::uint32_t>(authority.size())};
    return Reason::kNone;
}

// uri-host ":" port, both there, RFC 9112 3.2.3.
Reason HeadParser::judge_authority_form(const char* data) {
    const HostParts parts = parse_host(head_.target.in(data));
    if (parts.kind != HostKind::kValid || !parts.has_port || parts.port.empty()) {
        return Reason::kConnectTarget;
    }
    head_.form = TargetForm::kAuthority;
    head_.authority = head_.target;
    return Reason::kNone;
}

// The masks say this block is at fault, or a bound may be passed in it: find the first octet. No
// verdict when none is.
ParseResult HeadParser::diagnose(const Context& context, unsigned to) const {
    FieldWalker walker;
    walker.lines = lines_.count;
    const char before = context.data[scan_ - 1];
    if (lines_.after_end_cr) {
        walker.phase = FieldWalker::Phase::kEndLf;
    } else if (before == '\r') {
        walker.phase = FieldWalker::Phase::kValueLf;
    } else if (before != '\n') {
        ++walker.lines;
        if (lines_.colon == 0) {
            walker.phase = FieldWalker::Phase::kName;
            walker.name_size = scan_ - lines_.line_start;
        } else {
            walker.phase = FieldWalker::Phase::kValue;
            walker.value_size = scan_ - (lines_.colon + 1);
        }
    }
    const FieldWalker::Bounds bounds{context.limits.field_name_max, context.limits.field_value_max,
                                     context.limits.field_lines_max, false};
    for (unsigned i = 0; i < to && walker.phase != FieldWalker::Phase::kDone; ++i) {
        const std::uint32_t offset = scan_ + i;
        Reason reason = walker.step(octet(context.data[offset]), bounds);
        if (reason == Reason::kNone && offset >= context.limits.head_max) {
            reason = Reason::kHeadTooLong;
        }
        if (reason != Reason::kNone) return {Verdict::kRejected, reason, offset};
    }
    return {};
}

// The same for what is known to be wrong.
ParseResult HeadParser::reject_line(const Context& context, unsigned to) const {
    const ParseResult result = diagnose(context, to);
    CHECK(result.verdict == Verdict::kRejected);
    return result;
}

// The octet behind a CR at a line start that was the last octet known.
ParseResult HeadParser::take_end_lf(const Context& context) {
    const std::uint32_t length = scan_ + 1;
    if (context.data[scan_] != '\n' || length > context.limits.head_max) {
        return reject_line(context, 1);
    }
    head_.field_count = lines_.count;
    return {Verdict::kAccepted, Reason::kNone, length};
}

namespace {

// `name` is a token, so setting 0x20 folds its letters and changes nothing that could then be
// mistaken: '-' has the bit, and CR is no tchar.
template <std::size_t kSize>
inline bool is_name(const char* name, const char (&lower)[kSize]) {
    constexpr std::size_t kLength = kSize - 1;
    constexpr std::uint64_t kFold = 0x2020202020202020;
    if constexpr (kLength >= 8) {
        std::uint64_t difference = (load8(name) | kFold) ^ load8(lower);
        if constexpr (kLength > 16) {
            difference |= (load8(name + 8) | kFold) ^ load8(lower + 8);
        }
        difference |= (load8(name + kLength - 8) | kFold) ^ load8(lower + kLength - 8);
        return difference == 0;
    } else {
        static_assert(kLength >= 4);
        const auto load4 = [](const char* p) {
            std::uint32_t word;
            std::memcpy(&word, p, sizeof word);
            return word;
        };
        constexpr auto kFold4 = static_cast<std::uint32_t>(kFold);
        return (((load4(name) | kFold4) ^ load4(lower)) |
                ((load4(name + kLength - 4) | kFold4) ^ load4(lower + kLength - 4))) == 0;
    }
}

}  // namespace

// Known fields are told by length first.
void HeadParser::take_field(const char* data, std::uint32_t line_start, std::uint32_t colon,
                            std::uint32_t cr) {
    const char* const name = data + line_start;
    const auto value = [&] { return trim_ows({data + colon + 1, cr - colon - 1}); };
    switch (colon - line_start) {
        case 4:
            if (is_name(name, "host")) take_host(data, colon + 1, cr);
            break;
        case 6:
            if (is_name(name, "expect")) take_expect(value());
            break;
        case 7:
            if (is_name(name, "upgrade")) head_.flags |= kUpgradeSeen;
            break;
        case 10:
            if (is_name(name, "connection")) take_connection(value());
            break;
        case 14:
            if (is_name(name, "content-length")) take_content_length(value());
            break;
        case 17:
            if (is_name(name, "transfer-encoding")) take_transfer_encoding(value());
            break;
        default:
            break;
    }
}

void HeadParser::take_host(const char* data, std::uint32_t begin, std::uint32_t end) {
    if (head_.has(kHostSeen)) head_.flags |= kHostSeenTwice;
    head_.flags |= kHostSeen;
    const std::string_view value = trim_ows({data + begin, end - begin});
    const HostKind kind = judge_host_value(value);
    if (kind == HostKind::kInvalid) head_.flags |= kHostIsInvalid;
    if (kind == HostKind::kEmpty) head_.flags |= kHostIsEmpty;
    take_authority({static_cast<std::uint32_t>(value.data() - data),
                    static_cast<std::uint32_t>(value.size())});
}

// 1*DIGIT, or a list of such (RFC 9110 8.6), which judge_head() refuses unless told otherwise.
void HeadParser::take_content_length(std::string_view value) {
    std::size_t i = 0;
    while (true) {
        if (head_.has(kLengthSeen)) head_.flags |= kLengthSeenTwice;
        const std::size_t comma = std::min(value.find(',', i), value.size());
        const std::string_view digits = trim_ows(value.substr(i, comma - i));
        std::uint64_t number = 0;
        bool valid = !digits.empty();
        bool overflow = false;
        for (const char c : digits) {
            if (!is_digit(octet(c))) {
                valid = false;
                break;
            }
            const std::uint64_t digit = octet(c) - std::uint64_t{'0'};
            constexpr std::uint64_t kMax = (std::uint64_t{1} << 63) - 1;
            if (number > (kMax - digit) / 10) overflow = true;
            if (!overflow) number = number * 10 + digit;
        }
        if (!valid) {
            head_.flags |= kLengthIsInvalid;
        } else if (overflow) {
            head_.flags |= kLengthOverflows;
            number = std::uint64_t{1} << 63;  // differs from every length that does not overflow
        }
        if (head_.has(kLengthSeen) && number != head_.content_length) {
            head_.flags |= kLengthDiffers;
        }
        head_.flags |= kLengthSeen;
        head_.content_length = number;
        if (comma == value.size()) return;
        i = comma + 1;
    }
}

// #transfer-coding over all lines, RFC 9110 10.1.4: token *( OWS ";" OWS transfer-parameter ).
// Empty members are ignored (RFC 9110 5.6.1.2).
void HeadParser::take_transfer_encoding(std::string_view value) {
    head_.flags |= kCodingSeen;
    std::size_t i = 0;
    const auto skip_ows = [&] {
        while (i < value.size() && is_ows(octet(value[i]))) ++i;
    };
    const auto token = [&] {
        const std::size_t begin = i;
        while (i < value.size() && is_tchar(octet(value[i]))) ++i;
        return value.substr(begin, i - begin);
    };
    bool member_due = true;  // at the start of the value, and behind each comma
    while (true) {
        skip_ows();
        if (i == value.size()) {
            if (member_due) head_.flags |= kCodingEmptyMember;
            return;
        }
        if (value[i] == ',') {
            if (member_due) head_.flags |= kCodingEmptyMember;
            member_due = true;
            ++i;
            continue;
        }
        member_due = false;
        const std::string_view coding = token();
        if (coding.empty()) {
            head_.flags |= kCodingIsInvalid;
            return;
        }
        bool parameters = false;
        skip_ows();
        while (i < value.size() && value[i] == ';') {
            parameters = true;
            ++i;
            skip_ows();
            const bool named = !token().empty();
            skip_ows();
            if (!named || i == value.size() || value[i] != '=') {
                head_.flags |= kCodingIsInvalid;
                return;
            }
            ++i;
            skip_ows();
            if (i < value.size() && value[i] == '"') {
                ++i;
                while (i < value.size() && value[i] != '"') {
                    if (value[i] == '\\') ++i;
                    ++i;
                }
                if (i >= value.size()) {
                    head_.flags |= kCodingIsInvalid;
                    return;
                }
                ++i;
            } else if (token().empty()) {
                head_.flags |= kCodingIsInvalid;
                return;
            }
            skip_ows();
        }
        if (i < value.size() && value[i] != ',') {
            head_.flags |= kCodingIsInvalid;
            return;
        }
        const bool was_chunked = head_.has(kCodingChunked);
        head_.flags |= kCodingAny;
        if (equals_ignoring_case(coding, "chunked")) {
            if (was_chunked) head_.flags |= kCodingChunkedTwice;
            if (parameters) head_.flags |= kCodingParameters;
            head_.flags |= kCodingChunked;
        } else {
            if (was_chunked) head_.flags |= kCodingAfterChunked;
            head_.flags |= kCodingUnknown;
        }
    }
}

void HeadParser::take_connection(std::string_view value) {
    if (equals_ignoring_case(value, "keep-alive")) {  // by far the most common
        head_.flags |= kConnectionKeepAlive;
        return;
    }
    std::size_t i = 0;
    while (i <= value.size()) {
        const std::size_t comma = std::min(value.find(',', i), value.size());
        const std::string_view option = trim_ows(value.substr(i, comma - i));
        if (equals_ignoring_case(option, "close")) head_.flags |= kConnectionClose;
        if (equals_ignoring_case(option, "keep-alive")) head_.flags |= kConnectionKeepAlive;
        if (equals_ignoring_case(option, "upgrade")) head_.flags |= kConnectionUpgrade;
        i = comma + 1;
    }
}

// #expectation, RFC 9110 10.1.1; only 100-continue is known.
void HeadParser::take_expect(std::string_view value) {
    std::size_t i = 0;
    while (i <= value.size()) {
        const std::size_t comma = std::min(value.find(',', i), value.size());
        const std::string_view expectation = trim_ows(value.substr(i, comma - i));
        if (equals_ignoring_case(expectation, "100-continue")) {
            head_.flags |= kExpectContinue;
        } else if (!expectation.empty()) {
            head_.flags |= kExpectOther;
        }
        i = comma + 1;
    }
}

bool FieldReader::next(std::string_view& name, std::string_view& value) {
    const std::size_t end = rest_.find("\r\n");
    if (end == std::string_view::npos || end == 0) return false;
    const std::string_view line = rest_.substr(0, end);
    rest_.remove_prefix(end + 2);
    const std::size_t colon = line.find(':');
    CHECK(colon != std::string_view::npos);
    name = line.substr(0, colon);
    value = trim_ows(line.substr(colon + 1));
    return true;
}

}  // namespace httpmark
