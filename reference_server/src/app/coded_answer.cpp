#include "app/coded_answer.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "app/content_reader.hpp"
#include "app/mailbox.hpp"
#include "app/waker.hpp"
#include "content/media_type.hpp"
#include "http/syntax.hpp"
#include "websocket/message_buffer.hpp"

namespace httpmark {

namespace {

// Bytes that grow, and count against the limit on memory.
using Room = websocket::MessageBuffer;

AcceptEncoding accepted_by(const Request& request) {
    AcceptEncoding accept;
    request.each_field("accept-encoding", [&](std::string_view value) { accept.add(value); });
    return accept;
}

// The same each time: nothing that the client accepts can be sent.
const std::shared_ptr<const PreparedAnswer>& not_acceptable() {
    static const auto answer = [] {
        const Field fields[] = {{"Content-Type", "text/plain"}, kVaryByCoding};
        return PreparedAnswer::make(406, fields, "not-acceptable\n");
    }();
    return answer;
}

Reason written(const ResponseWriter& writer, bool is_written) {
    return is_written ? Reason::kNone : writer.fault();
}

// What of an answer decides whether it is coded.
struct Codable {
    unsigned status = 0;
    bool may_be_coded = true;
    bool is_worth = false;

    // Nothing where the client accepts none of what there is. An error is told all the same.
    std::optional<ContentCoding> coding_for(const AcceptEncoding& accept) const {
        if (!may_be_coded) return ContentCoding::kIdentity;
        const CodingChoice choice = choose_coding(accept, is_worth);
        if (choice.is_acceptable) return choice.coding;
        return status / 100 == 2 ? std::nullopt : std::optional(ContentCoding::kIdentity);
    }
};

// An answer as its handler meant it.
struct Meant : Codable {
    std::vector<Field> fields;
    std::string_view content;
    std::string weak_tag;

    Meant(unsigned with_status, std::string_view section, std::string_view with_content)
        : Meant(with_status, section, with_content, with_content.size()) {}
    // Of content that is not there yet, so many bytes long.
    Meant(unsigned with_status, std::string_view section, std::uint64_t size)
        : Meant(with_status, section, {}, size) {}
    ~Meant() { std::swap(fields, spare_fields); }
    Meant(const Meant&) = delete;
    Meant& operator=(const Meant&) = delete;
    // Used again, so that an answer of a worker that is warm allocates nothing.
    static inline thread_local std::vector<Field> spare_fields;
    // Once: what is said of the content in that coding.
    std::span<const Field> fields_in(ContentCoding coding);

  private:
    Meant(unsigned with_status, std::string_view section, std::string_view with_content,
          std::uint64_t size);
};

// What the writer adds to each answer is left out.
Meant::Meant(unsigned with_status, std::string_view section, std::string_view with_content,
             std::uint64_t size)
    : fields(std::exchange(spare_fields, {})), content(with_content) {
    fields.clear();
    status = with_status;
    MediaType media_type;
    bool is_coded = false;
    FieldReader reader(section);
    Field field;
    while (reader.next(field.name, field.value)) {
        if (!field_is_safe(field)) continue;
        fields.push_back(field);
        if (equals_ignoring_case(field.name, "content-type")) {
            media_type = parse_media_type(field.value).media_type;
        } else if (equals_ignoring_case(field.name, "content-encoding")) {
            is_coded = true;
        }
    }
    // Of a 304 nobody knows here what the content would be, so it is taken as one worth coding.
    is_worth = status == 304 || is_worth_coding(size, media_type);
    may_be_coded = !is_coded && status != 206 && (status == 304 || size != 0);
}

std::span<const Field> Meant::fields_in(ContentCoding coding) {
    if (coding != ContentCoding::kIdentity) {
        for (Field& field : fields) {
            if (!equals_ignoring_case(field.name, "etag") || !field.value.starts_with('"')) {
                continue;
            }
            weak_tag = "W/";
            weak_tag += field.value;
            field.value = weak_tag;
        }
        if (status != 304) fields.push_back({"Content-Encoding", coding_name(coding)});
    }
    fields.push_back(kVaryByCoding);
    return fields;
}

// Nothing where memory is short.
std::optional<std::string_view> encode(ContentEncoder& encoder, std::string_view content,
                                       Room& out) {
    const std::size_t most = content.size() + content.size() / 1000 + 64;  // zlib's own bound
    char* const begin = out.prepare(most);
    if (begin == nullptr) return std::nullopt;
    std::span<char> room(begin, most);
    const auto status = encoder.encode(content, room, ContentEncoder::Then::kEnd);
    if (status != ContentEncoder::Status::kDone) return std::nullopt;
    return std::string_view(begin, most - room.size());
}

// What one worker codes with: it answers one request at a time.
ContentEncoder& own_encoder(ContentCoding coding) {
    static thread_local std::array<std::unique_ptr<ContentEncoder>, 3> encoders;
    auto& one = encoders[static_cast<std::size_t>(coding)];
    if (one == nullptr) {
        one = std::make_unique<ContentEncoder>(coding);
    } else {
        one->restart();
    }
    return *one;
}

// What would not be smaller is sent as it is, unless the client refuses that.
bool is_to_be_sent(std::string_view coded, std::string_view plain, const AcceptEncoding& accept) {
    return coded.size() < plain.size() || accept.weight(ContentCoding::kIdentity) == 0;
}

// `stays`: the content stays where it is until it is sent.
Reason write_coded(Meant& meant, const AcceptEncoding& accept, ResponseWriter& writer, bool stays) {
    const std::optional<ContentCoding> coding = meant.coding_for(accept);
    if (!coding) return written(writer, writer.write(*not_acceptable()));
    if (meant.content.empty()) {
        return written(writer, writer.write(meant.status, meant.fields_in(*coding), {}));
    }
    if (*coding != ContentCoding::kIdentity) {
        Room room(writer.memory());
        const auto coded = encode(own_encoder(*coding), meant.content, room);
        if (coded && is_to_be_sent(*coded, meant.content, accept)) {
            return written(writer, writer.write(meant.status, meant.fields_in(*coding), *coded));
        }
        if (!coded && accept.weight(ContentCoding::kIdentity) == 0) return Reason::kNoMemory;
    }
    const Fields fields(meant.fields_in(ContentCoding::kIdentity));
    return written(writer, stays ? writer.write_reference(meant.status, fields, meant.content)
                                 : writer.write(meant.status, fields, meant.content));
}

// A stream, coded piece by piece. It holds an encoder of its own for as long as it lasts.
class CodedStream final : public ContentStream {
  public:
    // `size`: what the stream must give, or LaterContent::kUnknown.
    CodedStream(std::unique_ptr<ContentStream> stream, std::uint64_t size, ContentCoding coding)
        : stream_(std::move(stream)),
          encoder_(coding),
          left_(size),
          is_sized_(size != LaterContent::kUnknown) {}

    Piece read(std::span<char> room) override;
    std::span<const Field> trailers() override { return stream_->trailers(); }

  private:
    using Then = ContentEncoder::Then;

    // The stream's next piece, the last one in this turn or not; false where there is none to be
    // had.
    bool take(bool is_last);

    const std::unique_ptr<ContentStream> stream_;
    ContentEncoder encoder_;
    std::uint64_t left_;
    const bool is_sized_;
    std::array<char, 8192> plain_;
    std::string_view input_;      // of the last piece, what the encoder has not taken
    State state_ = State::kMore;  // of the stream, after that piece
    Then then_ = Then::kMore;     // what the encoder does after it, until that is done
    bool is_taken_ = true;  // that piece, by the encoder, with all that follows from its state
};

bool CodedStream::take(bool is_last) {
    const auto most = static_cast<std::size_t>(std::min<std::uint64_t>(left_, plain_.size()));
    const Piece piece = stream_->read(std::span(plain_).first(most));
    if (piece.size > most || piece.state == State::kFailed) return false;
    if (piece.size == 0 && piece.state == State::kMore) return false;
    if (is_sized_) left_ -= piece.size;
    if (is_sized_ && left_ != 0 && piece.state == State::kEnd) return false;
    input_ = {plain_.data(), piece.size};
    state_ = left_ == 0 ? State::kEnd : piece.state;
    then_ = state_ == State::kEnd                ? Then::kEnd
            : state_ == State::kLater || is_last ? Then::kFlush
                                                 : Then::kMore;
    is_taken_ = false;
    return true;
}

// What has come is sent before the stream is waited for. A stream that becomes very small is coded
// only so far in one call: the other connections have their turn.
ContentStream::Piece CodedStream::read(std::span<char> room) {
    constexpr unsigned kPiecesInTurn = 16;
    std::span<char> left = room;
    for (unsigned taken = 1;; ++taken) {
        const bool is_last = taken == kPiecesInTurn;
        if (is_taken_ && !take(is_last)) return {0, State::kFailed};
        const auto status = encoder_.encode(input_, left, then_);
        const std::size_t made = room.size() - left.size();
        if (status == ContentEncoder::Status::kFailed) return {0, State::kFailed};
        if (status == ContentEncoder::Status::kOutputFull) return {made, State::kMore};
        if (status == ContentEncoder::Status::kDone) return {made, State::kEnd};
        is_taken_ = true;
        if (then_ == Then::kFlush) return {made, state_};
    }
}

template <class Ask>
Reason answer_coded(const AcceptEncoding& accept, ResponseWriter& writer, const Ask& ask);

// Answers as the handler does that has handed the content over to it.
class CodingReader final : public ContentReader {
  public:
    CodingReader(std::unique_ptr<ContentReader> reader, const AcceptEncoding& accept)
        : reader_(std::move(reader)), accept_(accept) {}

    Flow on_piece(std::string_view piece, ResponseWriter& writer) override {
        return coded(writer, [&](ResponseWriter& own) { return reader_->on_piece(piece, own); });
    }
    Reason on_end(const Request& request, ResponseWriter& writer) override {
        return answer_coded(accept_, writer,
                            [&](ResponseWriter& own) { return reader_->on_end(request, own); });
    }
    void on_abort(Reason reason) override { reader_->on_abort(reason); }
    Flow on_woken(ResponseWriter& writer) override {
        return coded(writer, [&](ResponseWriter& own) { return reader_->on_woken(own); });
    }

  private:
    template <class Call>
    Flow coded(ResponseWriter& writer, const Call& call);

    const std::unique_ptr<ContentReader> reader_;
    const AcceptEncoding accept_;
};

// Takes one answer instead of the wire, until `outer` writes it in the end.
class Gathered final : public Sink {
  public:
    Gathered(ResponseWriter& outer, const AcceptEncoding& accept)
        : outer_(outer), accept_(accept), octets_(outer.memory()) {}
    ~Gathered() {
        if (later_.source != nullptr) later_.source->release();
        delete later_.stream;
    }
    Gathered(const Gathered&) = delete;
    Gathered& operator=(const Gathered&) = delete;

    void append(const LaterContent& content) override { later_ = content; }
    LaterAnswer later() override { return with_coded_content(outer_.later(), accept_); }
    Waker waker() override { return outer_.waker(); }
    bool read_content(std::unique_ptr<ContentReader> reader, bool paused) override {
        auto coding = std::make_unique<CodingReader>(std::move(reader), accept_);
        return outer_.read_content(std::move(coding), paused);
    }
    Arena* memory() override { return outer_.memory(); }
    std::optional<RefusalContent> refusal_content(Reason reason, std::uint64_t offset) override {
        return outer_.refusal_content(reason, offset);
    }

    Reason write(unsigned status);

  private:
    Reason write_stream(unsigned status, std::string_view section);
    char* prepare_more(std::size_t size) override {
        char* const room = octets_.prepare(size + kCopySlack);
        if (room != nullptr) octets_.commit(size);
        return room;
    }

    ResponseWriter& outer_;
    const AcceptEncoding& accept_;
    Room octets_;
    LaterContent later_;
};

Reason Gathered::write_stream(unsigned status, std::string_view section) {
    Meant meant(status, section, later_.left);
    const std::optional<ContentCoding> coding = meant.coding_for(accept_);
    if (!coding) return written(outer_, outer_.write(*not_acceptable()));
    std::optional<std::uint64_t> size;
    if (later_.framing == ContentFraming::kLength) size = later_.left;
    std::unique_ptr<ContentStream> stream(std::exchange(later_.stream, nullptr));
    if (*coding != ContentCoding::kIdentity) {
        stream = std::make_unique<CodedStream>(std::move(stream), later_.left, *coding);
        size.reset();  // nobody knows how long it will be
    }
    const Fields fields(meant.fields_in(*coding));
    return written(outer_, outer_.write_stream(status, fields, std::move(stream), size));
}

// What is gathered is one whole answer, as on the wire.
Reason Gathered::write(unsigned status) {
    const std::string_view octets = octets_.view();
    const std::size_t section = octets.find("\r\n") + 2;
    const std::size_t end = octets.find("\r\n\r\n") + 4;
    std::string_view content = octets.substr(end);
    const bool stays = later_.bytes != nullptr;
    if (stays) content = {later_.bytes, static_cast<std::size_t>(later_.left)};
    const std::string_view fields_of_it = octets.substr(section, end - section);
    if (later_.stream != nullptr) return write_stream(status, fields_of_it);
    Meant meant(status, fields_of_it, content);
    if (later_.source == nullptr) return write_coded(meant, accept_, outer_, stays);
    const Fields fields(meant.fields_in(ContentCoding::kIdentity));
    if (!outer_.write_source(status, fields, later_.left, *later_.source)) return outer_.fault();
    later_.source = nullptr;  // it is the outer one's to release
    return Reason::kNone;
}

// Nothing is written where `ask` fails, even if it has written before.
template <class Ask>
Reason answer_coded(const AcceptEncoding& accept, ResponseWriter& writer, const Ask& ask) {
    static const ResponseOptions options{};
    static thread_local DateLine date;  // left out again, but handlers ask for the moment
    date.update(writer.unix_seconds());
    Gathered gathered(writer, accept);
    ResponseWriter gathering(gathered, date, options);
    const Reason reason = ask(gathering);
    if (reason != Reason::kNone) return reason;
    if (gathering.status() != 0) return gathered.write(gathering.status());
    if (const auto& ms = gathering.deferred_ms()) writer.defer(*ms);
    return Reason::kNone;
}

template <class Call>
ContentReader::Flow CodingReader::coded(ResponseWriter& writer, const Call& call) {
    Flow flow = Flow::kMore;
    // Where the answer cannot be written, there is none: the content is read on.
    answer_coded(accept_, writer, [&](ResponseWriter& own) {
        flow = call(own);
        return Reason::kNone;
    });
    return flow;
}

std::shared_ptr<const PreparedAnswer> prepared_in(const PreparedAnswer& answer,
                                                  ContentCoding coding) {
    Meant meant(answer.status(), answer.fields().text(), answer.content());
    if (coding == ContentCoding::kIdentity || meant.content.empty()) {
        return PreparedAnswer::make(meant.status, meant.fields_in(coding), meant.content);
    }
    ContentEncoder encoder(coding);
    Room room;
    const auto coded = encode(encoder, meant.content, room);
    if (!coded) return nullptr;
    return PreparedAnswer::make(meant.status, meant.fields_in(coding), *coded);
}

// The same answer in each coding, by the number of the coding.
struct InEachCoding : Codable {
    std::array<std::shared_ptr<const PreparedAnswer>, 3> all;

    explicit InEachCoding(const PreparedAnswer& answer)
        : Codable(Meant(answer.status(), answer.fields().text(), answer.content())) {
        for (const ContentCoding coding :
             {ContentCoding::kIdentity, ContentCoding::kGzip, ContentCoding::kDeflate}) {
            auto& one = all[static_cast<std::size_t>(coding)];
            if (may_be_coded || coding == ContentCoding::kIdentity)
                one = prepared_in(answer, coding);
            if (one == nullptr) one = all[0];
        }
    }
    const PreparedAnswer& one_for(const AcceptEncoding& accept) const {
        const std::optional<ContentCoding> coding = coding_for(accept);
        if (!coding) return *not_acceptable();
        const PreparedAnswer& one = *all[static_cast<std::size_t>(*coding)];
        const bool fits =
            one.content().empty() || is_to_be_sent(one.content(), all[0]->content(), accept);
        return fits ? one : *all[0];
    }
};

}  // namespace

Answer with_coded_content(Answer answer) {
    if (answer.constant != nullptr) {
        return Answer(Handler([each = InEachCoding(*answer.constant)](const Request& request,
                                                                      ResponseWriter& writer) {
            return written(writer, writer.write(each.one_for(accepted_by(request))));
        }));
    }
    if (!answer.handler) return answer;
    return Answer(Handler(
        [handler = answer.handler](const Request& request, ResponseWriter& writer) -> Reason {
            return answer_coded(accepted_by(request), writer,
                                [&](ResponseWriter& own) { return handler(request, own); });
        }));
}

LaterAnswer with_coded_content(LaterAnswer later, const AcceptEncoding& accept) {
    if (later) later.request_->accepts = accept;
    return later;
}

std::shared_ptr<const PreparedAnswer> coded_for(const AcceptEncoding& accept,
                                                const PreparedAnswer& answer) {
    const Meant meant(answer.status(), answer.fields().text(), answer.content());
    const std::optional<ContentCoding> coding = meant.coding_for(accept);
    if (!coding) return not_acceptable();
    if (*coding != ContentCoding::kIdentity) {
        auto coded = prepared_in(answer, *coding);
        const bool must_be = accept.weight(ContentCoding::kIdentity) == 0;
        if (coded == nullptr && must_be) return nullptr;
        if (coded != nullptr &&
            (meant.content.empty() || is_to_be_sent(coded->content(), meant.content, accept))) {
            return coded;
        }
    }
    return prepared_in(answer, ContentCoding::kIdentity);
}

}  // namespace httpmark
