#include "oracle.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>

#include "grammar.hpp"

namespace httpmark::oracle {
namespace {

// ---- Reading a stream: every byte is looked at with peek() and taken with next() ---------------

struct NeedMore {};

struct Fault {
    Subject subject;
    int status;
    std::size_t decided;
};

constexpr std::uint64_t kUnlimited = std::numeric_limits<std::uint64_t>::max();

// Syntax is checked before next() is called, so at one offset it wins over a limit.
class Stream {
  public:
    explicit Stream(std::string_view octets) : octets_(octets) {}

    Octet peek() const {
        if (at_ == octets_.size()) throw NeedMore{};
        return static_cast<Octet>(octets_[at_]);
    }
    void next() {
        peek();
        if (at_ - section_begin_ >= section_max_) reject(section_subject_, section_status_);
        ++at_;
    }
    // From here on, the byte that makes the section longer than `max` is refused.
    void begin_section(std::uint64_t max, Subject subject, int status) {
        section_begin_ = at_;
        section_max_ = max;
        section_subject_ = subject;
        section_status_ = status;
    }
    void end_section() { section_max_ = kUnlimited; }

    // The byte that comes next is at fault.
    [[noreturn]] void reject(Subject subject, int status) const {
        throw Fault{subject, status, at_ + 1};
    }
    void require(bool fits, Subject subject) const {
        if (!fits) reject(subject, 400);
    }
    void literal(Octet c, Subject subject) {
        require(peek() == c, subject);
        next();
    }
    // CRLF = CR LF
    void crlf(Subject subject) {
        literal(kCr, subject);
        literal(kLf, subject);
    }

    std::size_t at() const { return at_; }
    std::string_view since(std::size_t begin) const { return octets_.substr(begin, at_ - begin); }

  private:
    std::string_view octets_;
    std::size_t at_ = 0;
    std::size_t section_begin_ = 0;
    std::uint64_t section_max_ = kUnlimited;
    Subject section_subject_ = Subject::kNone;
    int section_status_ = 0;
};

// ---- request-target = origin-form / absolute-form / authority-form / asterisk-form --------------
//      RFC 9112 3.2; its bytes and pct-encoded pairs are known to be right

// absolute-form = absolute-URI, of which a server has http-URI and https-URI (RFC 9110 4.2):
// "http" "://" authority path-abempty [ "?" query ], no userinfo and no empty host
bool absolute_form(Text text, const Options& options, Head& head, bool& https) {
    const std::size_t colon = text.find(':');
    if (colon == Text::npos) return false;
    https = same_ignoring_case(text.substr(0, colon), "https");
    if (!https && !same_ignoring_case(text.substr(0, colon), "http")) return false;
    text.remove_prefix(colon);
    if (!take(text, "://")) return false;
    const std::size_t authority_end = std::min(text.find_first_of("/?"), text.size());
    head.authority = text.substr(0, authority_end);
    const auto authority = host_and_port(head.authority);
    if (!authority || authority->host_is_empty) return false;
    text.remove_prefix(authority_end);
    const std::size_t query_begin = std::min(text.find('?'), text.size());
    for (std::size_t i = 0; i < text.size(); ++i) {
        const Octet c = static_cast<Octet>(text[i]);
        const bool in_query = i >= query_begin;
        const bool fits = is_plain_pchar(c) || c == '/' || c == '%' || (in_query && c == '?') ||
                          (in_query && options.browser_query && is_browser_query_octet(c));
        if (!fits) return false;
    }
    return true;
}

// authority-form = uri-host ":" port, for CONNECT, whose port MUST NOT be empty (RFC 9110 9.3.6)
bool authority_form(Text text) {
    const auto authority = host_and_port(text);
    return authority && !authority->host_is_empty && authority->port == Port::kGiven;
}

// asterisk-form = "*", for OPTIONS
bool asterisk_form(Text text) {
    return text == "*";
}

bool form_fits_method(const Options& options, Head& head, bool& https) {
    if (head.method == "CONNECT") {
        head.authority = head.target;
        return authority_form(head.target);
    }
    if (head.target.starts_with('/')) return true;
    if (asterisk_form(head.target)) return head.method == "OPTIONS";
    return absolute_form(head.target, options, head, https);
}

// ---- What the fields mean, in the order in which the server judges them
// --------------------------

std::vector<Text> values_of(const Head& head, std::string_view name) {
    std::vector<Text> values;
    for (const Field& field : head.fields) {
        if (same_ignoring_case(field.name, name)) values.push_back(field.value);
    }
    return values;
}

[[noreturn]] void refuse(const Head& head, Subject subject, int status) {
    throw Fault{subject, status, head.decided};
}

// RFC 9112 3.2: 400 to a request of 1.1 without Host, to one with more than one, to an invalid one
void judge_host(Head& head, const Options& options) {
    const auto hosts = values_of(head, "Host");
    if (hosts.size() > 1) refuse(head, Subject::kHost, 400);
    if (hosts.empty()) {
        if (head.version_minor >= 1) refuse(head, Subject::kHost, 400);
        return;
    }
    if (head.authority.empty()) head.authority = hosts.front();
    const auto host = host_and_port(hosts.front());
    if (!host) refuse(head, Subject::kHost, 400);
    if (host->host_is_empty && !options.empty_host) refuse(head, Subject::kHost, 400);
}

struct Coding {
    Text name;
    bool has_parameters;
};

// transfer-coding    = token *( OWS ";" OWS transfer-parameter )
// transfer-parameter = token BWS "=" BWS ( token / quoted-string )
bool transfer_coding(Text& text, std::vector<Coding>& codings) {
    const Text begin = text;
    if (!token(text)) return false;
    Coding coding{begin.substr(0, begin.size() - text.size()), false};
    for (;;) {
        Text rest = text;
        ows(rest);
        if (!take(rest, ";")) break;
        ows(rest);
        if (!token(rest)) return false;
        ows(rest);
        if (!take(rest, "=")) return false;
        ows(rest);
        if (!token_or_quoted_string(rest)) return false;
        coding.has_parameters = true;
        text = rest;
    }
    codings.push_back(coding);
    return true;
}

// Transfer-Encoding = #transfer-coding; RFC 9112 6.1 and 6.3: chunked once, last, bare, not in 1.0;
// a coding that is not understood is 501 if the framing is known
void judge_transfer_encoding(Head& head) {
    const auto lines = values_of(head, "Transfer-Encoding");
    if (lines.empty()) return;
    std::vector<Coding> codings;
    for (const Text line : lines) {
        const auto element = [&codings](Text& text) { return transfer_coding(text, codings); };
        if (!list(line, element)) refuse(head, Subject::kTransferEncoding, 400);
    }
    const auto is_chunked = [](const Coding& c) { return same_ignoring_case(c.name, "chunked"); };
    const auto chunked = std::count_if(codings.begin(), codings.end(), is_chunked);
    if (head.version_minor == 0 || chunked != 1 || !is_chunked(codings.back()) ||
        codings.back().has_parameters) {
        refuse(head, Subject::kTransferEncoding, 400);
    }
    if (!values_of(head, "Content-Length").empty()) refuse(head, Subject::kTransferEncoding, 400);
    if (codings.size() > 1) refuse(head, Subject::kTransferEncoding, 501);
    head.framing = Framing::kChunked;
}

// Content-Length = 1*DIGIT (RFC 9110 8.6)
bool is_content_length(Text text) {
    return take_run(text, is_digit, 1) && text.empty();
}

// The number; all that are beyond 2^63-1 are one, which is too large.
std::uint64_t number(Text digits) {
    constexpr std::uint64_t kHighest = std::numeric_limits<std::int64_t>::max();
    std::uint64_t value = 0;
    for (const char c : digits) {
        const auto digit = static_cast<std::uint64_t>(c - '0');
        if (value > (kHighest - digit) / 10) return kUnlimited;
        value = value * 10 + digit;
    }
    return value;
}

// RFC 9110 8.6: one number; equal ones in a list or on several lines only where that is opted for
void judge_content_length(Head& head, const Options& options) {
    const auto lines = values_of(head, "Content-Length");
    if (lines.empty()) return;
    std::vector<std::uint64_t> numbers;
    for (Text line : lines) {
        for (bool more = true; more;) {
            const std::size_t comma = std::min(line.find(','), line.size());
            const Text member = without_whitespace_around(line.substr(0, comma));
            if (!is_content_length(member)) refuse(head, Subject::kContentLength, 400);
            numbers.push_back(number(member));
            more = comma < line.size();
            if (more) line.remove_prefix(comma + 1);
        }
    }
    if (numbers.size() > 1 && !options.equal_content_lengths) {
        refuse(head, Subject::kContentLength, 400);
    }
    for (const std::uint64_t other : numbers) {
        if (other != numbers.front()) refuse(head, Subject::kContentLength, 400);
    }
    head.framing = Framing::kLength;
    head.content_length = numbers.front();
}

// RFC 9110 9.1: 501 to a method that is not recognised or not implemented
void judge_method(const Head& head) {
    constexpr std::array kImplemented = {"GET",    "HEAD",  "POST",   "PUT",
                                         "DELETE", "PATCH", "OPTIONS"};
    if (std::find(kImplemented.begin(), kImplemented.end(), head.method) == kImplemented.end()) {
        refuse(head, Subject::kMethod, 501);
    }
}

// expectation = token [ "=" ( token / quoted-string ) parameters ]
// parameters  = *( OWS ";" OWS [ parameter ] ); parameter = token "=" ( token / quoted-string )
// Expect      = #expectation (RFC 9110 10.1.1): what is not 100-continue is 417, in 1.0 ignored
void judge_expect(Head& head) {
    if (head.version_minor == 0) return;
    for (const Text line : values_of(head, "Expect")) {
        const auto element = [](Text& text) {
            const Text begin = text;
            return token(text) &&
                   same_ignoring_case(begin.substr(0, begin.size() - text.size()), "100-continue");
        };
        if (!list(line, element)) refuse(head, Subject::kExpect, 417);
        if (line.find_first_not_of(", \t") != Text::npos) head.expects_continue = true;
    }
}

// Connection = #connection-option; connection-option = token (RFC 9110 7.6.1, RFC 9112 9.3)
void read_connection(Head& head) {
    bool close = false;
    bool keep_alive = false;
    for (const Text line : values_of(head, "Connection")) {
        const auto element = [&](Text& text) {
            const Text begin = text;
            if (!token(text)) return false;
            const Text option = begin.substr(0, begin.size() - text.size());
            close |= same_ignoring_case(option, "close");
            keep_alive |= same_ignoring_case(option, "keep-alive");
            return true;
        };
        if (!list(line, element)) head.connection_is_list = false;
    }
    head.persists = !close && (head.version_minor >= 1 || keep_alive);
}

void judge_fields(Head& head, const Options& options, bool https) {
    judge_host(head, options);
    judge_transfer_encoding(head);
    if (head.framing != Framing::kChunked) judge_content_length(head, options);
    judge_method(head);
    if (https && !options.tls) refuse(head, Subject::kMisdirected, 421);  // RFC 9110 7.4
    if (head.content_length > options.body_max) refuse(head, Subject::kContent, 413);
    judge_expect(head);
    read_connection(head);
}

// ---- HTTP-message: RFC 9112 2.1, 3, 5
// ------------------------------------------------------------

struct FieldLimits {
    std::uint64_t name_max;
    std::uint64_t value_max;
    std::uint64_t lines_max;
};

// field-line  = field-name ":" OWS field-value OWS; field-name = token
// field-value = *field-content, that is SP, HTAB, VCHAR and obs-text; no obs-fold
Field field_line(Stream& stream, Subject subject, const FieldLimits& limits, std::size_t lines) {
    stream.require(is_tchar(stream.peek()), subject);
    if (lines == limits.lines_max) stream.reject(subject, 431);
    const std::size_t name_begin = stream.at();
    while (stream.peek() != ':') {
        stream.require(is_tchar(stream.peek()), subject);
        if (stream.at() - name_begin == limits.name_max) stream.reject(subject, 431);
        stream.next();
    }
    const std::string_view name = stream.since(name_begin);
    stream.next();
    const std::size_t value_begin = stream.at();
    while (stream.peek() != kCr) {
        stream.require(is_field_octet(stream.peek()), subject);
        if (stream.at() - value_begin == limits.value_max) stream.reject(subject, 431);
        stream.next();
    }
    const std::string_view value = stream.since(value_begin);
    stream.crlf(subject);
    return {name, without_whitespace_around(value)};
}

// *( field-line CRLF ) CRLF, for the head and for the trailer-section
std::vector<Field> field_lines(Stream& stream, Subject subject, const FieldLimits& limits) {
    std::vector<Field> fields;
    while (stream.peek() != kCr) {
        fields.push_back(field_line(stream, subject, limits, fields.size()));
    }
    stream.crlf(subject);
    return fields;
}

// method = token
std::string_view method(Stream& stream, const Options& options) {
    const std::size_t begin = stream.at();
    stream.require(is_tchar(stream.peek()), Subject::kMethod);
    while (stream.peek() != kSp) {
        stream.require(is_tchar(stream.peek()), Subject::kMethod);
        if (stream.at() - begin == options.method_max) stream.reject(Subject::kMethod, 501);
        stream.next();
    }
    return stream.since(begin);
}

// origin-form   = absolute-path [ "?" query ]
// absolute-path = 1*( "/" segment ); segment = *pchar; query = *( pchar / "/" / "?" )
// The other forms are judged at the end of the line. Until then their bytes must be those of a
// URI, after a "?" those of a query, and nothing goes on after an asterisk.
std::string_view request_target(Stream& stream, const Options& options) {
    const std::size_t begin = stream.at();
    stream.require(stream.peek() != kSp, Subject::kTarget);
    const bool origin_form = stream.peek() == '/';
    const bool asterisk = stream.peek() == '*';
    bool in_query = false;
    int hexdigs_owed = 0;
    while (stream.peek() != kSp || hexdigs_owed > 0) {
        const Octet c = stream.peek();
        if (asterisk) stream.require(stream.at() == begin, Subject::kTarget);
        if (hexdigs_owed > 0) {
            stream.require(is_hexdig(c), Subject::kTarget);
            --hexdigs_owed;
        } else if (c == '%') {
            hexdigs_owed = 2;
        } else if (c == '?') {
            in_query = true;
        } else if (!(in_query && options.browser_query && is_browser_query_octet(c))) {
            stream.require(origin_form || in_query ? is_plain_pchar(c) || c == '/'
                                                   : is_uri_octet_but_number_sign(c),
                           Subject::kTarget);
        }
        if (stream.at() - begin == options.target_max) stream.reject(Subject::kTarget, 414);
        stream.next();
    }
    return stream.since(begin);
}

// HTTP-version = HTTP-name "/" DIGIT "." DIGIT; HTTP-name = %x48.54.54.50
void http_version(Stream& stream, Head& head) {
    for (const char c : std::string_view("HTTP/")) {
        stream.literal(static_cast<Octet>(c), Subject::kVersion);
    }
    const auto digit = [&stream] {
        const Octet c = stream.peek();
        stream.require(is_digit(c), Subject::kVersion);
        stream.next();
        return static_cast<unsigned>(c - '0');
    };
    head.version_major = digit();
    stream.literal('.', Subject::kVersion);
    head.version_minor = digit();
}

// request-line = method SP request-target SP HTTP-version, then CRLF. What the whole line means is
// the fault of its LF: another major version first (505), then the form of the target.
void request_line(Stream& stream, const Options& options, Head& head, bool& https) {
    head.method = method(stream, options);
    stream.literal(kSp, Subject::kMethod);
    head.target = request_target(stream, options);
    stream.literal(kSp, Subject::kTarget);
    http_version(stream, head);
    stream.literal(kCr, Subject::kVersion);
    stream.require(stream.peek() == kLf, Subject::kVersion);
    if (head.version_major != 1) stream.reject(Subject::kVersion, 505);
    stream.require(form_fits_method(options, head, https), Subject::kTarget);
    stream.next();
}

// HTTP-message = start-line CRLF *( field-line CRLF ) CRLF [ message-body ], without the body;
// a few empty lines may stand before it (RFC 9112 2.2)
void read_message_head(Stream& stream, const Options& options, Head& head) {
    bool https = false;
    stream.begin_section(options.head_max, Subject::kField, 431);
    for (std::size_t lines = 0; lines < options.empty_lines_max && stream.peek() == kCr; ++lines) {
        stream.crlf(Subject::kMethod);
    }
    request_line(stream, options, head, https);
    head.fields =
        field_lines(stream, Subject::kField,
                    {options.field_name_max, options.field_value_max, options.field_lines_max});
    head.complete = true;
    head.decided = stream.at();
    judge_fields(head, options, https);
}

// ---- chunked-body = *chunk last-chunk trailer-section CRLF: RFC 9112 7.1
// -------------------------

int hexdig_value(Octet c) {
    return is_digit(c) ? c - '0' : (c | 0x20) - 'a' + 10;
}

// chunk-size = 1*HEXDIG; too much is refused at the digit that makes it so
std::uint64_t chunk_size(Stream& stream, std::uint64_t room) {
    stream.require(is_hexdig(stream.peek()), Subject::kChunk);
    std::uint64_t size = 0;
    while (is_hexdig(stream.peek())) {
        const std::uint64_t grown =
            size * 16 + static_cast<std::uint64_t>(hexdig_value(stream.peek()));
        if (grown > room) stream.reject(Subject::kChunk, 413);
        stream.next();
        size = grown;
    }
    return size;
}

void bws(Stream& stream) {
    while (is_whitespace(stream.peek())) stream.next();
}

void token(Stream& stream) {
    stream.require(is_tchar(stream.peek()), Subject::kChunk);
    while (is_tchar(stream.peek())) stream.next();
}

void quoted_string(Stream& stream) {
    stream.literal('"', Subject::kChunk);
    while (stream.peek() != '"') {
        if (stream.peek() == '\\') {
            stream.next();
            stream.require(is_field_octet(stream.peek()), Subject::kChunk);
        } else {
            stream.require(is_qdtext(stream.peek()), Subject::kChunk);
        }
        stream.next();
    }
    stream.next();
}

// chunk-ext      = *( BWS ";" BWS chunk-ext-name [ BWS "=" BWS chunk-ext-val ] )
// chunk-ext-name = token; chunk-ext-val = token / quoted-string
// Whitespace that neither ";" nor "=" follows belongs to no rule.
void chunk_ext(Stream& stream) {
    bool after_name = false;
    while (stream.peek() != kCr) {
        bws(stream);
        if (after_name && stream.peek() == '=') {
            stream.next();
            bws(stream);
            if (stream.peek() == '"') {
                quoted_string(stream);
            } else {
                token(stream);
            }
            after_name = false;
        } else {
            stream.literal(';', Subject::kChunk);
            bws(stream);
            token(stream);
            after_name = true;
        }
    }
}

// chunk = chunk-size [ chunk-ext ] CRLF chunk-data CRLF; last-chunk = 1*("0") [ chunk-ext ] CRLF
void read_chunks(Stream& stream, const Options& options, Chunked& body) {
    for (;;) {
        stream.begin_section(options.chunk_line_max, Subject::kChunk, 400);
        std::uint64_t left = chunk_size(stream, options.body_max - body.content.size());
        chunk_ext(stream);
        stream.crlf(Subject::kChunk);
        stream.end_section();
        if (left == 0) break;
        for (; left > 0; --left) {
            body.content += static_cast<char>(stream.peek());
            stream.next();
        }
        stream.crlf(Subject::kChunk);
    }
    stream.begin_section(options.trailers_max, Subject::kTrailer, 431);
    body.trailers =
        field_lines(stream, Subject::kTrailer,
                    {options.field_name_max, options.field_value_max, options.trailer_lines_max});
    body.decided = stream.at();
}

// Runs a reading and writes down how it ended.
template <typename Answer, typename Read>
Answer answer(std::string_view octets, Read read) {
    Stream stream(octets);
    Answer found;
    try {
        read(stream, found);
        found.verdict = Verdict::kAccepted;
    } catch (const NeedMore&) {
        found.verdict = Verdict::kNeedMore;
    } catch (const Fault& fault) {
        found.verdict = Verdict::kRejected;
        found.subject = fault.subject;
        found.status = fault.status;
        found.decided = fault.decided;
    }
    return found;
}

}  // namespace

Head read_head(std::string_view octets, const Options& options) {
    return answer<Head>(octets, [&options](Stream& stream, Head& head) {
        read_message_head(stream, options, head);
    });
}

Chunked read_chunked(std::string_view octets, const Options& options) {
    return answer<Chunked>(
        octets, [&options](Stream& stream, Chunked& body) { read_chunks(stream, options, body); });
}

}  // namespace httpmark::oracle
