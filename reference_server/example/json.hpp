// JSON texts (RFC 8259), for the answers of the example.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace httpmark::example {

// Writes to `out`, which has room for all of it, or only counts where that is nullptr.
class JsonWriter {
  public:
    explicit JsonWriter(char* out) : out_(out) {}
    void raw(std::string_view text);
    void character(char c) {
        if (out_ != nullptr) out_[size_] = c;
        ++size_;
    }
    void number(std::uint64_t value);
    // Bytes as a string in base64 (RFC 4648 4).
    void base64(std::string_view octets);
    // Bytes as a string, RFC 8259 7; what is no UTF-8 becomes U+FFFD.
    void string(std::string_view octets);
    std::size_t size() const { return size_; }

    // How many times longer than its bytes a string can be, but for the two quotes.
    static constexpr std::size_t kGrowthMax = 6;

  private:
    char* out_;
    std::size_t size_ = 0;
};

}  // namespace httpmark::example
