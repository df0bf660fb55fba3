// The command line of the three executables: `--name value` or `--name=value`, switches, and one
// optional positional word. A wrong word ends the program with one line on stderr and exit code 2.
#ifndef HTTPMARK_NATIVE_SHARED_FLAGS_HPP_
#define HTTPMARK_NATIVE_SHARED_FLAGS_HPP_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace httpmark {

inline constexpr int kExitOk = 0;
inline constexpr int kExitMismatch = 1;
inline constexpr int kExitUsage = 2;
inline constexpr int kExitEnvironment = 3;

// Prints "program: message" on stderr, on one line, and exits with `code`.
[[noreturn]] void die(int code, std::string_view message);

class Flags {
  public:
    Flags(int argc, char** argv);

    // Each take_* removes what it found. The last occurrence of a flag wins, except in take_all.
    bool take_switch(std::string_view name);
    std::string take_string(std::string_view name, std::string_view fallback);
    std::uint64_t take_number(std::string_view name, std::uint64_t fallback, std::uint64_t least,
                              std::uint64_t most);
    double take_decimal(std::string_view name, double fallback, double least, double most);
    std::vector<std::string> take_all(std::string_view name);
    // One of `words`; the first is what an absent flag means.
    std::string take_word(std::string_view name, const std::vector<std::string>& words);
    std::string take_positional(std::string_view what, bool required);

    // Complains about whatever nobody took.
    void finish() const;

  private:
    bool take_value(std::string_view name, std::string* value);

    std::vector<std::string> words_;
};

}  // namespace httpmark

#endif  // HTTPMARK_NATIVE_SHARED_FLAGS_HPP_
