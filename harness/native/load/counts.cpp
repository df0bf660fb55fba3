#include "load/counts.hpp"

#include <algorithm>

namespace httpmark {

void Balance::add(std::uint64_t responses) {
    least = connections == 0 ? responses : std::min(least, responses);
    most = std::max(most, responses);
    ++connections;
    const auto value = static_cast<double>(responses);
    sum += value;
    sum_of_squares += value * value;
}

void Balance::merge(const Balance& other) {
    if (other.connections == 0) return;
    least = connections == 0 ? other.least : std::min(least, other.least);
    most = std::max(most, other.most);
    connections += other.connections;
    sum += other.sum;
    sum_of_squares += other.sum_of_squares;
}

double Balance::jain_index() const {
    if (sum_of_squares <= 0) return 1;
    return sum * sum / (static_cast<double>(connections) * sum_of_squares);
}

void LoadErrors::add(const LoadErrors& other) {
    connect += other.connect;
    closed += other.closed;
    reset += other.reset;
    lost += other.lost;
    timeout += other.timeout;
    status += other.status;
    framing += other.framing;
    body += other.body;
    order += other.order;
    date += other.date;
    surplus += other.surplus;
}

void LoadCounts::add(const LoadCounts& other) {
    responses += other.responses;
    responses_in_window += other.responses_in_window;
    variants += other.variants;
    interim += other.interim;
    requests_sent += other.requests_sent;
    bytes_sent += other.bytes_sent;
    bytes_received += other.bytes_received;
    reads += other.reads;
    writes += other.writes;
    wakes += other.wakes;
    reconnects += other.reconnects;
    unanswered += other.unanswered;
    not_waited_for += other.not_waited_for;
    closes_seen += other.closes_seen;
    unsent += other.unsent;
    dropped += other.dropped;
    backlog_peak += other.backlog_peak;
    due += other.due;
    due_in_second_half += other.due_in_second_half;
    outstanding_middle += other.outstanding_middle;
    outstanding_end += other.outstanding_end;
    resent += other.resent;
    errors.add(other.errors);
    for (const auto& [status, count] : other.statuses) statuses[status] += count;
    late_dates += other.late_dates;
    balance.merge(other.balance);
    response.merge(other.response);
    batch.merge(other.batch);
    service.merge(other.service);
    lag.merge(other.lag);
    connect.merge(other.connect);
    handshake.merge(other.handshake);
    slices.resize(std::max(slices.size(), other.slices.size()), Histogram(kSliceCoarseBits));
    for (std::size_t i = 0; i < other.slices.size(); ++i) slices[i].merge(other.slices[i]);
    for (const std::string& complaint : other.complaints) {
        if (complaints.size() < kComplaintsMax) complaints.push_back(complaint);
    }
}

}  // namespace httpmark
