#include "probe/response_framing.hpp"

#include <algorithm>
#include <cstring>

namespace httpmark {
namespace {

constexpr std::string_view kStart = "HTTP/1.";

char lower(char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c;
}

bool same_word(std::string_view a, std::string_view b) {
    if (a.size() != b.size()) return false;
    for (std::size_t i = 0; i < a.size(); ++i) {
        if (lower(a[i]) != lower(b[i])) return false;
    }
    return true;
}

std::string_view trim(std::string_view text) {
    while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
    while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
    return text;
}

// Calls `see` with each member of a comma-separated list (RFC 9110 section 5.6.1).
template <typename See>
void each_member(std::string_view list, See see) {
    while (true) {
        const std::size_t comma = list.find(',');
        const std::string_view member = trim(list.substr(0, comma));
        if (!member.empty()) see(member);
        if (comma == std::string_view::npos) return;
        list.remove_prefix(comma + 1);
    }
}

bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

bool parse_decimal(std::string_view text, std::uint64_t* value) {
    if (text.empty() || text.size() > 18) return false;  // 18 digits cannot overflow
    *value = 0;
    for (const char c : text) {
        if (!is_digit(c)) return false;
        *value = *value * 10 + static_cast<std::uint64_t>(c - '0');
    }
    return true;
}

}  // namespace

void ResponseFraming::reset() {
    announced_close_ = false;
    begin_message();
}

void ResponseFraming::begin_message() {
    state_ = State::kStatusLine;
    keep_alive_ = false;
    is_chunked_ = false;
    has_coding_ = false;
    has_length_ = false;
    bad_length_ = false;
    left_ = 0;
    length_ = 0;
    head_bytes_ = 0;
    line_.clear();
}

bool ResponseFraming::take_line(std::string_view* input, bool* too_long) {
    *too_long = false;
    const std::size_t at = input->find('\n');
    const std::size_t size = at == std::string_view::npos ? input->size() : at;
    const std::size_t used = at == std::string_view::npos ? size : size + 1;
    head_bytes_ += used;
    if (line_.size() + size > kResponseLineBytesMax || head_bytes_ > kResponseHeadBytesMax) {
        *too_long = true;
        return false;
    }
    line_.append(input->substr(0, size));
    input->remove_prefix(used);
    if (at == std::string_view::npos) return false;
    if (!line_.empty() && line_.back() == '\r') line_.pop_back();
    return true;
}

bool ResponseFraming::read_status_line() {
    // HTTP-version SP 3DIGIT, then a space or the end of the line
    const std::string& line = line_;
    if (line.size() < 12 || line.compare(0, kStart.size(), kStart) != 0) return false;
    if (!is_digit(line[7]) || line[8] != ' ') return false;
    if (!is_digit(line[9]) || !is_digit(line[10]) || !is_digit(line[11])) return false;
    if (line.size() > 12 && line[12] != ' ') return false;
    minor_version_ = line[7] - '0';
    status_ = (line[9] - '0') * 100 + (line[10] - '0') * 10 + (line[11] - '0');
    return status_ >= 100;
}

void ResponseFraming::read_field() {
    const std::string_view line = line_;
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos) return;
    const std::string_view name = trim(line.substr(0, colon));
    const std::string_view value = trim(line.substr(colon + 1));
    if (same_word(name, "connection")) {
        each_member(value, [&](std::string_view option) {
            if (same_word(option, "close")) announced_close_ = true;
            if (same_word(option, "keep-alive")) keep_alive_ = true;
        });
    } else if (same_word(name, "content-length")) {
        each_member(value, [&](std::string_view member) {
            std::uint64_t length = 0;
            if (!parse_decimal(member, &length) || (has_length_ && length != length_)) {
                bad_length_ = true;
            }
            length_ = length;
            has_length_ = true;
        });
        if (value.empty()) bad_length_ = true;
    } else if (same_word(name, "transfer-encoding")) {
        each_member(value, [&](std::string_view coding) {
            has_coding_ = true;
            is_chunked_ = same_word(coding, "chunked");  // the last coding decides
        });
    }
}

bool ResponseFraming::read_chunk_size() {
    std::size_t at = 0;
    std::uint64_t size = 0;
    for (; at < line_.size(); ++at) {
        const char c = lower(line_[at]);
        int digit = -1;
        if (is_digit(c)) digit = c - '0';
        if (c >= 'a' && c <= 'f') digit = c - 'a' + 10;
        if (digit < 0) break;
        if (at >= 15) return false;
        size = size * 16 + static_cast<std::uint64_t>(digit);
    }
    if (at == 0) return false;
    const std::string_view rest = trim(std::string_view(line_).substr(at));
    if (!rest.empty() && rest.front() != ';') return false;
    left_ = size;
    return true;
}

FramingEvent ResponseFraming::lose(std::string_view* input) {
    state_ = State::kLost;
    line_.clear();
    input->remove_prefix(input->size());
    return FramingEvent::kGarbage;
}

FramingEvent ResponseFraming::feed(std::string_view* input) {
    while (!input->empty()) {
        std::optional<FramingEvent> event;
        switch (state_) {
            case State::kHeadDone:
                begin_body(RequestKind::kOrdinary);
                break;
            case State::kLength:
            case State::kChunkData:
                event = feed_content(input);
                break;
            case State::kStatusLine:
            case State::kFields:
            case State::kChunkEnd:
            case State::kChunkSize:
            case State::kTrailer:
                event = feed_line(input);
                break;
            case State::kUntilClose:
            case State::kLost:
                input->remove_prefix(input->size());
                return FramingEvent::kNeedMore;
        }
        if (event) return *event;
    }
    return FramingEvent::kNeedMore;
}

std::optional<FramingEvent> ResponseFraming::feed_content(std::string_view* input) {
    const auto part = static_cast<std::size_t>(
        std::min<std::uint64_t>(left_, static_cast<std::uint64_t>(input->size())));
    input->remove_prefix(part);
    left_ -= part;
    if (left_ != 0) return FramingEvent::kNeedMore;
    if (state_ == State::kLength) {
        begin_message();
        return FramingEvent::kMessage;
    }
    state_ = State::kChunkEnd;
    return std::nullopt;
}

std::optional<FramingEvent> ResponseFraming::feed_line(std::string_view* input) {
    // Garbage is to be known by its first bytes, not by its first line end.
    if (state_ == State::kStatusLine && line_.size() < kStart.size()) {
        const std::size_t look = std::min(kStart.size() - line_.size(), input->size());
        if (input->compare(0, look, kStart.substr(line_.size(), look)) != 0) return lose(input);
    }
    bool too_long = false;
    if (!take_line(input, &too_long)) return too_long ? lose(input) : FramingEvent::kNeedMore;
    const std::optional<FramingEvent> event = read_line(input);
    if (!event) line_.clear();
    return event;
}

// line_ is a whole one.
std::optional<FramingEvent> ResponseFraming::read_line(std::string_view* input) {
    switch (state_) {
        case State::kStatusLine:
            if (!read_status_line()) return lose(input);
            state_ = State::kFields;
            break;
        case State::kFields:
            if (line_.empty()) {
                if (minor_version_ == 0 && !keep_alive_) announced_close_ = true;
                state_ = State::kHeadDone;
                return FramingEvent::kHead;
            }
            read_field();
            break;
        case State::kChunkEnd:
            if (!line_.empty()) return lose(input);
            state_ = State::kChunkSize;
            head_bytes_ = 0;
            break;
        case State::kChunkSize:
            if (!read_chunk_size()) return lose(input);
            state_ = left_ == 0 ? State::kTrailer : State::kChunkData;
            break;
        default:
            if (line_.empty()) {
                begin_message();
                return FramingEvent::kMessage;
            }
            break;
    }
    return std::nullopt;
}

bool ResponseFraming::begin_body(RequestKind request) {
    line_.clear();
    head_bytes_ = 0;
    if (status_ == 101 || (request == RequestKind::kConnect && status_ / 100 == 2)) {
        state_ = State::kLost;
        return true;
    }
    if (status_ < 200 || status_ == 204 || status_ == 304 || request == RequestKind::kHead) {
        begin_message();
        return true;
    }
    if (has_coding_) {
        state_ = is_chunked_ ? State::kChunkSize : State::kUntilClose;
        return false;
    }
    if (!has_length_ || bad_length_) {
        state_ = State::kUntilClose;
        return false;
    }
    left_ = length_;
    if (left_ == 0) {
        begin_message();
        return true;
    }
    state_ = State::kLength;
    return false;
}

bool ResponseFraming::finish() {
    const bool completes = state_ == State::kUntilClose;
    state_ = State::kLost;
    line_.clear();
    return completes;
}

}  // namespace httpmark
