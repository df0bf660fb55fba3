// Field sections byte by byte: where a fault lies that the masks have seen, and reading back.
#include "http/parser.hpp"

#include "check.hpp"
#include "http/syntax.hpp"

namespace httpmark {

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

// The masks say this block is at fault, or a bound may be passed in it: find the first byte. No
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

// The byte after a CR at a line start that was the last byte known.
ParseResult HeadParser::take_end_lf(const Context& context) {
    const std::uint32_t length = scan_ + 1;
    if (context.data[scan_] != '\n' || length > context.limits.head_max) {
        return reject_line(context, 1);
    }
    head_.field_count = lines_.count;
    return {Verdict::kAccepted, Reason::kNone, length};
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
