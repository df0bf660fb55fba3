// What the load generator says of answers is one, however they arrive, and needs no more memory
// than they have bytes.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "load/response.hpp"
#include "tests/shared/fuzz_laws.hpp"

namespace {

using namespace httpmark;

constexpr std::int64_t kNow = 784111777;  // Sun, 06 Nov 1994 08:49:37 GMT
constexpr std::size_t kEqualMax = 64;     // answers counted at once

struct Said {
    CheckKind kind;
    std::size_t size;
    bool announced_close;
    std::string why;
    std::size_t why_at;
    int status;

    bool operator==(const Said&) const = default;
};

bool same(const ParsedResponse& a, const ParsedResponse& b) {
    return a.state == b.state && a.status == b.status && a.head_size == b.head_size &&
           a.size == b.size && a.date_at == b.date_at && a.date == b.date &&
           a.announced_close == b.announced_close && a.is_chunked == b.is_chunked &&
           a.body == b.body && std::strcmp(a.why, b.why) == 0 && a.why_at == b.why_at;
}

// Each beginning of the input is undecided up to the byte that decides, and then says the same.
void hold_parser_laws(std::string_view input, bool head_request) {
    ParsedResponse whole;
    parse_response(input, head_request, &whole);
    REQUIRE(whole.content.size() <= input.size());
    REQUIRE(whole.size <= input.size() && whole.head_size <= input.size());
    REQUIRE(whole.state != ParseState::kComplete || whole.head_size <= whole.size);
    if (whole.state == ParseState::kInvalid) REQUIRE(whole.why_at <= input.size());
    bool is_decided = false;
    std::size_t need = 0;
    for (std::size_t size = 1; size <= input.size(); ++size) {
        ParsedResponse part;
        parse_response(input.substr(0, size), head_request, &part);
        if (part.state == ParseState::kNeedMore) {
            REQUIRE(!is_decided);
            REQUIRE(part.need > size && part.need >= need);
            need = part.need;
            continue;
        }
        REQUIRE(size >= need);  // trying again with fewer bytes was useless, as it said
        REQUIRE(same(part, whole));
        is_decided = true;
    }
    REQUIRE(is_decided == (whole.state != ParseState::kNeedMore));
}

// As a connection takes answers that come in pieces of these sizes: what is equal first, then one
// by one, until the first that has no end.
std::vector<Said> said(std::string_view stream, const std::vector<std::size_t>& sizes,
                       bool head_request) {
    ResponseVerifier verifier(0, head_request);
    verifier.set_wall_clock(kNow, kNow);
    std::vector<Said> out;
    std::size_t at = 0;
    std::size_t need = 0;
    std::size_t known = 0;
    for (std::size_t turn = 0; known < stream.size(); ++turn) {
        known = std::min(stream.size(), known + sizes[turn % sizes.size()]);
        // The bytes are where they end, so that reading on is found.
        const std::string held(stream.substr(at, known - at));
        if (held.size() < need) continue;
        std::string_view rest = held;
        need = 0;
        while (!rest.empty()) {
            if (const std::size_t equal = verifier.count_equal(rest, kEqualMax); equal != 0) {
                const Said one{CheckKind::kVerified,
                               verifier.learned_size(),
                               verifier.announced_close(),
                               "",
                               0,
                               0};
                out.insert(out.end(), equal, one);
                rest.remove_prefix(equal * verifier.learned_size());
                continue;
            }
            const CheckResult result = verifier.check(rest);
            if (result.kind == CheckKind::kNeedMore) {
                REQUIRE(result.need > rest.size());
                need = result.need;
                break;
            }
            out.push_back({result.kind, result.size, result.announced_close, result.why,
                           result.why_at, result.status});
            if (result.kind == CheckKind::kFraming) return out;
            REQUIRE(result.size != 0 && result.size <= rest.size());
            rest.remove_prefix(result.size);
        }
        at = known - rest.size();
    }
    return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* octets, std::size_t size) {
    if (size < 3) return 0;
    const bool head_request = (octets[0] & 1) != 0;
    const std::string_view stream(reinterpret_cast<const char*>(octets + 2), size - 2);
    hold_parser_laws(stream, head_request);
    const std::vector<Said> whole = said(stream, {size}, head_request);
    REQUIRE(said(stream, {1}, head_request) == whole);
    REQUIRE(said(stream, drawn_sizes(octets[1]), head_request) == whole);
    return 0;
}
