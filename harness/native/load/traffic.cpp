// The turns of a run: the window begins and ends, and what is left over is counted.
#include "load/traffic.hpp"

#include <algorithm>
#include <utility>

#include "shared/clock.hpp"

namespace httpmark {
namespace {

constexpr std::size_t kReceiveBytes = 256 * 1024;

}  // namespace

Traffic::Traffic(const LoadPlan& plan, std::size_t connections,
                 const std::vector<ResponseVerifier>& verifiers, std::size_t first_index,
                 std::size_t number)
    : plan_(plan),
      counts_from_due_(plan.mode == LoadMode::kOpen),
      first_index_(plan.first_index + first_index),
      number_(number),
      connections_(connections),
      verifiers_(verifiers),
      dates_(verifiers.size()),
      receive_(kReceiveBytes),
      mode_(make_mode(this)) {
    for (std::size_t i = 0; i < plan_.depth + plan_.requests.size(); ++i) {
        block_at_.push_back(block_.size());
        block_ += plan_.requests[i % plan_.requests.size()].octets;
    }
    block_at_.push_back(block_.size());
    // Now, and not in the window.
    result_.counts.slices.assign(plan_.slices(), Histogram(kSliceCoarseBits));
    for (std::size_t i = 0; i < connections; ++i) {
        connections_[i].index = static_cast<std::uint32_t>(i);
        // A window can be as many groups as it has requests; a batch is one.
        const bool is_batch = plan_.refill == Refill::kBatch && plan_.mode != LoadMode::kOpen;
        connections_[i].groups.set_capacity(is_batch ? 1 : plan_.depth);
    }
}

Traffic::~Traffic() {
    close_all();
}

void Traffic::begin_window(std::uint64_t now_ns) {
    // Errors are errors, in the warm-up, too.
    LoadCounts counts;
    counts.complaints = std::move(result_.counts.complaints);
    counts.errors = result_.counts.errors;
    counts.reconnects = result_.counts.reconnects;
    counts.slices = std::move(result_.counts.slices);
    if (!mode_->measures_connects()) {
        counts.connect = std::move(result_.counts.connect);
        counts.handshake = std::move(result_.counts.handshake);
    }
    result_.counts = std::move(counts);
    for (LoadConnection& connection : connections_) connection.responses = 0;
    result_.started_ns = now_ns;
    result_.cost = cost_of_this_thread();
    is_in_window_ = true;
    slice_end_ns_ = now_ns + ns_of(plan_.slice_s());
}

void Traffic::end_window(std::uint64_t now_ns) {
    is_sending_ = false;
    is_in_window_ = false;
    result_.counts.responses_in_window = result_.counts.responses;
    result_.stopped_ns = now_ns;
}

// In an open loop there is also the time that requests have waited: a server does not get better
// percentiles by not answering.
void Traffic::account_for_unanswered(std::uint64_t now_ns) {
    LoadCounts& counts = result_.counts;
    const std::uint64_t patience_ns = ns_of(plan_.drain_s);
    const bool is_mute = now_ns >= std::max(result_.stopped_ns, heard_ns_) + patience_ns;
    for (const LoadConnection& connection : connections_) {
        // One from which nothing came in the whole drain is not slow either.
        const bool is_lost = is_mute || (now_ns >= result_.stopped_ns + patience_ns &&
                                         connection.heard_ns < result_.stopped_ns);
        (is_cut_short_ ? counts.not_waited_for
         : is_lost     ? counts.errors.timeout
                       : counts.unanswered) += connection.unanswered;
        if (!counts_from_due_) continue;
        for (std::uint32_t i = 0; i < connection.groups.count(); ++i) {
            const SendGroup& group = connection.groups.at(i);
            if (group.at_ns < result_.started_ns) continue;
            counts.response.add(now_ns - group.at_ns, group.count);
            counts.service.add(now_ns - group.sent_ns, group.count);
        }
    }
}

}  // namespace httpmark
