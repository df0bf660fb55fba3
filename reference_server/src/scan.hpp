// Class bitmaps: 64 octets in, one 64-bit mask per class out. The kernels differ in speed only.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace httpmark {

// Bit i speaks of octet i of the block.
struct BlockMasks {
    std::uint64_t token;
    std::uint64_t target;
    std::uint64_t forbidden;
    std::uint64_t colon;
    std::uint64_t cr;
    std::uint64_t lf;
    std::uint64_t percent;
};

// Each reads exactly 64 octets at `block`, which needs no alignment.
struct ScanKernel {
    const char* name;
    // All masks, for the block that holds a request-line.
    void (*classify)(const char* block, BlockMasks* masks);
    // The same without target and percent, which are left as they were: for field lines.
    void (*classify_fields)(const char* block, BlockMasks* masks);
    // HEXDIG; only asked for where there is a '%'.
    std::uint64_t (*hex)(const char* block);
    bool (*supported)();
};

// All kernels in this build, slowest first. The scalar one is always there and always runs.
std::span<const ScanKernel* const> scan_kernels();

// The fastest kernel this machine runs, or the one named; nullptr when it is unknown or does not
// run here.
const ScanKernel* best_scan_kernel();
const ScanKernel* find_scan_kernel(std::string_view name);

extern const ScanKernel kScalarKernel;
#if defined(__x86_64__)
extern const ScanKernel kSse42Kernel;
extern const ScanKernel kAvx2Kernel;
extern const ScanKernel kAvx512Kernel;
#endif

}  // namespace httpmark
