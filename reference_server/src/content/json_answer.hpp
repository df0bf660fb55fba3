// Answers in JSON.
#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <string_view>

#include "content/json_writer.hpp"
#include "http/response.hpp"

namespace httpmark {

// What `write` tells a JsonWriter, with Content-Type: application/json:
//
//     return answer_json(writer, 200, [&](JsonWriter& json) {
//         json.begin_object().key("name").string(name).end_object();
//     });
//
// It is called again where the text is longer than 2 KiB, and must write the same: the content is
// blank where it does not. Text that would not be JSON is a failure of the handler.
template <class Write>
Reason answer_json(ResponseWriter& writer, unsigned status, const Write& write,
                   std::span<const Field> others = {}) {
    static constexpr auto kJson = fixed_field("Content-Type", "application/json");
    std::array<char, 2048> text;
    JsonWriter json(text);
    write(json);
    if (const auto whole = json.finish()) {
        return writer.answer(status, {kJson.lines(), others}, *whole);
    }
    if (json.fault() != JsonFault::kNoRoom) return Reason::kHandlerFailed;
    const std::size_t size = json.size();
    char* room = nullptr;
    if (!writer.start(status, {kJson.lines(), others}, size, room)) return writer.fault();
    if (room == nullptr) return Reason::kNone;
    JsonWriter again({room, size});
    write(again);
    const auto whole = again.finish();
    if (!whole || whole->size() != size) std::fill_n(room, size, ' ');
    return Reason::kNone;
}

}  // namespace httpmark
