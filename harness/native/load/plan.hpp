// What a load run is asked to do, and what its workers count.
#ifndef HTTPMARK_NATIVE_LOAD_PLAN_HPP_
#define HTTPMARK_NATIVE_LOAD_PLAN_HPP_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "load/histogram.hpp"
#include "load/process_cost.hpp"
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
  std::size_t split_bytes = 0;  // send so many octets at a time, others' turns between; 0 = all
  double rate = 0;              // open: requests a second, of this process
  Arrivals arrivals = Arrivals::kConstant;
  std::uint64_t seed = 1;
  std::size_t backlog_max = 1'000'000;  // open: due requests that no connection was free for
  SourceRange source;
  std::size_t first_index = 0;  // of this process' connections among all processes'
  double phase = 0;             // open: of this process' schedule among all, 0 to 1
  int expected_status = 0;
  double warmup_s = 0;
  double duration_s = 1;
  double drain_s = 2;       // behind the window, without an octet from anyone: then all is given up
  double drain_max_s = 30;  // likewise, however many answers still come
  double connect_rate = 20'000;  // a second, so that no listen queue overflows

  // The window in slices of a second each, the last one shorter; of longer ones where it is long.
  double slice_s() const { return std::max(1.0, std::ceil(duration_s / kSlicesMax)); }
  std::size_t slices() const {
    return static_cast<std::size_t>(std::max(1.0, std::ceil(duration_s / slice_s())));
  }
  static constexpr double kSlicesMax = 120;  // 34 kB each, for each thread
};

inline constexpr unsigned kSliceCoarseBits = 3;

struct LoadErrors {
  std::uint64_t connect = 0;
  std::uint64_t closed = 0;  // FIN with requests unanswered and no close announced
  std::uint64_t reset = 0;
  std::uint64_t lost = 0;     // requests sent, and the connection ended before their answer
  std::uint64_t timeout = 0;  // requests that the server had stopped to answer
  std::uint64_t status = 0;
  std::uint64_t framing = 0;
  std::uint64_t body = 0;
  std::uint64_t order = 0;  // the content is that of another request's answer
  std::uint64_t date = 0;
  std::uint64_t surplus = 0;  // octets nobody asked for

  std::uint64_t sum() const {
    return connect + closed + reset + lost + timeout + status + framing + body + order + date +
           surplus;
  }
  void add(const LoadErrors& other);
};

// How evenly the responses fell on the connections: servers that share a port among workers give
// some clients more than others.
struct Balance {
  std::uint64_t connections = 0;
  std::uint64_t least = 0;
  std::uint64_t most = 0;
  double sum = 0;
  double sum_of_squares = 0;

  void add(std::uint64_t responses);
  void merge(const Balance& other);
  // Jain's index: 1 when all are equal, 1/n when one has all.
  double jain_index() const;
};

// Counted from the end of the warm-up on.
struct LoadCounts {
  std::uint64_t responses = 0;            // verified, drain included
  std::uint64_t responses_in_window = 0;  // verified before the window's end
  std::uint64_t variants = 0;
  std::uint64_t interim = 0;
  std::uint64_t requests_sent = 0;
  std::uint64_t bytes_sent = 0;
  std::uint64_t bytes_received = 0;
  std::uint64_t reads = 0;
  std::uint64_t writes = 0;
  std::uint64_t wakes = 0;
  std::uint64_t reconnects = 0;
  // Requests that went out once more: the server had announced the close of their connection, and
  // so that it would not look at them (RFC 9112 section 9.6). Their time runs on meanwhile.
  std::uint64_t resent = 0;
  LoadErrors errors;
  // Requests under way when the drain was over, on connections that still answered: slow, not
  // wrong.
  std::uint64_t unanswered = 0;
  std::uint64_t closes_seen = 0;  // idle: connections the server ended while they were held
  std::uint64_t unsent = 0;       // open: due, and not sent in time to be answered
  std::uint64_t dropped = 0;      // open: due while backlog_max others were waiting
  std::uint64_t backlog_peak = 0;
  std::uint64_t due = 0;                 // open: in the window
  std::uint64_t due_in_second_half = 0;  // open: of the window
  std::uint64_t outstanding_middle = 0;  // open: due and not answered, in the middle of the window
  std::uint64_t outstanding_end = 0;     // open: likewise at its end, before the drain
  Histogram response;  // each response, from the send of its request; open: from when it was due
  Histogram service;   // open: from the send
  Histogram lag;  // open: from when a request was due until it was sent, or no room seen for it
  Histogram handshake;  // TLS: each handshake, without the connect
  Histogram connect;    // each connect
  Histogram batch;      // refill batch only: from the send to the last answer of a batch
  // `response`, cut by when the answers came; what came in the drain is in none of them.
  std::vector<Histogram> slices;
  Balance balance;                      // set at the end
  std::vector<std::string> complaints;  // the first few errors, in words

  void add(const LoadCounts& other);
};

struct WorkerResult {
  LoadCounts counts;
  std::size_t established = 0;
  TaskCost cost;                 // from the end of the warm-up to the end of the drain
  std::uint64_t started_ns = 0;  // the end of the warm-up
  std::uint64_t stopped_ns = 0;  // the end of the window
  std::uint64_t drained_ns = 0;
};

}  // namespace httpmark

#endif  // HTTPMARK_NATIVE_LOAD_PLAN_HPP_
