#include "content/cookies.hpp"

#include <algorithm>
#include <array>
#include <charconv>

#include "http/date.hpp"
#include "http/syntax.hpp"
#include "limits.hpp"

namespace httpmark {

namespace {

// RFC 6265bis 4.1.1: visible ASCII without DQUOTE, comma, semicolon and backslash.
constexpr bool is_cookie_octet(unsigned char c) {
    return c > 0x20 && c < 0x7F && c != '"' && c != ',' && c != ';' && c != '\\';
}

bool is_token(std::string_view text) {
    return !text.empty() && std::ranges::all_of(text, [](char c) { return is_tchar(octet(c)); });
}

// *cookie-octet / ( DQUOTE *cookie-octet DQUOTE )
bool is_cookie_value(std::string_view text) {
    if (text.size() >= 2 && text.front() == '"' && text.back() == '"') {
        text = text.substr(1, text.size() - 2);
    }
    return std::ranges::all_of(text, [](char c) { return is_cookie_octet(octet(c)); });
}

// Labels of letters, digits, '-' and '_' with dots between; one dot before them has no meaning.
bool is_domain(std::string_view text) {
    if (!text.empty() && text.front() == '.') text.remove_prefix(1);
    if (text.empty() || text.back() == '.') return false;
    char before = '.';
    for (const char c : text) {
        if (c == '.' ? before == '.'
                     : !is_alpha(octet(c)) && !is_digit(octet(c)) && c != '-' && c != '_') {
            return false;
        }
        before = c;
    }
    return true;
}

bool is_path(std::string_view text) {
    return text.front() == '/' && std::ranges::all_of(text, [](char c) {
               return octet(c) >= 0x20 && octet(c) < 0x7F && c != ';';
           });
}

bool begins_with_ignoring_case(std::string_view text, std::string_view lower) {
    return equals_ignoring_case(text.substr(0, lower.size()), lower);
}

class Writer {
  public:
    explicit Writer(std::span<char> room) : room_(room) {}
    void put(std::string_view text) {
        fits_ = fits_ && text.size() <= room_.size() - size_;
        if (!fits_) return;
        std::copy(text.begin(), text.end(), room_.begin() + static_cast<std::ptrdiff_t>(size_));
        size_ += text.size();
    }
    void attribute(std::string_view name, std::string_view value) {
        if (value.empty()) return;
        put("; ");
        put(name);
        put("=");
        put(value);
    }
    void flag(std::string_view name, bool is_set) {
        if (!is_set) return;
        put("; ");
        put(name);
    }
    SetCookieResult result() const {
        if (!fits_) return {{}, SetCookieFault::kNoRoom};
        return {{room_.data(), size_}, SetCookieFault::kNone};
    }

  private:
    std::span<char> room_;
    std::size_t size_ = 0;
    bool fits_ = true;
};

constexpr std::string_view same_site_text(SameSite same_site) {
    switch (same_site) {
        case SameSite::kStrict:
            return "Strict";
        case SameSite::kLax:
            return "Lax";
        case SameSite::kNone:
            return "None";
        case SameSite::kUnsaid:
            break;
    }
    return {};
}

constexpr std::int64_t kYear1601 = -11644473600;
constexpr std::int64_t kYear10000 = 253402300800;

}  // namespace

bool CookieReader::next(Cookie& cookie) {
    while (!rest_.empty()) {
        const std::size_t end = std::min(rest_.find(';'), rest_.size());
        const std::string_view pair = trim_ows(rest_.substr(0, end));
        rest_.remove_prefix(std::min(end + 1, rest_.size()));
        if (pair.empty()) continue;
        const std::size_t equals = pair.find('=');
        if (equals == std::string_view::npos) {
            cookie = {{}, pair};  // a client holds it without a name (RFC 6265bis 5.6)
        } else {
            cookie = {trim_ows(pair.substr(0, equals)), trim_ows(pair.substr(equals + 1))};
        }
        return true;
    }
    return false;
}

std::optional<std::string_view> find_cookie(std::string_view value, std::string_view name) {
    CookieReader reader(value);
    Cookie cookie;
    while (reader.next(cookie)) {
        if (cookie.name == name) return cookie.value;
    }
    return std::nullopt;
}

SetCookieFault judge_set_cookie(const SetCookie& cookie) {
    if (!is_token(cookie.name)) return SetCookieFault::kName;
    if (!is_cookie_value(cookie.value)) return SetCookieFault::kValue;
    if (cookie.name.size() + cookie.value.size() > kCookieNameAndValueMax ||
        cookie.domain.size() > kCookieAttributeMax || cookie.path.size() > kCookieAttributeMax) {
        return SetCookieFault::kTooLong;
    }
    if (!cookie.domain.empty() && !is_domain(cookie.domain)) return SetCookieFault::kDomain;
    if (!cookie.path.empty() && !is_path(cookie.path)) return SetCookieFault::kPath;
    if (cookie.expires_unix_s &&
        (*cookie.expires_unix_s < kYear1601 || *cookie.expires_unix_s >= kYear10000)) {
        return SetCookieFault::kExpires;
    }
    // Clients compare the prefixes without regard to case.
    const bool is_host_only = begins_with_ignoring_case(cookie.name, "__host-");
    if ((is_host_only || begins_with_ignoring_case(cookie.name, "__secure-")) &&
        !cookie.is_secure) {
        return SetCookieFault::kPrefix;
    }
    if (is_host_only && (!cookie.domain.empty() || cookie.path != "/")) {
        return SetCookieFault::kPrefix;
    }
    if ((cookie.same_site == SameSite::kNone || cookie.is_partitioned) && !cookie.is_secure) {
        return SetCookieFault::kNotSecure;
    }
    return SetCookieFault::kNone;
}

SetCookieResult write_set_cookie(const SetCookie& cookie, std::span<char> room) {
    const SetCookieFault fault = judge_set_cookie(cookie);
    if (fault != SetCookieFault::kNone) return {{}, fault};
    Writer writer(room);
    writer.put(cookie.name);
    writer.put("=");
    writer.put(cookie.value);
    if (cookie.expires_unix_s) {
        std::array<char, kImfFixdateSize> date;
        put_imf_fixdate(*cookie.expires_unix_s, date.data());
        writer.attribute("Expires", {date.data(), date.size()});
    }
    if (cookie.max_age_s) {
        std::array<char, 20> digits;
        const auto done =
            std::to_chars(digits.data(), digits.data() + digits.size(), *cookie.max_age_s);
        writer.attribute("Max-Age",
                         {digits.data(), static_cast<std::size_t>(done.ptr - digits.data())});
    }
    writer.attribute("Domain", cookie.domain);
    writer.attribute("Path", cookie.path);
    writer.attribute("SameSite", same_site_text(cookie.same_site));
    writer.flag("Secure", cookie.is_secure);
    writer.flag("HttpOnly", cookie.is_http_only);
    writer.flag("Partitioned", cookie.is_partitioned);
    return writer.result();
}

}  // namespace httpmark
