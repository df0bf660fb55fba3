// Cookies as a server sees them, RFC 6265bis: the Cookie field read, and Set-Cookie written.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace httpmark {

struct Cookie {
    std::string_view name;  // empty where the pair has no '='
    std::string_view value;
};

// The pairs of one Cookie field line, in their order. Total: whatever a client sends gives some
// pairs, and nothing that it sends changes where another pair begins. Values are kept as they
// came, quotes included (RFC 6265bis 4.2.2).
class CookieReader {
  public:
    explicit CookieReader(std::string_view value) : rest_(value) {}
    bool next(Cookie& cookie);

  private:
    std::string_view rest_;
};

// The value of the first cookie of that name, which the client holds for the longest path.
std::optional<std::string_view> find_cookie(std::string_view value, std::string_view name);

enum class SameSite : std::uint8_t { kUnsaid, kStrict, kLax, kNone };

struct SetCookie {
    std::string_view name;
    std::string_view value;
    std::string_view domain = {};  // empty: the host itself alone
    std::string_view path = {};    // empty: that of the request's folder
    std::optional<std::int64_t> max_age_s = {};
    std::optional<std::int64_t> expires_unix_s = {};
    bool is_secure = false;
    bool is_http_only = false;
    bool is_partitioned = false;
    SameSite same_site = SameSite::kUnsaid;
};

// Why a cookie is not written: it would break the field, or every client would throw it away.
enum class SetCookieFault : std::uint8_t {
    kNone,
    kName,       // no token (RFC 6265bis 4.1.1)
    kValue,      // a byte outside cookie-octet
    kTooLong,    // name and value above 4096 bytes, or an attribute above 1024 (5.6)
    kDomain,     // no name of a host
    kPath,       // does not begin with '/', or holds ';' or a control character
    kExpires,    // outside the years 1601 to 9999
    kPrefix,     // __Secure- or __Host- without what it promises (4.1.3)
    kNotSecure,  // SameSite=None or Partitioned without Secure
    kNoRoom,
};

SetCookieFault judge_set_cookie(const SetCookie& cookie);

struct SetCookieResult {
    std::string_view value;
    SetCookieFault fault = SetCookieFault::kNone;
};

// The value of a Set-Cookie field, into `room`; empty with a fault. One field line holds one.
SetCookieResult write_set_cookie(const SetCookie& cookie, std::span<char> room);

}  // namespace httpmark
