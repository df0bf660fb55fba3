#include "load/histogram.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

namespace httpmark {
namespace {

TEST(Histogram, buckets_leave_no_gap_and_stay_within_a_thousandth) {
    EXPECT_EQ(Histogram::index_of(0), 0u);
    for (std::size_t i = 0; i < Histogram::index_of(Histogram::kHighestNs); ++i) {
        const std::uint64_t low = Histogram::lowest_of(i);
        const std::uint64_t high = Histogram::highest_of(i);
        ASSERT_EQ(Histogram::index_of(low), i);
        ASSERT_EQ(Histogram::index_of(high), i);
        ASSERT_EQ(Histogram::index_of(high + 1), i + 1);
        ASSERT_LE((high - low) * 1000, std::max<std::uint64_t>(low, 1));
    }
}

TEST(Histogram, percentiles_of_known_values) {
    Histogram histogram;
    for (std::uint64_t i = 1; i <= 1000; ++i) histogram.add(i);
    EXPECT_EQ(histogram.total(), 1000u);
    EXPECT_EQ(histogram.percentile(50), 500u);
    EXPECT_EQ(histogram.percentile(99.9), 999u);
    EXPECT_EQ(histogram.percentile(100), 1000u);
    EXPECT_EQ(histogram.percentile(0), 1u);
    EXPECT_EQ(histogram.max(), 1000u);
    EXPECT_DOUBLE_EQ(histogram.mean(), 500.5);
}

TEST(Histogram, percentiles_agree_with_sorting) {
    std::mt19937_64 random(1);
    std::lognormal_distribution<double> latency(13, 2);
    std::vector<std::uint64_t> values(20000);
    for (std::uint64_t& value : values) value = static_cast<std::uint64_t>(latency(random));
    for (const unsigned coarse_bits : {0u, 3u}) {
        Histogram one(coarse_bits);
        Histogram two(coarse_bits);
        for (std::size_t i = 0; i < values.size(); ++i) (i % 2 == 0 ? one : two).add(values[i]);
        Histogram sum(coarse_bits);
        ASSERT_TRUE(sum.unpack(two.pack()));
        sum.merge(one);
        std::vector<std::uint64_t> sorted = values;
        std::sort(sorted.begin(), sorted.end());
        const double width = coarse_bits == 0 ? 1.0 / 1000 : 1.0 / 125;
        for (const double percent : {1.0, 25.0, 50.0, 90.0, 99.0, 99.9, 100.0}) {
            const auto rank = static_cast<std::size_t>(std::ceil(percent / 100 * 20000 - 1e-6)) - 1;
            const auto exact = static_cast<double>(sorted[rank]);
            EXPECT_NEAR(static_cast<double>(sum.percentile(percent)), exact, exact * width + 1)
                << percent;
        }
        EXPECT_EQ(sum.max(), sorted.back());
    }
}

TEST(Histogram, what_is_too_long_counts_as_the_longest) {
    Histogram histogram;
    histogram.add(~std::uint64_t{0});
    EXPECT_EQ(histogram.max(), Histogram::kHighestNs);
    histogram.clear();
    EXPECT_EQ(histogram.total(), 0u);
    EXPECT_EQ(histogram.percentile(50), 0u);
}

TEST(Histogram, the_export_has_the_format_of_v2) {
    Histogram histogram;
    histogram.add(12345, 7);
    EXPECT_EQ(histogram.encode().substr(0, 7), "HISTFAA");
}

}  // namespace
}  // namespace httpmark
