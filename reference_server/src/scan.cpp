#include "scan.hpp"

#include <iterator>

namespace httpmark {

namespace {

bool always() { return true; }
#if defined(__x86_64__)
bool has_sse42() { return __builtin_cpu_supports("sse4.2") != 0; }
bool has_avx2() { return __builtin_cpu_supports("avx2") != 0; }
bool has_avx512() {
    return __builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512bw") != 0 &&
           __builtin_cpu_supports("avx512vbmi") != 0;
}
#endif

constexpr ScanKernel kKernels[] = {
    {"scalar", classify_scalar, always},
#if defined(__x86_64__)
    {"sse42", classify_sse42, has_sse42},
    {"avx2", classify_avx2, has_avx2},
    {"avx512", classify_avx512, has_avx512},
#endif
};

}  // namespace

ScanKernelList scan_kernels() { return {std::begin(kKernels), std::end(kKernels)}; }

const ScanKernel* best_scan_kernel() {
    const ScanKernel* best = kKernels;
    for (const ScanKernel& kernel : kKernels) {
        if (kernel.supported()) best = &kernel;
    }
    return best;
}

const ScanKernel* find_scan_kernel(std::string_view name) {
    for (const ScanKernel& kernel : kKernels) {
        if (name == kernel.name) return kernel.supported() ? &kernel : nullptr;
    }
    return nullptr;
}

}  // namespace httpmark
