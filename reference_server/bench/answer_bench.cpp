// Nanoseconds from bytes to answer, without a kernel underneath: parser, routing, answer and what
// a connection keeps, over pipelined requests as a receive brings them, for every scan kernel that
// runs here. Routes take turns, so that what else the machine does falls on all of them; each is
// also told as a ratio to its twin: a GET /hello with as many bytes in the request (by its query)
// and in the answer. Also what a request allocates after a warm-up.
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <vector>

#include "app/router.hpp"
#include "check.hpp"
#include "example/application.hpp"
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
constexpr unsigned kManyRoutes = 500;     // literals, and as many patterns
constexpr std::size_t kHeadOfTwin = 102;  // with two digits of its length

enum class Routes : std::uint8_t { kExample, kMany, kOne };

struct Sample {
    std::string name;
    std::string request;
    Routes routes = Routes::kExample;  // kMany: 1,000 more
};

std::string get(const std::string& target, const std::string& fields = "") {
    return "GET " + target + " HTTP/1.1\r\nHost: 127.0.0.1:8080\r\n" + fields + "\r\n";
}

std::vector<Sample> samples() {
    const std::string length = "Content-Length: 12\r\n";
    const std::string content = "Hello World!";
    std::string nine_fields;
    for (char c = 'a'; c < 'j'; ++c) {
        nine_fields += std::string("X-Field-") + c + ": some value of it\r\n";
    }
    return {
        {"hello", get("/hello")},
        {"query", get("/hello?a=b")},
        {"ten-fields", get("/hello", nine_fields)},
        {"404", get("/404")},
        {"template", get("/users/12345/posts/6")},
        {"json", get("/echo?hello=world")},
        {"head", "HEAD" + get("/hello").substr(3)},
        {"post", "POST" + get("/body", length).substr(3) + content},
        {"post-hello", "POST" + get("/hello", length).substr(3) + content},
        {"post-fields", "POST" + get("/body", nine_fields + length).substr(3) + content},
        {"missing", get("/404"), Routes::kOne},
        {"405", "POST" + get("/get-only").substr(3)},
        {"parameter", get("/parameter?hello=world")},
        {"many", get("/many/number/250"), Routes::kMany},
        {"204", get("/204")},
        {"anything", get("/anything")},
        {"hello-many", get("/hello"), Routes::kMany},
        {"template-many", get("/users/12345/posts/6"), Routes::kMany},
    };
}

std::shared_ptr<const Router> built(Router::Builder& routes) {
    std::string error;
    auto router = routes.build(error);
    CHECK(router != nullptr);
    return router;
}

// The routes of the example, two more with handlers, and as many more as are asked for.
std::shared_ptr<const Router> make_router(unsigned more) {
    static constexpr auto kPlain = fixed_field("Content-Type", "text/plain");
    Router::Builder routes;
    example::add_routes(routes);
    routes.add(method_bit(Method::kGet), "/users/{user}/posts/{post}",
               [](const Request& request, ResponseWriter& writer) {
                   return writer.write(200, kPlain, request.value("user")) ? Reason::kNone
                                                                           : writer.fault();
               });
    routes.add(method_bit(Method::kGet), "/parameter",
               [](const Request& request, ResponseWriter& writer) {
                   const auto value = request.parameter("hello");
                   return value ? writer.answer(200, kPlain, *value) : Reason::kNotFound;
               });
    const Answer hello(200, {{"Content-Type", "text/plain"}}, "Hello World!");
    for (unsigned i = 0; i < more; ++i) {
        routes.add(kAnyMethod, "/many/number/" + std::to_string(i), hello);
        routes.add(kAnyMethod, "/many/{name}/of/" + std::to_string(i), hello);
    }
    return built(routes);
}

// /hello alone, with that much content.
std::shared_ptr<const Router> make_one(std::size_t size) {
    Router::Builder routes;
    routes.add(kAnyMethod, "/hello",
               Answer(200, {{"Content-Type", "text/plain"}}, std::string(size, 'x')));
    return built(routes);
}

// One connection that is asked one thing again and again.
class Run {
  public:
    Run(Sample sample, const ScanKernel& kernel, std::shared_ptr<const Router> router)
        : sample_(std::move(sample)), router_(std::move(router)) {
        for (std::size_t i = 0; i < kDepth; ++i) batch_ += sample_.request;
        settings_.kernel = &kernel;
        settings_.router = router_.get();
        connections_ = std::make_unique<Connections>(settings_, drain_, now_ms_);
        id_ = connections_->open(3, false);
        times_.reserve(kRounds);
    }
    // The first is the warm-up.
    void round() {
        const std::uint64_t before = allocations.load();
        const double begin = cpu_ns();
        for (unsigned i = 0; i < kBatches; ++i) {
            connections_->set_time(now_ms_++, 784111777);
            connections_->on_data(id_, batch_.data(), batch_.size());
            connections_->run_timers();
        }
        const double took = cpu_ns() - begin;
        ++rounds_;
        CHECK(connections_->counters().requests == std::uint64_t{rounds_} * kBatches * kDepth);
        if (rounds_ == 1) return;
        times_.push_back(took / (kBatches * kDepth));
        allocated_ += allocations.load() - before;
    }
    double median() const {
        std::vector<double> sorted = times_;
        std::sort(sorted.begin(), sorted.end());
        return sorted[sorted.size() / 2];
    }
    std::size_t answer_size() const { return drain_.octets / (rounds_ * kBatches * kDepth); }
    const Sample& sample() const { return sample_; }
    void print(const char* kernel, const Run& twin) const {
        const auto [low, high] = std::minmax_element(times_.begin(), times_.end());
        std::printf(
            "%-14s %-7s %7.1f ns a request (%.1f-%.1f), %.2f of its twin, %zu and %zu bytes, "
            "%llu allocations in %zu\n",
            sample_.name.c_str(), kernel, median(), *low, *high, median() / twin.median(),
            sample_.request.size(), answer_size(), static_cast<unsigned long long>(allocated_),
            times_.size() * kBatches * kDepth);
    }

  private:
    const Sample sample_;
    const std::shared_ptr<const Router> router_;
    std::string batch_;
    ServerSettings settings_;
    Drain drain_;
    std::uint64_t now_ms_ = 1000;
    std::unique_ptr<Connections> connections_;
    std::uint32_t id_ = 0;
    unsigned rounds_ = 0;
    std::uint64_t allocated_ = 0;
    std::vector<double> times_;
};

// After its first round: the GET /hello that is as long, and gets as much.
std::unique_ptr<Run> twin_of(const Run& run, const ScanKernel& kernel) {
    std::string request = get("/hello");
    const std::size_t size = run.sample().request.size();
    if (size > request.size())
        request = get("/hello?" + std::string(size - request.size() - 1, 'x'));
    const std::size_t answer = run.answer_size();
    std::size_t content = answer - std::min<std::size_t>(answer, kHeadOfTwin);
    return std::make_unique<Run>(Sample{"", request}, kernel, make_one(content));
}

}  // namespace

int main(int argc, char** argv) {
    // With arguments: only the kernel and the sample named, for a profiler; then without twins.
    const std::string_view only_kernel = argc > 1 ? argv[1] : "";
    const std::string_view only_sample = argc > 2 ? argv[2] : "";
    const std::shared_ptr<const Router> routers[] = {make_router(0), make_router(kManyRoutes),
                                                     make_one(12)};
    for (const ScanKernel* kernel : scan_kernels()) {
        if (!kernel->supported() || !std::string_view(kernel->name).starts_with(only_kernel)) {
            continue;
        }
        std::vector<std::unique_ptr<Run>> runs;
        std::vector<std::unique_ptr<Run>> twins;
        for (const Sample& sample : samples()) {
            if (!only_sample.empty() && sample.name != only_sample) continue;
            runs.push_back(std::make_unique<Run>(sample, *kernel,
                                                 routers[static_cast<std::size_t>(sample.routes)]));
        }
        for (unsigned round = 0; round <= kRounds; ++round) {
            for (const auto& run : runs) run->round();
            for (const auto& twin : twins) twin->round();
            if (round != 0 || !only_sample.empty()) continue;
            for (const auto& run : runs) {
                twins.push_back(twin_of(*run, *kernel));
                twins.back()->round();
            }
        }
        for (std::size_t i = 0; i < runs.size(); ++i) {
            runs[i]->print(kernel->name, only_sample.empty() ? *twins[i] : *runs[i]);
        }
    }
    return 0;
}
