#include "app/request_content.hpp"

#include <array>
#include <span>
#include <string>

#include "app/hooks.hpp"
#include "content/media_type.hpp"

namespace httpmark {

Form read_form(const Request& request, const FormLimits& limits,
               const MultipartLimits& part_limits) {
    const std::string_view content_type = request.field("content-type").value_or("");
    const MediaTypeResult result = parse_media_type(content_type);
    if (result.fault != Reason::kNone && !content_type.empty()) {
        return Form::without_entries(result.fault, result.offset);
    }
    if (is_media_type(result.media_type, "application/x-www-form-urlencoded")) {
        return Form::of_urlencoded(request.content, limits);
    }
    if (is_media_type(result.media_type, "multipart/form-data")) {
        return Form::of_multipart(content_type, request.content, part_limits);
    }
    return Form::without_entries(Reason::kFormType);
}

Reason refuse_content(ResponseWriter& writer, Reason fault, std::optional<std::uint64_t> offset,
                      std::string_view codings_taken) {
    if (fault == Reason::kNoMemory) return fault;  // nothing is wrong with the content
    static constexpr auto kPlain = fixed_field("Content-Type", "text/plain");
    const ErrorRow& row = error_row(fault);
    const Field taken{"Accept-Encoding", codings_taken};
    const bool tells = fault == Reason::kCodingUnknown;
    if (const auto own = writer.refusal_content(fault, offset.value_or(Refusal::kNoOffset))) {
        const std::array<Field, 2> fields{{{"Content-Type", own->content_type}, taken}};
        const std::span<const Field> told(fields.data(), tells ? 2U : 1U);
        if (writer.write(row.status, {told}, own->content)) return Reason::kNone;
    }
    std::string text = row.name;
    if (offset) text += " at " + std::to_string(*offset);
    text += '\n';
    return writer.answer(row.status, {kPlain.lines(), {&taken, tells ? 1U : 0U}}, text);
}

}  // namespace httpmark
