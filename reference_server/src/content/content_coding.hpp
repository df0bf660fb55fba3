// Content codings, RFC 9110 8.4: which one an answer gets by Accept-Encoding, and gzip (RFC 1952)
// and deflate (RFC 1950) as streams in both directions, by zlib.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "content/media_type.hpp"
#include "http/error.hpp"
#include "http/response.hpp"
#include "limits.hpp"

struct z_stream_s;

namespace httpmark {

enum class ContentCoding : std::uint8_t { kIdentity, kGzip, kDeflate };

// As it stands in Content-Encoding, which an answer without a coding does not have.
std::string_view coding_name(ContentCoding coding);

// What Accept-Encoding asks for, RFC 9110 12.5.3.
class AcceptEncoding {
  public:
    // One field line; they add up. A line that breaks the grammar makes the whole count as
    // missing.
    void add(std::string_view value);
    // In thousandths; 0 is not acceptable. identity without a word about it is acceptable, and
    // wanted less than anything that is.
    unsigned weight(ContentCoding coding) const;

  private:
    static constexpr int kUnsaid = -1;
    bool add_member(std::string_view member);

    std::array<int, 3> weights_{kUnsaid, kUnsaid, kUnsaid};
    int others_ = kUnsaid;  // "*"
    bool is_present_ = false;
    bool is_broken_ = false;
};

struct CodingChoice {
    ContentCoding coding = ContentCoding::kIdentity;
    // False: nothing that can be sent is acceptable, not even identity, and the answer is a 406.
    bool is_acceptable = true;
};

// The coding of greatest weight: of equal ones gzip, deflate, identity. Where a coding is not worth
// it, identity comes first if it is acceptable at all.
CodingChoice choose_coding(const AcceptEncoding& accept, bool is_worth_coding);

// At least kCodedContentMin bytes of a type that becomes smaller.
bool is_worth_coding(std::uint64_t content_size, const MediaType& media_type);

// In every answer whose coding was chosen, identity and 406 too: another request for the same
// resource may get another one.
inline constexpr Field kVaryByCoding{"Vary", "Accept-Encoding"};

struct CodingResult {
    ContentCoding coding = ContentCoding::kIdentity;
    Reason fault = Reason::kNone;
};

// How the content of a request is coded, by one field line of Content-Encoding and those before
// it. One coding at most is undone: more, or another one, is kCodingUnknown, and the 415 says what
// is taken (RFC 9110 15.5.16). With a fault, `coding` means nothing.
CodingResult request_coding(std::string_view value, const CodingResult& before = {});

struct EndZlib {
    void (*end)(z_stream_s*) = nullptr;
    void operator()(z_stream_s* stream) const;
};

// Makes coded content. It takes 256 KiB of memory once, which restart() uses again.
class ContentEncoder {
  public:
    enum class Status : std::uint8_t {
        kNeedMore,    // all input was taken
        kOutputFull,  // call again, with more room
        kDone,        // the last of the coded content was written
        kFailed,      // no memory, or input after the end
    };
    // kFlush: all that was given can be decoded at the other end; it costs some bytes each time.
    enum class Then : std::uint8_t { kMore, kFlush, kEnd };

    explicit ContentEncoder(ContentCoding coding, int level = kCodingLevel);

    // Takes bytes from the front of `input` and writes to the front of `room`, both of which then
    // are what is left.
    Status encode(std::string_view& input, std::span<char>& room, Then then);
    // Ready for other content.
    void restart();

  private:
    std::unique_ptr<z_stream_s, EndZlib> stream_;
    bool is_done_ = false;
};

// Undoes the coding of a request's content, and refuses it at the first byte above a limit on what
// it decodes to: a bomb costs no more than that.
class ContentDecoder {
  public:
    enum class Status : std::uint8_t {
        kNeedMore,
        kOutputFull,
        kDone,      // from finish() alone
        kRejected,  // fault() tells why
    };

    ContentDecoder(ContentCoding coding, std::uint64_t decoded_max);

    // As encode().
    Status decode(std::string_view& input, std::span<char>& room);
    // At the end of the coded content, when decode() has said kNeedMore.
    Status finish();

    Reason fault() const { return fault_; }
    // Bytes of decoded content so far; on kRejected, how many came before the fault.
    std::uint64_t decoded_size() const { return decoded_; }

  private:
    Status reject(Reason fault);
    int inflate_some(std::string_view& input, std::span<char>& room);

    std::unique_ptr<z_stream_s, EndZlib> stream_;
    ContentCoding coding_;
    std::uint64_t decoded_max_;
    std::uint64_t decoded_ = 0;
    Reason fault_ = Reason::kNone;
    bool is_complete_ = false;  // a stream has ended, and no other has begun
};

}  // namespace httpmark
