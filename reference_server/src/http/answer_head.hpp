// An answer whose head is about to be written, for hooks: what it will say, and what may be added.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "http/error.hpp"

namespace httpmark {

class AnswerHead {
  public:
    unsigned status() const { return status_; }
    // Bytes of content that the client gets: none to HEAD. Nothing where its length is not known
    // yet, as of a stream that ends when it ends.
    std::optional<std::uint64_t> content_size() const { return content_size_; }
    // Of what the server answers in the place of a handler, why; kNone of any other answer.
    Reason refusal() const { return refusal_; }

    // Adds a field line behind the answer's own. False, and nothing is added, where it would break
    // the framing, or belongs to the server (Date, Connection, Upgrade, Content-Length,
    // Transfer-Encoding, Sec-WebSocket-*), or where fields of hooks are more than kFieldsMax bytes.
    bool add(std::string_view name, std::string_view value);
    static constexpr std::size_t kFieldsMax = 16384;

  private:
    friend class ResponseWriter;
    friend class AfterHooks;
    AnswerHead(unsigned status, std::optional<std::uint64_t> content_size, std::string& lines)
        : status_(status), content_size_(content_size), lines_(lines), own_(lines.size()) {}

    unsigned status_;
    std::optional<std::uint64_t> content_size_;
    Reason refusal_ = Reason::kNone;
    std::string& lines_;  // field lines, each with its CRLF
    std::size_t own_;     // of the answer itself
};

// Is asked once for each answer, right before its head is written.
class HeadWatcher {
  public:
    virtual void on_head(AnswerHead& head) const = 0;

  protected:
    ~HeadWatcher() = default;
};

}  // namespace httpmark
