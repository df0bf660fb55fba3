// Counted assertions: LAW() is EXPECT_TRUE() that can be evaluated millions of times and counted.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

namespace httpmark {

inline std::atomic<std::uint64_t> law_count = 0;  // handlers in other threads count, too

#define LAW(condition, ...)                                                                 \
    do {                                                                                    \
        ++::httpmark::law_count;                                                            \
        if (!(condition)) ADD_FAILURE() << "does not hold: " #condition << " " __VA_ARGS__; \
    } while (false)

// A small generator with a seed, the same everywhere.
class Random {
  public:
    explicit Random(std::uint64_t seed) : state_(seed * 0x9E3779B97F4A7C15 + 1) {}
    std::uint32_t operator()() {
        state_ ^= state_ << 13;
        state_ ^= state_ >> 7;
        state_ ^= state_ << 17;
        return static_cast<std::uint32_t>(state_ >> 32);
    }

  private:
    std::uint64_t state_;
};

inline std::string visible(std::string_view octets) {
    std::string out;
    for (const char c : octets.substr(0, 300)) {
        if (c >= 0x20 && c < 0x7F && c != '\\') {
            out += c;
        } else if (c == '\r') {
            out += "\\r";
        } else if (c == '\n') {
            out += "\\n";
        } else {
            char hex[5];
            std::snprintf(hex, sizeof hex, "\\x%02x", static_cast<unsigned char>(c));
            out += hex;
        }
    }
    return out;
}

class CountPrinter final : public testing::Environment {
  public:
    void TearDown() override {
        const testing::UnitTest& unit = *testing::UnitTest::GetInstance();
        std::printf("%d tests, %llu assertions\n", unit.test_to_run_count(),
                    static_cast<unsigned long long>(law_count.load()));
    }
};
inline testing::Environment* const kCountPrinter =
    testing::AddGlobalTestEnvironment(new CountPrinter);

}  // namespace httpmark
