#include "http/response.hpp"

#include "check.hpp"
#include "http/answer_head.hpp"
#include "http/date.hpp"

namespace httpmark {

namespace {

// Texts of kHalf bytes to twice as many.
template <std::size_t kHalf>
[[gnu::always_inline]] inline void copy_ends(char* out, const char* from, std::size_t size) {
    std::memcpy(out, from, kHalf);
    std::memcpy(out + size - kHalf, from + size - kHalf, kHalf);
}

// One after the other into room that was measured before; texts that have no room behind them.
[[gnu::always_inline]] inline char* put(char* out, std::string_view text) {
    const char* const from = text.data();
    const std::size_t size = text.size();
    if (size > 64) {
        std::memcpy(out, from, size);
    } else if (size > 32) {
        copy_ends<32>(out, from, size);
    } else if (size >= 16) {
        copy_ends<16>(out, from, size);
    } else if (size >= 8) {
        copy_ends<8>(out, from, size);
    } else if (size >= 4) {
        copy_ends<4>(out, from, size);
    } else if (size != 0) {
        out[0] = from[0];
        out[size / 2] = from[size / 2];
        out[size - 1] = from[size - 1];
    }
    return out + size;
}

// A number of bytes that the compiler knows: no call, no loop.
template <std::size_t kSize>
[[gnu::always_inline]] inline char* put_literal(char* out, const char (&text)[kSize]) {
    std::memcpy(out, text, kSize - 1);
    return out + kSize - 1;
}

std::size_t digit_count(std::uint64_t number) {
    if (number < 10) return 1;
    if (number < 100) return 2;
    if (number < 1000) return 3;
    std::size_t count = 4;
    for (number /= 1000; number >= 10; number /= 10) ++count;
    return count;
}
constexpr auto kPairs = [] {
    std::array<char, 200> pairs{};
    for (std::size_t i = 0; i < pairs.size(); ++i) {
        pairs[i] = static_cast<char>('0' + (i % 2 == 0 ? i / 20 : i / 2 % 10));
    }
    return pairs;
}();
// Two digits at a time, from the last one.
char* put_decimal(char* out, std::uint64_t number, std::size_t digits) {
    char* at = out + digits;
    for (; number >= 100; number /= 100) {
        at -= 2;
        std::memcpy(at, kPairs.data() + 2 * (number % 100), 2);
    }
    if (number >= 10) {
        std::memcpy(out, kPairs.data() + 2 * number, 2);
    } else {
        *out = static_cast<char>('0' + number);
    }
    return out + digits;
}

// field_is_safe(), but eight bytes of the value at a time.
bool is_safe(const Field& field) {
    constexpr std::uint64_t kEach = 0x0101010101010101;
    std::string_view rest = field.value;
    for (; rest.size() >= 8; rest.remove_prefix(8)) {
        std::uint64_t word = 0;
        std::memcpy(&word, rest.data(), sizeof word);
        const std::uint64_t no_del = word ^ (kEach * 0x7F);
        // The high bit of a byte that is below 0x20, or DEL; carries may add others behind it.
        const std::uint64_t suspects =
            (((word - kEach * 0x20) & ~word) | ((no_del - kEach) & ~no_del)) & (kEach * 0x80);
        if (suspects != 0) break;
    }
    return field_is_safe({field.name, rest});
}

constexpr char kLength[] = "Content-Length: ";
constexpr char kAllow[] = "Allow: ";
constexpr char kChunkedLine[] = "Transfer-Encoding: chunked\r\n";
constexpr char kSeparator[] = ": ";
constexpr std::string_view kClose = "Connection: close\r\n";
constexpr std::string_view kKeepAlive = "Connection: keep-alive\r\n";
constexpr std::string_view kSwitched = "Upgrade: websocket\r\nConnection: upgrade\r\n";
constexpr std::string_view kRequired =
    "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nConnection: upgrade\r\n";
constexpr std::string_view kRequiredAndClose =
    "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nConnection: upgrade, close\r\n";
constexpr char kLineEnd[] = "\r\n";
constexpr char kEnd[] = "\r\n\r\n";
// Others are no status (RFC 9110 15), or of an answer that another one follows (15.2), but for the
// one that another protocol follows.
constexpr bool is_final(unsigned status, const ResponseOptions& options) {
    return status - 200 < 800 || (status == 101 && options.upgrade == Upgrade::kSwitched);
}

// Content that is longer is sent from where it stands, if it stays there.
constexpr std::size_t kCopiedContentMax = 16384;

// Connection, and what its option "upgrade" goes with (RFC 9110 7.8).
std::string_view connection_lines(const ResponseOptions& options) {
    if (options.upgrade == Upgrade::kSwitched) return kSwitched;
    if (options.upgrade == Upgrade::kRequired) return options.close ? kRequiredAndClose : kRequired;
    return options.close ? kClose : kKeepAlive;
}

}  // namespace

DateLine::DateLine(std::string_view server_name) {
    if (server_name.empty()) return;
    CHECK(server_name.size() <= kServerNameMax);
    char* out = put(text_.data() + kSize, "Server: ");
    out = put(out, server_name);
    out = put(out, "\r\n");
    size_ = static_cast<std::size_t>(out - text_.data());
}

bool DateLine::update(std::int64_t unix_seconds) {
    if (unix_seconds == seconds_) return false;
    seconds_ = unix_seconds;
    char* const out = put(text_.data(), "Date: ");
    CHECK(put_imf_fixdate(unix_seconds, out));
    std::memcpy(out + kImfFixdateSize, kLineEnd, 2);
    return true;
}

std::shared_ptr<const PreparedAnswer> PreparedAnswer::make(unsigned status,
                                                           std::span<const Field> fields,
                                                           std::string_view content) {
    if (status < 200 || status > 999) return nullptr;
    std::shared_ptr<PreparedAnswer> answer(new PreparedAnswer());
    answer->line_ = status_line(status);
    answer->status_ = status;
    std::string& text = answer->text_;
    for (const Field& field : fields) {
        if (!field_is_safe(field)) return nullptr;
        text.append(field.name).append(": ").append(field.value).append(kLineEnd);
    }
    answer->fields_size_ = text.size();
    if (status_forbids_content(status)) content = {};
    if (!status_forbids_length(status)) {
        text.append(kLength).append(std::to_string(content.size())).append(kLineEnd);
    }
    text.append(kLineEnd);
    answer->head_size_ = text.size();
    text.append(content);
    answer->size_ = text.size();
    text.append(kCopySlack, '\0');
    return answer;
}

template <ContentFraming kFraming>
bool ResponseWriter::head(unsigned status, const Fields& fields, std::uint64_t content_length,
                          std::size_t content_here, char*& content) {
    fault_ = Reason::kHandlerFailed;
    if (status_ != 0 || !is_final(status, options_)) [[unlikely]] {
        if (status_ != kWatched || !is_final(status, options_)) return false;
        return watched_head<kFraming>(status, fields, content_length, content_here, content);
    }
    constexpr bool kHasLength = kFraming == ContentFraming::kLength;
    const bool no_length = status_forbids_length(status);
    if (status_forbids_content(status)) content_length = content_here = 0;
    const StatusLine& line = status_line(status);
    const std::string_view date = date_.text();
    const std::string_view fixed = fields.fixed.text();
    const std::size_t digits = digit_count(content_length);
    const bool says_nothing = !options_.close && !options_.say_keep_alive &&
                              options_.upgrade == Upgrade::kNone &&
                              kFraming != ContentFraming::kClose;
    const std::string_view connection = says_nothing ? std::string_view()
                                        : kFraming == ContentFraming::kClose
                                            ? kClose
                                            : connection_lines(options_);
    std::size_t size = line.size + date.size() + fixed.size() + connection.size() + 2;
    for (const Field& field : fields.others) {
        if (!is_safe(field)) return false;
        size += field.name.size() + 2 + field.value.size() + 2;
    }
    // RFC 9110 8.6: no Content-Length in 1xx and 204; a 304 may leave it out.
    if (kHasLength && !no_length) size += sizeof kLength - 1 + digits + 2;
    if (kFraming == ContentFraming::kChunks) size += sizeof kChunkedLine - 1;
    if (!options_.allow.empty()) size += sizeof kAllow - 1 + options_.allow.size() + 2;
    if (options_.head_request) content_here = 0;
    char* const begin = sink_.prepare(size + content_here);
    if (begin == nullptr) {
        fault_ = Reason::kNoMemory;
        return false;
    }
    fault_ = Reason::kNone;
    status_ = status;
    content_size_ = options_.head_request || !kHasLength ? 0 : content_length;
    char* out = put_steps<32>(begin, line.text.data(), line.size);
    out = put_steps<64>(out, date.data(), date.size());
    if (!fixed.empty()) out = put_steps<32>(out, fixed.data(), fixed.size());
    for (const Field& field : fields.others) {
        out = put_literal(put(out, field.name), kSeparator);
        out = put_literal(put(out, field.value), kLineEnd);
    }
    if (!options_.allow.empty()) {
        out = put_literal(put(put_literal(out, kAllow), options_.allow), kLineEnd);
    }
    if (kFraming == ContentFraming::kChunks) out = put_literal(out, kChunkedLine);
    if (kHasLength && !no_length) {
        out = put_decimal(put_literal(out, kLength), content_length, digits);
        out = put_literal(out, kLineEnd);
    }
    if (!connection.empty()) out = put(out, connection);
    out = put_literal(out, kLineEnd);
    CHECK(out == begin + size);
    content = content_here == 0 ? nullptr : out;
    return true;
}

// What the watcher adds stands behind the fields that are known to be safe.
template <ContentFraming kFraming>
[[gnu::cold]] bool ResponseWriter::watched_head(unsigned status, const Fields& fields,
                                                std::uint64_t content_length,
                                                std::size_t content_here, char*& content) {
    static thread_local std::string lines;
    // One that cannot be written is told to nobody.
    for (const Field& field : fields.others) {
        if (!is_safe(field)) return false;
    }
    constexpr bool kHasLength = kFraming == ContentFraming::kLength;
    const bool has_content = !options_.head_request && !status_forbids_content(status);
    std::optional<std::uint64_t> content_size(has_content ? content_length : 0);
    if (has_content && !kHasLength) content_size.reset();
    lines.assign(fields.fixed.text());
    AnswerHead head_to_be(status, content_size, lines);
    watcher_->on_head(head_to_be);
    const std::size_t size = lines.size();
    lines.append(kCopySlack, '\0');
    status_ = 0;
    const FieldLines all(lines.data(), size);
    return head<kFraming>(status, {all, fields.others}, content_length, content_here, content);
}

std::optional<RefusalContent> Sink::refusal_content(Reason, std::uint64_t) {
    return std::nullopt;
}

// What most answers of handlers are: content may stand in them, their fields are known to be safe,
// and nothing is added to them.
[[gnu::always_inline]] inline bool ResponseWriter::is_simple(unsigned status,
                                                             const Fields& fields) const {
    return status_ == 0 && status - 200 < 800 && !status_forbids_content(status) &&
           fields.others.empty() && options_.adds_nothing();
}

// The same as head() and the content after it, without what is of no meaning here.
[[gnu::always_inline]] inline bool ResponseWriter::write_simple(unsigned status, FieldLines fixed,
                                                                std::string_view content) {
    const StatusLine& line = status_line(status);
    const std::string_view date = date_.text();
    const std::size_t digits = digit_count(content.size());
    const std::size_t size = line.size + date.size() + fixed.text().size() + sizeof kLength - 1 +
                             digits + sizeof kEnd - 1;
    const std::size_t content_here = options_.head_request ? 0 : content.size();
    char* out = sink_.prepare(size + content_here);
    if (out == nullptr) [[unlikely]] {
        fault_ = Reason::kNoMemory;
        return false;
    }
    fault_ = Reason::kNone;
    status_ = status;
    content_size_ = content_here;
    out = put_steps<32>(out, line.text.data(), line.size);
    out = put_steps<64>(out, date.data(), date.size());
    out = put_steps<32>(out, fixed.text().data(), fixed.text().size());
    out = put_decimal(put_literal(out, kLength), content.size(), digits);
    put(put_literal(out, kEnd), {content.data(), content_here});
    return true;
}

bool ResponseWriter::write(unsigned status, const Fields& fields, std::string_view content) {
    if (is_simple(status, fields)) [[likely]]
        return write_simple(status, fields.fixed, content);
    return write_other(status, fields, content);
}

// Apart, so that the way above saves no registers for what stands here.
[[gnu::noinline]] bool ResponseWriter::write_other(unsigned status, const Fields& fields,
                                                   std::string_view content) {
    char* room = nullptr;
    if (!head(status, fields, content.size(), content.size(), room)) return false;
    if (room != nullptr) put(room, content);
    return true;
}

bool ResponseWriter::start(unsigned status, const Fields& fields, std::size_t size,
                           char*& content) {
    const bool written = head(status, fields, size, size, content);
    gave_room_ = gave_room_ | (written & (content != nullptr));
    return written;
}

bool ResponseWriter::write_reference(unsigned status, const Fields& fields,
                                     std::string_view content) {
    if (content.size() <= kCopiedContentMax) return write(status, fields, content);
    char* room = nullptr;
    if (!head(status, fields, content.size(), 0, room)) return false;
    if (content_size_ != 0) sink_.append({nullptr, content.data(), 0, content.size()});
    return true;
}

bool ResponseWriter::write_source(unsigned status, const Fields& fields, std::uint64_t size,
                                  ContentSource& source) {
    char* room = nullptr;
    if (!head(status, fields, size, 0, room)) return false;
    if (content_size_ == 0) {
        source.release();
    } else {
        sink_.append({&source, nullptr, 0, size});
    }
    return true;
}

bool ResponseWriter::write_stream(unsigned status, const Fields& fields,
                                  std::unique_ptr<ContentStream> stream,
                                  std::optional<std::uint64_t> size) {
    using Framing = ContentFraming;
    fault_ = Reason::kHandlerFailed;
    if (stream == nullptr) return false;
    if (status_forbids_content(status)) size = 0;
    Framing framing = Framing::kLength;
    if (!size) framing = options_.chunked ? Framing::kChunks : Framing::kClose;
    if (framing == Framing::kClose && options_.head_request) framing = Framing::kNone;
    char* room = nullptr;
    bool written = false;
    if (framing == Framing::kLength) written = head(status, fields, *size, 0, room);
    if (framing == Framing::kChunks) written = head<Framing::kChunks>(status, fields, 0, 0, room);
    if (framing == Framing::kClose) written = head<Framing::kClose>(status, fields, 0, 0, room);
    if (framing == Framing::kNone) written = head<Framing::kNone>(status, fields, 0, 0, room);
    if (!written || options_.head_request || size == 0) return written;
    sink_.append(
        {nullptr, nullptr, 0, size.value_or(LaterContent::kUnknown), stream.release(), framing});
    return true;
}

}  // namespace httpmark
