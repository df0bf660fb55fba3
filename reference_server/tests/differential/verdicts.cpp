// Reads messages from standard input, each after its length in four bytes, highest first; writes
// one line for each: "accept", "need-more" or "reject" and why. A message is a head and its
// content.
#include <array>
#include <cstdio>
#include <string>
#include <string_view>

#include "http/chunked.hpp"
#include "http/framing.hpp"
#include "http/parser.hpp"

namespace {

using namespace httpmark;

std::string chunked_verdict(std::string_view rest, const Limits& limits) {
    ChunkedDecoder decoder;
    for (;;) {
        std::string_view piece;
        switch (decoder.decode(rest, limits, piece)) {
            case ChunkedDecoder::Status::kNeedMore:
                return "need-more";
            case ChunkedDecoder::Status::kDone:
                return "accept";
            case ChunkedDecoder::Status::kRejected:
                return std::string("reject ") + error_row(decoder.reason()).name;
            case ChunkedDecoder::Status::kContent:
            case ChunkedDecoder::Status::kTrailer:
                break;
        }
    }
}

std::string verdict(std::string_view message) {
    const Limits limits;
    const std::string padded = std::string(message) + std::string(64, '\0');
    HeadParser parser;
    const ParseResult result = parser.parse(padded.data(), message.size(), limits,
                                            Strictness::kStrict, *best_scan_kernel());
    if (result.verdict == Verdict::kNeedMore) return "need-more";
    Reason reason = result.reason;
    if (result.verdict == Verdict::kAccepted) {
        reason = judge_head(parser.head(), limits, Strictness::kStrict, false);
    }
    if (reason != Reason::kNone) return std::string("reject ") + error_row(reason).name;
    const std::string_view rest = message.substr(result.offset);
    const Framing framing = framing_of(parser.head());
    if (framing.kind == BodyKind::kChunked) return chunked_verdict(rest, limits);
    const bool whole = framing.kind == BodyKind::kNone || rest.size() >= framing.length;
    return whole ? "accept" : "need-more";
}

}  // namespace

int main() {
    std::array<unsigned char, 4> length;
    while (std::fread(length.data(), 1, 4, stdin) == 4) {
        std::size_t size = 0;
        for (const unsigned char octet : length) size = size * 256 + octet;
        std::string message(size, '\0');
        if (std::fread(message.data(), 1, size, stdin) != size) return 1;
        std::puts(verdict(message).c_str());
    }
    return 0;
}
