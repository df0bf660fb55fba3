// One thread, one loop, one set of connections: nothing is shared but start, stop and counters.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "net/connection.hpp"
#include "net/engine.hpp"
#include "net/loop.hpp"

namespace httpmark {

// What all workers share.
struct SharedState {
    std::atomic<std::uint64_t> open_connections{0};
};

class Worker final : private LoopEvents, private Transport {
  public:
    Worker(const ServerSettings& settings, Engine engine, SharedState& shared);
    ~Worker();
    Worker(const Worker&) = delete;
    Worker& operator=(const Worker&) = delete;

    struct Listener {
        int socket;
        bool tls;
    };
    // The worker closes the sockets.
    bool start(std::vector<Listener> listeners, std::shared_ptr<const TlsContext> context,
               std::string& error);
    // Before run(). The observer outlives the worker.
    void set_observer(Observer* observer) { connections_.set_observer(observer); }
    void run();  // until it has drained after request_stop()

    // From any thread.
    void request_stop(bool at_once);
    void request_tls(std::shared_ptr<const TlsContext> context);
    const Counters& counters() const { return connections_.counters(); }

  private:
    LoopToken on_accept(std::int32_t handle, std::uint32_t listener) override;
    std::int32_t handle_of(LoopToken token) override;
    void on_data(LoopToken token, const char* data, std::size_t size) override;
    void on_end(LoopToken token) override;
    void on_broken(LoopToken token) override;
    void on_sendable(LoopToken token) override;
    bool on_full() override { return connections_.close_an_idle_one(); }
    void on_starved() override;
    void on_wake() override;
    void on_turn() override;

    std::ptrdiff_t send(std::uint32_t id, const char* data, std::size_t size) override;
    std::ptrdiff_t send_more(std::uint32_t id, const char* data, std::size_t size) override;
    std::ptrdiff_t send_file(std::uint32_t id, const FilePart& part) override;
    void set_interest(std::uint32_t id, bool octets, bool room) override;
    void shutdown_write(std::uint32_t id) override;
    void close(std::uint32_t id) override;
    void wake() override { loop_->wake(); }
    std::string peer(std::uint32_t id) override {
        return loop_->peer(connections_.slot(id).handle);
    }

    LoopToken token_of(std::uint32_t id) {
        return std::uint64_t{connections_.slot(id).generation} << 32 | id;
    }
    void stop_listening();
    bool is_over_ceiling() const {
        const std::uint64_t most = settings_.limits.connections_max;
        return most != 0 && shared_.open_connections.load(std::memory_order_relaxed) >= most;
    }
    void pause_accepting(bool paused);

    const ServerSettings& settings_;
    SharedState& shared_;
    std::unique_ptr<Loop> loop_;
    Connections connections_;
    std::vector<Listener> listeners_;
    std::mutex next_context_lock_;
    std::shared_ptr<const TlsContext> next_context_;
    bool draining_ = false;
    bool accepting_paused_ = false;
    std::uint64_t starved_until_ms_ = 0;
    std::uint64_t drain_until_ms_ = 0;
    std::uint64_t now_ms_ = 0;
    std::atomic<int> stop_{0};
};

}  // namespace httpmark
