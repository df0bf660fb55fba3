// Responses whose framing a handler cannot break: Content-Length, Connection and Date are the
// writer's; 1xx, 204 and 304 carry no content; HEAD gets the fields and no content.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string_view>

#include "http/error.hpp"

namespace httpmark {

struct Field {
    std::string_view name;
    std::string_view value;
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

  private:
    std::array<char, kSize + 8 + kServerNameMax + 2> text_{};
    std::size_t size_ = kSize;
    std::int64_t seconds_ = -1;
};

struct ResponseOptions {
    bool head_request = false;
    bool close = false;
    bool say_keep_alive = false;  // to a 1.0 client that asked (RFC 9112 9.3)
    std::string_view allow = {};  // to OPTIONS (RFC 9110 9.3.7)
};

// Where bytes of responses go. prepare() gives room for exactly that many or nullptr when memory
// is short; what was prepared is committed by the caller having written it.
class Sink {
  public:
    virtual char* prepare(std::size_t size) = 0;
    // Content made while sending: `size` bytes of kFillOctet.
    virtual bool append_fill(std::uint64_t size) = 0;

  protected:
    ~Sink() = default;
};

inline constexpr char kFillOctet = 'x';

class ResponseWriter {
  public:
    ResponseWriter(Sink& sink, const DateLine& date, ResponseOptions options)
        : sink_(sink), date_(date), options_(options) {}

    // Writes head and content. False when memory is short or a field would break the framing:
    // then nothing has been written.
    bool write(unsigned status, std::span<const Field> fields, std::string_view content);
    bool write(unsigned status, std::initializer_list<Field> fields, std::string_view content) {
        return write(status, std::span(fields.begin(), fields.size()), content);
    }

    // Writes the head and gives room for exactly `size` bytes of content in `content`, nullptr
    // there when none is to be sent.
    bool start(unsigned status, std::span<const Field> fields, std::size_t size, char*& content);

    // Head, then `size` bytes of filling.
    bool write_fill(unsigned status, std::span<const Field> fields, std::uint64_t size);

    // Why a write gave false: kHandlerFailed for a field that may not be, else kNoMemory.
    Reason fault() const { return fault_; }
    // What was written; 0 before.
    unsigned status() const { return status_; }
    std::uint64_t content_size() const { return content_size_; }

  private:
    bool head(unsigned status, std::span<const Field> fields, std::uint64_t content_length,
              std::size_t content_here, char*& content);

    Sink& sink_;
    const DateLine& date_;
    ResponseOptions options_;
    Reason fault_ = Reason::kNone;
    unsigned status_ = 0;
    std::uint64_t content_size_ = 0;
};

// RFC 9110 15.2-15.4, 6.4.1: no content whatever the handler says. Of these a 205 says
// Content-Length: 0 (RFC 9110 15.3.6), the others no length (RFC 9110 8.6).
constexpr bool status_forbids_length(unsigned status) {
    return status < 200 || status == 204 || status == 304;
}
constexpr bool status_forbids_content(unsigned status) {
    return status_forbids_length(status) || status == 205;
}

// The name is a token and the value holds neither CR, LF, NUL nor another CTL: no field can be
// smuggled into a response.
bool field_is_safe(const Field& field);

}  // namespace httpmark
