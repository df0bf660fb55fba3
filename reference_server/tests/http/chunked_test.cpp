#include "http/chunked.hpp"

#include <string>

#include "laws.hpp"

namespace httpmark {
namespace {

struct Decoded {
    ChunkedDecoder::Status status;
    Reason reason;
    std::uint64_t offset;
    std::string content;
    std::string trailers;
    std::size_t left;
};

Decoded decode(std::string_view input, std::size_t step, const Limits& limits = {},
               bool refuse_framing_trailers = false) {
    ChunkedDecoder decoder;
    if (refuse_framing_trailers) decoder.refuse_framing_trailers();
    Decoded out{ChunkedDecoder::Status::kNeedMore, Reason::kNone, 0, {}, {}, 0};
    for (std::size_t at = 0; at < input.size(); at += step) {
        std::string_view part = input.substr(at, step);
        while (true) {
            std::string_view piece;
            out.status = decoder.decode(part, limits, piece);
            if (out.status == ChunkedDecoder::Status::kContent) {
                out.content += piece;
            } else if (out.status == ChunkedDecoder::Status::kTrailer) {
                out.trailers += piece;
            } else {
                break;
            }
        }
        if (out.status != ChunkedDecoder::Status::kNeedMore) {
            out.left = part.size() + input.size() - std::min(input.size(), at + step);
            break;
        }
    }
    out.reason = decoder.reason();
    out.offset = decoder.offset();
    return out;
}

TEST(Chunked, every_step_gives_one_result) {
    const std::string inputs[] = {
        "5\r\nhello\r\n0\r\n\r\nGET",
        "5;a=\"b\\\"\";c\r\nhello\r\nA \t;x\r\n0123456789\r\n000\r\nT: v\r\nU:\r\n\r\nx",
        "5\r\nhelloX",
        "5 \r\n",
        "zz",
        "ffffffffffffffffff\r\n",
        "0\r\n x\r\n",
        "0\r\nA b\r\n\r\n",
        "5\r\nhello\r\n0\r\nT: \x01\r\n"};
    for (const std::string& input : inputs) {
        const Decoded whole = decode(input, input.size());
        for (std::size_t step = 1; step < input.size(); ++step) {
            const Decoded parts = decode(input, step);
            LAW(parts.status == whole.status && parts.reason == whole.reason &&
                    parts.offset == whole.offset && parts.content == whole.content &&
                    (whole.status == ChunkedDecoder::Status::kRejected ||
                     (parts.trailers == whole.trailers && parts.left == whole.left)),
                << visible(input) << " by " << step);
        }
    }
}

TEST(Chunked, what_it_hands_out) {
    const Decoded good = decode("5\r\nhello\r\n1\r\n!\r\n0\r\nT: v\r\n\r\nGET", 1000);
    LAW(good.status == ChunkedDecoder::Status::kDone && good.content == "hello!" &&
        good.trailers == "T: v\r\n\r\n" && good.left == 3);
    struct Row {
        const char* input;
        Reason reason;
        std::uint64_t offset;
    };
    for (const Row& row : {Row{"x", Reason::kChunkSizeSyntax, 0},
                           {"5 \r\n", Reason::kChunkExtensionSyntax, 2},
                           {"5\rx", Reason::kChunkLineEnd, 2},
                           {"5\n", Reason::kChunkSizeSyntax, 1},
                           {"1\r\nab", Reason::kChunkDataEnd, 4},
                           {"1\r\na\rb", Reason::kChunkDataEnd, 5},
                           {"0\r\n:v", Reason::kTrailerNameEmpty, 3},
                           {"0\r\n a", Reason::kTrailerFold, 3},
                           {"0\r\na b", Reason::kTrailerSpaceBeforeColon, 4},
                           {"0\r\na:\rb", Reason::kTrailerBareCr, 6},
                           {"0\r\na:\n", Reason::kTrailerBareLf, 5},
                           {"0\r\na:\x7f", Reason::kTrailerValueOctet, 5},
                           {"0\r\n\rx", Reason::kTrailerBareCr, 4},
                           {"5;\r\n", Reason::kChunkExtensionSyntax, 2},
                           {"ffffffffffffffff\r\n", Reason::kChunkSizeTooLarge, 6}}) {
        const Decoded bad = decode(row.input, 1000);
        LAW(bad.status == ChunkedDecoder::Status::kRejected && bad.reason == row.reason &&
                bad.offset == row.offset,
            << visible(row.input) << " " << error_row(bad.reason).name << "@" << bad.offset);
    }
}

TEST(Chunked, sizes_around_every_power_of_two) {
    for (unsigned bits = 0; bits < 12; ++bits) {
        for (const int off : {-1, 0, 1}) {
            const int size = (1 << bits) + off;
            if (size < 1) continue;
            char line[16];
            std::snprintf(line, sizeof line, "%x\r\n", static_cast<unsigned>(size));
            const std::string content(static_cast<std::size_t>(size), 'q');
            const Decoded out = decode(line + content + "\r\n0\r\n\r\n", 100);
            LAW(out.status == ChunkedDecoder::Status::kDone && out.content == content);
        }
    }
}

TEST(Chunked, the_limit_on_content_is_exact_and_cannot_overflow) {
    Limits limits;
    for (const std::uint64_t body_max : {std::uint64_t{0}, std::uint64_t{15}, std::uint64_t{16},
                                         std::uint64_t{255}, std::uint64_t{1} << 40}) {
        limits.body_max = body_max;
        char line[32];
        std::snprintf(line, sizeof line, "%llx\r\n", static_cast<unsigned long long>(body_max));
        LAW(decode(line, 1, limits).status == ChunkedDecoder::Status::kNeedMore);
        std::snprintf(line, sizeof line, "%llx\r\n", static_cast<unsigned long long>(body_max + 1));
        LAW(decode(line, 1, limits).reason == Reason::kChunkSizeTooLarge);
    }
}

TEST(Chunked, extensions_have_a_budget_for_a_line_and_one_for_all) {
    Limits limits;
    limits.chunk_extension_max = 10;
    limits.chunk_extensions_max = 25;
    // Whatever stands between size and CRLF counts, whitespace too.
    for (const char* fits : {";123456789", " ;a=\"345\"", ";a;b;c=d;e", "\t\t;a=b;c=d"}) {
        const std::string line = "5" + std::string(fits);
        LAW(decode(line + "\r\nhello\r\n0\r\n\r\n", 1, limits).status ==
                (line.size() <= 11 ? ChunkedDecoder::Status::kDone
                                   : ChunkedDecoder::Status::kRejected),
            << line);
        const Decoded over =
            decode(line + std::string(12 - std::min<std::size_t>(11, line.size()), 'x') + "\r\n", 3,
                   limits);
        LAW(over.reason == Reason::kChunkExtensionTooLong ||
                over.reason == Reason::kChunkExtensionSyntax,
            << line << error_row(over.reason).name);
    }
    const Decoded line = decode("5;1234567890\r\n", 1, limits);
    LAW(line.reason == Reason::kChunkExtensionTooLong && line.offset == 11);
    const std::string chunk = "1;123456789\r\na\r\n";
    LAW(decode(chunk + chunk + "0;1234\r\n\r\n", 1, limits).status ==
        ChunkedDecoder::Status::kDone);
    const Decoded sum = decode(chunk + chunk + "0;12345\r\n\r\n", 1, limits);
    LAW(sum.reason == Reason::kChunkExtensionsTooLong && sum.offset == 2 * chunk.size() + 6,
        << sum.offset);
    // Chunks without extensions cost nothing of it, however many.
    std::string many;
    for (unsigned i = 0; i < 100000; ++i) many += "1\r\nx\r\n";
    LAW(decode(many + "0\r\n\r\n", 4096, limits).content.size() == 100000);
    // By default, exactly 1 KiB in a line and 16 KiB in all.
    const std::string kib = "1;" + std::string(1023, 'a') + "\r\nx\r\n";
    std::string sixteen;
    for (unsigned i = 0; i < 16; ++i) sixteen += kib;
    LAW(decode(sixteen + "0\r\n\r\n", 1000).status == ChunkedDecoder::Status::kDone);
    LAW(decode(sixteen + "0;\r\n\r\n", 1000).reason == Reason::kChunkExtensionsTooLong);
    LAW(decode("1;" + std::string(1024, 'a') + "\r\n", 1000).reason ==
        Reason::kChunkExtensionTooLong);
}

TEST(Chunked, trailers_that_frame_or_route_can_be_refused) {
    for (const char* name :
         {"Content-Length", "HOST", "te", "Proxy-Authorization", "If-Unmodified-Since"}) {
        const std::string before = "0\r\nX: a\r\n" + std::string(name);
        for (const std::size_t step : {1U, 2U, 7U, 1000U}) {
            const Decoded kept = decode(before + ": v\r\n\r\n", step);
            LAW(kept.status == ChunkedDecoder::Status::kDone, << name);
            const Decoded refused = decode(before + ": v\r\n\r\n", step, {}, true);
            LAW(refused.reason == Reason::kTrailerForbidden && refused.offset == before.size(),
                << name << " " << refused.offset);
        }
    }
    for (const char* name : {"X", "Hosts", "Content-Lengt", "Content-Lengthy",
                             "A-Name-Longer-Than-All-Of-Them", "X: Host"}) {
        LAW(decode("0\r\n" + std::string(name) + ": Host:\r\n\r\n", 1, {}, true).status ==
                ChunkedDecoder::Status::kDone,
            << name);
    }
}

TEST(Chunked, trailers_that_frame_or_route_are_told) {
    for (const char* name :
         {"Content-Length", "transfer-encoding", "HOST", "Authorization", "Trailer"}) {
        LAW(is_forbidden_trailer(name), << name);
    }
    for (const char* name : {"X", "Checksum", "Hosts", "Content-MD5"})
        LAW(!is_forbidden_trailer(name), << name);
}

}  // namespace
}  // namespace httpmark
