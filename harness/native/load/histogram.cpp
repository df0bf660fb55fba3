#include "load/histogram.hpp"

#include <zlib.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string_view>

namespace httpmark {
namespace {

// The format's own numbers (HdrHistogram, V2 encoding).
constexpr std::uint32_t kCookie = 0x1c849303 | 0x10;
constexpr std::uint32_t kCompressedCookie = 0x1c849304 | 0x10;
constexpr std::uint64_t kLowest = 1;
// 99.9 % of 1000 is a little more than 999 in floating point.
constexpr double kRounding = 1e-6;

void put_big_endian(std::string* out, std::uint64_t value, unsigned octets) {
    for (unsigned i = octets; i-- > 0;) out->push_back(static_cast<char>(value >> (8 * i) & 0xff));
}

// ZigZag LEB128 in at most nine bytes, the ninth with eight bits.
void put_varint(std::string* out, std::int64_t number) {
    auto value = static_cast<std::uint64_t>(number) << 1 ^ static_cast<std::uint64_t>(number >> 63);
    for (int i = 0; i < 8; ++i) {
        if (value < 0x80) {
            out->push_back(static_cast<char>(value));
            return;
        }
        out->push_back(static_cast<char>((value & 0x7f) | 0x80));
        value >>= 7;
    }
    out->push_back(static_cast<char>(value));
}

std::string base64(std::string_view in) {
    static constexpr std::string_view kAlphabet =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    std::string out;
    out.reserve((in.size() + 2) / 3 * 4);
    for (std::size_t at = 0; at < in.size(); at += 3) {
        std::uint32_t group = 0;
        const std::size_t have = std::min<std::size_t>(3, in.size() - at);
        for (std::size_t i = 0; i < 3; ++i) {
            group = group << 8 | (i < have ? static_cast<unsigned char>(in[at + i]) : 0U);
        }
        for (std::size_t i = 0; i < 4; ++i) {
            out.push_back(i <= have ? kAlphabet[group >> (18 - 6 * i) & 63] : '=');
        }
    }
    return out;
}

}  // namespace

Histogram::Histogram(unsigned coarse_bits)
    : coarse_bits_(coarse_bits), counts_((index_of(kHighestNs) >> coarse_bits) + 1) {}

void Histogram::merge(const Histogram& other) {
    for (std::size_t i = 0; i < counts_.size(); ++i) counts_[i] += other.counts_[i];
    total_ += other.total_;
    sum_ += other.sum_;
    max_ = std::max(max_, other.max_);
}

void Histogram::clear() {
    std::fill(counts_.begin(), counts_.end(), 0);
    total_ = 0;
    max_ = 0;
    sum_ = 0;
}

std::uint64_t Histogram::lowest_of(std::size_t index) {
    if (index < kSubBuckets) return index;
    const std::size_t half = kSubBuckets / 2;
    const std::size_t shift = index / half - 1;
    return static_cast<std::uint64_t>(index - shift * half) << shift;
}

std::uint64_t Histogram::highest_of(std::size_t index) {
    return lowest_of(index + 1) - 1;
}

std::uint64_t Histogram::percentile(double percent) const {
    if (total_ == 0) return 0;
    const double share = std::clamp(percent, 0.0, 100.0) / 100.0 * static_cast<double>(total_);
    const auto wanted =
        std::max<std::uint64_t>(1, static_cast<std::uint64_t>(std::ceil(share - kRounding)));
    std::uint64_t seen = 0;
    for (std::size_t i = 0; i < counts_.size(); ++i) {
        seen += counts_[i];
        if (seen >= wanted) return std::min(highest_of(((i + 1) << coarse_bits_) - 1), max_);
    }
    return max_;
}

std::string Histogram::pack() const {
    std::string out;
    const auto put = [&](std::uint64_t value) {
        out.append(reinterpret_cast<const char*>(&value), sizeof value);
    };
    put(std::bit_cast<std::uint64_t>(sum_));
    put(max_);
    for (std::size_t i = 0; i < counts_.size(); ++i) {
        if (counts_[i] == 0) continue;
        put(i);
        put(counts_[i]);
    }
    return out;
}

bool Histogram::unpack(std::string_view octets) {
    clear();
    constexpr std::size_t kOctets = sizeof(std::uint64_t);
    if (octets.size() < 2 * kOctets || octets.size() % (2 * kOctets) != 0) return false;
    const auto number = [&](std::size_t at) {
        std::uint64_t value = 0;
        std::memcpy(&value, octets.data() + at, kOctets);
        return value;
    };
    sum_ = std::bit_cast<double>(number(0));
    max_ = number(kOctets);
    for (std::size_t at = 2 * kOctets; at < octets.size(); at += 2 * kOctets) {
        const std::uint64_t index = number(at);
        if (index >= counts_.size()) return false;
        counts_[index] += number(at + kOctets);
        total_ += number(at + kOctets);
    }
    return true;
}

std::string Histogram::encode() const {
    std::string counts;
    const std::size_t used = total_ == 0 ? 0 : index_of(max_) + 1;
    for (std::size_t i = 0; i < used;) {
        if (counts_[i] != 0) {
            put_varint(&counts, static_cast<std::int64_t>(counts_[i]));
            ++i;
            continue;
        }
        std::int64_t zeros = 0;
        for (; i < used && counts_[i] == 0; ++i) ++zeros;
        put_varint(&counts, -zeros);
    }
    std::string plain;
    put_big_endian(&plain, kCookie, 4);
    put_big_endian(&plain, counts.size(), 4);
    put_big_endian(&plain, 0, 4);  // normalizing index offset
    put_big_endian(&plain, kSignificantDigits, 4);
    put_big_endian(&plain, kLowest, 8);
    put_big_endian(&plain, kHighestNs, 8);
    put_big_endian(&plain, std::bit_cast<std::uint64_t>(1.0), 8);  // integer to double ratio
    plain += counts;

    uLongf size = compressBound(static_cast<uLong>(plain.size()));
    std::string packed(size, '\0');
    compress(reinterpret_cast<Bytef*>(packed.data()), &size,
             reinterpret_cast<const Bytef*>(plain.data()), static_cast<uLong>(plain.size()));
    packed.resize(size);
    std::string out;
    put_big_endian(&out, kCompressedCookie, 4);
    put_big_endian(&out, packed.size(), 4);
    out += packed;
    return base64(out);
}

}  // namespace httpmark
