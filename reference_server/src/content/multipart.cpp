#include "content/multipart.hpp"

#include <algorithm>
#include <utility>

#include "check.hpp"
#include "content/media_type.hpp"
#include "http/syntax.hpp"

namespace httpmark {

namespace {

// RFC 2046 5.1.1
constexpr bool is_bchar(unsigned char c) {
    switch (c) {
        case '\'':
        case '(':
        case ')':
        case '+':
        case '_':
        case ',':
        case '-':
        case '.':
        case '/':
        case ':':
        case '=':
        case '?':
        case ' ':
            return true;
        default:
            return is_alpha(c) || is_digit(c);
    }
}

}  // namespace

bool Boundary::set(std::string_view text) {
    if (text.empty() || text.size() > kBoundaryMax || text.back() == ' ') return false;
    if (!std::ranges::all_of(text, [](char c) { return is_bchar(octet(c)); })) return false;
    std::ranges::copy(text, octets_.begin());
    size_ = text.size();
    return true;
}

BoundaryResult boundary_of(std::string_view content_type) {
    BoundaryResult result;
    const MediaTypeResult parsed = parse_media_type(content_type);
    const auto fail = [&](Reason fault, std::size_t offset) {
        result.fault = fault;
        result.offset = offset;
        return result;
    };
    if (parsed.fault != Reason::kNone) return fail(parsed.fault, parsed.offset);
    if (!is_media_type(parsed.media_type, "multipart/form-data")) {
        return fail(Reason::kMultipartType, 0);
    }
    const auto parameter = parameter_of(parsed.media_type, "boundary");
    if (!parameter) return fail(Reason::kBoundaryMissing, content_type.size());
    const auto offset = static_cast<std::size_t>(parameter->value.data() - content_type.data());
    // No byte that a boundary may hold needs an escape, so one makes it too long at most.
    std::array<char, 2 * kBoundaryMax> room{};
    if (parameter->value.size() > room.size()) return fail(Reason::kBoundarySyntax, offset);
    const std::string_view text =
        parameter->is_quoted ? unquote(parameter->value, room.data()) : parameter->value;
    if (!result.boundary.set(text)) return fail(Reason::kBoundarySyntax, offset);
    return result;
}

MultipartDecoder::MultipartDecoder(const Boundary& boundary, const MultipartLimits& limits)
    : limits_(limits), delimiter_size_(4 + boundary.text().size()) {
    CHECK(!boundary.text().empty());
    CHECK(limits.part_head_max <= kPartHeadMax);
    constexpr std::string_view kBefore = "\r\n--";
    std::ranges::copy(boundary.text(), std::ranges::copy(kBefore, delimiter_.begin()).out);
}

inline void MultipartDecoder::take(std::string_view& input, std::size_t size) {
    input.remove_prefix(size);
    offset_ += size;
}

MultipartDecoder::Status MultipartDecoder::reject(Reason fault, std::uint64_t offset) {
    phase_ = Phase::kRejected;
    fault_ = fault;
    offset_ = offset;
    return Status::kRejected;
}

// How many bytes `text` and the rest of the delimiter begin with in common.
std::size_t MultipartDecoder::delimiter_prefix(std::string_view text) const {
    const std::string_view rest(delimiter_.data() + matched_, delimiter_size_ - matched_);
    const std::size_t size = std::min(text.size(), rest.size());
    return static_cast<std::size_t>(
        std::mismatch(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(size), rest.begin())
            .first -
        text.begin());
}

// A delimiter may have begun in what was taken before. Where it turns out to be none, those bytes
// are handed out from our own copy of it: the input that held them is gone.
MultipartDecoder::Seen MultipartDecoder::continue_delimiter(std::string_view& input,
                                                            std::string_view& piece) {
    const std::size_t more = delimiter_prefix(input);
    matched_ += more;
    take(input, more);
    if (matched_ < delimiter_size_ && input.empty()) return Seen::kNothing;
    const std::size_t size = matched_ - unsent_;
    piece = {delimiter_.data() + unsent_, size};
    const bool whole = matched_ == delimiter_size_;
    matched_ = unsent_ = 0;
    if (whole) return Seen::kDelimiter;
    return size == 0 ? Seen::kNothing : Seen::kOther;
}

// Takes what stands before the next delimiter, into `piece`, or the delimiter. A boundary holds no
// CR, so each CR can begin a delimiter and nothing else within one can.
MultipartDecoder::Seen MultipartDecoder::seek_delimiter(std::string_view& input,
                                                        std::string_view& piece) {
    if (matched_ > 0) return continue_delimiter(input, piece);
    std::size_t at = input.find('\r');
    while (at != std::string_view::npos) {
        const std::size_t same = delimiter_prefix(input.substr(at));
        if (same == delimiter_size_ || at + same == input.size()) break;
        at = input.find('\r', at + same);
    }
    if (at == 0) return continue_delimiter(input, piece);
    piece = input.substr(0, at);
    take(input, piece.size());
    return Seen::kOther;
}

// Counts a piece that was just taken. False where it goes beyond `max`: then it is cut, and
// offset_ is that of the first byte too many.
bool MultipartDecoder::cut_to(std::uint64_t max, std::string_view& piece) {
    const std::uint64_t room = max - counted_;
    if (piece.size() <= room) {
        counted_ += piece.size();
        return true;
    }
    offset_ -= piece.size() - room;
    piece = piece.substr(0, static_cast<std::size_t>(room));
    return false;
}

MultipartDecoder::Status MultipartDecoder::preamble(std::string_view& input) {
    std::string_view piece;
    switch (seek_delimiter(input, piece)) {
        case Seen::kNothing:
            break;
        case Seen::kOther:
            if (!cut_to(limits_.preamble_max, piece)) {
                return reject(Reason::kPreambleTooLong, offset_);
            }
            break;
        case Seen::kDelimiter:
            phase_ = Phase::kAfterDelimiter;
            break;
    }
    return Status::kNeedMore;
}

MultipartDecoder::Status MultipartDecoder::epilogue(std::string_view& input) {
    std::string_view piece = input;
    take(input, piece.size());
    return cut_to(limits_.epilogue_max, piece) ? Status::kNeedMore
                                               : reject(Reason::kEpilogueTooLong, offset_);
}

MultipartDecoder::Status MultipartDecoder::content(std::string_view& input,
                                                   std::string_view& piece) {
    switch (seek_delimiter(input, piece)) {
        case Seen::kNothing:
            break;
        case Seen::kOther:
            if (!cut_to(limits_.part_max, piece)) {
                reject(Reason::kPartTooLarge, offset_);
                return piece.empty() ? Status::kRejected : Status::kContent;
            }
            return Status::kContent;
        case Seen::kDelimiter:
            phase_ = Phase::kAfterDelimiter;
            return Status::kPartEnd;
    }
    return Status::kNeedMore;
}

// What follows a delimiter on its line: "--" for the last one, blanks, CRLF. Anything else would
// be a delimiter to one reader and content to another.
Reason MultipartDecoder::delimiter_octet(unsigned char c) {
    switch (phase_) {
        case Phase::kAfterDelimiter:
            counted_ = 0;
            phase_ = c == '-' ? Phase::kCloseDash : Phase::kPadding;
            if (c == '-') return Reason::kNone;
            [[fallthrough]];
        case Phase::kPadding:
        case Phase::kClosed:
            if (c == '\r') {
                phase_ = phase_ == Phase::kClosed ? Phase::kClosedLf : Phase::kDelimiterLf;
                return Reason::kNone;
            }
            return is_ows(c) && counted_++ < kTransportPaddingMax ? Reason::kNone
                                                                  : Reason::kDelimiterLine;
        case Phase::kCloseDash:
            phase_ = Phase::kClosed;
            return c == '-' ? Reason::kNone : Reason::kDelimiterLine;
        case Phase::kClosedLf:
            counted_ = 0;
            phase_ = Phase::kEpilogue;
            return c == '\n' ? Reason::kNone : Reason::kDelimiterLine;
        default:
            return c == '\n' ? begin_head() : Reason::kDelimiterLine;
    }
}

Reason MultipartDecoder::begin_head() {
    if (parts_ == limits_.parts_max) return Reason::kPartsTooMany;
    ++parts_;
    phase_ = Phase::kLineStart;
    head_begin_ = offset_ + 1;
    head_size_ = line_begin_ = meant_size_ = 0;
    has_disposition_ = has_name_ = has_content_type_ = has_transfer_encoding_ = false;
    part_ = {};
    return Reason::kNone;
}

// One byte of a part's header section: lines as in RFC 9112 5, none of them folded.
Reason MultipartDecoder::head_octet(unsigned char c) {
    if (head_size_ == limits_.part_head_max) return Reason::kPartHeadTooLong;
    head_[head_size_++] = static_cast<char>(c);
    switch (phase_) {
        case Phase::kLineStart:
            if (c == '\r') {
                phase_ = Phase::kHeadLf;
                return Reason::kNone;
            }
            phase_ = Phase::kFieldName;
            return is_tchar(c) ? Reason::kNone : Reason::kPartFieldName;
        case Phase::kFieldName:
            if (is_tchar(c)) return Reason::kNone;
            colon_ = head_size_ - 1;
            phase_ = Phase::kFieldValue;
            return c == ':' ? Reason::kNone : Reason::kPartFieldName;
        case Phase::kFieldValue:
            if (c == '\r') {
                phase_ = Phase::kFieldLf;
                return Reason::kNone;
            }
            return is_forbidden_in_field(c) || c == '\n' ? Reason::kPartFieldValue : Reason::kNone;
        case Phase::kFieldLf:
            if (c != '\n') return Reason::kPartLineEnd;
            phase_ = Phase::kLineStart;
            return take_field();
        default:
            return c == '\n' ? end_head() : Reason::kPartLineEnd;
    }
}

// A fault that shows at the end of a line but stands at `at` within it.
Reason MultipartDecoder::fault_in_head(Reason fault, const char* at) {
    fault_offset_ = head_begin_ + static_cast<std::uint64_t>(at - head_.data());
    return fault;
}

Reason MultipartDecoder::take_field() {
    const char* const line = head_.data() + line_begin_;
    const std::string_view name(line, colon_ - line_begin_);
    const std::string_view value =
        trim_ows({head_.data() + colon_ + 1, head_size_ - 2 - colon_ - 1});
    line_begin_ = head_size_;
    const auto is_repeated = [](bool& seen) { return std::exchange(seen, true); };
    if (equals_ignoring_case(name, "content-disposition")) {
        if (is_repeated(has_disposition_)) {
            return fault_in_head(Reason::kPartFieldRepeated, line);
        }
        return take_disposition(value);
    }
    if (equals_ignoring_case(name, "content-type")) {
        if (is_repeated(has_content_type_)) {
            return fault_in_head(Reason::kPartFieldRepeated, line);
        }
        part_.content_type = value;
    } else if (equals_ignoring_case(name, "content-transfer-encoding")) {
        if (is_repeated(has_transfer_encoding_)) {
            return fault_in_head(Reason::kPartFieldRepeated, line);
        }
        // These three mean the bytes themselves; nothing else is decoded (RFC 7578 4.7).
        if (!equals_ignoring_case(value, "7bit") && !equals_ignoring_case(value, "8bit") &&
            !equals_ignoring_case(value, "binary")) {
            return fault_in_head(Reason::kPartTransferEncoding, value.data());
        }
    }
    return Reason::kNone;
}

// form-data; name="..."; filename="...", RFC 7578 4.2
Reason MultipartDecoder::take_disposition(std::string_view value) {
    constexpr std::string_view kType = "form-data";
    if (!equals_ignoring_case(value.substr(0, kType.size()), kType)) {
        return fault_in_head(Reason::kPartDisposition, value.data());
    }
    const std::string_view parameters = value.substr(kType.size());
    ParameterReader reader(parameters);
    Parameter parameter;
    while (reader.next(parameter)) {
        const char* const at = parameter.name.data();
        const bool is_name = equals_ignoring_case(parameter.name, "name");
        if (is_name || equals_ignoring_case(parameter.name, "filename")) {
            bool& seen = is_name ? has_name_ : part_.has_filename;
            if (seen) return fault_in_head(Reason::kParameterRepeated, at);
            seen = true;
            (is_name ? part_.name : part_.filename) = meant(parameter.value, parameter.is_escaped);
        } else if (parameter.name.back() == '*') {
            // "MUST NOT be used": one reader would take it, and another the plain one.
            return fault_in_head(Reason::kPartExtendedParameter, at);
        }
    }
    if (reader.is_wrong()) {
        return fault_in_head(Reason::kPartDisposition, parameters.data() + reader.offset());
    }
    return Reason::kNone;
}

// The room cannot run out: both texts stand in the head, and this makes them shorter.
std::string_view MultipartDecoder::meant(std::string_view text, bool is_escaped) {
    if (!is_escaped) return text;
    const std::string_view out =
        unquote(text, meant_.data() + meant_size_, QuotedPairs::kOnlyNeeded);
    meant_size_ += out.size();
    return out;
}

Reason MultipartDecoder::end_head() {
    if (!has_disposition_) return Reason::kPartDispositionMissing;
    if (!has_name_) return Reason::kPartNameMissing;
    part_.head = {head_.data(), head_size_ - 2};
    phase_ = Phase::kContent;
    counted_ = 0;
    // RFC 2046's grammar lets a part end at its header section: the CRLF of the empty line is then
    // that of the delimiter.
    matched_ = unsent_ = 2;
    return Reason::kNone;
}

MultipartDecoder::Status MultipartDecoder::decode(std::string_view& input,
                                                  std::string_view& piece) {
    if (phase_ == Phase::kRejected) return Status::kRejected;
    while (!input.empty()) {
        Status status = Status::kNeedMore;
        switch (phase_) {
            case Phase::kPreamble:
                status = preamble(input);
                break;
            case Phase::kContent:
                status = content(input, piece);
                break;
            case Phase::kEpilogue:
                status = epilogue(input);
                break;
            default: {
                const unsigned char c = octet(input[0]);
                const bool in_head = phase_ >= Phase::kLineStart && phase_ <= Phase::kHeadLf;
                fault_offset_ = offset_;
                const Reason fault = in_head ? head_octet(c) : delimiter_octet(c);
                if (fault != Reason::kNone) return reject(fault, fault_offset_);
                take(input, 1);
                if (phase_ == Phase::kContent) status = Status::kPartBegin;
            }
        }
        if (status != Status::kNeedMore) return status;
    }
    return Status::kNeedMore;
}

MultipartDecoder::Status MultipartDecoder::finish() {
    switch (phase_) {
        case Phase::kClosed:
        case Phase::kEpilogue:
            return Status::kDone;
        case Phase::kRejected:
            return Status::kRejected;
        default:
            return reject(Reason::kMultipartUnfinished, offset_);
    }
}

}  // namespace httpmark
