#include "scan/scan.hpp"

namespace httpmark {

namespace {

constexpr const ScanKernel* kKernels[] = {
    &kScalarKernel,
#if defined(__x86_64__)
    &kSse42Kernel,
    &kAvx2Kernel,
    &kAvx512Kernel,
#endif
};

}  // namespace

std::span<const ScanKernel* const> scan_kernels() {
    return kKernels;
}

const ScanKernel* best_scan_kernel() {
    const ScanKernel* best = kKernels[0];
    for (const ScanKernel* kernel : kKernels) {
        if (kernel->supported()) best = kernel;
    }
    return best;
}

const ScanKernel* find_scan_kernel(std::string_view name) {
    for (const ScanKernel* kernel : kKernels) {
        if (name == kernel->name) return kernel->supported() ? kernel : nullptr;
    }
    return nullptr;
}

}  // namespace httpmark
