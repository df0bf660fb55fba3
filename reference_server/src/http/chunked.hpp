// The chunked transfer coding, RFC 9112 7.1: sizes, extensions with their full grammar, data,
// trailers. Byte by byte where it is grammar, in bulk where it is data; one verdict per prefix.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "http/error.hpp"
#include "http/parser.hpp"
#include "limits.hpp"

namespace httpmark {

class ChunkedDecoder {
  public:
    enum class Status : std::uint8_t { kNeedMore, kContent, kTrailer, kDone, kRejected };

    // Takes bytes from the front of `input`. kContent and kTrailer hand out a piece of it in
    // `piece`; kNeedMore means all was taken; on kDone the bytes after the message are left.
    Status decode(std::string_view& input, const Limits& limits, std::string_view& piece);

    // Room left of the limit on the whole request; unbounded when never called.
    void set_octets_max(std::uint64_t octets) { octets_max_ = octets; }
    // A bound on the content, besides that of the limits.
    void set_content_max(std::uint64_t octets) { content_max_ = octets; }
    // A trailer that frames, routes or authenticates is refused at its colon.
    void refuse_framing_trailers() { refuse_framing_trailers_ = true; }

    Reason reason() const { return reason_; }
    std::uint64_t content_size() const { return content_size_; }
    // Bytes of framing, content and trailers taken so far; on kRejected, the offset of the fault.
    std::uint64_t offset() const { return offset_; }

  private:
    enum class Phase : std::uint8_t {
        kSizeStart,
        kSize,
        kBeforeExtension,
        kExtensionStart,
        kExtensionName,
        kAfterName,
        kValueStart,
        kToken,
        kQuoted,
        kQuotedPair,
        kAfterQuoted,
        kLineLf,
        kData,
        kDataCr,
        kDataLf,
        kTrailers,
        kDone,
        kRejected,
    };
    bool ends_part(unsigned char c, Phase behind_space);
    Reason size_octet(unsigned char c, const Limits& limits);
    Reason extension_name_octet(unsigned char c);
    Reason extension_value_octet(unsigned char c);
    Reason line_octet(unsigned char c, const Limits& limits);
    bool is_in_extension(unsigned char c) const;
    Reason trailer_name_octet(char c);
    bool take_plain_line(std::string_view& input, const Limits& limits);
    std::string_view take_data(std::string_view& input);
    Reason take_trailers(std::string_view input, const Limits& limits, std::size_t& taken);

    Phase phase_ = Phase::kSizeStart;
    Reason reason_ = Reason::kNone;
    bool last_chunk_ = false;
    bool refuse_framing_trailers_ = false;
    std::array<char, 20> trailer_name_{};  // the longest forbidden name has 19 bytes
    std::uint32_t line_size_ = 0;
    std::uint32_t extension_size_ = 0;
    std::uint64_t extensions_size_ = 0;
    std::uint64_t chunk_left_ = 0;
    std::uint64_t content_size_ = 0;
    std::uint64_t offset_ = 0;
    std::uint64_t octets_max_ = ~std::uint64_t{0};
    std::uint64_t content_max_ = ~std::uint64_t{0};
    std::uint64_t trailers_size_ = 0;
    FieldWalker trailers_;
};

// RFC 9110 6.5.1: fields that frame, route or authenticate have no place in trailers; dropped.
bool is_forbidden_trailer(std::string_view name);

}  // namespace httpmark
