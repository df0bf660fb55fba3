#include "content/form.hpp"

#include <algorithm>
#include <cstring>

#include "http/syntax.hpp"

namespace httpmark {

namespace {

bool is_percent_pair(std::string_view text, std::size_t at) {
    return text.size() - at >= 3 && is_hexdig(octet(text[at + 1])) &&
           is_hexdig(octet(text[at + 2]));
}

// Where a '%' stands that two hexadecimal digits do not follow, or the size of the text.
std::size_t find_broken_percent(std::string_view text) {
    std::size_t at = 0;
    while (true) {
        at += find_within(text.data() + at, text.size() - at, '%');
        if (at == text.size() || !is_percent_pair(text, at)) return at;
        at += 3;
    }
}

// The byte that is meant at the front of `text`, which is taken from there.
char take_octet(std::string_view& text) {
    char c = text[0];
    std::size_t size = 1;
    if (c == '+') {
        c = ' ';
    } else if (c == '%' && is_percent_pair(text, 0)) {
        c = static_cast<char>(hex_value(octet(text[1])) << 4 | hex_value(octet(text[2])));
        size = 3;
    }
    text.remove_prefix(size);
    return c;
}

// Whether no byte of the word stands for another.
constexpr bool is_literal(std::uint64_t word) {
    return (octets_like(word, '+') | octets_like(word, '%')) == 0;
}

// Copies the front of a text that means itself, a word at a time; its size. `out` is where the text
// begins, or before, or not in it: no byte is written that has not been read.
std::size_t copy_literal(std::string_view text, char* out) {
    const char* const from = text.data();
    std::size_t at = 0;
    for (; text.size() - at >= 8; at += 8) {
        std::uint64_t word = 0;
        std::memcpy(&word, from + at, sizeof word);
        if (!is_literal(word)) break;
        std::memcpy(out + at, &word, sizeof word);
    }
    for (; at < text.size() && from[at] != '+' && from[at] != '%'; ++at) out[at] = from[at];
    return at;
}

}  // namespace

// A block after the other, each looked at once.
FormReader::Pair FormReader::long_pair(const char* text, std::size_t size) {
    Pair pair{size, ~std::size_t{0}, true};
    for (std::size_t at = 0; at < size; at += kTextBlockSize) {
        const std::size_t left = size - at;
        const TextBlock block =
            left >= kTextBlockSize ? TextBlock(text + at) : TextBlock(text + at, left);
        const unsigned ends = block.like<'&'>();
        const unsigned inside = ~ends & (ends - 1);  // before the first
        const unsigned equals = block.like<'='>() & inside;
        if ((block.like<'+', '%'>() & inside) != 0) pair.means_itself = false;
        if (equals != 0 && pair.equals > size) pair.equals = at + lowest_text_bit(equals);
        if (ends != 0) {
            pair.size = at + lowest_text_bit(ends);
            break;
        }
    }
    pair.equals = std::min(pair.equals, pair.size);
    return pair;
}

bool FormReader::fail(Reason fault, std::size_t at) {
    fault_ = fault;
    at_ = at;
    return false;
}

// The next pair, which may be one too many, or have a '%' that means nothing.
bool FormReader::is_refused(const Pair& pair) {
    if (fields_left_ == 0) return !fail(Reason::kFormFieldsTooMany, at_);
    const std::size_t broken = find_broken_percent({text_.data() + at_, pair.size});
    return broken != pair.size && !fail(Reason::kFormPercent, at_ + broken);
}

std::string_view decode_form(std::string_view text, char* out) {
    char* const begin = out;
    while (!text.empty()) {
        const std::size_t literal = copy_literal(text, out);
        text.remove_prefix(literal);
        out += literal;
        if (!text.empty()) *out++ = take_octet(text);
    }
    return {begin, static_cast<std::size_t>(out - begin)};
}

// A word at a time; bytes of the last one may be looked at twice.
bool form_text_means_itself(std::string_view text) {
    const char* const from = text.data();
    const std::size_t size = text.size();
    const auto word_at = [&]<class Word>(std::size_t at, Word word) -> std::uint64_t {
        std::memcpy(&word, from + at, sizeof word);
        return word;
    };
    if (size >= 8) {
        std::size_t at = 0;
        while (at < size - 8 && is_literal(word_at(at, std::uint64_t{0}))) at += 8;
        return at >= size - 8 && is_literal(word_at(size - 8, std::uint64_t{0}));
    }
    if (size >= 4) {
        return is_literal(word_at(0, std::uint32_t{0}) | word_at(size - 4, std::uint32_t{0}) << 32);
    }
    for (const char c : text) {
        if (c == '+' || c == '%') return false;
    }
    return true;
}

bool form_text_means(std::string_view text, std::string_view decoded) {
    if (text.size() < decoded.size()) return false;
    for (const char c : decoded) {
        if (text.empty() || take_octet(text) != c) return false;
    }
    return text.empty();
}

std::optional<std::string_view> find_form_value(std::string_view text, std::string_view name) {
    FormReader reader(text);
    FormField field;
    while (reader.next(field)) {
        if (form_text_means(field.name, name)) return field.value;
    }
    return std::nullopt;
}

}  // namespace httpmark
