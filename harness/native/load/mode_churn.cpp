// Churn: each connection ends after depth requests, and the next one is opened.
#include <sys/socket.h>

#include "load/mode.hpp"
#include "load/traffic.hpp"

namespace httpmark {
namespace {

class ChurnMode final : public Mode {
  public:
    using Mode::Mode;

    bool measures_connects() const override { return true; }

    void start(LoadConnection* connection) override {
        if (connection->unanswered == 0) fill(connection, traffic_.plan().depth);
        traffic_.flush(connection);
    }

    void refill(LoadConnection* connection, std::uint32_t /*answered*/,
                std::uint64_t /*now_ns*/) override {
        if (!traffic_.is_sending() || connection->closing || connection->fd < 0) return;
        if (connection->unanswered == 0) traffic_.reopen(connection);
    }

    // A close of ours would leave the port in TIME_WAIT, and there are 28,000 of them.
    void before_replacing(LoadConnection* connection) override {
        const linger reset = {1, 0};
        setsockopt(connection->fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
    }
};

}  // namespace

std::unique_ptr<Mode> make_churn_mode(Traffic* traffic) {
    return std::make_unique<ChurnMode>(traffic);
}

}  // namespace httpmark
