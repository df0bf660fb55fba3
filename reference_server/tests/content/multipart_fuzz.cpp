// The multipart decoder gives one result in every split, hands out no more than it was given, and
// keeps to its limits.
#include <cstddef>
#include <cstdint>
#include <string>

#include "check.hpp"
#include "content/multipart.hpp"
#include "http/parser.hpp"

namespace {

using namespace httpmark;
using Status = MultipartDecoder::Status;

struct Result {
    Status status = Status::kNeedMore;
    Reason fault = Reason::kNone;
    std::uint64_t offset = 0;
    std::string told;
};

Result decode(std::string_view input, std::size_t step, const Boundary& boundary,
              const MultipartLimits& limits) {
    MultipartDecoder decoder(boundary, limits);
    Result result;
    std::size_t content = 0;
    bool is_open = false;
    while (!input.empty() && result.status != Status::kRejected) {
        std::string_view part = input.substr(0, step);
        input.remove_prefix(part.size());
        std::string_view piece;
        while ((result.status = decoder.decode(part, piece)) != Status::kNeedMore &&
               result.status != Status::kRejected) {
            if (result.status == Status::kPartBegin) {
                CHECK(!is_open);
                is_open = true;
                content = 0;
                result.told += '{';
                result.told += decoder.part().name;
                result.told += '/';
                result.told += decoder.part().filename;
                FieldReader reader(decoder.part().head);
                std::string_view name;
                std::string_view value;
                while (reader.next(name, value)) CHECK(!name.empty());
                CHECK(decoder.part().head.size() <= limits.part_head_max);
            } else if (result.status == Status::kContent) {
                CHECK(is_open && !piece.empty());
                result.told += piece;
                content += piece.size();
                CHECK(content <= limits.part_max);
            } else {
                CHECK(is_open && result.status == Status::kPartEnd);
                is_open = false;
                result.told += '}';
            }
        }
        CHECK(result.status == Status::kRejected || part.empty());
    }
    result.status = decoder.finish();
    CHECK((result.status == Status::kDone) == (decoder.fault() == Reason::kNone));
    CHECK(result.status != Status::kDone || !is_open);
    CHECK(decoder.parts() <= limits.parts_max);
    result.fault = decoder.fault();
    result.offset = decoder.offset();
    return result;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* octets, std::size_t size) {
    if (size < 3) return 0;
    MultipartLimits limits;
    if ((octets[0] & 1) != 0) limits = {2, 60, 10, 5, 5};
    const std::size_t step = 1 + octets[1] % 7;
    const std::size_t boundary_size = 1 + octets[2] % 4;
    const std::string_view all(reinterpret_cast<const char*>(octets + 3), size - 3);
    Boundary boundary;
    // The first bytes after "--", so that a corpus can be read.
    if (!all.starts_with("--") || !boundary.set(all.substr(2, boundary_size))) {
        boundary.set("b");
        boundary_of(all);
    }
    const Result whole = decode(all, all.size() + 1, boundary, limits);
    CHECK(whole.offset <= all.size());
    CHECK(whole.status != Status::kDone || whole.offset == all.size());
    for (const std::size_t by : {std::size_t{1}, step}) {
        const Result parts = decode(all, by, boundary, limits);
        CHECK(parts.status == whole.status && parts.fault == whole.fault);
        CHECK(parts.offset == whole.offset && parts.told == whole.told);
    }
    return 0;
}
