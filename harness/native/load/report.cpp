#include "load/report.hpp"

#include <algorithm>
#include <cinttypes>
#include <cmath>
#include <cstdarg>
#include <cstdio>
#include <utility>

namespace httpmark {
namespace {

constexpr std::size_t kServerThreadsShown = 64;
// What threads that have ended waited for, and how often they were switched, the kernel has
// forgotten: above this share of theirs the sums of those that live say nothing.
constexpr double kEndedShareMax = 0.1;
// Open loop: less than 99 % of what came was served. Of few requests some are always under way, and
// how many varies: within three times the square root it is chance.
constexpr double kShortfallMax = 0.01;
constexpr double kChance = 3;

std::string quoted(const std::string& text) {
    std::string out = "\"";
    for (const char c : text) {
        char escaped[8];
        if (c == '"' || c == '\\') {
            out += '\\';
            out += c;
        } else if (static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) >= 0x7f) {
            std::snprintf(escaped, sizeof escaped, "\\u%04x", static_cast<unsigned char>(c));
            out += escaped;
        } else {
            out += c;
        }
    }
    out += '"';
    return out;
}

std::string decimal(double value) {
    char text[64];
    std::snprintf(text, sizeof text, "%.6g", value);
    return text;
}

// Keeps the order in which members were added.
class JsonObject {
  public:
    JsonObject& raw(const char* key, const std::string& value) {
        text_ += text_.empty() ? "{" : ", ";
        text_ += quoted(key);
        text_ += ": ";
        text_ += value;
        return *this;
    }
    JsonObject& text(const char* key, const std::string& value) { return raw(key, quoted(value)); }
    JsonObject& number(const char* key, std::uint64_t value) {
        return raw(key, std::to_string(value));
    }
    JsonObject& number(const char* key, double value) { return raw(key, decimal(value)); }
    std::string done() const { return text_.empty() ? "{}" : text_ + "}"; }

  private:
    std::string text_;
};

double per(double value, std::uint64_t count) {
    return count == 0 ? 0 : value / static_cast<double>(count);
}

// What there is none of has no cost: null, never 0.
std::string per_json(std::uint64_t value, std::uint64_t count) {
    return count == 0 ? "null" : decimal(per(static_cast<double>(value), count));
}

std::string latency_json(const Histogram& histogram) {
    if (histogram.total() == 0) return "null";
    const auto us = [&](double percent) {
        return static_cast<double>(histogram.percentile(percent)) / 1000;
    };
    JsonObject object;
    object.number("mean", histogram.mean() / 1000);
    object.number("p50", us(50)).number("p90", us(90)).number("p99", us(99));
    object.number("p99_9", us(99.9)).number("max", static_cast<double>(histogram.max()) / 1000);
    return object.done();
}

// The window second by second, so that a drift within it can be seen.
std::string slices_json(const LoadReport& report) {
    const std::vector<Histogram>& slices = report.counts.slices;
    std::string list = "[";
    for (std::size_t i = 0; i < slices.size(); ++i) {
        const double begin = static_cast<double>(i) * report.slice_s;
        if (begin >= report.seconds) break;  // all connections were lost before it
        const double left = report.seconds - begin;
        JsonObject object;
        object.number("seconds", i + 1 < slices.size() ? std::min(report.slice_s, left) : left);
        object.number("requests", slices[i].total()).raw("latency_us", latency_json(slices[i]));
        if (list.size() > 1) list += ", ";
        list += object.done();
    }
    return list + "]";
}

std::string encoded(const Histogram& histogram) {
    return histogram.total() == 0 ? "null" : quoted(histogram.encode());
}

std::string threads_json(const std::vector<TaskCost>& threads, double wall_ns) {
    std::string list = "[";
    for (const TaskCost& thread : threads) {
        JsonObject object;
        const double share = wall_ns > 0 ? 1 / wall_ns : 0;
        object.number("on_cpu_ratio", static_cast<double>(thread.on_cpu_ns) * share);
        object.number("run_delay_ratio", static_cast<double>(thread.run_delay_ns) * share);
        if (list.size() > 1) list += ", ";
        list += object.done();
    }
    return list + "]";
}

TaskCost sum_of(const std::vector<TaskCost>& threads) {
    TaskCost sum;
    for (const TaskCost& thread : threads) {
        sum.on_cpu_ns += thread.on_cpu_ns;
        sum.run_delay_ns += thread.run_delay_ns;
        sum.context_switches += thread.context_switches;
    }
    return sum;
}

const char* mode_name(LoadMode mode) {
    switch (mode) {
        case LoadMode::kClosed:
            return "closed";
        case LoadMode::kOpen:
            return "open";
        case LoadMode::kIdle:
            return "idle";
        case LoadMode::kChurn:
            return "churn";
        case LoadMode::kSlow:
            return "slow";
    }
    return "";
}

const char* refill_name(Refill refill) {
    return refill == Refill::kBatch ? "batch" : "window";
}

std::string errors_json(const LoadErrors& errors) {
    JsonObject object;
    object.number("connect", errors.connect).number("closed", errors.closed);
    object.number("reset", errors.reset).number("lost", errors.lost);
    object.number("timeout", errors.timeout);
    object.number("status", errors.status).number("framing", errors.framing);
    object.number("body", errors.body).number("order", errors.order);
    object.number("date", errors.date).number("surplus", errors.surplus);
    return object.done();
}

std::string statuses_json(const std::map<int, std::uint64_t>& statuses) {
    JsonObject object;
    for (const auto& [status, count] : statuses) {
        object.number(std::to_string(status).c_str(), count);
    }
    return object.done();
}

// --- sections of the JSON object, in their order

void add_run(const LoadReport& report, JsonObject* object) {
    const LoadCounts& counts = report.counts;
    object->text("url", report.url);
    if (!report.failure.empty()) object->text("failure", report.failure);
    object->number("requests", counts.responses);
    object->number("requests_in_window", counts.responses_in_window);
    object->number("seconds", report.seconds).number("drain_seconds", report.drain_seconds);
    object->number("requests_per_second", report.requests_per_second());
    object->number("connections", std::uint64_t{report.connections});
    object->number("established", std::uint64_t{report.established});
    object->number("depth", std::uint64_t{report.depth});
    object->text("mode", mode_name(report.mode));
    object->raw("refill", report.mode == LoadMode::kClosed ? quoted(refill_name(report.refill))
                                                           : std::string("null"));
    const bool is_open = report.mode == LoadMode::kOpen;
    object->raw("rate", is_open ? decimal(report.rate) : "null");
    object->raw("arrivals", !is_open                                 ? "null"
                            : report.arrivals == Arrivals::kConstant ? quoted("constant")
                                                                     : quoted("poisson"));
    object->raw("start_late_us",
                report.start_late_ns ? per_json(*report.start_late_ns, 1000) : "null");
    object->number("procs", std::uint64_t{report.procs});
    object->number("threads", std::uint64_t{report.threads});
    object->number("status", static_cast<std::uint64_t>(report.status));
    object->raw("has_date", report.has_date ? "true" : "false");
}

void add_counts(const LoadCounts& counts, JsonObject* object) {
    object->raw("errors", errors_json(counts.errors));
    object->raw("statuses", statuses_json(counts.statuses));
    object->number("late_dates", counts.late_dates);
    std::string complaints = "[";
    for (const std::string& complaint : counts.complaints) {
        if (complaints.size() > 1) complaints += ", ";
        complaints += quoted(complaint);
    }
    object->raw("complaints", complaints + "]");
    object->number("variants", counts.variants).number("interim", counts.interim);
    object->number("reconnects", counts.reconnects).number("resent", counts.resent);
    object->number("unanswered", counts.unanswered);
    object->number("not_waited_for", counts.not_waited_for);
    object->number("requests_sent", counts.requests_sent);
    object->number("bytes_sent", counts.bytes_sent);
    object->number("bytes_received", counts.bytes_received);
}

// What the server's processes used, as JSON each; null: not known.
struct ServerCost {
    std::string cpu_ns = "null";
    std::string ended_ns = "null";
    std::string cpu_ns_each = "null";
    std::string switches = "null";
    std::string on_cpu = "null";
    std::string delay = "null";
    std::string threads = "null";
};

ServerCost server_cost(const LoadReport& report, double wall_ns) {
    ServerCost cost;
    if (!report.server) return cost;
    const TreeCost& server = *report.server;
    const double share = wall_ns > 0 ? 1 / wall_ns : 0;
    const TaskCost sum = sum_of(server.threads);
    cost.cpu_ns = std::to_string(server.cpu_ns);
    cost.ended_ns = std::to_string(server.ended_ns);
    cost.cpu_ns_each = per_json(server.cpu_ns, report.counts.responses);
    cost.on_cpu = decimal(static_cast<double>(server.cpu_ns) * share);
    if (static_cast<double>(server.ended_ns) <=
        kEndedShareMax * static_cast<double>(server.cpu_ns)) {
        cost.switches = std::to_string(sum.context_switches);
        cost.delay = decimal(static_cast<double>(sum.run_delay_ns) * share);
    }
    std::vector<TaskCost> busiest = server.threads;
    std::sort(busiest.begin(), busiest.end(),
              [](const TaskCost& a, const TaskCost& b) { return a.on_cpu_ns > b.on_cpu_ns; });
    busiest.resize(std::min(busiest.size(), kServerThreadsShown));
    cost.threads = threads_json(busiest, wall_ns);
    return cost;
}

void add_costs(const LoadReport& report, JsonObject* object) {
    const std::uint64_t responses = report.counts.responses;
    const double wall_ns = (report.seconds + report.drain_seconds) * 1e9;
    const ServerCost server = server_cost(report, wall_ns);
    JsonObject cpu;
    cpu.number("client", report.client_cpu_ns);
    cpu.raw("server", server.cpu_ns).raw("server_ended", server.ended_ns);
    JsonObject cpu_each;
    cpu_each.raw("client", per_json(report.client_cpu_ns, responses));
    cpu_each.raw("server", server.cpu_ns_each);
    object->raw("cpu_ns", cpu.done()).raw("cpu_ns_per_request", cpu_each.done());
    const auto instructions = [&](const std::optional<std::uint64_t>& count) {
        return count ? per_json(*count, responses) : std::string("null");
    };
    JsonObject executed;
    executed.raw("client", instructions(report.client_instructions));
    executed.raw("server", instructions(report.server_instructions));
    object->raw("instructions_per_request", executed.done());
    object->raw("server_on_cpu_ratio", server.on_cpu).raw("server_run_delay_ratio", server.delay);
    object->raw("server_threads", server.threads);
    object->raw("client_threads", threads_json(report.client_threads, wall_ns));
    JsonObject switches;
    switches.number("client", report.client_context_switches).raw("server", server.switches);
    object->raw("context_switches", switches.done());
}

void add_open_loop(const LoadReport& report, JsonObject* object) {
    const LoadCounts& counts = report.counts;
    object->raw("service_us", latency_json(counts.service));
    object->raw("lag_us", latency_json(counts.lag));
    object->number("unsent", counts.unsent).number("dropped", counts.dropped);
    object->number("backlog_peak", counts.backlog_peak);
    object->number("due", counts.due);
    object->number("outstanding_middle", counts.outstanding_middle);
    object->number("outstanding_end", counts.outstanding_end);
    object->raw("saturated", report.is_saturated() ? "true" : "false");
}

void add_connections(const LoadReport& report, JsonObject* object) {
    const LoadCounts& counts = report.counts;
    object->number("connects", counts.connect.total());
    object->raw("connect_us", latency_json(counts.connect));
    JsonObject tls;
    tls.text("version", report.tls_version).text("cipher", report.tls_cipher);
    tls.number("handshakes", counts.handshake.total());
    tls.raw("handshake_us", latency_json(counts.handshake));
    object->raw("tls", report.tls_version.empty() ? "null" : tls.done());
    object->number("closes_seen", counts.closes_seen);
    JsonObject balance;
    balance.number("jain_index", counts.balance.jain_index());
    balance.number("least", counts.balance.least).number("most", counts.balance.most);
    object->raw("responses_per_connection",
                counts.balance.connections == 0 ? "null" : balance.done());
}

void add_ratios(const LoadReport& report, JsonObject* object) {
    const LoadCounts& counts = report.counts;
    const bool is_closed = report.mode == LoadMode::kClosed;
    object->raw("littles_law_ratio", is_closed ? decimal(report.littles_law_ratio()) : "null");
    object->raw("unanswered_ratio", is_closed ? decimal(report.unanswered_ratio()) : "null");
    object->raw("reads_per_response", per_json(counts.reads, counts.responses));
    object->raw("writes_per_response", per_json(counts.writes, counts.responses));
    object->raw("wakes_per_response", per_json(counts.wakes, counts.responses));
}

std::string histograms_json(const LoadCounts& counts) {
    JsonObject histograms;
    histograms.raw("response", encoded(counts.response)).raw("batch", encoded(counts.batch));
    histograms.raw("service", encoded(counts.service)).raw("lag", encoded(counts.lag));
    histograms.raw("connect", encoded(counts.connect));
    histograms.raw("handshake", encoded(counts.handshake));
    return histograms.done();
}

}  // namespace

void LoadReport::take(ProcessResult result) {
    counts = std::move(result.counts);
    established = result.established;
    client_cpu_ns = result.cpu_ns;
    client_context_switches = result.context_switches;
    client_threads = std::move(result.threads);
    seconds = result.seconds;
    drain_seconds = result.drain_seconds;
}

double LoadReport::requests_per_second() const {
    // An open loop counts what was due in the window, whenever it was answered.
    const std::uint64_t count =
        mode == LoadMode::kOpen ? counts.responses : counts.responses_in_window;
    return seconds > 0 ? static_cast<double>(count) / seconds : 0;
}

// Little's law: rate times the mean time that a slot is held, over the number of slots there should
// be. Well under 1: the generator or its connections were not all at work. A slot of a batch is
// held until the batch is over, however early its own answer came.
double LoadReport::littles_law_ratio() const {
    const double held_ns = refill == Refill::kBatch ? counts.batch.mean() : counts.response.mean();
    const double slots = static_cast<double>(connections) * static_cast<double>(depth);
    return slots > 0 ? requests_per_second() * held_ns / 1e9 / slots : 0;
}

// The mean number of requests that were unanswered, over the number of slots. In batches it lies
// below 1 where a server answers one after the other instead of all at once.
double LoadReport::unanswered_ratio() const {
    const double slots = static_cast<double>(connections) * static_cast<double>(depth);
    return slots > 0 ? requests_per_second() * counts.response.mean() / 1e9 / slots : 0;
}

bool LoadReport::is_saturated() const {
    if (mode != LoadMode::kOpen) return false;
    if (counts.unsent + counts.dropped + counts.unanswered + counts.not_waited_for != 0)
        return true;
    const auto too_many = [](double excess, double level, std::uint64_t due) {
        return excess > kShortfallMax * static_cast<double>(due) &&
               excess > kChance * std::sqrt(level);
    };
    const auto middle = static_cast<double>(counts.outstanding_middle);
    const auto end = static_cast<double>(counts.outstanding_end);
    const double slots = static_cast<double>(connections) * static_cast<double>(depth);
    // A server that is slow and keeps up has as many under way in the middle as at the end.
    return too_many(end - middle, end + middle, counts.due_in_second_half) ||
           too_many(end - slots, end, counts.due);
}

std::string report_json(const LoadReport& report) {
    JsonObject object;
    add_run(report, &object);
    add_counts(report.counts, &object);
    add_costs(report, &object);
    object.raw("latency_us", latency_json(report.counts.response));
    if (report.mode == LoadMode::kOpen) add_open_loop(report, &object);
    add_connections(report, &object);
    add_ratios(report, &object);
    object.raw("slices", slices_json(report));
    object.raw("histograms", histograms_json(report.counts));
    return object.done() + "\n";
}

namespace {

// As printf(3); a longer line is cut.
[[gnu::format(printf, 2, 3)]] void add_text(std::string* out, const char* format, ...) {
    char line[256];
    va_list values;
    va_start(values, format);
    const int size = std::vsnprintf(line, sizeof line, format, values);
    va_end(values);
    if (size > 0) out->append(line, std::min<std::size_t>(static_cast<std::size_t>(size), 255));
}

// "1 error", "2 errors".
std::string counted(std::uint64_t count, const char* what) {
    return std::to_string(count) + " " + what + (count == 1 ? "" : "s");
}

double us_of(std::uint64_t ns) {
    return static_cast<double>(ns) / 1e3;
}

void add_latency(const Histogram& h, std::string* out) {
    add_text(out, "latency us: mean %.1f  p50 %.1f  p90 %.1f  p99 %.1f  p99.9 %.1f  max %.1f\n",
             h.mean() / 1e3, us_of(h.percentile(50)), us_of(h.percentile(90)),
             us_of(h.percentile(99)), us_of(h.percentile(99.9)), us_of(h.max()));
}

// What only loads of some modes, or over TLS, have to tell.
void add_mode(const LoadReport& report, std::string* out) {
    const LoadCounts& counts = report.counts;
    if (report.mode == LoadMode::kClosed) {
        add_text(out, "Little's law: %zu x %zu slots, %.1f %% at work\n", report.connections,
                 report.depth, report.littles_law_ratio() * 100);
    }
    if (report.mode == LoadMode::kOpen) {
        add_text(
            out, "rate %.0f, service us p99 %.1f, own lag us p99 %.1f, %" PRIu64 " never sent%s\n",
            report.rate, us_of(counts.service.percentile(99)), us_of(counts.lag.percentile(99)),
            counts.unsent + counts.dropped, report.is_saturated() ? ": saturated" : "");
    }
    if (!report.tls_version.empty()) {
        add_text(out, "%s %s, %s, us p50 %.1f p99 %.1f\n", report.tls_version.c_str(),
                 report.tls_cipher.c_str(), counted(counts.handshake.total(), "handshake").c_str(),
                 us_of(counts.handshake.percentile(50)), us_of(counts.handshake.percentile(99)));
    }
    if (report.mode == LoadMode::kChurn) {
        add_text(
            out, "%.0f connections a second, connect us p99 %.1f\n",
            report.seconds > 0 ? static_cast<double>(counts.connect.total()) / report.seconds : 0,
            us_of(counts.connect.percentile(99)));
    }
}

}  // namespace

std::string report_text(const LoadReport& report) {
    const LoadCounts& counts = report.counts;
    if (!report.failure.empty()) return report.url + ": " + report.failure + "\n";
    std::string out = report.url + "\n";
    add_text(&out, "%zu of %s, depth %zu, %s, %s, %.2f s\n", report.established,
             counted(report.connections, "connection").c_str(), report.depth,
             report.mode == LoadMode::kClosed ? refill_name(report.refill) : mode_name(report.mode),
             counted(report.threads, "thread").c_str(), report.seconds);
    add_text(&out, "%s verified, %.0f a second, %s, %s\n",
             counted(counts.responses, "response").c_str(), report.requests_per_second(),
             counted(counts.errors.sum(), "error").c_str(),
             counted(counts.variants, "variant").c_str());
    add_latency(counts.response, &out);
    add_text(&out, "CPU ns a response: client %.1f",
             per(static_cast<double>(report.client_cpu_ns), counts.responses));
    if (report.server) {
        add_text(&out, ", server %.1f",
                 per(static_cast<double>(report.server->cpu_ns), counts.responses));
    }
    out += "\n";
    add_mode(report, &out);
    if (counts.unanswered != 0) {
        out += counted(counts.unanswered, "request") + " not answered by the end of the drain\n";
    }
    if (counts.not_waited_for != 0) {
        out += counted(counts.not_waited_for, "request") +
               " under way when the end was no longer waited for; answers still came\n";
    }
    if (counts.errors.sum() != 0) out += "errors: " + errors_json(counts.errors) + "\n";
    for (const std::string& complaint : counts.complaints) out += "  " + complaint + "\n";
    return out;
}

}  // namespace httpmark
