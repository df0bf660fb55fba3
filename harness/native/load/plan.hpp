// What a load run is asked to do.
#ifndef HTTPMARK_NATIVE_LOAD_PLAN_HPP_
#define HTTPMARK_NATIVE_LOAD_PLAN_HPP_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "load/source.hpp"
#include "shared/endpoint.hpp"
#include "shared/tls.hpp"

namespace httpmark {

enum class Refill : std::uint8_t {
    kBatch,   // the next requests go out when all answers are in (as wrk does)
    kWindow,  // every answer lets another request out
};

enum class LoadMode : std::uint8_t {
    kClosed,  // connections x depth requests are always under way
    kOpen,    // requests go out when they are due, whatever became of those before
    kIdle,    // one request on each connection, then the connections are held
    kChurn,   // each connection ends after depth requests, and the next one is opened
    kSlow,    // requests go out as long as the server takes them; nothing is read
};
enum class Arrivals : std::uint8_t { kConstant, kPoisson };

struct LoadRequest {
    std::string octets;
    bool is_head = false;
};

struct LoadPlan {
    Endpoint server;
    const TlsContext* tls = nullptr;    // absent: plain
    std::vector<LoadRequest> requests;  // sent in turn
    std::size_t connections = 1;        // of this process
    std::size_t depth = 1;
    std::size_t threads = 1;
    LoadMode mode = LoadMode::kClosed;
    Refill refill = Refill::kBatch;
    std::size_t split_bytes = 0;  // send so many bytes at a time, others' turns between; 0 = all
    double rate = 0;              // open: requests a second, of this process
    Arrivals arrivals = Arrivals::kConstant;
    std::uint64_t seed = 1;
    std::size_t backlog_max = 1'000'000;  // open: due requests that no connection was free for
    SourceRange source;
    std::size_t first_index = 0;  // of this process' connections among all processes'
    double phase = 0;             // open: of this schedule among those of all processes, 0 to 1
    int expected_status = 0;
    double warmup_s = 0;
    double duration_s = 1;
    // For one first answer, from its connection to its last byte.
    double first_answer_s = 10;
    double drain_s = 2;       // after the window, without a byte from anyone: then all is given up
    double drain_max_s = 30;  // likewise, however many answers still come
    // After so long a server that still answers is slow, not mute: the rest is not waited for.
    double drain_slow_s = 600;
    double connect_rate = 20'000;  // a second, so that no listen queue overflows

    // The window in slices of a second each, the last one shorter; of longer ones where it is long.
    double slice_s() const { return std::max(1.0, std::ceil(duration_s / kSlicesMax)); }
    std::size_t slices() const {
        return static_cast<std::size_t>(std::max(1.0, std::ceil(duration_s / slice_s())));
    }
    static constexpr double kSlicesMax = 120;  // 34 kB each, for each thread
};

}  // namespace httpmark

#endif  // HTTPMARK_NATIVE_LOAD_PLAN_HPP_
