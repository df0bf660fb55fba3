// application/x-www-form-urlencoded, as the WHATWG URL standard parses it (5.1): the content of a
// form, or a query. Pairs are views into the text; nothing is allocated.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "http/error.hpp"
#include "limits.hpp"

namespace httpmark {

// As they stand in the text: decode_form() gives what they mean.
struct FormField {
    std::string_view name;
    std::string_view value;
};

// What becomes of a '%' that two hexadecimal digits do not follow. kKept is the standard's parser;
// kRefused spares applications that two readers of one form take it for different things.
enum class BrokenPercent : std::uint8_t { kRefused, kKept };

class FormReader {
  public:
    explicit FormReader(std::string_view text, const FormLimits& limits = {},
                        BrokenPercent broken_percent = BrokenPercent::kRefused)
        : text_(text), fields_left_(limits.fields_max), broken_percent_(broken_percent) {}
    // The next pair; what is empty between two '&' is none. False at the end, and at a fault.
    bool next(FormField& field) { return at_ != text_.size() && next_pair(field); }
    Reason fault() const { return fault_; }
    // Of the fault; before one, how much has been read.
    std::size_t offset() const { return at_; }

  private:
    bool next_pair(FormField& field);
    bool fail(Reason fault, std::size_t at);

    std::string_view text_;
    std::size_t at_ = 0;
    std::uint64_t fields_left_;
    BrokenPercent broken_percent_;
    Reason fault_ = Reason::kNone;
};

// The bytes that a name or value means, into `out`, which has room for text.size(): '+' is a
// space, a percent pair its byte, anything else itself. `out` may be where `text` begins. Whether
// they are UTF-8 is not looked at.
std::string_view decode_form(std::string_view text, char* out);

// Without '+' and '%', as most are, a text means what it is: decode_form() would only copy it.
bool form_text_means_itself(std::string_view text);

// Whether an encoded name or value means `decoded`.
bool form_text_means(std::string_view text, std::string_view decoded);

// The value, still encoded, of the first field of that name.
std::optional<std::string_view> find_form_value(std::string_view text, std::string_view name);

}  // namespace httpmark
