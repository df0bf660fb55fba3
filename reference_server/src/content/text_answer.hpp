// Answers in plain text and in HTML. In JSON: content/json_answer.hpp; of another type a handler
// gives the field itself, and media_type_of_file() knows the type of a file by its name.
#pragma once

#include <span>
#include <string_view>

#include "http/response.hpp"

namespace httpmark {

// `text` is UTF-8: Content-Type says so. What HTML means in it is not escaped.
inline Reason answer_text(ResponseWriter& writer, unsigned status, std::string_view text,
                          std::span<const Field> others = {}) {
    static constexpr auto kType = fixed_field("Content-Type", "text/plain; charset=utf-8");
    return writer.answer(status, {kType.lines(), others}, text);
}
inline Reason answer_html(ResponseWriter& writer, unsigned status, std::string_view text,
                          std::span<const Field> others = {}) {
    static constexpr auto kType = fixed_field("Content-Type", "text/html; charset=utf-8");
    return writer.answer(status, {kType.lines(), others}, text);
}

}  // namespace httpmark
