// Slow: sends without end and never reads. What the server holds for such a client is the question.
#include <cerrno>

#include "load/mode.hpp"
#include "load/traffic.hpp"

namespace httpmark {
namespace {

constexpr int kPoursPerTurn = 8;

class SlowMode final : public Mode {
  public:
    using Mode::Mode;

    // There are no answers to wait for.
    bool drains() const override { return false; }

    void start(LoadConnection* connection) override {
        connection->wants_writable = true;
        traffic_.poller().set(connection->fd, connection->index, EPOLLOUT);
    }

    void on_event(LoadConnection* connection, std::uint32_t /*events*/) override {
        if (!traffic_.is_sending()) return;
        const std::string_view batch = traffic_.batch();
        for (int turn = 0; turn < kPoursPerTurn; ++turn) {
            const std::size_t from = connection->send_offset;
            const ssize_t sent =
                Traffic::transmit(connection, batch.data() + from, batch.size() - from);
            if (sent < 0) {
                if (errno == EAGAIN || errno == EINTR) return;
                // The server would not have it: that is an answer, too.
                ++traffic_.counts().closes_seen;
                traffic_.close_socket(connection);
                return;
            }
            ++traffic_.counts().writes;
            traffic_.counts().bytes_sent += static_cast<std::uint64_t>(sent);
            connection->send_offset = (from + static_cast<std::size_t>(sent)) % batch.size();
        }
    }

    void refill(LoadConnection* /*connection*/, std::uint32_t /*answered*/,
                std::uint64_t /*now_ns*/) override {}
};

}  // namespace

std::unique_ptr<Mode> make_slow_mode(Traffic* traffic) {
    return std::make_unique<SlowMode>(traffic);
}

}  // namespace httpmark
