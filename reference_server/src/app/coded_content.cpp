#include "app/coded_content.hpp"

#include <algorithm>
#include <cstddef>
#include <span>
#include <string_view>
#include <utility>

#include "app/request_content.hpp"
#include "content/content_coding.hpp"
#include "websocket/message_buffer.hpp"

namespace httpmark {

namespace {

// Of what is decoded, at first: as much as is usual for that many coded bytes.
std::size_t first_room(std::size_t coded) {
    constexpr std::size_t kLeast = 1024;
    constexpr std::size_t kMost = 64 * 1024;
    return std::clamp(coded > kMost ? kMost : coded * 4, kLeast, kMost);
}

// Of a route that streams it is still to come.
bool has_content(const Request& request) {
    if (!request.content.empty()) return true;
    return request.route.options.streams &&
           (request.head.content_length != 0 || request.head.has(kCodingSeen));
}

CodingResult coding_of(const Request& request) {
    CodingResult result;
    request.each_field("content-encoding",
                       [&](std::string_view value) { result = request_coding(value, result); });
    return result;
}

// What is decoded counts against the limit on memory for as long as the handler is called.
Reason decode(const Handler& handler, const Request& request, ResponseWriter& writer,
              ContentCoding coding, std::uint64_t decoded_max) {
    websocket::MessageBuffer decoded(writer.memory());
    ContentDecoder decoder(coding, decoded_max);
    std::string_view rest = request.content;
    auto status = ContentDecoder::Status::kOutputFull;
    while (status == ContentDecoder::Status::kOutputFull) {
        const std::size_t size =
            std::min<std::uint64_t>(std::max(decoded.size(), first_room(request.content.size())),
                                    decoded_max - decoder.decoded_size());
        char* const begin = size == 0 ? nullptr : decoded.prepare(size);
        if (begin == nullptr && size != 0) return Reason::kNoMemory;
        std::span<char> room(begin, size);
        status = decoder.decode(rest, room);
        decoded.commit(size - room.size());
    }
    if (status == ContentDecoder::Status::kNeedMore) status = decoder.finish();
    if (status == ContentDecoder::Status::kRejected) {
        return refuse_content(writer, decoder.fault(), request.content.size() - rest.size());
    }
    Request plain = request;
    plain.content = decoded.view();
    return handler(plain, writer);
}

}  // namespace

Handler with_plain_content(Handler handler, CodedContent choice, std::uint64_t decoded_max) {
    if (choice == CodedContent::kAsItCame) return handler;
    return [handler = std::move(handler), choice, decoded_max](const Request& request,
                                                               ResponseWriter& writer) -> Reason {
        if (!has_content(request)) return handler(request, writer);
        CodingResult result = coding_of(request);
        if (result.fault == Reason::kNone) {
            if (result.coding == ContentCoding::kIdentity) return handler(request, writer);
            if (choice == CodedContent::kDecoded) {
                return decode(handler, request, writer, result.coding, decoded_max);
            }
            result.fault = Reason::kCodingUnknown;
        }
        return refuse_content(writer, result.fault, {},
                              choice == CodedContent::kDecoded ? "gzip, deflate" : "identity");
    };
}

}  // namespace httpmark
