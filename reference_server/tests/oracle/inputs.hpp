// Inputs for the comparison: requests to start from, words for every slot, dice to join them by.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "comparison.hpp"

namespace httpmark {

class Dice {
  public:
    explicit Dice(std::uint64_t seed) : engine_(seed) {}
    std::size_t below(std::size_t n) { return static_cast<std::size_t>(engine_() % n); }
    bool one_in(std::size_t n) { return below(n) == 0; }
    template <typename List>
    const auto& one_of(const List& list) {
        return list[below(std::size(list))];
    }
    char octet() { return static_cast<char>(below(256)); }
    std::string run(std::string_view alphabet, std::size_t size) {
        std::string text;
        while (text.size() < size) text += alphabet[below(alphabet.size())];
        return text;
    }

  private:
    std::mt19937_64 engine_;
};

std::string with_host(const std::string& line, const std::string& fields = "");
const std::vector<std::string>& base_requests();
const std::vector<std::string>& base_bodies();
std::uint64_t seed();
std::uint64_t runs();
std::string words_from(Dice& dice, const std::vector<std::string>& vocabulary, std::size_t most);
const std::vector<std::string>& host_words();
const std::vector<std::string>& target_words();
const std::vector<std::string>& coding_words();
const std::vector<std::string>& length_words();
const std::vector<std::string>& expect_words();
const std::vector<std::string>& connection_words();
const std::vector<std::string>& version_words();
const std::vector<std::string>& chunk_words();
std::string some_target(Dice& dice);
std::string some_field(Dice& dice);
std::string some_request(Dice& dice);
std::string some_body(Dice& dice);
std::string harmed(Dice& dice, std::string text, const std::string& other);
Depth sometimes_deep(Dice& dice);

}  // namespace httpmark
