#include "net/worker.hpp"

#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <ctime>

#include "check.hpp"

namespace httpmark {

namespace {

constexpr int kStopAfterAnswers = 1;
constexpr int kStopAtOnce = 2;

std::uint64_t read_clock_ms() {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    return static_cast<std::uint64_t>(now.tv_sec) * 1000 +
           static_cast<std::uint64_t>(now.tv_nsec) / 1000000;
}

std::int64_t read_date() {
    timespec now{};
    clock_gettime(CLOCK_REALTIME_COARSE, &now);
    return now.tv_sec;
}

std::unique_ptr<Loop> make_loop(const Limits& limits, Engine engine) {
    const LoopSettings settings{kReceiveBufferSize, static_cast<unsigned>(limits.accepts_per_wake),
                                engine == Engine::kUringDirect};
#if defined(HTTPMARK_HAS_URING)
    if (engine != Engine::kEpoll) return make_uring_loop(settings);
#endif
    CHECK(engine == Engine::kEpoll);
    return make_epoll_loop(settings);
}

// A peer that has gone is told by what the calls return, and sendfile() cannot be asked not to send
// the signal as well.
void block_broken_pipes() {
    sigset_t pipes;
    sigemptyset(&pipes);
    sigaddset(&pipes, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipes, nullptr);
}

std::uint32_t id_of(LoopToken token) {
    return static_cast<std::uint32_t>(token);
}

}  // namespace

bool engine_is_built(Engine engine) {
#if defined(HTTPMARK_HAS_URING)
    (void)engine;
    return true;
#else
    return engine == Engine::kEpoll;
#endif
}

Worker::Worker(const ServerSettings& settings, Engine engine, SharedState& shared)
    : settings_(settings),
      shared_(shared),
      loop_(make_loop(settings.limits, engine)),
      connections_(settings, *this, read_clock_ms()) {}

Worker::~Worker() {
    connections_.close_all();
    stop_listening();
}

bool Worker::start(std::vector<Listener> listeners, std::shared_ptr<const TlsContext> context,
                   std::string& error) {
    listeners_ = std::move(listeners);
    if (context != nullptr) connections_.set_tls(std::move(context));
    if (!loop_->start(*this, error)) return false;
    for (std::uint32_t i = 0; i < listeners_.size(); ++i) {
        if (!loop_->add_listener(listeners_[i].socket, i, error)) return false;
    }
    on_turn();
    return true;
}

void Worker::run() {
    block_broken_pipes();
    while (true) {
        int timeout = connections_.timeout_ms();
        if (draining_) {
            const bool is_done = connections_.open_count() == 0 && !loop_->has_unsent();
            if (is_done || now_ms_ >= drain_until_ms_) break;
            const int left = static_cast<int>(drain_until_ms_ - now_ms_);
            timeout = timeout < 0 ? left : std::min(timeout, left);
        }
        // Another worker's close makes room and descriptors too: looked for every tick.
        if (accepting_paused_)
            timeout = timeout < 0 ? int{kTickMs} : std::min(timeout, int{kTickMs});
        loop_->turn(timeout);
        connections_.run_timers();
        connections_.end_turn();
        if (accepting_paused_ && now_ms_ >= starved_until_ms_ && !is_over_ceiling() &&
            loop_->has_reserve()) {
            pause_accepting(false);
        }
    }
    // Here and not by the destructor: io_uring takes orders from this thread alone.
    connections_.close_all();
    loop_->turn(0);
}

void Worker::request_stop(bool at_once) {
    int expected = 0;
    if (at_once) {
        stop_.store(kStopAtOnce, std::memory_order_relaxed);
    } else {
        stop_.compare_exchange_strong(expected, kStopAfterAnswers, std::memory_order_relaxed);
    }
    loop_->wake();
}

void Worker::request_tls(std::shared_ptr<const TlsContext> context) {
    {
        const std::lock_guard<std::mutex> held(next_context_lock_);
        next_context_ = std::move(context);
    }
    loop_->wake();
}

void Worker::stop_listening() {
    for (const Listener& listener : listeners_) {
        loop_->remove_listener(listener.socket);
        ::close(listener.socket);
    }
    listeners_.clear();
}

void Worker::pause_accepting(bool paused) {
    accepting_paused_ = paused;
    for (std::uint32_t i = 0; i < listeners_.size(); ++i) loop_->pause_listener(i, paused);
}

void Worker::on_starved() {
    starved_until_ms_ = now_ms_ + kTickMs;
    if (!accepting_paused_) pause_accepting(true);
}

void Worker::on_turn() {
    now_ms_ = read_clock_ms();
    connections_.set_time(now_ms_, read_date());
}

void Worker::on_wake() {
    connections_.read_mail();
    std::shared_ptr<const TlsContext> context;
    {
        const std::lock_guard<std::mutex> held(next_context_lock_);
        context = std::move(next_context_);
        next_context_ = nullptr;
    }
    if (context != nullptr) connections_.set_tls(std::move(context));
    const int stop = stop_.load(std::memory_order_relaxed);
    if (stop == 0) return;
    stop_listening();
    if (!draining_) {
        draining_ = true;
        drain_until_ms_ = now_ms_ + settings_.limits.drain_timeout_ms;
        connections_.drain();
    }
    if (stop == kStopAtOnce) drain_until_ms_ = now_ms_;
}

LoopToken Worker::on_accept(std::int32_t handle, std::uint32_t listener) {
    const std::uint32_t id = connections_.open(handle, listeners_[listener].tls);
    if (id == Connections::kNoSlot) return kRefused;
    const std::uint64_t open = shared_.open_connections.fetch_add(1, std::memory_order_relaxed) + 1;
    const LoopToken token = token_of(id);
    if (settings_.wait_over_connections) {
        if (is_over_ceiling() && !accepting_paused_) pause_accepting(true);
    } else if (settings_.limits.connections_max != 0 && open > settings_.limits.connections_max) {
        connections_.slot(id).set(Connection::kUncounted);
        shared_.open_connections.fetch_sub(1, std::memory_order_relaxed);
        connections_.refuse_open(id);
    }
    return token;
}

std::int32_t Worker::handle_of(LoopToken token) {
    const std::uint32_t id = id_of(token);
    if (!connections_.is_current(id, static_cast<std::uint32_t>(token >> 32))) return -1;
    return connections_.slot(id).handle;
}

void Worker::on_data(LoopToken token, const char* data, std::size_t size) {
    connections_.on_data(id_of(token), data, size);
}
void Worker::on_end(LoopToken token) {
    connections_.on_end(id_of(token));
}
void Worker::on_broken(LoopToken token) {
    connections_.on_broken(id_of(token));
}
void Worker::on_sendable(LoopToken token) {
    connections_.on_sendable(id_of(token));
}

std::ptrdiff_t Worker::send(std::uint32_t id, const char* data, std::size_t size) {
    return loop_->send(connections_.slot(id).handle, token_of(id), data, size);
}
std::ptrdiff_t Worker::send_more(std::uint32_t id, const char* data, std::size_t size) {
    return loop_->send_more(connections_.slot(id).handle, token_of(id), data, size);
}
std::ptrdiff_t Worker::send_file(std::uint32_t id, const FilePart& part) {
    static_assert(Loop::kCannot == Transport::kCannot && Loop::kBroken == Transport::kBroken);
    return loop_->send_file(connections_.slot(id).handle, token_of(id), part);
}
void Worker::set_interest(std::uint32_t id, bool octets, bool room) {
    loop_->set_interest(connections_.slot(id).handle, token_of(id), octets, room);
}
void Worker::shutdown_write(std::uint32_t id) {
    loop_->shutdown_write(connections_.slot(id).handle, token_of(id));
}
void Worker::close(std::uint32_t id) {
    const Connection& c = connections_.slot(id);
    if (!c.has(Connection::kUncounted)) {
        shared_.open_connections.fetch_sub(1, std::memory_order_relaxed);
    }
    loop_->close(c.handle, token_of(id));
}

}  // namespace httpmark
