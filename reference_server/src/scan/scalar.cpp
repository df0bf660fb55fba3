#include "../scan.hpp"
#include "../syntax.hpp"

namespace httpmark {

void classify_scalar(const char* block, BlockMasks* masks) {
    BlockMasks out{};
    for (unsigned i = 0; i < 64; ++i) {
        const unsigned char c = octet(block[i]);
        const std::uint64_t classes = kClassTable[c];
        out.token |= (classes & 1) << i;
        out.target |= ((classes >> 1) & 1) << i;
        out.hex |= ((classes >> 2) & 1) << i;
        out.forbidden |= ((classes >> 3) & 1) << i;
        out.colon |= std::uint64_t{c == ':'} << i;
        out.cr |= std::uint64_t{c == '\r'} << i;
        out.lf |= std::uint64_t{c == '\n'} << i;
        out.percent |= std::uint64_t{c == '%'} << i;
    }
    *masks = out;
}

}  // namespace httpmark
