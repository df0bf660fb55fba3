// Coded content decodes to one result in every split and within its limit; what is encoded decodes
// to the same; any Accept-Encoding gets an answer.
#include <cstddef>
#include <cstdint>
#include <string>

#include "check.hpp"
#include "content/content_coding.hpp"

namespace {

using namespace httpmark;

constexpr std::uint64_t kDecodedMax = 100000;

struct Result {
    Reason fault = Reason::kNone;
    std::string content;
};

Result decode(std::string_view input, ContentCoding coding, std::size_t step,
              std::size_t room_size) {
    ContentDecoder decoder(coding, kDecodedMax);
    Result result;
    std::string room(room_size, '#');
    auto status = ContentDecoder::Status::kNeedMore;
    while (!input.empty() && status != ContentDecoder::Status::kRejected) {
        std::string_view part = input.substr(0, step);
        input.remove_prefix(part.size());
        do {
            std::span<char> left(room);
            status = decoder.decode(part, left);
            result.content.append(room, 0, room.size() - left.size());
        } while (status == ContentDecoder::Status::kOutputFull);
        CHECK(status == ContentDecoder::Status::kRejected || part.empty());
    }
    status = decoder.finish();
    CHECK((status == ContentDecoder::Status::kDone) == (decoder.fault() == Reason::kNone));
    CHECK(decoder.decoded_size() == result.content.size());
    CHECK(result.content.size() <= kDecodedMax);
    result.fault = decoder.fault();
    return result;
}

std::string encode(std::string_view content, ContentCoding coding, std::size_t room_size) {
    ContentEncoder encoder(coding);
    std::string out;
    std::string room(room_size, '#');
    auto status = ContentEncoder::Status::kNeedMore;
    do {
        std::span<char> left(room);
        status = encoder.encode(content, left, ContentEncoder::Then::kEnd);
        out.append(room, 0, room.size() - left.size());
    } while (status == ContentEncoder::Status::kOutputFull);
    CHECK(status == ContentEncoder::Status::kDone);
    return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* octets, std::size_t size) {
    if (size < 2) return 0;
    const ContentCoding coding =
        (octets[0] & 1) != 0 ? ContentCoding::kGzip : ContentCoding::kDeflate;
    const std::size_t step = 1 + octets[1] % 7;
    const std::string_view text(reinterpret_cast<const char*>(octets + 2), size - 2);
    const Result whole = decode(text, coding, text.size() + 1, 1 << 16);
    for (const std::size_t by : {std::size_t{1}, step}) {
        const Result parts = decode(text, coding, by, 100 + step);
        CHECK(parts.fault == whole.fault && parts.content == whole.content);
    }
    const std::string_view small = text.substr(0, 5000);
    const Result back = decode(encode(small, coding, 10 + step), coding, step, 1000);
    CHECK(back.fault == Reason::kNone && back.content == small);
    AcceptEncoding accept;
    accept.add(text);
    const CodingChoice choice = choose_coding(accept, true);
    CHECK(choice.is_acceptable == (accept.weight(choice.coding) > 0));
    request_coding(text);
    return 0;
}
