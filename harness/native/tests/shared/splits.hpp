// Every way a stream may be cut: whole, byte by byte, and in two at each place.
#ifndef HTTPMARK_NATIVE_TESTS_SHARED_SPLITS_HPP_
#define HTTPMARK_NATIVE_TESTS_SHARED_SPLITS_HPP_

#include <string>
#include <string_view>
#include <vector>

namespace httpmark {

// Calls `play` with the pieces of each cut.
template <typename Play>
void each_split(std::string_view stream, Play play) {
    play(std::vector<std::string_view>{stream});
    std::vector<std::string_view> octets;
    for (std::size_t i = 0; i < stream.size(); ++i) octets.push_back(stream.substr(i, 1));
    play(octets);
    for (std::size_t i = 1; i < stream.size(); ++i) {
        play(std::vector<std::string_view>{stream.substr(0, i), stream.substr(i)});
    }
}

}  // namespace httpmark

#endif  // HTTPMARK_NATIVE_TESTS_SHARED_SPLITS_HPP_
