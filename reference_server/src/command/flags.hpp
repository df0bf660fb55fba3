// Every flag of the command in one table. Parsing, --help and the complaints are drawn from it.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "command/options.hpp"
#include "limits.hpp"

namespace httpmark {

// What a flag takes, and where it goes.
struct Switch {
    bool& (*target)(Options&);
};
struct Number {
    std::uint64_t lowest;
    std::uint64_t highest;
    void (*put)(Options&, std::uint64_t);
};
struct LimitNumber {
    std::uint64_t lowest;
    std::uint64_t highest;
    std::uint64_t unit;  // of the value, in that of the limits
    std::array<std::uint64_t Limits::*, 2> targets;
    const char* outcome;  // of exceeding it; empty where other flags stand for the limits
};
struct Text {
    std::string& (*target)(Options&);
};
struct Texts {  // the flag may be repeated
    std::vector<std::string>& (*target)(Options&);
};
struct Word {
    std::string_view text;
    void (*put)(Options&);
};
struct Choice {
    std::span<const Word> words;
};
struct Grammar {  // reads the value itself; false with the complaint made
    bool (*take)(Options&, std::string_view);
};
using Rule = std::variant<Switch, Number, LimitNumber, Text, Texts, Choice, Grammar>;

struct Flag {
    const char* name;   // without the "--" before it
    const char* value;  // its name in --help; of a choice empty where its words stand for it
    const char* meaning;
    Rule rule;
    bool needs_tls_port = false;
};

// In the order of --help: those of limits come last.
const std::vector<Flag>& flags();
const Flag* find_flag(std::string_view name);  // nullptr when it is unknown

// "a, b or c".
std::string words_in_a_row(std::span<const Word> words);
bool parse_number(std::string_view text, std::uint64_t& number);

}  // namespace httpmark
