// Nanoseconds and gigabytes a second of the head parser alone, for every kernel that runs here.
// Medians of interleaved rounds; the requests stand one behind the other in one buffer, as they do
// in a pipelined batch.
#include <algorithm>
#include <cstdio>
#include <ctime>
#include <string>
#include <string_view>
#include <vector>

#include "check.hpp"
#include "http/framing.hpp"
#include "http/parser.hpp"
#include "scan/scan.hpp"

namespace {

using namespace httpmark;

struct Sample {
    const char* name;
    std::string request;
};

std::vector<Sample> samples() {
    const std::string browser =
        "GET /wp-content/uploads/2010/03/hello-kitty-darth-vader-pink.jpg HTTP/1.1\r\n"
        "Host: www.kittyhell.com\r\n"
        "User-Agent: Mozilla/5.0 (Macintosh; U; Intel Mac OS X 10.6; ja-JP-mac; rv:1.9.2.3) "
        "Gecko/20100401 Firefox/3.6.3 Pathtraq/0.9\r\n"
        "Accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8\r\n"
        "Accept-Language: ja,en-us;q=0.7,en;q=0.3\r\n"
        "Accept-Encoding: gzip,deflate\r\n"
        "Accept-Charset: Shift_JIS,utf-8;q=0.7,*;q=0.7\r\n"
        "Keep-Alive: 115\r\n"
        "Connection: keep-alive\r\n"
        "Cookie: session=";
    const std::string tail = "\r\n\r\n";
    return {
        {"45 B hello", "GET /hello HTTP/1.1\r\nHost: 127.0.0.1:8080\r\n\r\n"},
        {"64 B health", "GET /health HTTP/1.1\r\nHost: localhost:65535\r\nAccept: */*\r\n\r\n"},
        {"326 B call",
         "POST /api/v2/items?name=a%20b%20c&limit=25&cursor=eyJpZCI6MTIzNDU2fQ%3D%3D HTTP/1.1\r\n"
         "Host: api.example.org\r\n"
         "User-Agent: example-client/4.2.1 (linux; x86_64)\r\n"
         "Accept: application/json, application/problem+json;q=0.9\r\n"
         "Authorization: Bearer 0123456789abcdef0123456789abcdef0123456789abcdef\r\n"
         "X-Request-Id: 8f14e45f-ceea-467f-a9b3-5c1b2e6d7a90\r\n\r\n"},
        {"720 B browser", browser + std::string(720 - browser.size() - tail.size(), 'k') + tail},
    };
}

// Of this thread: what else runs on the machine counts less than in time that passes.
double cpu_ns() {
    timespec now{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

bool wanted(std::string_view only, std::string_view name) {
    return only.empty() || name.starts_with(only);
}

double one_round(const std::string& buffer, std::size_t size, std::size_t count,
                 const ScanKernel& kernel, unsigned repeats) {
    const Limits limits;
    HeadParser parser;
    const double begin = cpu_ns();
    for (unsigned repeat = 0; repeat < repeats; ++repeat) {
        const char* p = buffer.data();
        const char* const end = p + buffer.size();
        while (p != end) {
            parser.reset();
            const ParseResult result = parser.parse(p, static_cast<std::size_t>(end - p), limits,
                                                    Strictness::kStrict, kernel);
            CHECK(result.verdict == Verdict::kAccepted && result.offset == size);
            CHECK(judge_head(parser.head(), limits, Strictness::kStrict, false) == Reason::kNone);
            p += result.offset;
        }
    }
    return (cpu_ns() - begin) / static_cast<double>(count * repeats);
}

}  // namespace

int main(int argc, char** argv) {
    // With arguments: only the kernel and the sample named, for a profiler.
    const std::string_view only_kernel = argc > 1 ? argv[1] : "";
    const std::string_view only_sample = argc > 2 ? argv[2] : "";
    constexpr std::size_t kBytes = 16 * 1024;  // stays in the first-level cache
    constexpr unsigned kRounds = 15;
    for (const Sample& sample : samples()) {
        if (!wanted(only_sample, sample.name)) continue;
        const std::size_t count = kBytes / sample.request.size();
        std::string buffer;
        for (std::size_t i = 0; i < count; ++i) buffer += sample.request;
        std::vector<std::vector<double>> times;
        for (unsigned round = 0; round < kRounds; ++round) {
            std::size_t k = 0;
            for (const ScanKernel* kernel : scan_kernels()) {
                if (!kernel->supported() || !wanted(only_kernel, kernel->name)) continue;
                if (times.size() <= k) times.emplace_back();
                times[k++].push_back(one_round(buffer, sample.request.size(), count, *kernel,
                                               only_kernel.empty() ? 200 : 2000));
            }
        }
        std::size_t k = 0;
        for (const ScanKernel* kernel : scan_kernels()) {
            if (!kernel->supported() || !wanted(only_kernel, kernel->name)) continue;
            auto& sorted = times[k++];
            std::sort(sorted.begin(), sorted.end());
            const double median = sorted[sorted.size() / 2];
            std::printf("%-14s %-7s %7.1f ns (%.1f-%.1f)  %5.2f GB/s\n", sample.name, kernel->name,
                        median, sorted.front(), sorted.back(),
                        static_cast<double>(sample.request.size()) / median);
        }
    }
    return 0;
}
