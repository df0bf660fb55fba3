// Class bitmaps: 64 bytes in, one 64-bit mask per class out. The kernels differ in speed only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace httpmark {

struct Limits;
struct ParseResult;
class HeadParser;
enum class Strictness : std::uint8_t;

// Bit i speaks of byte i of the block.
struct BlockMasks {
    std::uint64_t token;
    std::uint64_t target;
    std::uint64_t hex;
    std::uint64_t host;  // bytes of a host's name that need no further look
    std::uint64_t forbidden;
    std::uint64_t colon;
    std::uint64_t cr;
    std::uint64_t lf;
    std::uint64_t percent;
};

struct ScanKernel {
    const char* name;
    // HeadParser::parse() compiled for this kernel; scan/head.hpp.
    ParseResult (*parse)(HeadParser& parser, const char* data, std::size_t size,
                         const Limits& limits, Strictness strictness);
    // All masks of exactly 64 bytes at `block`, which needs no alignment; and of the first `size`
    // of them, where nothing beyond is read and all bits there are of bytes that are NUL.
    void (*classify)(const char* block, BlockMasks* masks);
    void (*classify_part)(const char* block, unsigned size, BlockMasks* masks);
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
