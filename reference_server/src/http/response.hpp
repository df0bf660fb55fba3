// Responses whose framing a handler cannot break: Content-Length, Connection and Date are the
// writer's; 1xx, 204 and 304 carry no content; HEAD gets the fields and no content.
//
// What does not change from answer to answer is checked once: fixed_field() by the compiler,
// PreparedAnswer when it is made. It is then copied in whole steps, which read and write up to
// kCopySlack bytes beyond it; hence the room behind all that is prepared here.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include "http/content_stream.hpp"
#include "http/error.hpp"
#include "http/syntax.hpp"

namespace httpmark {

class Arena;
class ContentReader;
class HeadWatcher;
class LaterAnswer;
class Waker;

struct Field {
    std::string_view name;
    std::string_view value;
};

// The name is a token and the value holds neither CR, LF, NUL nor another CTL: no field can be
// smuggled into a response.
constexpr bool field_is_safe(const Field& field) {
    if (field.name.empty()) return false;
    for (const char c : field.name) {
        if ((kClassTable[octet(c)] & kClassToken) == 0) return false;
    }
    for (const char c : field.value) {
        if (is_ctl(octet(c)) && c != '\t') return false;
    }
    // These belong to the writer: a handler that set them could break the framing.
    switch (field.name.size()) {
        case 4:
            return !equals_ignoring_case(field.name, "date");
        case 10:
            return !equals_ignoring_case(field.name, "connection");
        case 14:
            return !equals_ignoring_case(field.name, "content-length");
        case 17:
            return !equals_ignoring_case(field.name, "transfer-encoding");
        default:
            return true;
    }
}

inline constexpr std::size_t kCopySlack = 64;

// Of a number of bytes that GCC would leave to a string instruction, which takes far longer.
template <std::size_t kSize>
[[gnu::always_inline]] inline void copy_step(char* out, const char* text) {
    static_assert(kSize % 16 == 0 && kSize <= kCopySlack);
    std::memcpy(out, text, 16);
    if constexpr (kSize > 16) copy_step<kSize - 16>(out + 16, text + 16);
}

// Copies whole steps, one at least: up to kStep - 1 bytes more than asked for are read and written.
template <std::size_t kStep>
[[gnu::always_inline]] inline char* put_steps(char* out, const char* text, std::size_t size) {
    copy_step<kStep>(out, text);
    for (std::size_t at = kStep; at < size; at += kStep) copy_step<kStep>(out + at, text + at);
    return out + size;
}

// Field lines, each with its CRLF, that are known to be safe and have kCopySlack bytes behind them.
class FieldLines {
  public:
    constexpr FieldLines() = default;
    constexpr std::string_view text() const { return {text_, size_}; }

  private:
    template <std::size_t kSize>
    friend class FixedField;
    friend class PreparedAnswer;
    friend class ResponseWriter;
    static constexpr std::array<char, kCopySlack> kNone{};
    constexpr FieldLines(const char* text, std::size_t size) : text_(text), size_(size) {}

    const char* text_ = kNone.data();
    std::size_t size_ = 0;
};

// A field line that the compiler has checked. Made by fixed_field(), and kept for as long as
// answers are written with it.
template <std::size_t kSize>
class FixedField {
  public:
    consteval FixedField(std::string_view name, std::string_view value) {
        if (!field_is_safe({name, value})) throw "this field would break the framing";
        std::size_t at = 0;
        for (const std::string_view part :
             {name, std::string_view(": "), value, std::string_view("\r\n")}) {
            for (const char c : part) text_[at++] = c;
        }
    }
    constexpr FieldLines lines() const { return {text_.data(), kSize}; }

  private:
    std::array<char, kSize + kCopySlack> text_{};
};
template <std::size_t kName, std::size_t kValue>
consteval auto fixed_field(const char (&name)[kName], const char (&value)[kValue]) {
    return FixedField<kName + kValue + 2>({name, kName - 1}, {value, kValue - 1});
}

// The fields of an answer: those that are known to be safe, then others.
struct Fields {
    FieldLines fixed;
    std::span<const Field> others;

    Fields() = default;
    Fields(FieldLines lines, std::span<const Field> more = {}) : fixed(lines), others(more) {}
    template <std::size_t kSize>
    Fields(const FixedField<kSize>& field, std::span<const Field> more = {})
        : fixed(field.lines()), others(more) {}
    Fields(std::span<const Field> all) : others(all) {}
    template <class Range>  // an array, a vector
    requires std::is_convertible_v<const Range&, std::span<const Field>> Fields(const Range& all)
        : others(all) {}
    Fields(std::initializer_list<Field> all) : others(all.begin(), all.size()) {}
};

// "Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n", RFC 9110 5.6.7, made once a second.
// Behind it, where one is given, the line of the Server field.
class DateLine {
  public:
    static constexpr std::size_t kSize = 37;
    static constexpr std::size_t kServerNameMax = 64;
    // `server_name` is a field value that field_is_safe() lets pass, of at most kServerNameMax.
    explicit DateLine(std::string_view server_name = {});
    bool update(std::int64_t unix_seconds);  // true when it changed
    std::string_view text() const { return {text_.data(), size_}; }
    std::int64_t unix_seconds() const { return seconds_; }

  private:
    std::array<char, kSize + 8 + kServerNameMax + 2 + kCopySlack> text_{};
    std::size_t size_ = kSize;
    std::int64_t seconds_ = -1;
};

// An answer that is the same each time but for its Date: checked and put together once.
class PreparedAnswer {
  public:
    // nullptr where a field would break the framing, or the status is none of a final answer.
    static std::shared_ptr<const PreparedAnswer> make(unsigned status,
                                                      std::span<const Field> fields,
                                                      std::string_view content);

    unsigned status() const { return status_; }
    FieldLines fields() const { return {text_.data(), fields_size_}; }
    std::string_view content() const {
        return std::string_view(text_).substr(head_size_, size_ - head_size_);
    }

  private:
    friend class ResponseWriter;
    PreparedAnswer() = default;

    StatusLine line_;
    unsigned status_ = 0;
    std::size_t fields_size_ = 0;
    std::size_t head_size_ = 0;  // with Content-Length and the empty line
    std::size_t size_ = 0;
    std::string text_;  // all but status line and date, and kCopySlack bytes
};

// What an answer says of WebSocket: that it switches (RFC 6455 4.2.2), or that the client should
// (RFC 9110 15.5.22, RFC 6455 4.4).
enum class Upgrade : std::uint8_t { kNone, kSwitched, kRequired };

struct ResponseOptions {
    bool head_request = false;
    bool close = false;
    bool say_keep_alive = false;  // to a 1.0 client that asked (RFC 9112 9.3)
    std::string_view allow = {};  // to OPTIONS (RFC 9110 9.3.7)
    Upgrade upgrade = Upgrade::kNone;
    bool chunked = true;  // the client knows the chunked coding (RFC 9112 6.1)

    // Nothing of it adds a field.
    bool adds_nothing() const {
        return !close && !say_keep_alive && upgrade == Upgrade::kNone && allow.empty();
    }
};

// Content that is asked for when there is room for it on the wire. One source may serve many
// answers at a time, in one thread for each worker.
class ContentSource {
  public:
    // Where the content stands in a file that is open for reading.
    struct File {
        int descriptor = -1;
        std::uint64_t offset = 0;  // of the first byte of the content
    };

    // Bytes of the content from `offset` on, at least 1 and at most `most` of them, which stay as
    // they are until the next call in this thread. None: it cannot be read, and the connection is
    // closed, because only that can tell the client.
    virtual std::string_view read(std::uint64_t offset, std::size_t most) = 0;
    // The system may then copy it to the wire itself; read() must give the same all the same.
    virtual File file() const { return {}; }
    // Of this answer no more will be asked: all of it was sent, or the connection is gone.
    virtual void release() {}

  protected:
    ~ContentSource() = default;
};

// What tells where content ends (RFC 9112 6.3).
enum class ContentFraming : std::uint8_t { kNone, kLength, kChunks, kClose };

// Content that is not in the room of a Sink. Of `bytes`, when there is neither source nor stream.
struct LaterContent {
    ContentSource* source = nullptr;
    const char* bytes = nullptr;
    std::uint64_t offset = 0;
    std::uint64_t left = 0;           // kUnknown until a stream says that it ends
    ContentStream* stream = nullptr;  // belongs to whoever holds this
    ContentFraming framing = ContentFraming::kLength;
    bool asleep = false;  // the stream has nothing for now

    static constexpr std::uint64_t kUnknown = ~std::uint64_t{0};
};

// What an application says in a refusal.
struct RefusalContent {
    std::string content;
    std::string content_type = "text/plain";
};

// Where bytes of responses go. What was prepared is committed by the caller having written it.
class Sink {
  public:
    // Room for exactly that many bytes, and kCopySlack behind it that may be written to; nullptr
    // when memory is short.
    [[gnu::always_inline]] char* prepare(std::size_t size) {
        if (static_cast<std::size_t>(end_ - at_) < size) [[unlikely]]
            return prepare_more(size);
        char* const room = at_;
        at_ += size;
        return room;
    }
    // After what was prepared.
    virtual void append(const LaterContent& content) = 0;
    // For the functions of ResponseWriter.
    virtual LaterAnswer later();
    virtual Waker waker();
    virtual bool read_content(std::unique_ptr<ContentReader> reader, bool paused);
    virtual Arena* memory() { return nullptr; }
    virtual std::optional<RefusalContent> refusal_content(Reason reason, std::uint64_t offset);

  protected:
    ~Sink() = default;
    virtual char* prepare_more(std::size_t size) = 0;

    char* at_ = nullptr;
    char* end_ = nullptr;  // kCopySlack bytes before the true end
};

// RFC 9110 15.2-15.4, 6.4.1: no content whatever the handler says. Of these a 205 says
// Content-Length: 0 (RFC 9110 15.3.6), the others no length (RFC 9110 8.6).
constexpr bool status_forbids_length(unsigned status) {
    return status < 200 || status == 204 || status == 304;
}
constexpr bool status_forbids_content(unsigned status) {
    return status_forbids_length(status) || status == 205;
}

// Writes one response. Each function gives false when memory is short, a field would break the
// framing or a response has been written before: then it has written nothing.
class ResponseWriter {
  public:
    ResponseWriter(Sink& sink, const DateLine& date, const ResponseOptions& options)
        : sink_(sink), date_(date), options_(options) {}
    // All three outlive the writer.
    ResponseWriter(Sink&, const DateLine&, ResponseOptions&&) = delete;

    bool write(unsigned status, const Fields& fields, std::string_view content);
    [[gnu::always_inline]] bool write(const PreparedAnswer& answer) {
        if (!options_.adds_nothing() || status_ != 0) [[unlikely]] {
            return write(answer.status_, answer.fields(), answer.content());
        }
        return write_prepared(answer);
    }

    // For a handler to return: kNone, or why nothing was written.
    Reason answer(unsigned status, const Fields& fields, std::string_view content) {
        return write(status, fields, content) ? Reason::kNone : fault_;
    }

    // Writes the head and gives room for exactly `size` bytes of content in `content`, nullptr
    // there when none is to be sent.
    bool start(unsigned status, const Fields& fields, std::size_t size, char*& content);

    // The content is not copied where it is long: it must stay as it is until it has been sent.
    bool write_reference(unsigned status, const Fields& fields, std::string_view content);
    // The content is asked of `source`, which outlives the answer. It is released where nothing is
    // sent of it, too, but not where this gives false.
    bool write_source(unsigned status, const Fields& fields, std::uint64_t size,
                      ContentSource& source);

    // The content is asked of `stream` piece by piece while it is sent. Its length may be given:
    // the stream must then have exactly that many bytes. Otherwise the answer is chunked, and to a
    // client of HTTP/1.0 it ends with the connection.
    bool write_stream(unsigned status, const Fields& fields, std::unique_ptr<ContentStream> stream,
                      std::optional<std::uint64_t> size = {});
    // Wakes what pauses on this connection, from any thread. Its class is in app/waker.hpp.
    Waker waker();

    // Instead of writing, on a route with RouteOptions::streams: the content is handed over piece
    // by piece, at once or, where it begins `paused`, when the Waker is used. A client that waits
    // for a 100 is told then (RFC 9110 10.1.1). False where an answer has been written. Its class
    // is in app/content_reader.hpp.
    bool read_content(std::unique_ptr<ContentReader> reader, bool paused = false);
    bool reads_content() const { return status_ == kReadsContent; }

    // Instead of writing: the handler is asked again after that time, by Request::asked_again. A
    // route that answers early cannot do so.
    void defer(std::uint32_t ms) { deferred_ms_ = ms; }
    const std::optional<std::uint32_t>& deferred_ms() const { return deferred_ms_; }
    // Instead of writing: whoever holds the token answers, from any thread. Nothing can be written
    // after this. Empty where an answer has been written, and on a route that answers early. Its
    // class is in app/later_answer.hpp.
    LaterAnswer later();
    bool is_answered_later() const { return status_ == kAnsweredLater; }

    // What counts memory against the limit of this worker; nullptr where nothing does.
    Arena* memory() const { return sink_.memory(); }
    // What the application's error handler says of a fault of the content; nothing where there is
    // no such handler, or it says nothing. `offset` is from the content's first byte.
    std::optional<RefusalContent> refusal_content(Reason reason, std::uint64_t offset) {
        return sink_.refusal_content(reason, offset);
    }
    // The moment that the answer's Date tells.
    std::int64_t unix_seconds() const { return date_.unix_seconds(); }

    // Why a function gave false: kNoMemory, else kHandlerFailed.
    Reason fault() const { return fault_; }
    // What was written; 0 before.
    unsigned status() const { return is_answered() ? status_ : 0; }
    bool is_untouched() const { return status_ == 0 || status_ == kWatched; }
    bool is_answered() const { return status_ >= kStatusMin; }
    // 0 where it was not known.
    std::uint64_t content_size() const { return content_size_; }

    // `watcher`, which outlives what is written, is asked before the head is. Of no meaning once
    // the writer has been used.
    void watch(const HeadWatcher& watcher) {
        if (!is_untouched()) return;
        status_ = kWatched;
        watcher_ = &watcher;
    }
    // Whoever was to write has failed on the way. Content that start() has given room for may be
    // half there: then it cannot be told from an answer but by a close.
    void abandon() {
        if (gave_room_) status_ = kAbandoned;
    }
    bool is_abandoned() const { return status_ == kAbandoned; }

  private:
    // In the place of a status:
    static constexpr unsigned kAnsweredLater = 1;
    static constexpr unsigned kReadsContent = 2;
    static constexpr unsigned kWatched = 3;  // untouched, and somebody is to be asked first
    static constexpr unsigned kAbandoned = 4;
    static constexpr unsigned kStatusMin = 100;

    [[gnu::always_inline]] bool write_prepared(const PreparedAnswer& answer);
    bool is_simple(unsigned status, const Fields& fields) const;
    bool write_simple(unsigned status, FieldLines fixed, std::string_view content);
    bool write_other(unsigned status, const Fields& fields, std::string_view content);
    template <ContentFraming kFraming = ContentFraming::kLength>
    bool head(unsigned status, const Fields& fields, std::uint64_t content_length,
              std::size_t content_here, char*& content);
    template <ContentFraming kFraming>
    bool watched_head(unsigned status, const Fields& fields, std::uint64_t content_length,
                      std::size_t content_here, char*& content);

    Sink& sink_;
    const DateLine& date_;
    const ResponseOptions& options_;
    const HeadWatcher* watcher_;  // set where status_ is kWatched
    Reason fault_ = Reason::kNone;
    bool gave_room_ = false;
    unsigned status_ = 0;
    std::uint64_t content_size_ = 0;
    std::optional<std::uint32_t> deferred_ms_;
};

inline bool ResponseWriter::write_prepared(const PreparedAnswer& answer) {
    const std::string_view date = date_.text();
    const std::size_t rest = options_.head_request ? answer.head_size_ : answer.size_;
    char* out = sink_.prepare(answer.line_.size + date.size() + rest);
    if (out == nullptr) [[unlikely]] {
        fault_ = Reason::kNoMemory;
        return false;
    }
    out = put_steps<32>(out, answer.line_.text.data(), answer.line_.size);
    out = put_steps<64>(out, date.data(), date.size());
    put_steps<64>(out, answer.text_.data(), rest);
    status_ = answer.status_;
    content_size_ = rest - answer.head_size_;
    return true;
}

}  // namespace httpmark
