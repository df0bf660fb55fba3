// What the probe takes for the edges of answers is one, however the bytes arrive.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "probe/response_framing.hpp"
#include "tests/shared/fuzz_laws.hpp"

namespace {

using namespace httpmark;

struct Told {
    std::vector<std::string> events;
    bool completes = false;

    bool operator==(const Told&) const = default;
};

// What the framing says of a stream that comes in pieces of these sizes, one after the other and
// again from the first. Two bits of `choice` say what each request was.
Told told(std::string_view stream, const std::vector<std::size_t>& sizes, std::uint8_t choice) {
    ResponseFraming framing;
    Told out;
    unsigned finals = 0;
    for (std::size_t turn = 0; !stream.empty(); ++turn) {
        std::string_view piece = stream.substr(0, sizes[turn % sizes.size()]);
        stream.remove_prefix(piece.size());
        while (!piece.empty()) {
            const std::size_t before = piece.size();
            const FramingEvent event = framing.feed(&piece);
            REQUIRE(piece.size() <= before);
            if (event == FramingEvent::kNeedMore) {
                REQUIRE(piece.empty());
                continue;
            }
            REQUIRE(piece.size() < before);  // each event costs a byte, so the events are bounded
            if (event == FramingEvent::kGarbage) {
                REQUIRE(framing.is_lost() && piece.empty());
                out.events.emplace_back("garbage");
            } else if (event == FramingEvent::kMessage) {
                REQUIRE(framing.is_between());
                out.events.emplace_back("message");
            } else {
                out.events.push_back("head " + std::to_string(framing.status()) +
                                     (framing.announced_close() ? " close" : ""));
                REQUIRE(framing.status() >= 100 && framing.status() <= 999);
                const unsigned kind = (choice >> (2 * (finals % 4))) % 4;
                if (!framing.is_interim()) ++finals;
                if (framing.begin_body(static_cast<RequestKind>(std::min(kind, 2U)))) {
                    out.events.emplace_back("no content");
                }
            }
        }
    }
    out.completes = framing.finish();
    REQUIRE(framing.is_lost());
    return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* octets, std::size_t size) {
    if (size < 2) return 0;
    const std::uint8_t choice = octets[0];
    const std::string_view stream(reinterpret_cast<const char*>(octets + 2), size - 2);
    const Told whole = told(stream, {size}, choice);
    REQUIRE(told(stream, {1}, choice) == whole);
    REQUIRE(told(stream, drawn_sizes(octets[1]), choice) == whole);
    return 0;
}
