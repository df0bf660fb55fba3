#include "http/chunked.hpp"

#include <algorithm>

#include "check.hpp"
#include "http/syntax.hpp"

namespace httpmark {

// What may stand after a size, an extension's name and an extension's value.
inline bool ChunkedDecoder::ends_part(unsigned char c, Phase behind_space) {
    if (c == '\r') {
        phase_ = Phase::kLineLf;
    } else if (c == ';') {
        phase_ = Phase::kExtensionStart;
    } else if (is_ows(c)) {
        phase_ = behind_space;
    } else {
        return false;
    }
    return true;
}

// A digit of the size, or what ends it.
inline Reason ChunkedDecoder::size_octet(unsigned char c, const Limits& limits) {
    if (!is_hexdig(c)) {
        return ends_part(c, Phase::kBeforeExtension) ? Reason::kNone : Reason::kChunkSizeSyntax;
    }
    const std::uint64_t room = std::min(limits.body_max, content_max_) - content_size_;
    const std::uint64_t digit = hex_value(c);
    // Overflow-safe: what is there already is within the room, which is under 2^60.
    if (chunk_left_ > room >> 4 || chunk_left_ * 16 + digit > room) {
        return Reason::kChunkSizeTooLarge;
    }
    chunk_left_ = chunk_left_ * 16 + digit;
    return Reason::kNone;
}

// From after the size to the end of an extension's name, and to the '=' after it.
inline Reason ChunkedDecoder::extension_name_octet(unsigned char c) {
    if (phase_ == Phase::kExtensionName) {
        if (is_tchar(c)) return Reason::kNone;
        if (c != '=') {
            return ends_part(c, Phase::kAfterName) ? Reason::kNone : Reason::kChunkExtensionSyntax;
        }
        phase_ = Phase::kValueStart;
        return Reason::kNone;
    }
    if (is_ows(c)) return Reason::kNone;
    if (phase_ == Phase::kExtensionStart) {
        if (!is_tchar(c)) return Reason::kChunkExtensionSyntax;
        phase_ = Phase::kExtensionName;
    } else if (c == ';') {
        phase_ = Phase::kExtensionStart;
    } else if (c == '=' && phase_ == Phase::kAfterName) {
        phase_ = Phase::kValueStart;
    } else {
        return Reason::kChunkExtensionSyntax;
    }
    return Reason::kNone;
}

// An extension's value, a token or a quoted-string, and what ends it.
inline Reason ChunkedDecoder::extension_value_octet(unsigned char c) {
    switch (phase_) {
        case Phase::kValueStart:
            if (is_ows(c)) return Reason::kNone;
            if (c == '"') {
                phase_ = Phase::kQuoted;
            } else if (is_tchar(c)) {
                phase_ = Phase::kToken;
            } else {
                return Reason::kChunkExtensionSyntax;
            }
            return Reason::kNone;
        case Phase::kQuoted:
            if (c == '"') {
                phase_ = Phase::kAfterQuoted;
            } else if (c == '\\') {
                phase_ = Phase::kQuotedPair;
            } else if (!is_qdtext(c)) {
                return Reason::kChunkExtensionSyntax;
            }
            return Reason::kNone;
        case Phase::kQuotedPair:
            if (!is_quoted_pair_char(c)) return Reason::kChunkExtensionSyntax;
            phase_ = Phase::kQuoted;
            return Reason::kNone;
        case Phase::kToken:
            if (is_tchar(c)) return Reason::kNone;
            break;
        default:
            break;
    }
    return ends_part(c, Phase::kBeforeExtension) ? Reason::kNone : Reason::kChunkExtensionSyntax;
}

// One byte of a chunk-size line, its CRLF included.
Reason ChunkedDecoder::line_octet(unsigned char c, const Limits& limits) {
    switch (phase_) {
        case Phase::kSizeStart:
            if (!is_hexdig(c)) return Reason::kChunkSizeSyntax;
            chunk_left_ = 0;
            phase_ = Phase::kSize;
            [[fallthrough]];
        case Phase::kSize:
            return size_octet(c, limits);
        case Phase::kBeforeExtension:
        case Phase::kExtensionStart:
        case Phase::kExtensionName:
        case Phase::kAfterName:
            return extension_name_octet(c);
        case Phase::kValueStart:
        case Phase::kToken:
        case Phase::kQuoted:
        case Phase::kQuotedPair:
        case Phase::kAfterQuoted:
            return extension_value_octet(c);
        case Phase::kLineLf:
            if (c != '\n') return Reason::kChunkLineEnd;
            last_chunk_ = chunk_left_ == 0;
            phase_ = last_chunk_ ? Phase::kTrailers : Phase::kData;
            content_size_ += chunk_left_;
            line_size_ = 0;
            extension_size_ = 0;
            return Reason::kNone;
        default:
            break;
    }
    CHECK(false);
}

// The byte belongs to what stands between the size and the CRLF.
bool ChunkedDecoder::is_in_extension(unsigned char c) const {
    if (c == '\r') return false;
    return phase_ > Phase::kSize ? phase_ < Phase::kLineLf
                                 : phase_ == Phase::kSize && !is_hexdig(c);
}

// After a step that fitted: the name is gathered, and looked up at its colon.
Reason ChunkedDecoder::trailer_name_octet(char c) {
    if (trailers_.phase == FieldWalker::Phase::kName) {
        if (trailers_.name_size <= trailer_name_.size()) trailer_name_[trailers_.name_size - 1] = c;
        return Reason::kNone;
    }
    const bool at_colon =
        trailers_.phase == FieldWalker::Phase::kValue && trailers_.value_size == 0 && c == ':';
    if (at_colon && trailers_.name_size <= trailer_name_.size() &&
        is_forbidden_trailer({trailer_name_.data(), trailers_.name_size})) {
        return Reason::kTrailerForbidden;
    }
    return Reason::kNone;
}

// What stands before most chunks, all of it here: the end of the chunk before, and a size without
// extensions. False where it is anything else, or the last chunk, or more than some limit allows:
// then nothing is taken, and it is looked at octet by octet.
inline bool ChunkedDecoder::take_plain_line(std::string_view& input, const Limits& limits) {
    constexpr std::size_t kDigitsMax = 8;
    std::size_t at = 0;
    if (phase_ == Phase::kDataCr) {
        if (!input.starts_with("\r\n")) return false;
        at = 2;
    }
    const std::size_t digits_end = std::min(input.size(), at + kDigitsMax);
    std::uint64_t size = 0;
    while (at < digits_end && is_hexdig(octet(input[at]))) {
        size = size * 16 + hex_value(octet(input[at++]));
    }
    if (size == 0 || input.size() - at < 2 || input[at] != '\r' || input[at + 1] != '\n') {
        return false;
    }
    at += 2;
    const std::uint64_t room = std::min(limits.body_max, content_max_) - content_size_;
    if (size > room || at > octets_max_ - offset_ || at > limits.chunk_line_max) return false;
    chunk_left_ = size;
    content_size_ += size;
    offset_ += at;
    input.remove_prefix(at);
    phase_ = Phase::kData;
    return true;
}

// As much of the chunk's data as is here and may be.
std::string_view ChunkedDecoder::take_data(std::string_view& input) {
    const std::size_t size = static_cast<std::size_t>(
        std::min<std::uint64_t>({input.size(), chunk_left_, octets_max_ - offset_}));
    const std::string_view piece = input.substr(0, size);
    input.remove_prefix(size);
    chunk_left_ -= size;
    offset_ += size;
    if (chunk_left_ == 0) phase_ = Phase::kDataCr;
    return piece;
}

// As far as the trailer section reaches; `taken` counts the bytes before one that is refused.
Reason ChunkedDecoder::take_trailers(std::string_view input, const Limits& limits,
                                     std::size_t& taken) {
    const FieldWalker::Bounds bounds{limits.field_name_max, limits.field_value_max,
                                     limits.trailer_lines_max, true};
    while (taken < input.size() && trailers_.phase != FieldWalker::Phase::kDone) {
        Reason reason = trailers_.step(octet(input[taken]), bounds);
        if (refuse_framing_trailers_ && reason == Reason::kNone) {
            reason = trailer_name_octet(input[taken]);
        }
        if (reason != Reason::kNone) return reason;
        if (offset_ + taken >= octets_max_) return Reason::kRequestTooLarge;
        if (trailers_size_ >= limits.trailers_max) return Reason::kTrailersTooLong;
        ++trailers_size_;
        ++taken;
    }
    return Reason::kNone;
}

ChunkedDecoder::Status ChunkedDecoder::decode(std::string_view& input, const Limits& limits,
                                              std::string_view& piece) {
    const auto refuse = [&](Reason reason) {
        reason_ = reason;
        phase_ = Phase::kRejected;
        return Status::kRejected;
    };
    if (phase_ == Phase::kRejected) return Status::kRejected;
    if (phase_ == Phase::kDone) return Status::kDone;
    while (!input.empty()) {
        const unsigned char c = octet(input.front());
        switch (phase_) {
            case Phase::kData:
                if (offset_ == octets_max_) return refuse(Reason::kRequestTooLarge);
                piece = take_data(input);
                return Status::kContent;
            case Phase::kDataCr:
                if (take_plain_line(input, limits)) continue;
                if (c != '\r') return refuse(Reason::kChunkDataEnd);
                phase_ = Phase::kDataLf;
                break;
            case Phase::kDataLf:
                if (c != '\n') return refuse(Reason::kChunkDataEnd);
                phase_ = Phase::kSizeStart;
                break;
            case Phase::kTrailers: {
                std::size_t taken = 0;
                const Reason reason = take_trailers(input, limits, taken);
                offset_ += taken;
                if (reason != Reason::kNone) return refuse(reason);
                piece = input.substr(0, taken);
                input.remove_prefix(taken);
                if (trailers_.phase == FieldWalker::Phase::kDone) phase_ = Phase::kDone;
                return Status::kTrailer;
            }
            case Phase::kDone:
                return Status::kDone;
            case Phase::kSizeStart:
                if (take_plain_line(input, limits)) continue;
                [[fallthrough]];
            default: {
                const bool over = ++line_size_ > limits.chunk_line_max;
                const bool extends = is_in_extension(c);
                const Reason reason = line_octet(c, limits);
                if (reason != Reason::kNone) return refuse(reason);
                if (over) return refuse(Reason::kChunkLineTooLong);
                if (!extends) break;
                if (++extension_size_ > limits.chunk_extension_max) {
                    return refuse(Reason::kChunkExtensionTooLong);
                }
                if (++extensions_size_ > limits.chunk_extensions_max) {
                    return refuse(Reason::kChunkExtensionsTooLong);
                }
                break;
            }
        }
        if (offset_ >= octets_max_) return refuse(Reason::kRequestTooLarge);
        input.remove_prefix(1);
        ++offset_;
    }
    return phase_ == Phase::kDone ? Status::kDone : Status::kNeedMore;
}

bool is_forbidden_trailer(std::string_view name) {
    constexpr std::string_view kNames[] = {
        "authorization",
        "cache-control",
        "connection",
        "content-encoding",
        "content-length",
        "content-range",
        "content-type",
        "cookie",
        "expect",
        "host",
        "if-match",
        "if-modified-since",
        "if-none-match",
        "if-range",
        "if-unmodified-since",
        "keep-alive",
        "max-forwards",
        "proxy-authorization",
        "proxy-connection",
        "range",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    };
    return std::any_of(std::begin(kNames), std::end(kNames),
                       [&](std::string_view n) { return equals_ignoring_case(name, n); });
}

}  // namespace httpmark
