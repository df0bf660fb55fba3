#include "null/scan.hpp"

#include <gtest/gtest.h>

#include <random>
#include <string>

#include "tests/shared/splits.hpp"

namespace httpmark {
namespace {

// The law itself, without any state: ends that do not overlap.
std::size_t count_by_search(const std::string& stream) {
    std::size_t count = 0;
    for (std::size_t at = stream.find("\r\n\r\n"); at != std::string::npos;
         at = stream.find("\r\n\r\n", at + 4)) {
        ++count;
    }
    return count;
}

TEST(NullScan, each_head_is_counted_once_however_it_is_cut) {
    std::string stream;
    for (std::size_t i = 0; i < 7; ++i) {
        stream +=
            "GET /hello HTTP/1.1\r\nHost: 127.0.0.1\r\n" + std::string(3 * i, 'x') + "\r\n\r\n";
    }
    stream += "\r\n\r\n\r\n\r\n\r\n\r\n";
    const std::size_t expected = count_by_search(stream);
    each_split(stream, [&](const std::vector<std::string_view>& pieces) {
        HeadState state = 0;
        std::size_t count = 0;
        for (const std::string_view piece : pieces) {
            count += count_head_ends(&state, piece.data(), piece.size());
        }
        EXPECT_EQ(count, expected);
    });
}

TEST(NullScan, blocks_and_single_octets_agree_on_random_streams) {
    std::mt19937 random(7);
    for (int round = 0; round < 3000; ++round) {
        std::string stream;
        const std::size_t size = random() % 400;
        while (stream.size() < size) stream += "\r\n\r\n\r\nab"[random() % 8];
        const std::size_t cut = stream.empty() ? 0 : random() % stream.size();
        HeadState blocks = 0;
        HeadState plain = 0;
        std::size_t count = count_head_ends(&blocks, stream.data(), cut);
        count += count_head_ends(&blocks, stream.data() + cut, stream.size() - cut);
        const std::size_t expected = count_head_ends_plain(&plain, stream.data(), stream.size());
        ASSERT_EQ(count, expected) << round;
        ASSERT_EQ(blocks, plain) << round;
        ASSERT_EQ(expected, count_by_search(stream)) << round;
    }
}

}  // namespace
}  // namespace httpmark
