#include "app/coded_answer.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "app/content_reader.hpp"
#include "app/later_answer.hpp"
#include "app/waker.hpp"
#include "content/content_coding.hpp"
#include "content/media_type.hpp"
#include "http/syntax.hpp"

namespace httpmark {

namespace {

constexpr std::size_t kKeptRoom = 256 * 1024;  // of one worker, between requests
constexpr auto kPlain = fixed_field("Content-Type", "text/plain");

// Bytes that grow, and are given back where they were many.
class Room {
  public:
    // nullptr when memory is short.
    char* grow(std::size_t size) {
        if (size > capacity_) {
            std::unique_ptr<char[]> grown(new (std::nothrow) char[size]);
            if (grown == nullptr) return nullptr;
            octets_ = std::move(grown);
            capacity_ = size;
        }
        return octets_.get();
    }
    void shrink() {
        if (capacity_ <= kKeptRoom) return;
        octets_ = nullptr;
        capacity_ = 0;
    }

  private:
    std::unique_ptr<char[]> octets_;
    std::size_t capacity_ = 0;
};

// Takes one answer instead of the wire.
class Gathered final : public Sink {
  public:
    // For an answer that `outer` is to write in the end.
    void clear(ResponseWriter& outer) {
        outer_ = &outer;
        at_ = end_ = nullptr;
        size_ = 0;
        later_ = LaterContent();
    }
    void shrink() { room_.shrink(); }
    void append(const LaterContent& content) override { later_ = content; }
    LaterAnswer later() override { return outer_->later(); }
    Waker waker() override { return outer_->waker(); }
    bool read_content(std::unique_ptr<ContentReader> reader, bool paused) override {
        return outer_->read_content(std::move(reader), paused);
    }
    std::string_view octets() const { return {begin_, size_}; }
    const LaterContent& later_content() const { return later_; }

  private:
    char* prepare_more(std::size_t size) override {
        begin_ = room_.grow(size + kCopySlack);
        size_ = begin_ == nullptr ? 0 : size;
        return begin_;
    }

    ResponseWriter* outer_ = nullptr;
    Room room_;
    char* begin_ = nullptr;
    std::size_t size_ = 0;
    LaterContent later_;
};

AcceptEncoding accepted_by(const Request& request) {
    AcceptEncoding accept;
    FieldReader reader(request.fields());
    std::string_view name;
    std::string_view value;
    while (reader.next(name, value)) {
        if (equals_ignoring_case(name, "accept-encoding")) accept.add(value);
    }
    return accept;
}

// An answer as its handler meant it, and what stands in the way of coding it.
struct Meant {
    unsigned status = 0;
    std::vector<Field> fields;
    std::string_view content;
    std::string weak_tag;
    MediaType media_type;
    bool may_be_coded = true;

    void read(unsigned with_status, std::string_view section, std::string_view with_content);
    bool write(ResponseWriter& writer, ContentCoding coding, std::string_view coded);
};

// What the writer adds to each answer is left out.
void Meant::read(unsigned with_status, std::string_view section, std::string_view with_content) {
    status = with_status;
    content = with_content;
    fields.clear();
    media_type = {};
    may_be_coded = status != 206 && !content.empty();
    FieldReader reader(section);
    Field field;
    while (reader.next(field.name, field.value)) {
        if (!field_is_safe(field)) continue;
        fields.push_back(field);
        if (equals_ignoring_case(field.name, "content-type")) {
            media_type = parse_media_type(field.value).media_type;
        } else if (equals_ignoring_case(field.name, "content-encoding")) {
            may_be_coded = false;
        }
    }
}

bool Meant::write(ResponseWriter& writer, ContentCoding coding, std::string_view coded) {
    if (coding != ContentCoding::kIdentity) {
        for (Field& field : fields) {
            if (!equals_ignoring_case(field.name, "etag") || !field.value.starts_with('"'))
                continue;
            weak_tag = "W/";
            weak_tag += field.value;
            field.value = weak_tag;
        }
        fields.push_back({"Content-Encoding", coding_name(coding)});
    }
    fields.push_back(kVaryByCoding);
    return writer.write(status, std::span<const Field>(fields), coded);
}

// What one worker codes with: it answers one request at a time.
struct Coder {
    Gathered gathered;
    Room coded;
    Meant meant;
    std::array<std::unique_ptr<ContentEncoder>, 2> encoders;

    ContentEncoder& encoder(ContentCoding coding) {
        auto& one = encoders[coding == ContentCoding::kGzip ? 0 : 1];
        if (one == nullptr) {
            one = std::make_unique<ContentEncoder>(coding);
        } else {
            one->restart();
        }
        return *one;
    }
    // Nothing where memory is short.
    std::optional<std::string_view> encode(ContentCoding coding, std::string_view content);
    void shrink() {
        gathered.shrink();
        coded.shrink();
    }
};

std::optional<std::string_view> Coder::encode(ContentCoding coding, std::string_view content) {
    const std::size_t most = content.size() + content.size() / 1000 + 64;  // zlib's own bound
    char* const begin = coded.grow(most);
    if (begin == nullptr) return std::nullopt;
    std::span<char> room(begin, most);
    const auto status = encoder(coding).encode(content, room, ContentEncoder::Then::kEnd);
    if (status != ContentEncoder::Status::kDone) return std::nullopt;
    return std::string_view(begin, static_cast<std::size_t>(room.data() - begin));
}

Reason write_coded(Coder& coder, const AcceptEncoding& accept, ResponseWriter& writer) {
    Meant& meant = coder.meant;
    ContentCoding coding = ContentCoding::kIdentity;
    std::string_view content = meant.content;
    if (meant.may_be_coded) {
        const CodingChoice choice =
            choose_coding(accept, is_worth_coding(content.size(), meant.media_type));
        if (!choice.is_acceptable && meant.status / 100 == 2) {
            return writer.answer(406, {kPlain.lines(), {&kVaryByCoding, 1}}, "not-acceptable\n");
        }
        if (choice.coding != ContentCoding::kIdentity) {
            const auto coded = coder.encode(choice.coding, content);
            // What would not be smaller is sent as it is, unless the client refuses that.
            if (coded &&
                (coded->size() < content.size() || accept.weight(ContentCoding::kIdentity) == 0)) {
                coding = choice.coding;
                content = *coded;
            }
        }
    }
    return meant.write(writer, coding, content) ? Reason::kNone : writer.fault();
}

// A stream is left as it is.
Reason write_stream(Coder& coder, const LaterContent& later, ResponseWriter& writer) {
    std::unique_ptr<ContentStream> stream(later.stream);
    std::optional<std::uint64_t> size;
    if (later.framing == ContentFraming::kLength) size = later.left;
    coder.meant.fields.push_back(kVaryByCoding);
    const std::span<const Field> all(coder.meant.fields);
    const bool written = writer.write_stream(coder.meant.status, all, std::move(stream), size);
    return written ? Reason::kNone : writer.fault();
}

// What is gathered in `coder` is one whole answer, as on the wire.
Reason write_gathered(Coder& coder, const Request& request, unsigned status,
                      ResponseWriter& writer) {
    const std::string_view octets = coder.gathered.octets();
    const std::size_t fields = octets.find("\r\n") + 2;
    const std::size_t end = octets.find("\r\n\r\n") + 4;
    const LaterContent& later = coder.gathered.later_content();
    std::string_view content = octets.substr(end);
    if (later.bytes != nullptr) content = {later.bytes, static_cast<std::size_t>(later.left)};
    coder.meant.read(status, octets.substr(fields, end - fields), content);
    if (later.stream != nullptr) return write_stream(coder, later, writer);
    if (later.source == nullptr) return write_coded(coder, accepted_by(request), writer);
    coder.meant.fields.push_back(kVaryByCoding);
    const std::span<const Field> all(coder.meant.fields);
    if (writer.write_source(status, all, later.left, *later.source)) return Reason::kNone;
    later.source->release();
    return writer.fault();
}

Reason answer_coded(const Handler& handler, const Request& request, ResponseWriter& writer) {
    static const ResponseOptions options{};
    static thread_local DateLine date;  // left out again, but handlers ask for the moment
    static thread_local Coder coder;
    date.update(writer.unix_seconds());
    coder.gathered.clear(writer);
    ResponseWriter gathering(coder.gathered, date, options);
    Reason reason = handler(request, gathering);
    if (gathering.status() == 0) {
        if (const auto& ms = gathering.deferred_ms()) writer.defer(*ms);
        return reason;
    }
    reason = write_gathered(coder, request, gathering.status(), writer);
    coder.shrink();
    return reason;
}

// The same answer in each coding, by the number of the coding.
using InEachCoding = std::array<std::shared_ptr<const PreparedAnswer>, 3>;

std::shared_ptr<const PreparedAnswer> prepared_in(const PreparedAnswer& answer,
                                                  ContentCoding coding) {
    std::string tag;
    std::vector<Field> fields;
    FieldReader reader(answer.fields().text());
    Field field;
    while (reader.next(field.name, field.value)) fields.push_back(field);
    fields.push_back(kVaryByCoding);
    if (coding == ContentCoding::kIdentity) {
        return PreparedAnswer::make(answer.status(), fields, answer.content());
    }
    for (Field& one : fields) {
        if (!equals_ignoring_case(one.name, "etag") || !one.value.starts_with('"')) continue;
        tag = "W/" + std::string(one.value);
        one.value = tag;
    }
    fields.push_back({"Content-Encoding", coding_name(coding)});
    Coder coder;
    const auto coded = coder.encode(coding, answer.content());
    if (!coded) return nullptr;
    return PreparedAnswer::make(answer.status(), fields, *coded);
}

Answer prepared_in_each(const std::shared_ptr<const PreparedAnswer>& answer) {
    Meant meant;
    meant.read(answer->status(), answer->fields().text(), answer->content());
    const bool is_worth = is_worth_coding(meant.content.size(), meant.media_type);
    InEachCoding all;
    all[0] = prepared_in(*answer, ContentCoding::kIdentity);
    for (const ContentCoding coding : {ContentCoding::kGzip, ContentCoding::kDeflate}) {
        auto& one = all[static_cast<std::size_t>(coding)];
        if (meant.may_be_coded) one = prepared_in(*answer, coding);
        if (one == nullptr) one = all[0];
    }
    const bool may_refuse = meant.may_be_coded && meant.status / 100 == 2;
    return Answer(Handler([all, is_worth, may_refuse](const Request& request,
                                                      ResponseWriter& writer) -> Reason {
        const CodingChoice choice = choose_coding(accepted_by(request), is_worth);
        if (!choice.is_acceptable && may_refuse) {
            return writer.answer(406, {kPlain.lines(), {&kVaryByCoding, 1}}, "not-acceptable\n");
        }
        const auto number = static_cast<std::size_t>(choice.coding);
        return writer.write(*all[number]) ? Reason::kNone : writer.fault();
    }));
}

}  // namespace

Answer with_coded_content(Answer answer) {
    if (answer.constant != nullptr) return prepared_in_each(answer.constant);
    if (!answer.handler) return answer;
    return Answer(Handler([handler = answer.handler](const Request& request, ResponseWriter& writer)
                              -> Reason { return answer_coded(handler, request, writer); }));
}

}  // namespace httpmark
