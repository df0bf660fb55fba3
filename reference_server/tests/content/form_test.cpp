#include "content/form.hpp"

#include <string>
#include <utility>
#include <vector>

#include "guard_page.hpp"
#include "laws.hpp"

namespace httpmark {
namespace {

using Pairs = std::vector<std::pair<std::string, std::string>>;

struct Read {
    Pairs pairs;
    Reason fault;
    std::size_t offset;
};

std::string decoded(std::string_view text) {
    std::string apart(text.size(), '?');
    const std::string out(decode_form(text, apart.data()));
    std::string in_place(text);
    LAW(decode_form(in_place, in_place.data()) == out, << visible(text));
    const bool means_itself = text.find_first_of("+%") == std::string_view::npos;
    LAW(form_text_means_itself(text) == means_itself, << visible(text));
    LAW(!means_itself || out == text, << visible(text));
    LAW(form_text_means(text, out) && !form_text_means(text, out + "x"), << visible(text));
    LAW(out.empty() || !form_text_means(text, out.substr(1)), << visible(text));
    return out;
}

Read read(std::string_view text, BrokenPercent broken = BrokenPercent::kKept,
          const FormLimits& limits = {}) {
    static GuardPage guard;
    FormReader reader({guard.place(text), text.size()}, limits, broken);
    Read out{{}, Reason::kNone, 0};
    FormField field;
    while (reader.next(field)) {
        const bool both = form_text_means_itself(field.name) && form_text_means_itself(field.value);
        LAW(reader.means_itself() == both, << visible(text));
        out.pairs.emplace_back(decoded(field.name), decoded(field.value));
    }
    LAW(!reader.next(field), << visible(text));  // the end stays
    out.fault = reader.fault();
    out.offset = reader.offset();
    LAW(out.fault != Reason::kNone || out.offset == text.size(), << visible(text));
    return out;
}

// WHATWG URL 5.1, step by step as it is written there, but for the UTF-8.
Pairs standard_parser(const std::string& input) {
    std::vector<std::string> sequences(1);
    for (const char c : input) {
        if (c == '&') {
            sequences.emplace_back();
        } else {
            sequences.back() += c;
        }
    }
    const auto meant = [](std::string bytes) {
        for (char& c : bytes) c = c == '+' ? ' ' : c;
        std::string out;
        for (std::size_t i = 0; i < bytes.size(); ++i) {
            const std::string two = i + 2 < bytes.size() ? bytes.substr(i + 1, 2) : "";
            if (bytes[i] == '%' &&
                two.find_first_not_of("0123456789abcdefABCDEF") == std::string::npos &&
                two.size() == 2) {
                out += static_cast<char>(std::stoi(two, nullptr, 16));
                i += 2;
            } else {
                out += bytes[i];
            }
        }
        return out;
    };
    Pairs out;
    for (const std::string& bytes : sequences) {
        if (bytes.empty()) continue;
        const std::size_t equals = bytes.find('=');
        const bool has = equals != std::string::npos;
        out.emplace_back(meant(bytes.substr(0, equals)),
                         meant(has ? bytes.substr(equals + 1) : ""));
    }
    return out;
}

// Each short text over the octets that mean something.
TEST(Form, every_short_text_is_read_as_the_standard_says) {
    constexpr std::string_view kOctets = "&=+%4fg";
    std::string text;
    const auto each = [&](const auto& self, unsigned left) -> void {
        LAW(read(text).pairs == standard_parser(text), << text);
        if (left == 0) return;
        for (const char c : kOctets) {
            text += c;
            self(self, left - 1);
            text.pop_back();
        }
    };
    each(each, 5);
}

TEST(Form, any_octets_are_read_as_the_standard_says) {
    Random random(3);
    for (unsigned i = 0; i < 20000; ++i) {
        std::string text;
        for (unsigned k = random() % 40; k > 0; --k) {
            text += random() % 3 == 0 ? static_cast<char>(random()) : "&=+%0aF"[random() % 7];
        }
        LAW(read(text).pairs == standard_parser(text), << visible(text));
        // Refused at the first broken pair, else the same.
        std::size_t broken = std::string::npos;
        for (std::size_t at = 0; at < text.size() && broken == std::string::npos; ++at) {
            if (text[at] != '%') continue;
            const std::string two = text.substr(at + 1, 2);
            if (two.size() < 2 || std::isxdigit(static_cast<unsigned char>(two[0])) == 0 ||
                std::isxdigit(static_cast<unsigned char>(two[1])) == 0) {
                broken = at;
            }
        }
        const Read strict = read(text, BrokenPercent::kRefused);
        if (broken == std::string::npos) {
            LAW(strict.fault == Reason::kNone && strict.pairs == standard_parser(text));
        } else {
            LAW(strict.fault == Reason::kFormPercent && strict.offset == broken,
                << visible(text) << strict.offset);
            const std::size_t before = text.rfind('&', broken);
            const std::string whole = text.substr(0, before == std::string::npos ? 0 : before);
            LAW(strict.pairs == standard_parser(whole), << visible(text));
        }
    }
}

// Cut at an '&', the two halves say what the whole says.
TEST(Form, a_text_is_the_sum_of_its_halves) {
    const std::string text = "a=1&b+c=%26&&=d&e&f==g&%3D=&h=%2B+%20&i=\xC3\xA9&";
    const Pairs whole = read(text, BrokenPercent::kRefused).pairs;
    LAW(whole.size() == 8);
    for (std::size_t at = text.find('&'); at != std::string::npos; at = text.find('&', at + 1)) {
        Pairs halves = read(text.substr(0, at), BrokenPercent::kRefused).pairs;
        for (auto& pair : read(text.substr(at), BrokenPercent::kRefused).pairs) {
            halves.push_back(std::move(pair));
        }
        LAW(halves == whole, << at);
    }
    for (std::size_t size = 0; size <= text.size(); ++size) {  // byte by byte
        LAW(read(text.substr(0, size)).pairs == standard_parser(text.substr(0, size)), << size);
    }
}

// Whatever its length, and wherever its '=' stands.
TEST(Form, a_pair_may_have_any_size) {
    for (std::size_t name = 0; name <= 40; ++name) {
        for (std::size_t value = 0; value <= 40; ++value) {
            const std::string pair = std::string(name, 'n') + '=' + std::string(value, 'v');
            for (const char* around : {"", "&", "+", "%41", "=", "x=&"}) {
                for (const std::string& text :
                     {pair + around, around + pair, pair + '&' + pair, pair + around + "&z=1"}) {
                    LAW(read(text, BrokenPercent::kRefused).pairs == standard_parser(text),
                        << visible(text));
                }
            }
        }
    }
}

TEST(Form, the_number_of_fields_has_a_limit) {
    FormLimits limits;
    limits.fields_max = 3;
    for (const char* fits : {"", "a&b&c", "&&a&&&b&&c&&", "a=1&a=2&a=3"}) {
        LAW(read(fits, BrokenPercent::kRefused, limits).fault == Reason::kNone, << fits);
    }
    const Read over = read("a&b&&c&&%&", BrokenPercent::kRefused, limits);
    LAW(over.fault == Reason::kFormFieldsTooMany && over.offset == 8 && over.pairs.size() == 3);
    limits.fields_max = 0;
    LAW(read("a", BrokenPercent::kKept, limits).fault == Reason::kFormFieldsTooMany);
    LAW(read("&", BrokenPercent::kKept, limits).fault == Reason::kNone);
}

TEST(Form, a_field_is_found_by_what_its_name_means) {
    constexpr std::string_view kText = "a=1&%61b=2&a=3&+=4&e&%=5&z=6";
    LAW(find_form_value(kText, "a") == "1" && find_form_value(kText, "ab") == "2");
    LAW(find_form_value(kText, " ") == "4" && find_form_value(kText, "e") == "");
    LAW(!find_form_value(kText, "A") && !find_form_value(kText, "") && !find_form_value("", ""));
    LAW(!find_form_value(kText, "z"));  // after what is refused nothing is read
}

}  // namespace
}  // namespace httpmark
