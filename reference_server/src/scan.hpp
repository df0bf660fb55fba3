// Class bitmaps: 64 octets in, one 64-bit mask per class out. The kernels differ in speed only.
#pragma once

#include <cstdint>
#include <string_view>

namespace httpmark {

// Bit i speaks of octet i of the block.
struct BlockMasks {
    std::uint64_t token;
    std::uint64_t target;
    std::uint64_t hex;
    std::uint64_t forbidden;
    std::uint64_t colon;
    std::uint64_t cr;
    std::uint64_t lf;
    std::uint64_t percent;
};

// Reads exactly 64 octets at `block`, which needs no alignment.
using ClassifyBlock = void (*)(const char* block, BlockMasks* masks);

struct ScanKernel {
    const char* name;
    ClassifyBlock classify;
    bool (*supported)();
};

// All kernels in this build, slowest first. The scalar one is always there and always runs.
struct ScanKernelList {
    const ScanKernel* first;
    const ScanKernel* last;
    const ScanKernel* begin() const { return first; }
    const ScanKernel* end() const { return last; }
};
ScanKernelList scan_kernels();

// The fastest kernel this machine runs, or the one named; nullptr when it is unknown or does not
// run here.
const ScanKernel* best_scan_kernel();
const ScanKernel* find_scan_kernel(std::string_view name);

void classify_scalar(const char* block, BlockMasks* masks);
#if defined(__x86_64__)
void classify_sse42(const char* block, BlockMasks* masks);
void classify_avx2(const char* block, BlockMasks* masks);
void classify_avx512(const char* block, BlockMasks* masks);
#endif

}  // namespace httpmark
