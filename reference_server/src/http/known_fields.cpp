// The fields that the server itself acts on: what their values say, as flags of the head.
#include <algorithm>
#include <cstring>

#include "http/parser.hpp"
#include "http/syntax.hpp"

namespace httpmark {

namespace {

inline std::uint64_t load8(const char* p) {
    std::uint64_t word;
    std::memcpy(&word, p, sizeof word);
    return word;
}

// `name` is a token, so setting 0x20 folds its letters and changes nothing that could then be
// mistaken: '-' has the bit, and CR is no tchar.
template <std::size_t kSize>
inline bool is_name(const char* name, const char (&lower)[kSize]) {
    constexpr std::size_t kLength = kSize - 1;
    constexpr std::uint64_t kFold = 0x2020202020202020;
    if constexpr (kLength >= 8) {
        std::uint64_t difference = (load8(name) | kFold) ^ load8(lower);
        if constexpr (kLength > 16) {
            difference |= (load8(name + 8) | kFold) ^ load8(lower + 8);
        }
        difference |= (load8(name + kLength - 8) | kFold) ^ load8(lower + kLength - 8);
        return difference == 0;
    } else {
        static_assert(kLength >= 4);
        const auto load4 = [](const char* p) {
            std::uint32_t word;
            std::memcpy(&word, p, sizeof word);
            return word;
        };
        constexpr auto kFold4 = static_cast<std::uint32_t>(kFold);
        return (((load4(name) | kFold4) ^ load4(lower)) |
                ((load4(name + kLength - 4) | kFold4) ^ load4(lower + kLength - 4))) == 0;
    }
}

}  // namespace

// As it mostly comes: once, with no more whitespace than one space, and with so few digits that it
// cannot overflow. False, and nothing is taken, where it is anything else.
inline bool HeadParser::take_short_length(const char* value, const char* end) {
    constexpr std::ptrdiff_t kDigitsMax = 18;
    if (*value == ' ') ++value;  // before the CR at the latest
    if (value == end || end - value > kDigitsMax || head_.has(kLengthSeen)) return false;
    std::uint64_t number = 0;
    for (; value != end; ++value) {
        const unsigned digit = octet(*value) - unsigned{'0'};
        if (digit > 9) return false;
        number = number * 10 + digit;
    }
    head_.flags |= kLengthSeen;
    head_.content_length = number;
    return true;
}

// Known fields are told by length first. What takes their values stands apart, so that nothing is
// saved for it where it is not needed.
void HeadParser::take_field(const char* data, std::uint32_t line_start, std::uint32_t colon,
                            std::uint32_t cr) {
    const char* const name = data + line_start;
    const auto value = [&] { return trim_ows({data + colon + 1, cr - colon - 1}); };
    switch (colon - line_start) {
        case 4:
            if (is_name(name, "host")) take_host(data, colon + 1, cr);
            break;
        case 6:
            if (is_name(name, "expect")) take_expect(value());
            break;
        case 7:
            if (is_name(name, "upgrade")) head_.flags |= kUpgradeSeen;
            break;
        case 10:
            if (is_name(name, "connection")) take_connection(value());
            break;
        case 14:
            if (is_name(name, "content-length") &&
                !take_short_length(data + colon + 1, data + cr)) {
                take_content_length(value());
            }
            break;
        case 17:
            if (is_name(name, "transfer-encoding")) take_transfer_encoding(value());
            break;
        default:
            break;
    }
}

[[gnu::noinline]] void HeadParser::take_host(const char* data, std::uint32_t begin,
                                             std::uint32_t end) {
    if (head_.has(kHostSeen)) head_.flags |= kHostSeenTwice;
    head_.flags |= kHostSeen;
    const std::string_view value = trim_ows({data + begin, end - begin});
    const HostKind kind = judge_host_value(value);
    if (kind == HostKind::kInvalid) head_.flags |= kHostIsInvalid;
    if (kind == HostKind::kEmpty) head_.flags |= kHostIsEmpty;
    take_authority({static_cast<std::uint32_t>(value.data() - data),
                    static_cast<std::uint32_t>(value.size())});
}

// 1*DIGIT, or a list of such (RFC 9110 8.6), which judge_head() refuses unless told otherwise.
[[gnu::noinline]] void HeadParser::take_content_length(std::string_view value) {
    std::size_t i = 0;
    while (true) {
        if (head_.has(kLengthSeen)) head_.flags |= kLengthSeenTwice;
        const std::size_t comma = std::min(value.find(',', i), value.size());
        const std::string_view digits = trim_ows(value.substr(i, comma - i));
        std::uint64_t number = 0;
        bool valid = !digits.empty();
        bool overflow = false;
        for (const char c : digits) {
            if (!is_digit(octet(c))) {
                valid = false;
                break;
            }
            const std::uint64_t digit = octet(c) - std::uint64_t{'0'};
            constexpr std::uint64_t kMax = (std::uint64_t{1} << 63) - 1;
            if (number > (kMax - digit) / 10) overflow = true;
            if (!overflow) number = number * 10 + digit;
        }
        if (!valid) {
            head_.flags |= kLengthIsInvalid;
        } else if (overflow) {
            head_.flags |= kLengthOverflows;
            number = std::uint64_t{1} << 63;  // differs from every length that does not overflow
        }
        if (head_.has(kLengthSeen) && number != head_.content_length) {
            head_.flags |= kLengthDiffers;
        }
        head_.flags |= kLengthSeen;
        head_.content_length = number;
        if (comma == value.size()) return;
        i = comma + 1;
    }
}

namespace {

// The front of a field value, element by element.
class ValueReader {
  public:
    explicit ValueReader(std::string_view value) : rest_(value) {}

    bool done() const { return rest_.empty(); }
    bool is_at(char c) const { return !rest_.empty() && rest_.front() == c; }
    bool take(char c) {
        if (!is_at(c)) return false;
        rest_.remove_prefix(1);
        return true;
    }
    void skip_ows() {
        while (!rest_.empty() && is_ows(octet(rest_.front()))) rest_.remove_prefix(1);
    }
    std::string_view token() {
        std::size_t size = 0;
        while (size < rest_.size() && is_tchar(octet(rest_[size]))) ++size;
        const std::string_view text = rest_.substr(0, size);
        rest_.remove_prefix(size);
        return text;
    }
    // From after the first quote; false where the last one is missing.
    bool quoted_rest() {
        std::size_t i = 0;
        while (i < rest_.size() && rest_[i] != '"') i += rest_[i] == '\\' ? 2 : 1;
        if (i >= rest_.size()) return false;
        rest_.remove_prefix(i + 1);
        return true;
    }
    // *( OWS ";" OWS token "=" ( token / quoted-string ) ) OWS
    bool parameters(bool& any) {
        skip_ows();
        while (take(';')) {
            any = true;
            skip_ows();
            const bool named = !token().empty();
            skip_ows();
            if (!named || !take('=')) return false;
            skip_ows();
            if (take('"') ? !quoted_rest() : token().empty()) return false;
            skip_ows();
        }
        return true;
    }

  private:
    std::string_view rest_;
};

}  // namespace

// #transfer-coding over all lines, RFC 9110 10.1.4: token *( OWS ";" OWS transfer-parameter ).
// Empty members are ignored (RFC 9110 5.6.1.2).
[[gnu::noinline]] void HeadParser::take_transfer_encoding(std::string_view value) {
    head_.flags |= kCodingSeen;
    ValueReader reader(value);
    bool member_due = true;  // at the start of the value, and after each comma
    while (true) {
        reader.skip_ows();
        const bool ends = reader.done();
        if (ends || reader.take(',')) {
            if (member_due) head_.flags |= kCodingEmptyMember;
            if (ends) return;
            member_due = true;
            continue;
        }
        member_due = false;
        const std::string_view coding = reader.token();
        bool parameters = false;
        if (coding.empty() || !reader.parameters(parameters) ||
            (!reader.done() && !reader.is_at(','))) {
            head_.flags |= kCodingIsInvalid;
            return;
        }
        take_coding(coding, parameters);
    }
}

void HeadParser::take_coding(std::string_view coding, bool parameters) {
    const bool was_chunked = head_.has(kCodingChunked);
    head_.flags |= kCodingAny;
    if (equals_ignoring_case(coding, "chunked")) {
        if (was_chunked) head_.flags |= kCodingChunkedTwice;
        if (parameters) head_.flags |= kCodingParameters;
        head_.flags |= kCodingChunked;
    } else {
        if (was_chunked) head_.flags |= kCodingAfterChunked;
        head_.flags |= kCodingUnknown;
    }
}

[[gnu::noinline]] void HeadParser::take_connection(std::string_view value) {
    if (equals_ignoring_case(value, "keep-alive")) {  // by far the most common
        head_.flags |= kConnectionKeepAlive;
        return;
    }
    std::size_t i = 0;
    while (i <= value.size()) {
        const std::size_t comma = std::min(value.find(',', i), value.size());
        const std::string_view option = trim_ows(value.substr(i, comma - i));
        if (equals_ignoring_case(option, "close")) head_.flags |= kConnectionClose;
        if (equals_ignoring_case(option, "keep-alive")) head_.flags |= kConnectionKeepAlive;
        if (equals_ignoring_case(option, "upgrade")) head_.flags |= kConnectionUpgrade;
        i = comma + 1;
    }
}

// #expectation, RFC 9110 10.1.1; only 100-continue is known.
[[gnu::noinline]] void HeadParser::take_expect(std::string_view value) {
    std::size_t i = 0;
    while (i <= value.size()) {
        const std::size_t comma = std::min(value.find(',', i), value.size());
        const std::string_view expectation = trim_ows(value.substr(i, comma - i));
        if (equals_ignoring_case(expectation, "100-continue")) {
            head_.flags |= kExpectContinue;
        } else if (!expectation.empty()) {
            head_.flags |= kExpectOther;
        }
        i = comma + 1;
    }
}

}  // namespace httpmark
