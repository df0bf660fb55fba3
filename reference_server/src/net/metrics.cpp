#include "net/metrics.hpp"

namespace httpmark {

// All workers' counters in the text format that Prometheus reads.
std::string metrics_text(const std::vector<const Counters*>& all) {
    constexpr struct {
        std::atomic<std::uint64_t> Counters::*counter;
        const char* name;
        const char* meaning;
    } kRows[] = {
        {&Counters::accepted, "connections_accepted", "Connections accepted"},
        {&Counters::closed, "connections_closed", "Connections closed"},
        {&Counters::requests, "requests", "Requests whose head was complete"},
        {&Counters::refused, "refused", "Refusals that end the connection"},
        {&Counters::timeouts, "timeouts", "Timeouts of any kind"},
        {&Counters::made_room, "idle_connections_closed_for_room",
         "Idle connections closed because no descriptor was left for a new one"},
        {&Counters::bytes_in, "received_bytes", "Bytes received"},
        {&Counters::bytes_out, "sent_bytes", "Bytes sent"},
    };
    std::string text;
    for (const auto& row : kRows) {
        const std::string name = std::string("httpmark_") + row.name + "_total";
        text += "# HELP " + name + ' ' + row.meaning + "\n# TYPE " + name + " counter\n";
        for (std::size_t i = 0; i < all.size(); ++i) {
            text += name + "{worker=\"" + std::to_string(i) + "\"} " +
                    std::to_string((all[i]->*row.counter).load(std::memory_order_relaxed)) + '\n';
        }
    }
    text +=
        "# HELP httpmark_errors_total Error answers by reason\n"
        "# TYPE httpmark_errors_total counter\n";
    for (std::size_t reason = 1; reason < static_cast<std::size_t>(Reason::kCount); ++reason) {
        std::uint64_t sum = 0;
        for (const Counters* counters : all) {
            sum += counters->errors[reason].load(std::memory_order_relaxed);
        }
        if (sum == 0) continue;
        text += std::string("httpmark_errors_total{reason=\"") +
                error_row(static_cast<Reason>(reason)).name + "\"} " + std::to_string(sum) + '\n';
    }
    return text;
}

Handler metrics_handler(const std::vector<const Counters*>& all) {
    return [&all](const Request&, ResponseWriter& writer) {
        static constexpr auto kType = fixed_field("Content-Type", "text/plain; version=0.0.4");
        return writer.write(200, kType, metrics_text(all)) ? Reason::kNone : writer.fault();
    };
}

}  // namespace httpmark
