// The content of a request as what its fields say that it is, and how it is refused.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "app/request.hpp"
#include "content/collected_form.hpp"
#include "http/error.hpp"
#include "http/response.hpp"
#include "limits.hpp"

namespace httpmark {

// The fields of a form, urlencoded or multipart, as Content-Type says; anything else is kFormType.
// The route must want content.
Form read_form(const Request& request, const FormLimits& limits = {},
               const MultipartLimits& part_limits = {});

// Answers with the status of the fault, and with what the application's error handler says of it;
// where that says nothing, with its name and where it is as text: "form-percent at 17". A coding
// that is not taken is told which ones are (RFC 9110 15.5.16).
Reason refuse_content(ResponseWriter& writer, Reason fault,
                      std::optional<std::uint64_t> offset = {},
                      std::string_view codings_taken = "gzip, deflate");
inline Reason refuse_content(ResponseWriter& writer, const Form& form) {
    return refuse_content(writer, form.fault(), form.offset());
}

}  // namespace httpmark
