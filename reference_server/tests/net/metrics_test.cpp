#include "net/metrics.hpp"

#include <string>
#include <vector>

#include "net/requests.hpp"
#include "routes.hpp"

namespace httpmark {
namespace {

TEST(Metrics, metrics_are_all_workers_counters) {
    std::vector<const Counters*> all;
    Router::Builder routes;
    example::add_routes(routes);
    routes.add(method_bit(Method::kGet), "/metrics", metrics_handler(all));
    const auto router = built(routes);
    ServerSettings settings;
    settings.router = router.get();
    Wire first(settings);
    Wire second(settings);
    all = {&first.connections().counters(), &second.connections().counters()};
    const std::uint32_t id = first.connect();
    first.feed(id, kGet + kGet);
    const std::uint32_t other = second.connect();
    second.feed(other, "GET /%zz HTTP/1.1\r\n");
    first.feed(id, request("GET /metrics HTTP/1.1"));
    const std::string& text = first.sent(id);
    LAW(text.find("\nhttpmark_requests_total{worker=\"0\"} 3\n") != std::string::npos, << text);
    LAW(text.find("\nhttpmark_requests_total{worker=\"1\"} 0\n") != std::string::npos);
    LAW(text.find("\nhttpmark_connections_accepted_total{worker=\"1\"} 1\n") != std::string::npos);
    LAW(text.find("\nhttpmark_errors_total{reason=\"target-percent\"} 1\n") != std::string::npos);
    LAW(text.find("not-found") == std::string::npos);
}

}  // namespace
}  // namespace httpmark
