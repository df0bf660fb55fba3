#include "load/process_result.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

namespace httpmark {
namespace {

// Numbers of eight bytes, texts with their length before them.

void put(std::string* out, std::uint64_t value) {
    out->append(reinterpret_cast<const char*>(&value), sizeof value);
}
void put_text(std::string* out, std::string_view text) {
    put(out, text.size());
    out->append(text);
}

struct Unpacker {
    std::string_view left;
    bool is_good = true;

    std::uint64_t number() {
        std::uint64_t value = 0;
        if (left.size() < sizeof value) {
            is_good = false;
            left = {};
            return 0;
        }
        std::memcpy(&value, left.data(), sizeof value);
        left.remove_prefix(sizeof value);
        return value;
    }
    std::string text() {
        const std::uint64_t size = number();
        if (size > left.size()) {
            is_good = false;
            left = {};
            return {};
        }
        const std::string value(left.substr(0, size));
        left.remove_prefix(size);
        return value;
    }
};

// Every number of LoadCounts and LoadErrors, in one order for both ways.
template <typename Counts, typename See>
void each_number(Counts& counts, See see) {
    see(counts.responses);
    see(counts.responses_in_window);
    see(counts.variants);
    see(counts.interim);
    see(counts.requests_sent);
    see(counts.bytes_sent);
    see(counts.bytes_received);
    see(counts.reads);
    see(counts.writes);
    see(counts.wakes);
    see(counts.reconnects);
    see(counts.resent);
    see(counts.unanswered);
    see(counts.not_waited_for);
    see(counts.closes_seen);
    see(counts.unsent);
    see(counts.dropped);
    see(counts.backlog_peak);
    see(counts.due);
    see(counts.due_in_second_half);
    see(counts.outstanding_middle);
    see(counts.outstanding_end);
    see(counts.errors.connect);
    see(counts.errors.closed);
    see(counts.errors.reset);
    see(counts.errors.lost);
    see(counts.errors.timeout);
    see(counts.errors.status);
    see(counts.errors.framing);
    see(counts.errors.body);
    see(counts.errors.order);
    see(counts.errors.date);
    see(counts.errors.surplus);
    see(counts.late_dates);
    see(counts.balance.connections);
    see(counts.balance.least);
    see(counts.balance.most);
}

template <typename Counts, typename See>
void each_histogram(Counts& counts, See see) {
    see(counts.response);
    see(counts.batch);
    see(counts.service);
    see(counts.lag);
    see(counts.connect);
    see(counts.handshake);
}

}  // namespace

void ProcessResult::add(const ProcessResult& other) {
    counts.add(other.counts);
    established += other.established;
    cpu_ns += other.cpu_ns;
    context_switches += other.context_switches;
    began_ns = std::max(began_ns, other.began_ns);
    seconds = std::max(seconds, other.seconds);
    drain_seconds = std::max(drain_seconds, other.drain_seconds);
    threads.insert(threads.end(), other.threads.begin(), other.threads.end());
}

std::string pack(const ProcessResult& result) {
    std::string out;
    each_number(result.counts, [&](std::uint64_t value) { put(&out, value); });
    each_histogram(result.counts,
                   [&](const Histogram& histogram) { put_text(&out, histogram.pack()); });
    put(&out, result.counts.slices.size());
    for (const Histogram& slice : result.counts.slices) put_text(&out, slice.pack());
    put(&out, result.counts.statuses.size());
    for (const auto& [status, count] : result.counts.statuses) {
        put(&out, static_cast<std::uint64_t>(status));
        put(&out, count);
    }
    put(&out, result.counts.complaints.size());
    for (const std::string& complaint : result.counts.complaints) put_text(&out, complaint);
    put(&out, std::bit_cast<std::uint64_t>(result.counts.balance.sum));
    put(&out, std::bit_cast<std::uint64_t>(result.counts.balance.sum_of_squares));
    put(&out, result.established);
    put(&out, result.cpu_ns);
    put(&out, result.context_switches);
    put(&out, result.began_ns);
    put(&out, std::bit_cast<std::uint64_t>(result.seconds));
    put(&out, std::bit_cast<std::uint64_t>(result.drain_seconds));
    put(&out, result.threads.size());
    for (const TaskCost& thread : result.threads) {
        put(&out, thread.on_cpu_ns);
        put(&out, thread.run_delay_ns);
        put(&out, thread.context_switches);
    }
    return out;
}

bool unpack(std::string_view octets, ProcessResult* result) {
    *result = ProcessResult();
    Unpacker in{octets};
    each_number(result->counts, [&](std::uint64_t& value) { value = in.number(); });
    each_histogram(result->counts, [&](Histogram& histogram) {
        if (!histogram.unpack(in.text())) in.is_good = false;
    });
    for (std::uint64_t count = in.number(); count != 0 && in.is_good; --count) {
        Histogram slice(kSliceCoarseBits);
        if (!slice.unpack(in.text())) in.is_good = false;
        result->counts.slices.push_back(std::move(slice));
    }
    for (std::uint64_t count = in.number(); count != 0 && in.is_good; --count) {
        const auto status = static_cast<int>(in.number());
        result->counts.statuses[status] = in.number();
    }
    for (std::uint64_t count = in.number(); count != 0 && in.is_good; --count) {
        result->counts.complaints.push_back(in.text());
    }
    result->counts.balance.sum = std::bit_cast<double>(in.number());
    result->counts.balance.sum_of_squares = std::bit_cast<double>(in.number());
    result->established = in.number();
    result->cpu_ns = in.number();
    result->context_switches = in.number();
    result->began_ns = in.number();
    result->seconds = std::bit_cast<double>(in.number());
    result->drain_seconds = std::bit_cast<double>(in.number());
    for (std::uint64_t count = in.number(); count != 0 && in.is_good; --count) {
        TaskCost thread;
        thread.on_cpu_ns = in.number();
        thread.run_delay_ns = in.number();
        thread.context_switches = in.number();
        result->threads.push_back(thread);
    }
    return in.is_good && in.left.empty();
}

}  // namespace httpmark
