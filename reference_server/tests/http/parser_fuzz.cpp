// The verdict on a head is one, whatever the kernel and however it arrives.
#include <cstddef>
#include <cstdint>

#include "check.hpp"
#include "http/framing.hpp"
#include "http/parser.hpp"

namespace {

using namespace httpmark;

bool same(const ParseResult& a, const ParseResult& b) {
    return a.verdict == b.verdict && a.reason == b.reason && a.offset == b.offset;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* octets, std::size_t size) {
    if (size < 1) return 0;
    const std::uint8_t choice = octets[0];
    const char* const data = reinterpret_cast<const char*>(octets + 1);
    --size;
    Limits limits;
    if ((choice & 1) != 0) {
        limits.target_max = 20;
        limits.field_name_max = 20;
        limits.field_value_max = 30;
        limits.field_lines_max = 3;
        limits.head_max = 128;
    }
    const auto strictness = static_cast<Strictness>((choice >> 1) % 3);
    HeadParser first;
    const ParseResult wanted = first.parse(data, size, limits, strictness, kScalarKernel);
    if (wanted.verdict == Verdict::kAccepted) {
        CHECK(wanted.offset <= size);
        const RequestHead& head = first.head();
        CHECK(head.target.begin + head.target.size <= wanted.offset);
        CHECK(head.authority.begin + head.authority.size <= wanted.offset);
        (void)judge_head(head, limits, strictness, (choice & 8) != 0);
        FieldReader reader({data + head.fields_begin, wanted.offset - head.fields_begin});
        std::string_view name;
        std::string_view value;
        std::uint32_t count = 0;
        while (reader.next(name, value)) ++count;
        CHECK(count == head.field_count);
    }
    for (const ScanKernel* kernel : scan_kernels()) {
        if (!kernel->supported()) continue;
        HeadParser whole;
        CHECK(same(whole.parse(data, size, limits, strictness, *kernel), wanted));
        HeadParser parts;
        for (std::size_t known = 1; known <= size; ++known) {
            const ParseResult result = parts.parse(data, known, limits, strictness, *kernel);
            if (result.verdict == Verdict::kNeedMore) {
                CHECK(known < size || wanted.verdict == Verdict::kNeedMore);
                continue;
            }
            CHECK(same(result, wanted));
            CHECK(known == wanted.offset + (wanted.verdict == Verdict::kRejected ? 1 : 0));
            break;
        }
    }
    return 0;
}
