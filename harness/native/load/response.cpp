#include "load/response.hpp"

#include <algorithm>

namespace httpmark {
namespace {

constexpr const char* kBadDate = "Date malformed, ahead of the clock, or older than the request";

bool is_digit(char c) { return c >= '0' && c <= '9'; }
char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c; }

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

struct Reader {
  std::string_view input;
  ParsedResponse* out;

  void invalid(const char* why, std::size_t at) {
    out->state = ParseState::kInvalid;
    out->why = why;
    out->why_at = at;
  }
  void need(std::size_t size) {
    out->state = ParseState::kNeedMore;
    out->need = size;
  }

  // The line at `at` without its CRLF. False: not all there (state set), or not a line.
  bool line(std::size_t at, std::size_t limit, std::string_view* text) {
    const std::size_t end = input.find('\n', at);
    if (end == std::string_view::npos) {
      if (input.size() - at > limit) {
        invalid("line without an end", at);
      } else {
        need(input.size() + 1);
      }
      return false;
    }
    if (end == at || input[end - 1] != '\r') {
      invalid("bare LF", end);
      return false;
    }
    *text = input.substr(at, end - 1 - at);
    return true;
  }
};

}  // namespace

void parse_response(std::string_view input, bool head_request, ParsedResponse* out) {
  *out = ParsedResponse();
  Reader reader{input, out};
  std::string_view line;

  // status-line = HTTP-version SP status-code SP [ reason-phrase ]
  constexpr std::string_view kVersion = "HTTP/1.";
  const std::size_t look = std::min(kVersion.size(), input.size());
  if (input.substr(0, look) != kVersion.substr(0, look)) {
    return reader.invalid("no status line", 0);
  }
  if (!reader.line(0, kLoadHeadBytesMax, &line)) return;
  if (line.size() < 13 || (line[7] != '0' && line[7] != '1') || line[8] != ' ' ||
      !is_digit(line[9]) || !is_digit(line[10]) || !is_digit(line[11]) || line[12] != ' ' ||
      line[9] == '0') {
    return reader.invalid("malformed status line", 0);
  }
  const bool is_http_10 = line[7] == '0';
  for (std::size_t i = 13; i < line.size(); ++i) {
    if (!is_field_octet(line[i])) return reader.invalid("control in the reason phrase", i);
  }
  out->status = (line[9] - '0') * 100 + (line[10] - '0') * 10 + (line[11] - '0');

  std::size_t at = line.size() + 2;
  bool has_length = false;
  bool has_coding = false;
  bool keep_alive = false;
  std::uint64_t length = 0;
  for (;;) {
    if (at > kLoadHeadBytesMax) return reader.invalid("header section too large", at);
    if (!reader.line(at, kLoadHeadBytesMax, &line)) return;
    if (line.empty()) break;
    const std::size_t colon = line.find(':');
    if (colon == 0 || colon == std::string_view::npos) {
      return reader.invalid("field line without a name", at);
    }
    const std::string_view name = line.substr(0, colon);
    for (std::size_t i = 0; i < name.size(); ++i) {
      if (!is_tchar(name[i])) return reader.invalid("octet not allowed in a field name", at + i);
    }
    for (std::size_t i = colon + 1; i < line.size(); ++i) {
      if (!is_field_octet(line[i])) return reader.invalid("control in a field value", at + i);
    }
    const std::string_view value = trim(line.substr(colon + 1));
    if (same_word(name, "content-length")) {
      if (has_length) return reader.invalid("Content-Length twice", at);
      if (value.empty() || value.size() > 18) return reader.invalid("bad Content-Length", at);
      for (const char c : value) {
        if (!is_digit(c)) return reader.invalid("bad Content-Length", at);
        length = length * 10 + static_cast<std::uint64_t>(c - '0');
      }
      has_length = true;
    } else if (same_word(name, "transfer-encoding")) {
      if (has_coding || !same_word(value, "chunked")) {
        return reader.invalid("transfer coding other than chunked", at);
      }
      has_coding = true;
    } else if (same_word(name, "connection")) {
      if (list_has(value, "close")) out->announced_close = true;
      if (list_has(value, "keep-alive")) keep_alive = true;
    } else if (same_word(name, "date")) {
      if (out->date_at != 0) return reader.invalid("Date twice", at);
      out->date = value;
      out->date_at = static_cast<std::size_t>(value.data() - input.data());
    }
    at += line.size() + 2;
  }
  if (is_http_10 && !keep_alive) out->announced_close = true;
  out->head_size = at + 2;
  at = out->head_size;

  const bool has_no_body =
      out->status < 200 || out->status == 204 || out->status == 304 || head_request;
  // RFC 9112 section 6.1: none in 1xx and 204, and never both (section 6.3 calls it an attack).
  if (has_coding && has_length) return reader.invalid("Transfer-Encoding and Content-Length", 0);
  if ((out->status < 200 || out->status == 204) && (has_coding || has_length)) {
    return reader.invalid("framing fields in a 1xx or 204", 0);
  }
  if (has_no_body) {
    out->state = ParseState::kComplete;
    out->size = at;
    return;
  }
  if (!has_coding && !has_length) {
    out->state = ParseState::kUntilClose;
    return;
  }
  if (has_length) {
    if (length > kLoadBodyBytesMax) return reader.invalid("content too large", 0);
    const auto size = static_cast<std::size_t>(length);
    if (input.size() - at < size) return reader.need(at + size);
    out->body = input.substr(at, size);
    out->size = at + size;
    out->state = ParseState::kComplete;
    return;
  }
  out->is_chunked = true;
  for (;;) {
    if (!reader.line(at, kLoadHeadBytesMax, &line)) return;
    std::uint64_t size = 0;
    std::size_t digits = 0;
    for (; digits < line.size(); ++digits) {
      const char c = lower(line[digits]);
      if (!is_digit(c) && !(c >= 'a' && c <= 'f')) break;
      if (digits == 15) return reader.invalid("chunk size too large", at);
      size = size * 16 + static_cast<std::uint64_t>(is_digit(c) ? c - '0' : c - 'a' + 10);
    }
    if (digits == 0 || (digits < line.size() && line[digits] != ';')) {
      return reader.invalid("bad chunk size", at + digits);
    }
    at += line.size() + 2;
    if (size == 0) break;
    if (size > kLoadBodyBytesMax || out->content.size() + size > kLoadBodyBytesMax) {
      return reader.invalid("content too large", at);
    }
    const auto chunk = static_cast<std::size_t>(size);
    if (input.size() - at < chunk + 2) return reader.need(at + chunk + 2);
    if (input.substr(at + chunk, 2) != "\r\n") {
      return reader.invalid("chunk longer than its size", at + chunk);
    }
    out->content.append(input.substr(at, chunk));
    at += chunk + 2;
  }
  for (;;) {  // trailer section
    if (!reader.line(at, kLoadHeadBytesMax, &line)) return;
    at += line.size() + 2;
    if (line.empty()) break;
    if (line.find(':') == std::string_view::npos) return reader.invalid("bad trailer", at);
  }
  out->body = out->content;
  out->size = at;
  out->state = ParseState::kComplete;
}

std::optional<std::int64_t> ResponseVerifier::good_date(std::string_view date) const {
  const auto seconds = parse_imf_fixdate(date);
  return seconds && is_near(*seconds) ? seconds : std::nullopt;
}

bool ResponseVerifier::equals_but_date(std::string_view input, std::size_t size) const {
  const std::size_t before = std::min(size, date_at_ == 0 ? size : date_at_);
  if (std::memcmp(input.data(), learned_.data(), before) != 0) return false;
  const std::size_t after = date_at_ + kImfFixdateSize;
  if (date_at_ == 0 || size <= after) return true;
  return std::memcmp(input.data() + after, learned_.data() + after, size - after) == 0;
}

CheckResult ResponseVerifier::check(std::string_view input) {
  CheckResult result;
  if (is_learned()) {
    const std::size_t size = std::min(input.size(), learned_.size());
    if (equals_but_date(input, size)) {
      if (size < learned_.size()) {
        result.kind = CheckKind::kNeedMore;
        result.need = learned_.size();
        return result;
      }
      result.size = size;
      result.announced_close = announced_close_;
      if (date_at_ != 0) {
        const std::string_view date = input.substr(date_at_, kImfFixdateSize);
        const auto seconds = good_date(date);
        if (!seconds) {
          result.kind = CheckKind::kDate;
          result.why = kBadDate;
          result.why_at = date_at_;
          return result;
        }
        date_ = *seconds;
        if (learned_.compare(date_at_, kImfFixdateSize, date) != 0) {
          learned_.replace(date_at_, kImfFixdateSize, date);
          run_ = learned_;
          ++date_changes_;
        }
      }
      result.kind = CheckKind::kVerified;
      return result;
    }
  }
  parse_response(input, head_request_, &parsed_);
  const ParsedResponse& parsed = parsed_;
  result.announced_close = parsed.announced_close;
  switch (parsed.state) {
    case ParseState::kNeedMore:
      result.kind = CheckKind::kNeedMore;
      result.need = parsed.need;
      return result;
    case ParseState::kUntilClose:
      result.kind = CheckKind::kFraming;
      result.why = "only the close would end this response";
      return result;
    case ParseState::kInvalid:
      result.kind = CheckKind::kFraming;
      result.why = parsed.why;
      result.why_at = parsed.why_at;
      return result;
    case ParseState::kComplete:
      break;
  }
  result.size = parsed.size;
  if (parsed.status < 200 && parsed.status != 101) {
    result.kind = CheckKind::kInterim;
    return result;
  }
  const int expected = expected_status_ != 0 ? expected_status_ : status_;
  if (expected != 0 ? parsed.status != expected : parsed.status / 100 != 2) {
    result.kind = CheckKind::kStatus;
    result.why = "unexpected status";
    return result;
  }
  if (is_learned() && parsed.body != body_) {
    result.kind = CheckKind::kBody;
    result.why = "content unlike the first response's";
    const auto differs =
        std::mismatch(parsed.body.begin(), parsed.body.end(), body_.begin(), body_.end());
    result.why_at =
        parsed.head_size + static_cast<std::size_t>(differs.first - parsed.body.begin());
    return result;
  }
  if (parsed.date_at != 0) {
    const auto seconds = good_date(parsed.date);
    if (!seconds) {
      result.kind = CheckKind::kDate;
      result.why = kBadDate;
      result.why_at = parsed.date_at;
      return result;
    }
    date_ = *seconds;
  }
  result.kind = is_learned() ? CheckKind::kVariant : CheckKind::kVerified;
  if (!is_learned()) body_ = parsed.body;
  status_ = parsed.status;
  if (date_at_ == 0 || learned_.compare(date_at_, kImfFixdateSize, parsed.date) != 0) {
    ++date_changes_;
  }
  learned_.assign(input.substr(0, parsed.size));
  run_ = learned_;
  date_at_ = parsed.date_at;
  announced_close_ = parsed.announced_close;
  return result;
}

}  // namespace httpmark
