#include "app/coded_content.hpp"

#include <algorithm>
#include <cstdlib>
#include <span>
#include <string_view>
#include <utility>

#include "app/request_content.hpp"
#include "content/content_coding.hpp"
#include "http/syntax.hpp"

namespace httpmark {

namespace {

constexpr std::size_t kFirstRoom = 64 * 1024;
constexpr std::size_t kKeptRoom = 1024 * 1024;  // of one worker, between requests

// Where one worker decodes: it answers one request at a time.
class DecodedRoom {
  public:
    DecodedRoom() = default;
    ~DecodedRoom() { std::free(data_); }
    DecodedRoom(const DecodedRoom&) = delete;
    DecodedRoom& operator=(const DecodedRoom&) = delete;

    // False when memory is short, or the room is as large as it may be.
    bool grow(std::size_t most) {
        const std::size_t wanted = std::min(std::max(capacity_ * 2, kFirstRoom), most);
        if (wanted <= capacity_) return false;
        char* const grown = static_cast<char*>(std::realloc(data_, wanted));
        if (grown == nullptr) return false;
        data_ = grown;
        capacity_ = wanted;
        return true;
    }
    void shrink() {
        if (capacity_ <= kKeptRoom) return;
        std::free(data_);
        data_ = nullptr;
        capacity_ = 0;
    }
    std::span<char> room() { return {data_, capacity_}; }

  private:
    char* data_ = nullptr;
    std::size_t capacity_ = 0;
};

// Of a route that streams it is still to come.
bool has_content(const Request& request) {
    if (!request.content.empty()) return true;
    return request.route.options.streams &&
           (request.head.content_length != 0 || request.head.has(kCodingSeen));
}

CodingResult coding_of(const Request& request) {
    CodingResult result;
    FieldReader reader(request.fields());
    std::string_view name;
    std::string_view value;
    while (reader.next(name, value)) {
        if (equals_ignoring_case(name, "content-encoding")) result = request_coding(value, result);
    }
    return result;
}

Reason decode(const Handler& handler, const Request& request, ResponseWriter& writer,
              ContentCoding coding, std::uint64_t decoded_max) {
    static thread_local DecodedRoom decoded;
    ContentDecoder decoder(coding, decoded_max);
    std::string_view rest = request.content;
    std::span<char> room = decoded.room();
    auto status = ContentDecoder::Status::kOutputFull;
    while (status == ContentDecoder::Status::kOutputFull) {
        if (room.empty() && decoder.decoded_size() < decoded_max) {
            const auto used = static_cast<std::size_t>(decoder.decoded_size());
            if (!decoded.grow(static_cast<std::size_t>(decoded_max))) return Reason::kNoMemory;
            room = decoded.room().subspan(used);
        }
        status = decoder.decode(rest, room);
    }
    if (status == ContentDecoder::Status::kNeedMore) status = decoder.finish();
    if (status == ContentDecoder::Status::kRejected) {
        decoded.shrink();
        return refuse_content(writer, decoder.fault(), request.content.size() - rest.size());
    }
    Request plain = request;
    plain.content = {decoded.room().data(), static_cast<std::size_t>(decoder.decoded_size())};
    const Reason reason = handler(plain, writer);
    decoded.shrink();
    return reason;
}

}  // namespace

Handler with_plain_content(Handler handler, CodedContent choice, std::uint64_t decoded_max) {
    if (choice == CodedContent::kAsItCame) return handler;
    return [handler = std::move(handler), choice, decoded_max](const Request& request,
                                                               ResponseWriter& writer) -> Reason {
        if (!has_content(request)) return handler(request, writer);
        CodingResult result = coding_of(request);
        if (result.fault == ContentFault::kNone) {
            if (result.coding == ContentCoding::kIdentity) return handler(request, writer);
            if (choice == CodedContent::kDecoded) {
                return decode(handler, request, writer, result.coding, decoded_max);
            }
            result.fault = ContentFault::kCodingUnknown;
        }
        return refuse_content(writer, result.fault, {},
                              choice == CodedContent::kDecoded ? "gzip, deflate" : "identity");
    };
}

}  // namespace httpmark
