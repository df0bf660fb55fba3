// Which part of a file a Range field asks for, RFC 9110 14.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace httpmark {

// More ranges than that are no request for parts (RFC 9110 17.15), and the field is ignored.
inline constexpr std::size_t kRangesMax = 16;

struct RangeChoice {
    enum class Verdict : std::uint8_t {
        kWhole,          // the field is ignored: 200
        kPart,           // 206
        kUnsatisfiable,  // 416
    };
    Verdict verdict = Verdict::kWhole;
    std::uint64_t first = 0;  // of kPart
    std::uint64_t size = 0;   // of kPart, never 0
};

// `value` is that of the only Range field, `size` that of the file. The field is ignored where its
// unit is not "bytes", where it breaks the grammar or an int-range ends before it begins (14.1.1),
// and where it asks for more than kRangesMax ranges. Several ranges are answered only where those
// that the file has are one when they overlap or touch, else by the whole: no multipart/byteranges.
RangeChoice choose_range(std::string_view value, std::uint64_t size);

// The value of a Content-Range field, RFC 9110 14.4: "bytes 0-9/100", or of a 416 "bytes */100".
class ContentRange {
  public:
    ContentRange(const RangeChoice& choice, std::uint64_t size);
    std::string_view text() const { return {text_.data(), size_}; }

  private:
    std::array<char, 6 + 20 + 1 + 20 + 1 + 20> text_;
    std::size_t size_;
};

}  // namespace httpmark
