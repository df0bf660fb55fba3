// The load generator's reading of responses. A strict parser (RFC 9112 sections 2, 4, 6 and 7)
// takes the first response; what follows is compared byte by byte with it, only the Date is free.
// Whatever differs goes through the strict parser again.
#ifndef HTTPMARK_NATIVE_LOAD_RESPONSE_HPP_
#define HTTPMARK_NATIVE_LOAD_RESPONSE_HPP_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "shared/http_date.hpp"

namespace httpmark {

inline constexpr std::size_t kLoadHeadBytesMax = 64 * 1024;
inline constexpr std::uint64_t kLoadBodyBytesMax = std::uint64_t{1} << 30;
// So many bytes are compared at once: well within the nearest cache.
inline constexpr std::size_t kRunBytesMax = 4 * 1024;
// How far a Date may be ahead of the clock or before its request, and how long it may stay the
// same. A server renews its Date once a second. How long a response was under way is not in it: a
// server that dates a long batch when it begins it, and answers that wait to be read, are late and
// not old.
inline constexpr std::int64_t kDateSkewSecondsMax = 2;

enum class ParseState : std::uint8_t {
    kComplete,
    kNeedMore,
    kUntilClose,  // a good head, but only the close would end the body
    kInvalid,
};

struct ParsedResponse {
    ParseState state = ParseState::kNeedMore;
    int status = 0;
    std::size_t head_size = 0;
    std::size_t size = 0;     // kComplete: of the whole message
    std::size_t need = 0;     // kNeedMore: trying again with fewer bytes is useless
    std::size_t date_at = 0;  // of the Date field's value; 0 = none
    std::string_view date;
    bool announced_close = false;
    bool is_chunked = false;
    std::string content;                  // decoded, only when is_chunked
    std::vector<std::size_t> chunk_ends;  // only when is_chunked: one past the CRLF of each
    std::string_view body;                // as it lies in the input, or a view of content
    const char* why = "";                 // kInvalid
    std::size_t why_at = 0;               // and at which byte
};

// `head_request`: the request's method was HEAD.
void parse_response(std::string_view input, bool head_request, ParsedResponse* out);

enum class CheckKind : std::uint8_t {
    kVerified,
    kVariant,  // verified, with a head unlike the first's
    kNeedMore,
    kInterim,  // a 1xx nobody asked for, or 103: skipped, counted apart
    kStatus,   // errors from here on: the message's end is known
    kBody,
    kDate,
    kFraming,  // no response, or one without an end: the connection is of no more use
};

struct CheckResult {
    CheckKind kind = CheckKind::kNeedMore;
    std::size_t size = 0;  // bytes of the message
    std::size_t need = 0;
    bool announced_close = false;
    const char* why = "";
    std::size_t why_at = 0;
    int status = 0;        // kStatus: the one that came
    bool is_late = false;  // kDate: a good Date that the server should have renewed by then
};

// One per kind of request and thread.
class ResponseVerifier {
  public:
    // 0: whatever 2xx comes first.
    ResponseVerifier(int expected_status, bool head_request)
        : expected_status_(expected_status), head_request_(head_request) {}

    // Seconds since 1970: the clock's, and of when the request was sent that is answered next. To
    // be called when one of them may have changed; cheap.
    void set_wall_clock(std::int64_t now, std::int64_t sent) {
        date_min_ = sent - kDateSkewSecondsMax;
        date_max_ = now + kDateSkewSecondsMax;
    }

    // How many whole responses, equal to the learned one, `input` begins with; at most `limit`.
    std::size_t count_equal(std::string_view input, std::size_t limit) {
        if (!is_learned() || (date_at_ != 0 && !is_near(date_))) return 0;
        const std::size_t size = learned_.size();
        const std::size_t whole = std::min(limit, input.size() / size);
        std::size_t count = 0;
        while (count < whole) {
            // Many at once, which costs half of one by one; where they differ, fewer up to there.
            const std::size_t run = std::min(whole - count, run_.size() / size);
            const char* at = input.data() + count * size;
            if (std::memcmp(at, run_.data(), run * size) != 0) {
                if (run == 1) break;
                run_ = learned_;
                continue;
            }
            count += run;
            if (run * size == run_.size() && 2 * run_.size() <= kRunBytesMax) run_ += run_;
        }
        return count;
    }
    std::size_t learned_size() const { return learned_.size(); }

    // Anything else. `input` must not be empty.
    CheckResult check(std::string_view input);

    bool is_learned() const { return !learned_.empty(); }
    int status() const { return status_; }
    bool has_date() const { return date_at_ != 0; }
    // How often a Date was another one than the one before.
    std::uint64_t date_changes() const { return date_changes_; }
    std::size_t body_size() const { return body_.size(); }
    const std::string& body() const { return body_; }
    bool announced_close() const { return announced_close_; }

  private:
    bool is_near(std::int64_t date) const { return date_min_ <= date && date <= date_max_; }
    // Whether a Date may stand in an answer now; else `result` says what is wrong with it.
    bool take_date(std::string_view date, CheckResult* result);
    bool check_equal(std::string_view input, CheckResult* result);
    bool is_as_expected(CheckResult* result);
    void learn(std::string_view input);
    // As learned but for the Date; `size` bytes are looked at.
    bool equals_but_date(std::string_view input, std::size_t size) const;
    std::size_t least_size(std::size_t size) const;

    int expected_status_;
    bool head_request_;
    int status_ = 0;
    bool announced_close_ = false;
    std::int64_t date_min_ = 0;
    std::int64_t date_max_ = 0;
    std::int64_t date_ = 0;        // of learned_, where it has one
    std::int64_t first_date_ = 0;  // that was good; 0: none yet
    std::string learned_;
    std::string run_;                      // learned_ once or several times, one after the other
    std::string body_;                     // of the first response; all others have to equal it
    std::size_t head_size_ = 0;            // of learned_
    std::vector<std::size_t> chunk_ends_;  // in learned_, where it is chunked
    std::size_t date_at_ = 0;
    std::uint64_t date_changes_ = 0;
    ParsedResponse parsed_;
};

}  // namespace httpmark

#endif  // HTTPMARK_NATIVE_LOAD_RESPONSE_HPP_
