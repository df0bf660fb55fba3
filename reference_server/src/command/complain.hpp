// How the command says no: one line on standard error, and an exit code.
#pragma once

namespace httpmark {

constexpr int kExitUsage = 2;        // the words of the command line cannot be used
constexpr int kExitEnvironment = 3;  // the machine does not give what they ask for

// Always false, so that a check can end with it.
[[gnu::format(printf, 1, 2)]] bool complain(const char* format, ...);

}  // namespace httpmark
