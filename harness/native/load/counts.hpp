// What the workers of a load run count.
#ifndef HTTPMARK_NATIVE_LOAD_COUNTS_HPP_
#define HTTPMARK_NATIVE_LOAD_COUNTS_HPP_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "load/histogram.hpp"
#include "load/process_cost.hpp"

namespace httpmark {

inline constexpr std::size_t kComplaintsMax = 5;
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
    std::uint64_t surplus = 0;  // bytes that nobody asked for

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
    std::map<int, std::uint64_t> statuses;  // errors.status by the status that came
    // Of errors.date: good Dates that the server should have renewed by then. The answers are right
    // otherwise, and are counted.
    std::uint64_t late_dates = 0;
    // Requests under way when the drain was over, on connections that still answered: slow, not
    // wrong.
    std::uint64_t unanswered = 0;
    // Requests under way when the drain was cut short, as answers still came: nothing is said of
    // them.
    std::uint64_t not_waited_for = 0;
    std::uint64_t closes_seen = 0;  // idle: connections the server ended while they were held
    std::uint64_t unsent = 0;       // open: due, and not sent in time to be answered
    std::uint64_t dropped = 0;      // open: due while backlog_max others were waiting
    std::uint64_t backlog_peak = 0;
    std::uint64_t due = 0;                 // open: in the window
    std::uint64_t due_in_second_half = 0;  // open: of the window
    std::uint64_t outstanding_middle =
        0;                              // open: due and not answered, in the middle of the window
    std::uint64_t outstanding_end = 0;  // open: likewise at its end, before the drain
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
    std::uint64_t began_ns = 0;    // the first request could go out
    std::uint64_t started_ns = 0;  // the end of the warm-up
    std::uint64_t stopped_ns = 0;  // the end of the window
    std::uint64_t drained_ns = 0;
};

}  // namespace httpmark

#endif  // HTTPMARK_NATIVE_LOAD_COUNTS_HPP_
