// Idle: one request on each connection, then the connections are held.
#include "load/mode.hpp"
#include "load/traffic.hpp"

namespace httpmark {
namespace {

class IdleMode final : public Mode {
  public:
    using Mode::Mode;

    void start(LoadConnection* connection) override {
        if (connection->unanswered == 0) fill(connection, 1);
        traffic_.flush(connection);
    }

    void refill(LoadConnection* /*connection*/, std::uint32_t /*answered*/,
                std::uint64_t /*now_ns*/) override {}

    // A server may end an idle connection (RFC 9112 section 9.5); it is no longer held, though.
    bool accepts_end(LoadConnection* connection) override {
        if (connection->unanswered != 0) return false;
        ++traffic_.counts().closes_seen;
        traffic_.close_socket(connection);
        return true;
    }

    bool replaces() const override { return false; }
};

}  // namespace

std::unique_ptr<Mode> make_idle_mode(Traffic* traffic) {
    return std::make_unique<IdleMode>(traffic);
}

}  // namespace httpmark
