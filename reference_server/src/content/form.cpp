#include "content/form.hpp"

#include <algorithm>

#include "http/syntax.hpp"

namespace httpmark {

namespace {

bool is_percent_pair(std::string_view text, std::size_t at) {
    return text.size() - at >= 3 && is_hexdig(octet(text[at + 1])) &&
           is_hexdig(octet(text[at + 2]));
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

}  // namespace

bool FormReader::fail(Reason fault, std::size_t at) {
    fault_ = fault;
    at_ = at;
    return false;
}

bool FormReader::next(FormField& field) {
    if (fault_ != Reason::kNone) return false;
    while (at_ < text_.size() && text_[at_] == '&') ++at_;
    if (at_ == text_.size()) return false;
    if (fields_left_ == 0) return fail(Reason::kFormFieldsTooMany, at_);
    const std::size_t end = std::min(text_.find('&', at_), text_.size());
    const std::string_view pair = text_.substr(at_, end - at_);
    if (broken_percent_ == BrokenPercent::kRefused) {
        for (std::size_t at = pair.find('%'); at != std::string_view::npos;
             at = pair.find('%', at + 3)) {
            if (!is_percent_pair(pair, at)) return fail(Reason::kFormPercent, at_ + at);
        }
    }
    const std::size_t equals = std::min(pair.find('='), pair.size());
    field.name = pair.substr(0, equals);
    field.value = pair.substr(std::min(equals + 1, pair.size()));
    at_ = end;
    --fields_left_;
    return true;
}

std::string_view decode_form(std::string_view text, char* out) {
    char* const begin = out;
    while (!text.empty()) *out++ = take_octet(text);
    return {begin, static_cast<std::size_t>(out - begin)};
}

bool form_text_means(std::string_view text, std::string_view decoded) {
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
