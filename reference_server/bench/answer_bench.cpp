// Nanoseconds from bytes to answer, without a kernel underneath: parser, routing, answer and what
// a connection keeps, over pipelined requests as a receive brings them, for every scan kernel that
// runs here. Also what a request allocates after a warm-up.
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <new>
#include <string>
#include <string_view>
#include <vector>

#include "check.hpp"
#include "net/connection.hpp"
#include "scan/scan.hpp"

namespace {
std::atomic<std::uint64_t> allocations{0};
}  // namespace

void* operator new(std::size_t size) {
    allocations.fetch_add(1, std::memory_order_relaxed);
    if (void* block = std::malloc(size)) return block;
    throw std::bad_alloc();
}
void operator delete(void* block) noexcept {
    std::free(block);
}
void operator delete(void* block, std::size_t) noexcept {
    std::free(block);
}

namespace {

using namespace httpmark;

// Of this thread: what else runs on the machine counts less than in time that passes.
double cpu_ns() {
    timespec now{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

// Takes all and keeps nothing.
class Drain final : public Transport {
  public:
    std::ptrdiff_t send(std::uint32_t, const char*, std::size_t size) override {
        octets += size;
        return static_cast<std::ptrdiff_t>(size);
    }
    void set_interest(std::uint32_t, bool, bool) override {}
    void shutdown_write(std::uint32_t) override {}
    void close(std::uint32_t) override {}
    std::uint64_t octets = 0;
};

constexpr std::size_t kDepth = 256;
constexpr unsigned kBatches = 400;
constexpr unsigned kRounds = 15;

struct Sample {
    const char* name;
    const char* request;
};
constexpr Sample kSamples[] = {
    {"GET /hello", "GET /hello HTTP/1.1\r\nHost: 127.0.0.1:8080\r\n\r\n"},
    {"GET /echo", "GET /echo?a=1&b=two HTTP/1.1\r\nHost: 127.0.0.1:8080\r\n\r\n"},
    {"POST /body", "POST /body HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhello"},
};

}  // namespace

int main(int argc, char** argv) {
    // With arguments: only the kernel and the sample named, for a profiler.
    const std::string_view only_kernel = argc > 1 ? argv[1] : "";
    const std::string_view only_sample = argc > 2 ? argv[2] : "";
    for (const Sample& sample : kSamples) {
        if (!std::string_view(sample.name).ends_with(only_sample)) continue;
        std::string batch;
        for (std::size_t i = 0; i < kDepth; ++i) batch += sample.request;
        for (const ScanKernel* kernel : scan_kernels()) {
            if (!kernel->supported() || !std::string_view(kernel->name).starts_with(only_kernel)) {
                continue;
            }
            ServerSettings settings;
            settings.kernel = kernel;
            Drain drain;
            Connections connections(settings, drain, 1000);
            std::uint64_t now_ms = 1000;
            const std::uint32_t id = connections.open(3, false);
            std::vector<double> times;
            times.reserve(kRounds);
            std::uint64_t before = 0;
            for (unsigned round = 0; round <= kRounds; ++round) {
                if (round == 1) before = allocations.load();  // the first is the warm-up
                const double begin = cpu_ns();
                for (unsigned i = 0; i < kBatches; ++i) {
                    connections.set_time(now_ms++, 784111777);
                    connections.on_data(id, batch.data(), batch.size());
                    connections.run_timers();
                }
                const double took = cpu_ns() - begin;
                if (round != 0) times.push_back(took / (kBatches * kDepth));
            }
            const std::uint64_t allocated = allocations.load() - before;
            CHECK(connections.counters().requests == (kRounds + 1) * kBatches * kDepth);
            std::sort(times.begin(), times.end());
            std::printf("%-12s %-7s %7.1f ns a request (%.1f-%.1f), %llu allocations in %u\n",
                        sample.name, kernel->name, times[times.size() / 2], times.front(),
                        times.back(), static_cast<unsigned long long>(allocated),
                        kRounds * kBatches * static_cast<unsigned>(kDepth));
        }
    }
    return 0;
}
