// The chunked decoder gives one result in every split, and never more than it was given.
#include <cstddef>
#include <cstdint>
#include <string>

#include "check.hpp"
#include "http/chunked.hpp"

namespace {

using namespace httpmark;

struct Result {
    ChunkedDecoder::Status status = ChunkedDecoder::Status::kNeedMore;
    Reason reason = Reason::kNone;
    std::uint64_t offset = 0;
    std::string content;
};

Result decode(std::string_view input, std::size_t step, const Limits& limits, bool refuse) {
    ChunkedDecoder decoder;
    if (refuse) decoder.refuse_framing_trailers();
    decoder.set_octets_max(limits.request_max);
    Result result;
    while (!input.empty() && result.status == ChunkedDecoder::Status::kNeedMore) {
        std::string_view part = input.substr(0, step);
        input.remove_prefix(part.size());
        std::string_view piece;
        while ((result.status = decoder.decode(part, limits, piece)) ==
                   ChunkedDecoder::Status::kContent ||
               result.status == ChunkedDecoder::Status::kTrailer) {
            if (result.status == ChunkedDecoder::Status::kContent) result.content += piece;
        }
    }
    result.reason = decoder.reason();
    result.offset = decoder.offset();
    CHECK(result.content.size() <= decoder.content_size());
    return result;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* octets, std::size_t size) {
    if (size < 2) return 0;
    Limits limits;
    if ((octets[0] & 1) != 0) {
        limits.body_max = 40;
        limits.chunk_line_max = 20;
        limits.chunk_extension_max = 12;
        limits.chunk_extensions_max = 30;
        limits.trailers_max = 30;
        limits.trailer_lines_max = 2;
        limits.request_max = 90;
    }
    const bool refuse = (octets[0] & 2) != 0;
    const std::size_t step = 1 + octets[1] % 7;
    const std::string_view input(reinterpret_cast<const char*>(octets + 2), size - 2);
    const Result whole = decode(input, input.size() + 1, limits, refuse);
    for (const std::size_t by : {std::size_t{1}, step}) {
        const Result parts = decode(input, by, limits, refuse);
        CHECK(parts.status == whole.status && parts.reason == whole.reason);
        CHECK(parts.offset == whole.offset && parts.content == whole.content);
    }
    return 0;
}
