// httpmark-load: the load generator. Every response is verified; see load/response.hpp.
#include <signal.h>

#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "load/first_answers.hpp"
#include "load/options.hpp"
#include "load/process_cost.hpp"
#include "load/processes.hpp"
#include "load/report.hpp"
#include "load/start_gate.hpp"
#include "shared/flags.hpp"

namespace {

using namespace httpmark;

LoadReport report_of(const LoadOptions& options) {
    const LoadPlan& plan = options.plan;
    LoadReport report;
    report.url = options.url;
    report.connections = plan.connections;
    report.depth = plan.depth;
    report.threads = plan.threads;
    report.procs = options.procs;
    report.mode = plan.mode;
    report.rate = plan.rate;
    report.arrivals = plan.arrivals;
    report.refill = plan.refill;
    report.slice_s = plan.slice_s();
    return report;
}

void publish(const LoadReport& report, bool is_json) {
    const std::string text = is_json ? report_json(report) : report_text(report);
    std::fwrite(text.data(), 1, text.size(), stdout);
}

// Lays the load on, and puts what it did and what it cost into the report.
void lay_on(const LoadOptions& options, const std::vector<ResponseVerifier>& verifiers,
            LoadReport* report) {
    const LoadPlan& plan = options.plan;
    std::vector<int> server_pids;
    Books server_before;
    Books server_after;
    ProcessResult result;
    // Counted from the start of the window; threads and processes begun from here on are ours.
    const std::optional<EventCounter> own_events = EventCounter::instructions_of_self();
    std::optional<EventCounter> server_events;
    std::uint64_t own_before = 0;
    const bool has_server = !options.server_pids.empty();
    Hooks hooks;
    std::optional<StartGate> gate;
    if (options.start_fd >= 0) {
        gate.emplace(options.start_fd);
        hooks.start = [&](std::uint64_t earliest_ns) { return gate->wait(earliest_ns); };
    }
    hooks.connected = [&](std::size_t established) {
        if (gate) gate->tell(established);
        if (plan.mode == LoadMode::kClosed || plan.mode == LoadMode::kOpen) return;
        // Whoever samples the server's memory wants to know when to begin.
        std::fprintf(stderr, "httpmark-load: %zu connections established\n", established);
    };
    hooks.before_window = [&] {
        if (has_server) server_pids = process_tree(options.server_pids);
    };
    hooks.window = [&] {
        server_before = read_books(server_pids);
        server_events = EventCounter::instructions_of_processes(server_pids);
        if (own_events) own_before = own_events->read().value_or(0);
    };
    // While the connections are open: a thread or a process that a server has for one is still
    // there.
    hooks.drained = [&] {
        if (own_events) report->client_instructions = own_events->read();
        if (server_events) report->server_instructions = server_events->read();
        if (has_server) server_after = read_books_again(options.server_pids, server_before);
    };
    const bool is_run = run_processes(plan, options.procs, verifiers, hooks, &result);
    if (report->client_instructions) *report->client_instructions -= own_before;
    if (!is_run) die(kExitEnvironment, "a process of the generator could not be run to its end");
    if (gate) report->start_late_ns = gate->late_ns(result.began_ns);
    report->take(std::move(result));
    if (!has_server) return;
    // No cost is better than half of it.
    std::string complaint;
    report->server = cost_between(server_before, server_after, options.server_pids, &complaint);
    if (!report->server) report->counts.complaints.push_back(complaint);
}

int run(const LoadOptions& options) {
    LoadReport report = report_of(options);
    std::vector<ResponseVerifier> verifiers;
    if (!learn_first_answers(options.plan, &verifiers, &report)) {
        die(kExitEnvironment, report.failure);
    }
    if (!report.failure.empty()) {
        report.client_threads.resize(options.plan.threads);
        publish(report, options.is_json);
        std::fprintf(stderr, "httpmark-load: %s\n", report.failure.c_str());
        return kExitMismatch;
    }
    report.status = verifiers.front().status();
    report.has_date = verifiers.front().has_date();
    lay_on(options, verifiers, &report);
    if (report.established == 0) {
        die(kExitEnvironment,
            "no connection to " + options.plan.server.text() + " could be opened");
    }
    publish(report, options.is_json);
    return report.counts.errors.sum() == 0 ? kExitOk : kExitMismatch;
}

}  // namespace

int main(int argc, char** argv) {
    LoadOptions options = parse_load_options(argc, argv);
    if (options.tls) options.plan.tls = &*options.tls;
    signal(SIGPIPE, SIG_IGN);
    return run(options);
}
