// Responses whose framing a handler cannot break: Content-Length, Connection and Date are the
// writer's; 1xx, 204 and 304 carry no content; HEAD gets the fields and no content.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string_view>

#include "error.hpp"

namespace httpmark {

struct Field {
    std::string_view name;
    std::string_view value;
};

// "Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n", RFC 9110 5.6.7, made once a second.
class DateLine {
  public:
    static constexpr std::size_t kSize = 37;
    bool update(std::int64_t unix_seconds);  // true when it changed
    std::string_view text() const { return {text_.data(), kSize}; }

  private:
    std::array<char, kSize> text_{};
    std::int64_t seconds_ = -1;
};

struct ResponseOptions {
    bool head_request = false;
    bool close = false;
    bool say_keep_alive = false;  // to a 1.0 client that asked (RFC 9112 9.3)
};

// Where octets of responses go. prepare() gives room for exactly that many or nullptr when memory
// is short; what was prepared is committed by the caller having written it.
class Sink {
  public:
    virtual char* prepare(std::size_t size) = 0;
    // Content made while sending: `size` octets of kFillOctet.
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

    // Writes the head and gives room for exactly `size` octets of content in `content`, nullptr
    // there when none is to be sent.
    bool start(unsigned status, std::span<const Field> fields, std::size_t size, char*& content);

    // Head, then `size` octets of filling.
    bool write_fill(unsigned status, std::span<const Field> fields, std::uint64_t size);

  private:
    bool head(unsigned status, std::span<const Field> fields, std::uint64_t content_length,
              std::size_t content_here, char*& content);

    Sink& sink_;
    const DateLine& date_;
    ResponseOptions options_;
};

// RFC 9110 15.2-15.4, 6.4.1: no content whatever the handler says.
constexpr bool status_forbids_content(unsigned status) {
    return status < 200 || status == 204 || status == 304;
}

// The name is a token and the value holds neither CR, LF, NUL nor another CTL: no field can be
// smuggled into a response.
bool field_is_safe(const Field& field);

}  // namespace httpmark
