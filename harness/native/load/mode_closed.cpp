// Closed loop: connections x depth requests are always under way.
#include "load/mode.hpp"
#include "load/traffic.hpp"

namespace httpmark {
namespace {

class ClosedMode final : public Mode {
  public:
    explicit ClosedMode(Traffic* traffic)
        : Mode(traffic),
          depth_(traffic->plan().depth),
          is_batch_(traffic->plan().refill == Refill::kBatch) {}

    void start(LoadConnection* connection) override {
        if (connection->unanswered == 0 || !is_batch_) fill(connection, depth_);
        traffic_.flush(connection);
    }

    void refill(LoadConnection* connection, std::uint32_t answered, std::uint64_t now_ns) override {
        if (!traffic_.is_sending() || connection->closing || connection->fd < 0) return;
        if (is_batch_) {
            if (connection->unanswered != 0) return;
            answered = static_cast<std::uint32_t>(depth_);
        }
        if (answered == 0) return;
        traffic_.enqueue(connection, answered, now_ns, now_ns);
        if (!connection->wants_writable) traffic_.flush(connection);
    }

  private:
    std::size_t depth_;
    bool is_batch_;
};

}  // namespace

std::unique_ptr<Mode> make_closed_mode(Traffic* traffic) {
    return std::make_unique<ClosedMode>(traffic);
}

}  // namespace httpmark
