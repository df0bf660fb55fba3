#include "../scan.hpp"
#include "../syntax.hpp"

namespace httpmark {

namespace {

void classify(const char* block, BlockMasks* masks) {
    BlockMasks out{};
    for (unsigned i = 0; i < 64; ++i) {
        const unsigned char c = octet(block[i]);
        const std::uint64_t classes = kClassTable[c];
        out.token |= (classes & kClassToken) << i;
        out.target |= ((classes & kClassTarget) / kClassTarget) << i;
        out.forbidden |= ((classes & kClassForbidden) / kClassForbidden) << i;
        out.colon |= std::uint64_t{c == ':'} << i;
        out.cr |= std::uint64_t{c == '\r'} << i;
        out.lf |= std::uint64_t{c == '\n'} << i;
        out.percent |= std::uint64_t{c == '%'} << i;
    }
    *masks = out;
}

void classify_fields(const char* block, BlockMasks* masks) {
    BlockMasks out{};
    for (unsigned i = 0; i < 64; ++i) {
        const unsigned char c = octet(block[i]);
        const std::uint64_t classes = kClassTable[c];
        out.token |= (classes & kClassToken) << i;
        out.forbidden |= ((classes & kClassForbidden) / kClassForbidden) << i;
        out.colon |= std::uint64_t{c == ':'} << i;
        out.cr |= std::uint64_t{c == '\r'} << i;
        out.lf |= std::uint64_t{c == '\n'} << i;
    }
    out.target = masks->target;
    out.percent = masks->percent;
    *masks = out;
}

std::uint64_t hex(const char* block) {
    std::uint64_t mask = 0;
    for (unsigned i = 0; i < 64; ++i) {
        mask |= std::uint64_t{is_hexdig(octet(block[i]))} << i;
    }
    return mask;
}

bool supported() {
    return true;
}

}  // namespace

const ScanKernel kScalarKernel = {"scalar", classify, classify_fields, hex, supported};

}  // namespace httpmark
