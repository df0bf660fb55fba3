// multipart/form-data, RFC 7578 on RFC 2046 5.1.1, as it comes in: bytes in any split go in, and
// parts and pieces of their content come out. Content is views of the input; only the header
// section of a part is kept, in a room of fixed size.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "http/error.hpp"
#include "limits.hpp"

namespace httpmark {

class Boundary {
  public:
    Boundary() = default;
    std::string_view text() const { return {octets_.data(), size_}; }
    // 1 to 70 bytes of RFC 2046 bchars, the last no space; false leaves it as it was.
    bool set(std::string_view text);

  private:
    std::array<char, kBoundaryMax> octets_{};
    std::size_t size_ = 0;
};

struct BoundaryResult {
    Boundary boundary;
    Reason fault = Reason::kNone;
    std::size_t offset = 0;  // of the fault in the value of Content-Type
};

// From the value of Content-Type, which must be multipart/form-data.
BoundaryResult boundary_of(std::string_view content_type);

// What the header section of a part says. Valid until the part has ended and the decoder is called
// again.
struct MultipartPart {
    std::string_view head;  // field lines, each with its CRLF, for a FieldReader
    std::string_view name;  // without quotes and their escapes; percent pairs are left
    std::string_view filename;
    bool has_filename = false;
    std::string_view content_type;  // as it came, empty where there is none
};

class MultipartDecoder {
  public:
    enum class Status : std::uint8_t {
        kNeedMore,   // all input was taken
        kPartBegin,  // part() tells which
        kContent,    // of this part, in `piece`
        kPartEnd,
        kDone,      // from finish() alone: what follows the last delimiter may still be wrong
        kRejected,  // fault() and offset() tell why
    };

    explicit MultipartDecoder(const Boundary& boundary, const MultipartLimits& limits = {});
    // part() looks into the decoder itself.
    MultipartDecoder(const MultipartDecoder&) = delete;
    MultipartDecoder& operator=(const MultipartDecoder&) = delete;

    // Takes bytes from the front of `input` up to the next thing to tell.
    Status decode(std::string_view& input, std::string_view& piece);
    // At the end of the content: kDone or kRejected.
    Status finish();

    const MultipartPart& part() const { return part_; }
    std::uint64_t parts() const { return parts_; }
    Reason fault() const { return fault_; }
    // Bytes taken so far; on kRejected, the offset of the fault.
    std::uint64_t offset() const { return offset_; }

  private:
    enum class Phase : std::uint8_t {
        kPreamble,
        kAfterDelimiter,  // "--", or the rest of the line
        kPadding,
        kDelimiterLf,
        kCloseDash,
        kClosed,
        kClosedLf,
        kEpilogue,
        kLineStart,
        kFieldName,
        kFieldValue,
        kFieldLf,
        kHeadLf,
        kContent,
        kRejected,
    };
    enum class Seen : std::uint8_t { kNothing, kOther, kDelimiter };

    void take(std::string_view& input, std::size_t size);
    Status reject(Reason fault, std::uint64_t offset);
    Seen seek_delimiter(std::string_view& input, std::string_view& piece);
    Seen continue_delimiter(std::string_view& input, std::string_view& piece);
    std::size_t delimiter_prefix(std::string_view text) const;
    Status preamble(std::string_view& input);
    Status epilogue(std::string_view& input);
    Status content(std::string_view& input, std::string_view& piece);
    bool cut_to(std::uint64_t max, std::string_view& piece);
    Reason delimiter_octet(unsigned char c);
    Reason head_octet(unsigned char c);
    Reason begin_head();
    Reason end_head();
    Reason take_field();
    Reason take_disposition(std::string_view value);
    Reason fault_in_head(Reason fault, const char* at);
    std::string_view meant(std::string_view text, bool is_escaped);

    const MultipartLimits limits_;
    // CRLF "--" boundary
    std::array<char, 4 + kBoundaryMax> delimiter_{};
    std::size_t delimiter_size_;
    // How much of the delimiter has come, at the end of what was taken. Where a line may begin
    // without a CRLF of its own, it is as if one had come: `unsent_` is the size of that.
    std::size_t matched_ = 2;
    std::size_t unsent_ = 2;
    Phase phase_ = Phase::kPreamble;
    Reason fault_ = Reason::kNone;
    std::uint64_t offset_ = 0;
    std::uint64_t counted_ = 0;  // of the preamble, padding, content or epilogue
    std::uint64_t parts_ = 0;
    std::uint64_t fault_offset_ = 0;  // of a fault in a field that is complete

    std::array<char, kPartHeadMax> head_;
    std::size_t head_size_ = 0;
    std::uint64_t head_begin_ = 0;  // offset of its first byte
    std::size_t line_begin_ = 0;
    std::size_t colon_ = 0;
    std::array<char, kPartHeadMax> meant_;  // name and filename without their escapes
    std::size_t meant_size_ = 0;
    bool has_disposition_ = false;
    bool has_name_ = false;
    bool has_content_type_ = false;
    bool has_transfer_encoding_ = false;
    MultipartPart part_;
};

}  // namespace httpmark
