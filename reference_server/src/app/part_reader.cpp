#include "app/part_reader.hpp"

#include <string>
#include <utility>

#include "app/request_content.hpp"

namespace httpmark {

PartReader::~PartReader() = default;

void PartReader::on_fault(Reason fault, std::uint64_t offset, ResponseWriter& writer) {
    refuse_content(writer, fault, offset);
}

namespace {

class PartsOfContent final : public ContentReader {
  public:
    PartsOfContent(std::unique_ptr<PartReader> parts, const Boundary& boundary,
                   const MultipartLimits& limits)
        : parts_(std::move(parts)), decoder_(boundary, limits) {}

    Flow on_piece(std::string_view piece, ResponseWriter& writer) override {
        using Status = MultipartDecoder::Status;
        std::string_view content;
        while (!is_wrong_) {
            Flow flow = Flow::kMore;
            switch (decoder_.decode(piece, content)) {
                case Status::kPartBegin:
                    flow = parts_->on_part(decoder_.part(), writer);
                    break;
                case Status::kContent:
                    flow = parts_->on_piece(content, writer);
                    break;
                case Status::kPartEnd:
                    flow = parts_->on_part_end(writer);
                    break;
                case Status::kRejected:
                    tell_fault(writer);
                    break;
                default:
                    return Flow::kMore;
            }
            if (!writer.is_untouched()) break;
            if (flow == Flow::kPause) {
                rest_ = piece;
                return flow;
            }
        }
        return Flow::kMore;
    }

    Flow on_woken(ResponseWriter& writer) override {
        const Flow flow = parts_->on_woken(writer);
        if (flow == Flow::kPause || !writer.is_untouched()) return flow;
        const std::string rest = std::exchange(rest_, {});
        return on_piece(rest, writer);
    }

    Reason on_end(const Request& request, ResponseWriter& writer) override {
        if (is_wrong_) return Reason::kHandlerFailed;
        if (decoder_.finish() == MultipartDecoder::Status::kDone) {
            return parts_->on_end(request, writer);
        }
        tell_fault(writer);
        return writer.is_untouched() ? Reason::kHandlerFailed : Reason::kNone;
    }

    void on_abort(Reason reason) override {
        if (!is_wrong_) parts_->on_abort(reason);
    }

  private:
    void tell_fault(ResponseWriter& writer) {
        is_wrong_ = true;
        parts_->on_fault(decoder_.fault(), decoder_.offset(), writer);
    }

    const std::unique_ptr<PartReader> parts_;
    MultipartDecoder decoder_;
    std::string rest_;       // what had come when it was paused
    bool is_wrong_ = false;  // and that was told
};

}  // namespace

Reason read_parts(const Request& request, ResponseWriter& writer, std::unique_ptr<PartReader> parts,
                  const MultipartLimits& limits) {
    const auto content_type = request.field("content-type");
    if (!content_type) return refuse_content(writer, Reason::kMultipartType);
    const BoundaryResult result = boundary_of(*content_type);
    if (result.fault != Reason::kNone) {
        return refuse_content(writer, result.fault, result.offset);
    }
    auto reader = std::make_unique<PartsOfContent>(std::move(parts), result.boundary, limits);
    return writer.read_content(std::move(reader)) ? Reason::kNone : writer.fault();
}

}  // namespace httpmark
