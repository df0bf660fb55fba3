// application/x-www-form-urlencoded, as the WHATWG URL standard parses it (5.1): the content of a
// form, or a query. Pairs are views into the text; nothing is allocated.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "content/text_block.hpp"
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
    bool next(FormField& field) {
        return fault_ == Reason::kNone && skip_empty() && next_pair(field);
    }
    // Of that pair: there is neither '+' nor '%' in it, so decode_form() would only copy it.
    bool means_itself() const { return means_itself_; }
    Reason fault() const { return fault_; }
    // Of the fault; before one, how much has been read.
    std::size_t offset() const { return at_; }

  private:
    // What stands at the front of a text, up to an '&' or the end.
    struct Pair {
        std::size_t size;
        std::size_t equals;  // where its name ends: its size where it has no '='
        bool means_itself;
    };
    static Pair long_pair(const char* text, std::size_t size);
    static Pair first_pair(const char* text, std::size_t size);
    bool skip_empty() {
        while (at_ != text_.size() && text_[at_] == '&') ++at_;
        return at_ != text_.size();
    }
    bool next_pair(FormField& field);
    bool is_refused(const Pair& pair);
    bool fail(Reason fault, std::size_t at);

    std::string_view text_;
    std::size_t at_ = 0;
    std::uint64_t fields_left_;
    BrokenPercent broken_percent_;
    Reason fault_ = Reason::kNone;
    bool means_itself_ = false;
};

// Most pairs end in the first block, which is looked at once.
[[gnu::always_inline]] inline FormReader::Pair FormReader::first_pair(const char* text,
                                                                      std::size_t size) {
    const bool is_whole = size >= kTextBlockSize;
    const TextBlock block = is_whole ? TextBlock(text) : TextBlock(text, size);
    const unsigned ends = block.like<'&'>() | (is_whole ? 0U : 1U << size);
    if (ends == 0) return long_pair(text, size);
    const unsigned inside = ~ends & (ends - 1);  // before the first
    return {lowest_text_bit(ends), lowest_text_bit(block.like<'='>() | ends),
            (block.like<'+', '%'>() & inside) == 0};
}

inline bool FormReader::next_pair(FormField& field) {
    const char* const begin = text_.data() + at_;
    const Pair pair = first_pair(begin, text_.size() - at_);
    const bool may_be_refused = broken_percent_ == BrokenPercent::kRefused && !pair.means_itself;
    if ((fields_left_ == 0 || may_be_refused) && is_refused(pair)) return false;
    const std::size_t value = pair.equals + (pair.equals == pair.size ? 0 : 1);
    field.name = {begin, pair.equals};
    field.value = {begin + value, pair.size - value};
    means_itself_ = pair.means_itself;
    at_ += pair.size;
    --fields_left_;
    return true;
}

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
