// Whatever the fields say, there is one outcome for reading, and a date that is taken is written as
// one that is taken.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

#include "check.hpp"
#include "files/preconditions.hpp"
#include "http/syntax.hpp"

namespace {

using namespace httpmark;
using Outcome = Preconditions::Outcome;

constexpr std::int64_t kNow = 1795312800;
constexpr const char* kNames[] = {
    "If-Match", "If-None-Match", "If-Modified-Since", "If-Unmodified-Since", "If-Range", "Range"};

// Each line of the input begins with a byte that says which field it is.
std::string section_of(std::string_view input, const Validators& validators) {
    std::string out;
    while (!input.empty()) {
        const std::size_t end = std::min(input.find('\n'), input.size());
        std::string_view line = input.substr(0, end);
        input.remove_prefix(std::min(end + 1, input.size()));
        if (line.empty()) continue;
        out += kNames[octet(line.front()) % std::size(kNames)];
        out += ": ";
        for (const char c : line.substr(1)) {
            if (c == '@') out += validators.opaque_tag();
            if (c != '@') out += is_ctl(octet(c)) ? ' ' : c;
        }
        out += "\r\n";
    }
    return out + "\r\n";
}

void check_date(std::string_view text) {
    const auto seconds = parse_http_date(text, kNow);
    if (!seconds) return;
    char written[kImfFixdateSize];
    // The last leap second of the year 9999 is in the next.
    if (!put_imf_fixdate(*seconds, written)) return;
    CHECK(parse_http_date({written, sizeof written}, kNow) == seconds);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* octets, std::size_t size) {
    if (size < 1) return 0;
    const bool weak = (octets[0] & 1) != 0;
    const FileFacts facts{12, 7, {784111777, 5}, {weak ? kNow : kNow - 1000, 9}};
    const Validators validators(facts, kNow);
    const std::string_view input(reinterpret_cast<const char*>(octets + 1), size - 1);
    check_date(input);
    const std::string section = section_of(input, validators);
    const Preconditions preconditions(section, validators, kNow);
    const Outcome get = preconditions.outcome(Method::kGet);
    CHECK(preconditions.outcome(Method::kHead) == get);
    // What may be done to a file that is to be changed may be read, if only to be not modified.
    const Outcome put = preconditions.outcome(Method::kPut);
    CHECK(put != Outcome::kNotModified);
    CHECK(get != Outcome::kFailed || put == Outcome::kFailed);
    const bool asks_to_match = section.find("If-Match:") != section.npos;
    const bool asks_for_date = section.find("If-Unmodified-Since:") != section.npos;
    CHECK(get != Outcome::kFailed || asks_to_match || asks_for_date);
    CHECK(!preconditions.range() || section.find("\r\nRange: ") != section.npos ||
          section.starts_with("Range: "));
    return 0;
}
