#include "load/response.hpp"

#include <algorithm>

namespace httpmark {
namespace {

constexpr const char* kBadDate = "Date malformed, ahead of the clock, or older than the request";

bool is_digit(char c) {
    return c >= '0' && c <= '9';
}
char lower(char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c;
}

// RFC 9110 section 5.6.2
bool is_tchar(char c) {
    if (is_digit(c) || (lower(c) >= 'a' && lower(c) <= 'z')) return true;
    return c != '\0' && std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
}

// RFC 9110 section 5.5: VCHAR, obs-text, SP, HTAB
bool is_field_octet(char c) {
    const auto octet = static_cast<unsigned char>(c);
    return octet == '\t' || (octet >= 0x20 && octet != 0x7f);
}

bool same_word(std::string_view a, std::string_view lower_case) {
    if (a.size() != lower_case.size()) return false;
    for (std::size_t i = 0; i < a.size(); ++i) {
        if (lower(a[i]) != lower_case[i]) return false;
    }
    return true;
}

std::string_view trim(std::string_view text) {
    while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
    while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
    return text;
}

bool list_has(std::string_view list, std::string_view word) {
    for (;;) {
        const std::size_t comma = list.find(',');
        if (same_word(trim(list.substr(0, comma)), word)) return true;
        if (comma == std::string_view::npos) return false;
        list.remove_prefix(comma + 1);
    }
}

// Reads one response from the front of the input. Its parts return false when nothing more is to be
// read: the state of `out` says why.
class Reader {
  public:
    Reader(std::string_view input, bool head_request, ParsedResponse* out)
        : input_(input), head_request_(head_request), out_(out) {}

    void read() {
        if (!read_status_line() || !read_fields() || !read_framing()) return;
        if (out_->is_chunked ? !read_chunks() || !read_trailers() : !read_content()) return;
        out_->size = at_;
        out_->state = ParseState::kComplete;
    }

  private:
    bool invalid(const char* why, std::size_t at) {
        out_->state = ParseState::kInvalid;
        out_->why = why;
        out_->why_at = at;
        return false;
    }
    bool need(std::size_t size) {
        out_->state = ParseState::kNeedMore;
        out_->need = size;
        return false;
    }

    // line_: the line at at_ without its CRLF.
    bool take_line() {
        // No further than a line may be long, whether more is here already or not.
        const std::string_view rest = input_.substr(at_, kLoadHeadBytesMax + 1);
        const std::size_t size = rest.find('\n');
        if (size == std::string_view::npos) {
            if (rest.size() > kLoadHeadBytesMax) return invalid("line without an end", at_);
            return need(input_.size() + 1);
        }
        const std::size_t end = at_ + size;
        if (end == at_ || input_[end - 1] != '\r') return invalid("bare LF", end);
        line_ = input_.substr(at_, end - 1 - at_);
        return true;
    }
    void pass_line() { at_ += line_.size() + 2; }

    bool read_status_line();
    bool read_fields();
    bool read_field(std::string_view name, std::string_view value);
    bool read_length(std::string_view value);
    bool read_framing();
    bool read_content();
    bool read_chunks();
    bool read_chunk_size(std::uint64_t* size);
    bool read_trailers();

    std::string_view input_;
    bool head_request_;
    ParsedResponse* out_;
    std::size_t at_ = 0;
    std::string_view line_;
    bool has_length_ = false;
    bool has_coding_ = false;
    bool keep_alive_ = false;
    std::uint64_t length_ = 0;
};

// status-line = HTTP-version SP status-code SP [ reason-phrase ]
bool Reader::read_status_line() {
    constexpr std::string_view kVersion = "HTTP/1.";
    const std::size_t look = std::min(kVersion.size(), input_.size());
    if (input_.substr(0, look) != kVersion.substr(0, look)) return invalid("no status line", 0);
    if (!take_line()) return false;
    const std::string_view line = line_;
    if (line.size() < 13 || (line[7] != '0' && line[7] != '1') || line[8] != ' ' ||
        !is_digit(line[9]) || !is_digit(line[10]) || !is_digit(line[11]) || line[12] != ' ' ||
        line[9] == '0') {
        return invalid("malformed status line", 0);
    }
    for (std::size_t i = 13; i < line.size(); ++i) {
        if (!is_field_octet(line[i])) return invalid("control in the reason phrase", i);
    }
    out_->status = (line[9] - '0') * 100 + (line[10] - '0') * 10 + (line[11] - '0');
    pass_line();
    return true;
}

bool Reader::read_fields() {
    const bool is_http_10 = input_[7] == '0';
    for (;; pass_line()) {
        if (at_ > kLoadHeadBytesMax) return invalid("header section too large", at_);
        if (!take_line()) return false;
        if (line_.empty()) break;
        const std::size_t colon = line_.find(':');
        if (colon == 0 || colon == std::string_view::npos) {
            return invalid("field line without a name", at_);
        }
        const std::string_view name = line_.substr(0, colon);
        for (std::size_t i = 0; i < name.size(); ++i) {
            if (!is_tchar(name[i])) return invalid("byte not allowed in a field name", at_ + i);
        }
        for (std::size_t i = colon + 1; i < line_.size(); ++i) {
            if (!is_field_octet(line_[i])) return invalid("control in a field value", at_ + i);
        }
        if (!read_field(name, trim(line_.substr(colon + 1)))) return false;
    }
    if (is_http_10 && !keep_alive_) out_->announced_close = true;
    pass_line();
    out_->head_size = at_;
    return true;
}

bool Reader::read_field(std::string_view name, std::string_view value) {
    if (same_word(name, "content-length")) return read_length(value);
    if (same_word(name, "transfer-encoding")) {
        if (has_coding_ || !same_word(value, "chunked")) {
            return invalid("transfer coding other than chunked", at_);
        }
        has_coding_ = true;
    } else if (same_word(name, "connection")) {
        if (list_has(value, "close")) out_->announced_close = true;
        if (list_has(value, "keep-alive")) keep_alive_ = true;
    } else if (same_word(name, "date")) {
        if (out_->date_at != 0) return invalid("Date twice", at_);
        out_->date = value;
        out_->date_at = static_cast<std::size_t>(value.data() - input_.data());
    }
    return true;
}

bool Reader::read_length(std::string_view value) {
    if (has_length_) return invalid("Content-Length twice", at_);
    if (value.empty() || value.size() > 18) return invalid("bad Content-Length", at_);
    for (const char c : value) {
        if (!is_digit(c)) return invalid("bad Content-Length", at_);
        length_ = length_ * 10 + static_cast<std::uint64_t>(c - '0');
    }
    has_length_ = true;
    return true;
}

// What ends the message, by its status and fields.
bool Reader::read_framing() {
    const int status = out_->status;
    // RFC 9112 section 6.1: none in 1xx and 204, and never both (section 6.3 calls it an attack).
    if (has_coding_ && has_length_) return invalid("Transfer-Encoding and Content-Length", 0);
    if ((status < 200 || status == 204) && (has_coding_ || has_length_)) {
        return invalid("framing fields in a 1xx or 204", 0);
    }
    if (status < 200 || status == 204 || status == 304 || head_request_) {
        length_ = 0;
        return true;
    }
    if (!has_coding_ && !has_length_) {
        out_->state = ParseState::kUntilClose;
        return false;
    }
    out_->is_chunked = has_coding_;
    return true;
}

bool Reader::read_content() {
    if (length_ > kLoadBodyBytesMax) return invalid("content too large", 0);
    const auto size = static_cast<std::size_t>(length_);
    if (input_.size() - at_ < size) return need(at_ + size);
    out_->body = input_.substr(at_, size);
    at_ += size;
    return true;
}

bool Reader::read_chunks() {
    for (;;) {
        std::uint64_t size = 0;
        if (!take_line() || !read_chunk_size(&size)) return false;
        pass_line();
        if (size == 0) return true;
        // With all its chunk lines: extensions are bytes that have to be held, too.
        if (size > kLoadBodyBytesMax || at_ + size > kLoadBodyBytesMax) {
            return invalid("content too large", at_);
        }
        const auto chunk = static_cast<std::size_t>(size);
        if (input_.size() - at_ < chunk + 2) return need(at_ + chunk + 2);
        if (input_.substr(at_ + chunk, 2) != "\r\n") {
            return invalid("chunk longer than its size", at_ + chunk);
        }
        out_->content.append(input_.substr(at_, chunk));
        at_ += chunk + 2;
        out_->chunk_ends.push_back(at_);
    }
}

bool Reader::read_chunk_size(std::uint64_t* size) {
    std::size_t digits = 0;
    for (; digits < line_.size(); ++digits) {
        const char c = lower(line_[digits]);
        if (!is_digit(c) && !(c >= 'a' && c <= 'f')) break;
        if (digits == 15) return invalid("chunk size too large", at_);
        *size = *size * 16 + static_cast<std::uint64_t>(is_digit(c) ? c - '0' : c - 'a' + 10);
    }
    if (digits == 0 || (digits < line_.size() && line_[digits] != ';')) {
        return invalid("bad chunk size", at_ + digits);
    }
    return true;
}

bool Reader::read_trailers() {
    const std::size_t begin = at_;
    for (;;) {
        if (at_ - begin > kLoadHeadBytesMax) return invalid("trailer section too large", at_);
        if (!take_line()) return false;
        if (!line_.empty() && line_.find(':') == std::string_view::npos) {
            return invalid("bad trailer", at_);
        }
        pass_line();
        if (line_.empty()) break;
    }
    out_->body = out_->content;
    return true;
}

}  // namespace

void parse_response(std::string_view input, bool head_request, ParsedResponse* out) {
    *out = ParsedResponse();
    Reader(input, head_request, out).read();
}

bool ResponseVerifier::take_date(std::string_view date, CheckResult* result) {
    const auto seconds = parse_imf_fixdate(date);
    if (seconds && is_near(*seconds)) {
        date_ = *seconds;
        if (first_date_ == 0) first_date_ = date_;
        return true;
    }
    result->kind = CheckKind::kDate;
    result->why = kBadDate;
    // One from before the first answer was not made since, so it is no late one.
    result->is_late = seconds && first_date_ != 0 && *seconds < date_min_ &&
                      first_date_ - kDateSkewSecondsMax <= *seconds;
    return false;
}

bool ResponseVerifier::equals_but_date(std::string_view input, std::size_t size) const {
    const std::size_t before = std::min(size, date_at_ == 0 ? size : date_at_);
    if (std::memcmp(input.data(), learned_.data(), before) != 0) return false;
    if (date_at_ == 0 || size <= date_at_) return true;
    // A line end would make another head of it.
    const std::string_view date = input.substr(date_at_, kImfFixdateSize);
    if (date.find_first_of("\r\n") != std::string_view::npos) return false;
    const std::size_t after = date_at_ + kImfFixdateSize;
    if (size <= after) return true;
    return std::memcmp(input.data() + after, learned_.data() + after, size - after) == 0;
}

// How many bytes a message has at least that begins with the first `size` of learned_: an answer
// that differs later may be shorter than learned_, and must not be waited for as if it were not.
std::size_t ResponseVerifier::least_size(std::size_t size) const {
    if (size < head_size_) return size + 1;
    if (chunk_ends_.empty()) return learned_.size();
    const auto end = std::upper_bound(chunk_ends_.begin(), chunk_ends_.end(), size);
    if (end == chunk_ends_.end()) return size + 1;
    const std::size_t line_at = end == chunk_ends_.begin() ? head_size_ : *std::prev(end);
    const std::string_view known = std::string_view(learned_).substr(line_at, size - line_at);
    return known.find('\n') == std::string_view::npos ? size + 1 : *end;
}

CheckResult ResponseVerifier::check(std::string_view input) {
    CheckResult result;
    if (is_learned() && check_equal(input, &result)) return result;
    parse_response(input, head_request_, &parsed_);
    result.announced_close = parsed_.announced_close;
    switch (parsed_.state) {
        case ParseState::kNeedMore:
            result.kind = CheckKind::kNeedMore;
            result.need = parsed_.need;
            return result;
        case ParseState::kUntilClose:
            result.kind = CheckKind::kFraming;
            result.why = "only the close would end this response";
            return result;
        case ParseState::kInvalid:
            result.kind = CheckKind::kFraming;
            result.why = parsed_.why;
            result.why_at = parsed_.why_at;
            return result;
        case ParseState::kComplete:
            break;
    }
    result.size = parsed_.size;
    if (is_as_expected(&result)) {
        result.kind = is_learned() ? CheckKind::kVariant : CheckKind::kVerified;
        learn(input);
    }
    return result;
}

// Whether `input` begins as learned but for the Date; then `result` is complete.
bool ResponseVerifier::check_equal(std::string_view input, CheckResult* result) {
    const std::size_t size = std::min(input.size(), learned_.size());
    if (!equals_but_date(input, size)) return false;
    if (size < learned_.size()) {
        result->kind = CheckKind::kNeedMore;
        result->need = least_size(size);
        return true;
    }
    result->size = size;
    result->announced_close = announced_close_;
    result->kind = CheckKind::kVerified;
    if (date_at_ == 0) return true;
    const std::string_view date = input.substr(date_at_, kImfFixdateSize);
    if (!take_date(date, result)) {
        result->why_at = date_at_;
        return true;
    }
    if (learned_.compare(date_at_, kImfFixdateSize, date) != 0) {
        learned_.replace(date_at_, kImfFixdateSize, date);
        run_ = learned_;
        ++date_changes_;
    }
    return true;
}

// Whether parsed_, a whole message, is the answer that is wanted; else `result` says what it is.
bool ResponseVerifier::is_as_expected(CheckResult* result) {
    if (parsed_.status < 200 && parsed_.status != 101) {
        result->kind = CheckKind::kInterim;
        return false;
    }
    const int expected = expected_status_ != 0 ? expected_status_ : status_;
    if (expected != 0 ? parsed_.status != expected : parsed_.status / 100 != 2) {
        result->kind = CheckKind::kStatus;
        result->status = parsed_.status;
        result->why = "unexpected status";
        return false;
    }
    const std::string_view body = parsed_.body;
    if (is_learned() && body != body_) {
        result->kind = CheckKind::kBody;
        result->why = "content unlike the first response's";
        const auto differs = std::mismatch(body.begin(), body.end(), body_.begin(), body_.end());
        result->why_at = parsed_.head_size + static_cast<std::size_t>(differs.first - body.begin());
        return false;
    }
    if (parsed_.date_at != 0 && !take_date(parsed_.date, result)) {
        result->why_at = parsed_.date_at;
        return false;
    }
    return true;
}

// Takes parsed_, which lies at the front of `input`, for what others are compared with.
void ResponseVerifier::learn(std::string_view input) {
    if (!is_learned()) body_ = parsed_.body;
    status_ = parsed_.status;
    if (date_at_ == 0 || learned_.compare(date_at_, kImfFixdateSize, parsed_.date) != 0) {
        ++date_changes_;
    }
    learned_.assign(input.substr(0, parsed_.size));
    run_ = learned_;
    head_size_ = parsed_.head_size;
    chunk_ends_ = parsed_.chunk_ends;
    date_at_ = parsed_.date_at;
    announced_close_ = parsed_.announced_close;
}

}  // namespace httpmark
