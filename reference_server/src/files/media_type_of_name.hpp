// The media type that the name of a file promises, by its extension.
#pragma once

#include <string_view>

namespace httpmark {

// Without parameters: what the text is encoded in, only the file itself can say. An extension that
// is not known, or none, is application/octet-stream, which no browser guesses at.
std::string_view media_type_of_name(std::string_view name);

}  // namespace httpmark
