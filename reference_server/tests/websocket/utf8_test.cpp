#include "websocket/utf8.hpp"

#include <array>
#include <string>
#include <vector>

#include "laws.hpp"

namespace httpmark::websocket {
namespace {

// RFC 3629 3, from the code point to its bytes.
std::string encoded(unsigned code_point) {
    const auto six = [&](unsigned shift) {
        return static_cast<char>(0x80 | (code_point >> shift & 0x3F));
    };
    if (code_point < 0x80) return {static_cast<char>(code_point)};
    if (code_point < 0x800) return {static_cast<char>(0xC0 | code_point >> 6), six(0)};
    if (code_point < 0x10000) return {static_cast<char>(0xE0 | code_point >> 12), six(6), six(0)};
    return {static_cast<char>(0xF0 | code_point >> 18), six(12), six(6), six(0)};
}

bool is_scalar_value(unsigned code_point) {
    return code_point < 0xD800 || (code_point > 0xDFFF && code_point < 0x110000);
}

// All characters, and all beginnings of them, by their bytes: made with the encoder, so that what
// may stand in a text does not depend on any rule about ranges.
class Oracle {
  public:
    Oracle() {
        for (unsigned code_point = 0; code_point < 0x110000; ++code_point) {
            if (!is_scalar_value(code_point)) continue;
            const std::string octets = encoded(code_point);
            std::uint32_t key = 0;
            for (std::size_t i = 0; i < octets.size(); ++i) {
                key = key << 8 | static_cast<unsigned char>(octets[i]);
                const bool is_whole = i + 1 == octets.size();
                if (i < 3) (is_whole ? whole_ : begun_)[i][key] = true;
            }
            if (octets.size() == 4) four_[key - 0xF0000000] = true;
        }
    }
    struct Verdict {
        std::size_t valid;
        bool at_boundary;
    };
    Verdict judge(std::string_view text) const {
        std::uint32_t key = 0;
        std::size_t size = 0;
        for (std::size_t at = 0; at < text.size(); ++at) {
            key = key << 8 | static_cast<unsigned char>(text[at]);
            if (is_whole(key, size)) {
                key = 0;
                size = 0;
            } else if (size < 3 && begun_[size][key]) {
                ++size;
            } else {
                return {at, false};
            }
        }
        return {text.size(), size == 0};
    }

  private:
    bool is_whole(std::uint32_t key, std::size_t size) const {
        if (size < 3) return whole_[size][key];
        return key >= 0xF0000000 && key - 0xF0000000 < four_.size() && four_[key - 0xF0000000];
    }
    // By how many bytes came before.
    std::array<std::vector<bool>, 3> whole_{std::vector<bool>(1U << 8), std::vector<bool>(1U << 16),
                                            std::vector<bool>(1U << 24)};
    std::array<std::vector<bool>, 3> begun_ = whole_;
    std::vector<bool> four_ = std::vector<bool>(0x5000000);
};

const Oracle& oracle() {
    static const Oracle one;
    return one;
}

bool agrees(std::string_view text, std::size_t cut) {
    const Oracle::Verdict due = oracle().judge(text);
    Utf8Validator validator;
    std::size_t valid = validator.take(text.substr(0, cut));
    if (valid == cut) valid += validator.take(text.substr(cut));
    return valid == due.valid &&
           (valid < text.size() || validator.at_boundary() == due.at_boundary);
}

TEST(Utf8, every_code_point_alone_and_no_surrogate) {
    for (unsigned code_point = 0; code_point < 0x110000; ++code_point) {
        LAW(is_utf8(encoded(code_point)) == is_scalar_value(code_point), << code_point);
    }
    for (const unsigned beyond : {0x110000U, 0x13FFFFU, 0x140000U, 0x1FFFFFU}) {
        LAW(!is_utf8(encoded(beyond)), << beyond);
    }
}

TEST(Utf8, every_sequence_of_one_to_three_bytes) {
    std::array<char, 3> octets{};
    bool agree = true;
    for (unsigned a = 0; a < 256; ++a) {
        octets[0] = static_cast<char>(a);
        agree = agree && agrees({octets.data(), 1}, 1) && agrees({octets.data(), 1}, 0);
        for (unsigned b = 0; b < 256; ++b) {
            octets[1] = static_cast<char>(b);
            for (const std::size_t cut : {0U, 1U}) {
                agree = agree && agrees({octets.data(), 2}, cut);
            }
            for (unsigned c = 0; c < 256; ++c) {
                octets[2] = static_cast<char>(c);
                agree = agree && agrees({octets.data(), 3}, c % 3);
            }
            LAW(agree, << visible({octets.data(), 3}));
        }
    }
    law_count += 1U << 24;
}

// Bytes at both sides of every boundary there is, at each place of four, cut everywhere.
TEST(Utf8, the_boundaries_of_four_bytes_at_every_split) {
    constexpr std::string_view kEdges(
        "\x00\x7F\x80\x8F\x90\x9F\xA0\xBF\xC0\xC1\xC2\xDF\xE0\xE1\xEC\xED\xEE\xEF\xF0\xF1\xF3"
        "\xF4\xF5\xFF",
        24);
    std::string octets(4, '\0');
    for (const char a : kEdges) {
        for (const char b : kEdges) {
            for (const char c : kEdges) {
                for (const char d : kEdges) {
                    octets = {a, b, c, d};
                    for (const std::size_t cut : {0U, 1U, 2U, 3U}) {
                        LAW(agrees(octets, cut), << visible(octets) << " cut at " << cut);
                    }
                }
            }
        }
    }
}

// ASCII is passed over in blocks: whatever stands in or after a block is seen.
TEST(Utf8, any_fault_after_any_number_of_plain_bytes) {
    for (const std::string_view fault : {"\x80", "\xC0\x80", "\xED\xA0\x80", "\xF4\x90", "\xFF"}) {
        for (std::size_t before = 0; before < 100; ++before) {
            const std::string plain(before, 'a');
            const std::string tail(40, 'z');
            for (std::size_t cut = 0; cut <= before; cut += 5) {
                LAW(agrees(plain + std::string(fault) + tail, cut), << before);
                LAW(agrees(plain + "\xC3\xA4" + tail + std::string(fault), cut), << before);
            }
        }
    }
}

TEST(Utf8, any_bytes) {
    Random random(1);
    for (unsigned round = 0; round < 20000; ++round) {
        std::string octets;
        const std::size_t size = random() % 60;
        while (octets.size() < size) {
            // Mostly characters, else a byte.
            const unsigned code_point = random() % 0x110000 >> (random() % 20);
            octets += random() % 16 != 0 && is_scalar_value(code_point)
                          ? encoded(code_point)
                          : std::string(1, static_cast<char>(random()));
        }
        LAW(agrees(octets, octets.empty() ? 0 : random() % octets.size()), << visible(octets));
    }
}

TEST(Utf8, it_can_be_used_again) {
    Utf8Validator validator;
    LAW(validator.take("\xE2\x82") == 2 && !validator.at_boundary());
    validator.reset();
    LAW(validator.at_boundary() && validator.take("a\xAC") == 1);
}

}  // namespace
}  // namespace httpmark::websocket
