// The request-line: method, target in any of its forms, version.
#include <algorithm>
#include <bit>
#include <cstring>

#include "http/parser.hpp"
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
            case Phase::kMethod:
                if (!method(context, masks, n, at, result)) return false;
                break;
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
            case Phase::kTargetOrigin:
                if (!target_origin(context, masks, n, at, result)) return false;
                break;
            case Phase::kTargetOther:
                if (!target_octet(context, scan_ + at, result)) return false;
                ++at;
                break;
            case Phase::kVersion:
                if (!version(context, n, at, result)) return false;
                break;
            case Phase::kFields:
                return true;
        }
    }
    return true;
}

bool HeadParser::method(const Context& context, const BlockMasks& masks, unsigned n, unsigned& at,
                        ParseResult& result) {
    const std::uint64_t stop = ~masks.token & low_bits(n) & high_bits_from(at);
    const unsigned end = stop == 0 ? n : lowest(stop);
    const std::uint32_t length = scan_ + end - mark_;
    if (length > context.limits.method_max) {
        return reject(result, Reason::kMethodTooLong, mark_ + context.limits.method_max);
    }
    at = end;
    if (stop == 0) return true;
    if (context.data[scan_ + end] != ' ') {
        return reject(result, Reason::kMethodOctet, scan_ + end);
    }
    if (length == 0) return reject(result, Reason::kMethodEmpty, scan_ + end);
    head_.method_name = {mark_, length};
    head_.method = method_of(head_.method_name.in(context.data));
    phase_ = Phase::kTargetStart;
    ++at;
    return true;
}

// A target that begins with '/', by masks.
bool HeadParser::target_origin(const Context& context, const BlockMasks& masks, unsigned n,
                               unsigned& at, ParseResult& result) {
    const char* block = context.data + scan_;
    const std::uint64_t range = low_bits(n) & high_bits_from(at);
    const std::uint64_t stop = ~masks.target & range;
    const unsigned end = stop == 0 ? n : lowest(stop);
    const std::uint64_t inside = range & low_bits(end);
    const std::uint64_t percent = masks.percent & inside;
    const std::uint64_t must_be_hex = ((percent << 1) | (percent << 2) | percent_carry_) & range &
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
        percent_carry_ = static_cast<std::uint8_t>((before | final_one) | (final_one << 1));
        at = n;
        return true;
    }
    if (block[end] != ' ') return reject(result, Reason::kTargetOctet, scan_ + end);
    percent_carry_ = 0;
    head_.target = {mark_, scan_ + end - mark_};
    mark_ = scan_ + end + 1;
    at = end + 1;
    phase_ = Phase::kVersion;
    return true;
}

// Whole where it stands whole and is the common one, else byte by byte.
bool HeadParser::version(const Context& context, unsigned n, unsigned& at, ParseResult& result) {
    const char* block = context.data + scan_;
    constexpr std::string_view kCommon = "HTTP/1.1\r\n";
    if (mark_ == scan_ + at && n - at >= kCommon.size() &&
        std::memcmp(block + at, kCommon.data(), kCommon.size()) == 0) {
        head_.version_major = 1;
        head_.version_minor = 1;
        at += static_cast<unsigned>(kCommon.size());
        return end_request_line(context, scan_ + at - 1, result);
    }
    const unsigned index = scan_ + at - mark_;
    const unsigned char c = octet(block[at]);
    const char pattern = kVersionPattern[index];
    if (pattern == 'd') {
        if (!is_digit(c)) return reject(result, Reason::kVersionSyntax, scan_ + at);
        const auto digit = static_cast<std::uint8_t>(c - '0');
        (index == 5 ? head_.version_major : head_.version_minor) = digit;
    } else if (c != octet(pattern)) {
        return reject(result, index < 8 ? Reason::kVersionSyntax : Reason::kVersionLineEnd,
                      scan_ + at);
    }
    ++at;
    return index != 9 || end_request_line(context, scan_ + at - 1, result);
}

// Targets that do not begin with '/', and every target in browser strictness: byte by byte.
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
    // Square brackets were let through for an IP literal; after the authority there is none.
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

}  // namespace httpmark
