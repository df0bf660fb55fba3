// What has been counted, in the text format that Prometheus reads.
#pragma once

#include <string>
#include <vector>

#include "app/router.hpp"
#include "net/connection.hpp"

namespace httpmark {

std::string metrics_text(const std::vector<const Counters*>& all);

// Answers with it. Before the first request `all` holds the counters of each worker; it outlives
// the handler.
Handler metrics_handler(const std::vector<const Counters*>& all);

}  // namespace httpmark
