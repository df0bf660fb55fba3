#include "content/content_coding.hpp"

#define ZLIB_CONST
#include <zlib.h>

#include <algorithm>
#include <limits>
#include <new>
#include <optional>

#include "check.hpp"
#include "http/syntax.hpp"

namespace httpmark {

namespace {

constexpr int kWindowBits = 15;
constexpr int kGzipWrapper = 16;  // added to the window bits, zlib.h says
constexpr int kMemoryLevel = 8;

// coding, or "x-gzip", which is the same (RFC 9110 8.4.1.3)
std::optional<ContentCoding> coding_named(std::string_view name) {
    if (equals_ignoring_case(name, "gzip") || equals_ignoring_case(name, "x-gzip")) {
        return ContentCoding::kGzip;
    }
    if (equals_ignoring_case(name, "deflate")) return ContentCoding::kDeflate;
    if (equals_ignoring_case(name, "identity")) return ContentCoding::kIdentity;
    return std::nullopt;
}

bool is_token(std::string_view text) {
    return !text.empty() && std::ranges::all_of(text, [](char c) { return is_tchar(octet(c)); });
}

// ( "0" [ "." 0*3DIGIT ] ) / ( "1" [ "." 0*3("0") ] ), in thousandths
std::optional<int> parse_weight(std::string_view text) {
    if (text.empty() || text.size() > 5 || (text[0] != '0' && text[0] != '1')) return std::nullopt;
    if (text.size() > 1 && text[1] != '.') return std::nullopt;
    int thousandths = text[0] == '1' ? 1000 : 0;
    int place = 100;
    for (const char c : text.substr(std::min<std::size_t>(2, text.size()))) {
        if (!is_digit(octet(c))) return std::nullopt;
        thousandths += (c - '0') * place;
        place /= 10;
    }
    if (thousandths > 1000) return std::nullopt;
    return thousandths;
}

// Takes the next member of a list from its front, without the whitespace around it.
std::string_view take_member(std::string_view& list) {
    const std::size_t end = std::min(list.find(','), list.size());
    const std::string_view member = trim_ows(list.substr(0, end));
    list.remove_prefix(std::min(end + 1, list.size()));
    return member;
}

constexpr std::size_t index_of(ContentCoding coding) {
    return static_cast<std::size_t>(coding);
}

// zlib counts in 32 bits.
uInt zlib_size(std::size_t size) {
    return static_cast<uInt>(std::min<std::size_t>(size, std::numeric_limits<uInt>::max()));
}

void give_input(z_stream& stream, std::string_view input) {
    stream.next_in = reinterpret_cast<const Bytef*>(input.data());
    stream.avail_in = zlib_size(input.size());
}

void give_room(z_stream& stream, char* room, std::size_t size) {
    stream.next_out = reinterpret_cast<Bytef*>(room);
    stream.avail_out = zlib_size(size);
}

void end_deflate(z_stream_s* stream) {
    deflateEnd(stream);
}

void end_inflate(z_stream_s* stream) {
    inflateEnd(stream);
}

int window_bits(ContentCoding coding) {
    CHECK(coding != ContentCoding::kIdentity);
    return kWindowBits + (coding == ContentCoding::kGzip ? kGzipWrapper : 0);
}

}  // namespace

std::string_view coding_name(ContentCoding coding) {
    constexpr std::array<std::string_view, 3> kNames{"identity", "gzip", "deflate"};
    return kNames[index_of(coding)];
}

// codings [ weight ]
bool AcceptEncoding::add_member(std::string_view member) {
    const std::size_t semicolon = std::min(member.find(';'), member.size());
    const std::string_view name = trim_ows(member.substr(0, semicolon));
    if (!is_token(name)) return false;
    int weight = 1000;
    if (semicolon < member.size()) {
        const std::string_view parameter = trim_ows(member.substr(semicolon + 1));
        if (!equals_ignoring_case(parameter.substr(0, 2), "q=")) return false;
        const std::optional<int> parsed = parse_weight(parameter.substr(2));
        if (!parsed) return false;
        weight = *parsed;
    }
    const std::optional<ContentCoding> coding = coding_named(name);
    if (!coding && name != "*") return true;
    int& stored = coding ? weights_[index_of(*coding)] : others_;
    // Said twice, the smaller one counts.
    stored = stored == kUnsaid ? weight : std::min(stored, weight);
    return true;
}

void AcceptEncoding::add(std::string_view value) {
    is_present_ = true;
    while (!value.empty()) {
        const std::string_view member = take_member(value);
        if (!member.empty() && !add_member(member)) is_broken_ = true;
    }
}

unsigned AcceptEncoding::weight(ContentCoding coding) const {
    const unsigned unsaid = coding == ContentCoding::kIdentity ? 1 : 0;
    if (!is_present_ || is_broken_) return unsaid;
    const int stored = weights_[index_of(coding)];
    if (stored != kUnsaid) return static_cast<unsigned>(stored);
    return others_ == kUnsaid ? unsaid : static_cast<unsigned>(others_);
}

CodingChoice choose_coding(const AcceptEncoding& accept, bool is_worth_coding) {
    const unsigned identity = accept.weight(ContentCoding::kIdentity);
    if (!is_worth_coding && identity > 0) return {};
    const unsigned gzip = accept.weight(ContentCoding::kGzip);
    const unsigned deflate = accept.weight(ContentCoding::kDeflate);
    const unsigned best = std::max(gzip, deflate);
    if (best == 0 || best < identity) return {ContentCoding::kIdentity, identity > 0};
    return {gzip >= deflate ? ContentCoding::kGzip : ContentCoding::kDeflate, true};
}

bool is_worth_coding(std::uint64_t content_size, const MediaType& media_type) {
    return content_size >= kCodedContentMin && is_compressible(media_type);
}

CodingResult request_coding(std::string_view value, const CodingResult& before) {
    CodingResult result = before;
    while (!value.empty() && result.fault != Reason::kCodingSyntax) {
        const std::string_view member = take_member(value);
        if (member.empty()) continue;
        const std::optional<ContentCoding> coding = coding_named(member);
        if (coding == ContentCoding::kIdentity) continue;
        if (!is_token(member)) {
            result.fault = Reason::kCodingSyntax;
        } else if (!coding || result.coding != ContentCoding::kIdentity) {
            result.fault = Reason::kCodingUnknown;  // what follows may still be no token
        } else {
            result.coding = *coding;
        }
    }
    return result;
}

void EndZlib::operator()(z_stream_s* stream) const {
    if (end != nullptr) end(stream);
    delete stream;
}

ContentEncoder::ContentEncoder(ContentCoding coding, int level)
    : stream_(new (std::nothrow) z_stream{}, EndZlib{end_deflate}) {
    if (deflateInit2(stream_.get(), level, Z_DEFLATED, window_bits(coding), kMemoryLevel,
                     Z_DEFAULT_STRATEGY) != Z_OK) {
        stream_.reset();
    }
}

ContentEncoder::Status ContentEncoder::encode(std::string_view& input, std::span<char>& room,
                                              Then then) {
    if (!stream_ || (is_done_ && !input.empty())) return Status::kFailed;
    z_stream& stream = *stream_;
    while (!is_done_) {
        give_input(stream, input);
        give_room(stream, room.data(), room.size());
        // What zlib is not shown yet comes before the end.
        const bool is_all = stream.avail_in == input.size();
        const std::size_t shown = stream.avail_in;
        const std::size_t given = stream.avail_out;
        if (given == 0) return Status::kOutputFull;
        const int flush = then == Then::kMore || !is_all ? Z_NO_FLUSH
                          : then == Then::kFlush         ? Z_SYNC_FLUSH
                                                         : Z_FINISH;
        const int status = deflate(&stream, flush);
        CHECK(status == Z_OK || status == Z_STREAM_END || status == Z_BUF_ERROR);
        input.remove_prefix(shown - stream.avail_in);
        room = room.subspan(given - stream.avail_out);
        is_done_ = status == Z_STREAM_END;
        if (!is_done_ && is_all && stream.avail_out > 0) return Status::kNeedMore;
    }
    return Status::kDone;
}

void ContentEncoder::restart() {
    is_done_ = false;
    if (stream_) CHECK(deflateReset(stream_.get()) == Z_OK);
}

ContentDecoder::ContentDecoder(ContentCoding coding, std::uint64_t decoded_max)
    : stream_(new (std::nothrow) z_stream{}, EndZlib{end_inflate}),
      coding_(coding),
      decoded_max_(decoded_max) {
    if (inflateInit2(stream_.get(), window_bits(coding)) != Z_OK) stream_.reset();
}

ContentDecoder::Status ContentDecoder::reject(Reason fault) {
    fault_ = fault;
    return Status::kRejected;
}

// Decodes into the room, or, where the limit leaves none of it, into a byte that nobody reads: if
// it is filled there is too much.
int ContentDecoder::inflate_some(std::string_view& input, std::span<char>& room) {
    z_stream& stream = *stream_;
    char excess = 0;
    const std::uint64_t left = decoded_max_ - decoded_;
    give_input(stream, input);
    if (left == 0) {
        give_room(stream, &excess, 1);
    } else {
        give_room(stream, room.data(),
                  static_cast<std::size_t>(std::min<std::uint64_t>(room.size(), left)));
    }
    const std::size_t shown = stream.avail_in;
    const std::size_t given = stream.avail_out;
    const int status = inflate(&stream, Z_NO_FLUSH);
    input.remove_prefix(shown - stream.avail_in);
    const std::size_t made = given - stream.avail_out;
    if (left == 0) {
        if (made > 0) fault_ = Reason::kDecodedTooLarge;
    } else {
        decoded_ += made;
        room = room.subspan(made);
    }
    return status;
}

ContentDecoder::Status ContentDecoder::decode(std::string_view& input, std::span<char>& room) {
    if (fault_ != Reason::kNone) return Status::kRejected;
    if (!stream_) return reject(Reason::kNoMemory);
    while (true) {
        if (is_complete_) {
            if (input.empty()) return Status::kNeedMore;
            // gzip is a series of members (RFC 1952 2.2); behind deflate stands nothing.
            if (coding_ == ContentCoding::kDeflate) return reject(Reason::kCodedTrailing);
            CHECK(inflateReset(stream_.get()) == Z_OK);
            is_complete_ = false;
        }
        if (room.empty() && decoded_ < decoded_max_) return Status::kOutputFull;
        const int status = inflate_some(input, room);
        if (fault_ != Reason::kNone) return Status::kRejected;
        if (status == Z_STREAM_END) {
            is_complete_ = true;
        } else if (status == Z_MEM_ERROR) {
            return reject(Reason::kNoMemory);
        } else if (status != Z_OK && status != Z_BUF_ERROR) {
            return reject(Reason::kCodedFormat);
        } else if (input.empty() && stream_->avail_out > 0) {
            return Status::kNeedMore;
        }
    }
}

ContentDecoder::Status ContentDecoder::finish() {
    if (fault_ == Reason::kNone && !is_complete_) fault_ = Reason::kCodedUnfinished;
    return fault_ == Reason::kNone ? Status::kDone : Status::kRejected;
}

}  // namespace httpmark
