// Whatever the Range, what is chosen lies within the file, and Content-Range says it.
#include <cstddef>
#include <cstdint>
#include <string>

#include "check.hpp"
#include "files/ranges.hpp"

namespace {

using namespace httpmark;

std::string content_range_of(const RangeChoice& choice, std::uint64_t size) {
    const std::string length = std::to_string(size);
    if (choice.verdict == RangeChoice::Verdict::kUnsatisfiable) return "bytes */" + length;
    return "bytes " + std::to_string(choice.first) + "-" +
           std::to_string(choice.first + choice.size - 1) + "/" + length;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* octets, std::size_t size) {
    if (size < 2) return 0;
    constexpr std::uint64_t kSizes[] = {0, 1, 2, 10, 1000, UINT64_MAX >> 1, UINT64_MAX};
    const std::uint64_t file_size = kSizes[octets[0] % 7] - (octets[0] % 7 > 1 ? octets[1] % 2 : 0);
    const std::string_view value(reinterpret_cast<const char*>(octets + 2), size - 2);
    const RangeChoice choice = choose_range(value, file_size);
    if (choice.verdict == RangeChoice::Verdict::kPart) {
        CHECK(choice.size > 0 && choice.size <= file_size);
        CHECK(choice.first <= file_size - choice.size);
    } else {
        CHECK(choice.first == 0 && choice.size == 0);
    }
    if (choice.verdict != RangeChoice::Verdict::kWhole) {
        CHECK(ContentRange(choice, file_size).text() == content_range_of(choice, file_size));
        CHECK(!value.empty() && value.find('=') == 5);
    }
    // A longer list of the same ranges is the same, or too long.
    const std::string twice =
        std::string(value) + "," +
        std::string(value.substr(std::min<std::size_t>(value.size(), value.find('=') + 1)));
    const RangeChoice again = choose_range(twice, file_size);
    CHECK(value.find('=') == value.npos || again.verdict == choice.verdict ||
          again.verdict == RangeChoice::Verdict::kWhole);
    return 0;
}
