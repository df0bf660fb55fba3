#include "command/help.hpp"

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <variant>

#include "command/flags.hpp"
#include "net/engine.hpp"

#ifndef HTTPMARK_VERSION
#define HTTPMARK_VERSION "0.0.0"
#endif

namespace httpmark {

namespace {

constexpr std::size_t kMeaningColumn = 24;
constexpr const char* kMoreHelp =
    "\n"
    "  SIGTERM, SIGINT: finish the requests in progress, then exit; a second one: exit at once\n"
    "  SIGHUP: read certificates and keys again, open the access log again\n"
    "  SIGUSR1: print counters\n\n"
    "  HTTPMARK_SIMD=scalar|sse42|avx2|avx512 forces a scan kernel\n\n"
    "limits and timeouts: the default, and what happens when it is exceeded (0 switches a timeout "
    "off):\n";

std::string padded(std::string_view text, std::size_t width) {
    std::string line(std::max(text.size(), width), ' ');
    text.copy(line.data(), text.size());
    return line;
}

std::string value_of(const Flag& flag) {
    const Choice* const choice = std::get_if<Choice>(&flag.rule);
    if (choice == nullptr || *flag.value != '\0') return flag.value;
    std::string words;
    for (const Word& word : choice->words) {
        if (!words.empty()) words += '|';
        words += word.text;
    }
    return words;
}

// The meaning beside the flag where that leaves room for it, else below.
std::string lines_of(const Flag& flag) {
    std::string text = std::string("  --") + flag.name;
    if (const std::string value = value_of(flag); !value.empty()) text += ' ' + value;
    const std::string margin(kMeaningColumn, ' ');
    text = text.size() + 1 < kMeaningColumn ? padded(text, kMeaningColumn) : text + '\n' + margin;
    for (const char* c = flag.meaning; *c != '\0'; ++c) {
        text += *c;
        if (*c == '\n') text += margin;
    }
    return text + '\n';
}

std::string line_of(const Flag& flag, const LimitNumber& rule) {
    const Limits defaults;
    const bool own = *rule.outcome != '\0';
    const std::string value = own ? std::to_string(defaults.*rule.targets[0]) : "";
    return "  --" + padded(flag.name, 25) + padded(value, 13) + padded(rule.outcome, 7) +
           flag.meaning + '\n';
}

}  // namespace

std::string version_text() {
    return "httpmark-server " HTTPMARK_VERSION;
}

std::string engines_text() {
    return engine_is_built(Engine::kUring) ? "engines: epoll, uring, uring-direct"
                                           : "engines: epoll (built without liburing)";
}

std::string help_text() {
    std::string text = version_text() + ": a strict HTTP/1.1 server\n\n";
    std::string limits;
    for (const Flag& flag : flags()) {
        if (const LimitNumber* const rule = std::get_if<LimitNumber>(&flag.rule)) {
            limits += line_of(flag, *rule);
        } else {
            text += lines_of(flag);
        }
    }
    return text + kMoreHelp + limits;
}

std::string limits_text(const Limits& limits) {
    std::string text;
    for (const LimitRow& row : kLimitTable) {
        text += padded(row.flag, 25) + std::to_string(limits.*row.value) + '\n';
    }
    return text;
}

}  // namespace httpmark
