#include "shared/flags.hpp"

#include <unistd.h>

#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>

namespace httpmark {
namespace {

std::string& program_name() {
    static std::string name = "httpmark";
    return name;
}

}  // namespace

void die(int code, std::string_view message) {
    std::fflush(stdout);
    std::fprintf(stderr, "%s: %.*s\n", program_name().c_str(), static_cast<int>(message.size()),
                 message.data());
    std::exit(code);
}

Flags::Flags(int argc, char** argv) {
    if (argc > 0) {
        std::string_view path = argv[0];
        const std::size_t slash = path.rfind('/');
        program_name() = slash == std::string_view::npos ? path : path.substr(slash + 1);
    }
    for (int i = 1; i < argc; ++i) words_.emplace_back(argv[i]);
}

bool Flags::take_switch(std::string_view name) {
    bool found = false;
    for (std::size_t i = 0; i < words_.size();) {
        if (words_[i] == name) {
            words_.erase(words_.begin() + static_cast<std::ptrdiff_t>(i));
            found = true;
        } else {
            ++i;
        }
    }
    return found;
}

bool Flags::take_value(std::string_view name, std::string* value) {
    for (std::size_t i = 0; i < words_.size(); ++i) {
        const std::string& word = words_[i];
        if (word == name) {
            if (i + 1 >= words_.size()) die(kExitUsage, std::string(name) + " needs a value");
            *value = words_[i + 1];
            const auto at = words_.begin() + static_cast<std::ptrdiff_t>(i);
            words_.erase(at, at + 2);
            return true;
        }
        if (word.size() > name.size() && word.compare(0, name.size(), name) == 0 &&
            word[name.size()] == '=') {
            *value = word.substr(name.size() + 1);
            words_.erase(words_.begin() + static_cast<std::ptrdiff_t>(i));
            return true;
        }
    }
    return false;
}

std::string Flags::take_string(std::string_view name, std::string_view fallback) {
    std::string value(fallback);
    while (take_value(name, &value)) {
    }
    return value;
}

std::uint64_t Flags::take_number(std::string_view name, std::uint64_t fallback, std::uint64_t least,
                                 std::uint64_t most) {
    std::string text;
    bool found = false;
    while (take_value(name, &text)) found = true;
    if (!found) return fallback;
    std::uint64_t value = 0;
    const char* end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, value);
    if (error != std::errc() || stop != end || text.empty() || value < least || value > most) {
        die(kExitUsage, std::string(name) + " takes a whole number from " + std::to_string(least) +
                            " to " + std::to_string(most) + ", not '" + text + "'");
    }
    return value;
}

double Flags::take_decimal(std::string_view name, double fallback, double least, double most) {
    std::string text;
    bool found = false;
    while (take_value(name, &text)) found = true;
    if (!found) return fallback;
    char* stop = nullptr;
    const double value = std::strtod(text.c_str(), &stop);
    const bool starts_well =
        !text.empty() && (std::isdigit(static_cast<unsigned char>(text[0])) != 0 || text[0] == '.');
    if (!starts_well || *stop != '\0' || !std::isfinite(value) || value < least || value > most) {
        char range[64];
        std::snprintf(range, sizeof range, "%g to %g", least, most);
        die(kExitUsage,
            std::string(name) + " takes a number from " + range + ", not '" + text + "'");
    }
    return value;
}

std::vector<std::string> Flags::take_all(std::string_view name) {
    std::vector<std::string> values;
    std::string value;
    while (take_value(name, &value)) values.push_back(value);
    return values;
}

std::string Flags::take_word(std::string_view name, const std::vector<std::string>& words) {
    const std::string value = take_string(name, words.front());
    std::string list;
    for (const std::string& word : words) {
        if (word == value) return value;
        list += (list.empty() ? "" : ", ") + word;
    }
    die(kExitUsage, std::string(name) + " takes one of " + list + ", not '" + value + "'");
}

std::string Flags::take_positional(std::string_view what, bool required) {
    for (std::size_t i = 0; i < words_.size(); ++i) {
        if (words_[i].rfind("--", 0) == 0) continue;
        std::string value = words_[i];
        words_.erase(words_.begin() + static_cast<std::ptrdiff_t>(i));
        return value;
    }
    if (required) die(kExitUsage, std::string(what) + " is missing");
    return {};
}

void Flags::finish() const {
    if (!words_.empty()) die(kExitUsage, "unknown argument '" + words_.front() + "'");
}

}  // namespace httpmark
