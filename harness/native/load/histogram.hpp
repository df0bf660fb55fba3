// Log-linear histogram of nanoseconds, the layout of HdrHistogram with three significant digits
// (every value within 0.1 %), from 1 ns to one hour; longer ones are counted as one hour.
#ifndef HTTPMARK_NATIVE_LOAD_HISTOGRAM_HPP_
#define HTTPMARK_NATIVE_LOAD_HISTOGRAM_HPP_

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace httpmark {

class Histogram {
  public:
    static constexpr std::uint64_t kHighestNs = 3'600'000'000'000;
    static constexpr int kSignificantDigits = 3;

    // `coarse_bits` makes 2^coarse_bits buckets one: with 3 it is two digits in an eighth of the
    // room.
    explicit Histogram(unsigned coarse_bits = 0);

    void add(std::uint64_t value, std::uint64_t count = 1) {
        if (value > kHighestNs) value = kHighestNs;
        counts_[index_of(value) >> coarse_bits_] += count;
        total_ += count;
        sum_ += static_cast<double>(value) * static_cast<double>(count);
        if (value > max_) max_ = value;
    }
    // `other` has to be as coarse.
    void merge(const Histogram& other);
    void clear();

    std::uint64_t total() const { return total_; }
    std::uint64_t max() const { return max_; }
    double mean() const { return total_ == 0 ? 0 : sum_ / static_cast<double>(total_); }
    // The value that `percent` of all values do not exceed: the highest value equivalent to the
    // bucket it falls into, but never above max(). 0 when empty.
    std::uint64_t percentile(double percent) const;

    // HdrHistogram V2, compressed, base64: "HISTF...". Not of a coarse one, whose layout it is not.
    std::string encode() const;

    // The counts as bytes, for another process of the same machine; unpack replaces what is there.
    std::string pack() const;
    bool unpack(std::string_view octets);

    // The bucket of a value, and the lowest and highest value of a bucket.
    static std::size_t index_of(std::uint64_t value) {
        const auto magnitude = static_cast<unsigned>(std::bit_width(value | (kSubBuckets - 1)));
        const unsigned shift = magnitude - kSubBucketBits;
        return (static_cast<std::size_t>(shift) << (kSubBucketBits - 1)) +
               static_cast<std::size_t>(value >> shift);
    }
    static std::uint64_t lowest_of(std::size_t index);
    static std::uint64_t highest_of(std::size_t index);

  private:
    static constexpr unsigned kSubBucketBits = 11;  // 2048 >= 2 * 10^3
    static constexpr std::uint64_t kSubBuckets = std::uint64_t{1} << kSubBucketBits;

    unsigned coarse_bits_;
    std::vector<std::uint64_t> counts_;
    std::uint64_t total_ = 0;
    std::uint64_t max_ = 0;
    double sum_ = 0;
};

}  // namespace httpmark

#endif  // HTTPMARK_NATIVE_LOAD_HISTOGRAM_HPP_
