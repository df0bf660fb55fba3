// Plays cases against one server: a fresh connection each, single-threaded, many in flight.
//
// How a connection is closed was measured (124 K cases, 64 in flight, loopback): the server first
// costs 39 us of the probe's CPU a case; the probe first 68 us, because its TIME_WAIT sockets fill
// the port table; the probe first with SO_LINGER 0 41 us. So the server's close is waited for where
// it announced one, and what is still open at the end of a case is reset.
#ifndef HTTPMARK_NATIVE_PROBE_ENGINE_HPP_
#define HTTPMARK_NATIVE_PROBE_ENGINE_HPP_

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "probe/case_input.hpp"
#include "probe/conversation.hpp"
#include "probe/exchange_output.hpp"
#include "probe/fresh_conversations.hpp"
#include "probe/timers.hpp"
#include "shared/endpoint.hpp"
#include "shared/tls.hpp"

struct epoll_event;

namespace httpmark {

// A conversation in which so much comes is left.
inline constexpr std::uint64_t kFloodBytes = std::uint64_t{16} << 20;
// So much without a whole answer until the time ran out is a flood as well. A page that lacks its
// length and its close is shorter, and every case may get it.
inline constexpr std::uint64_t kMuchBytes = std::uint64_t{1} << 20;
// A server that has flooded with so much is given up.
inline constexpr std::uint64_t kFloodBytesMax = 16 * kFloodBytes;
// While conversations hold this much no new case begins, and those that hold much already keep no
// more: memory is bounded.
inline constexpr std::size_t kHeldBytesMax = std::size_t{64} << 20;

struct ProbeOptions {
    Endpoint server;
    std::size_t in_flight = 64;
    std::size_t in_flight_max = 4000;
    std::uint32_t fresh_ms = 50;
    std::optional<TlsContext> tls;  // every case in a session of its own
    int input_fd = 0;
    int output_fd = 1;
};

class ProbeEngine {
  public:
    explicit ProbeEngine(const ProbeOptions& options);
    ~ProbeEngine();
    ProbeEngine(const ProbeEngine&) = delete;
    ProbeEngine& operator=(const ProbeEngine&) = delete;

    // Until the input has ended and every exchange is written. The exit code; anything but 0 has
    // been explained on standard error.
    int run();

  private:
    using Phase = Conversation::Phase;

    // The loop (engine.cpp).
    bool has_failed() const;
    int code_of_input() const;
    void handle(const epoll_event& event);
    int wait_ms() const;
    void tick(std::uint64_t waited_us = 0);

    // The life of a conversation (engine.cpp).
    void start_cases();
    Conversation* acquire();
    void on_event(Conversation* conversation, std::uint32_t events);
    void on_timer(Conversation* conversation);
    bool has_reached(const Conversation& conversation) const;
    void finish(Conversation* conversation);
    void release(Conversation* conversation);

    // Its connection (engine_connect.cpp).
    enum class Begin { kStarted, kTryLater };
    Begin begin(Conversation* conversation);
    bool send_first(Conversation* conversation);
    bool connected(Conversation* conversation);
    bool is_connected_late(Conversation* conversation);
    void refuse(Conversation* conversation);
    static std::uint32_t interest(const Conversation& conversation);
    void watch_writable(Conversation* conversation, bool on);
    void set_interest(Conversation* conversation);

    // Its steps (engine_steps.cpp).
    enum class Progress { kDone, kWaits, kEnded };
    // Plays steps until one has to wait. May end the conversation.
    void advance(Conversation* conversation);
    bool enter(Conversation* conversation, const ProbeStep& step);
    Progress play(Conversation* conversation, const ProbeStep& step);
    bool play_send(Conversation* conversation, const ProbeStep& step);
    bool play_await(Conversation* conversation, const ProbeStep& step, bool is_over);
    static bool awaits_close(Conversation* conversation, const ProbeStep& step, bool is_over);
    void play_fin(Conversation* conversation);
    static bool take_response(Conversation* conversation, AwaitKind kind);
    void settle(Conversation* conversation);

    // What comes from the server (engine_receive.cpp).
    ssize_t receive_bytes(Conversation* conversation, char* data, std::size_t size);
    void read_available(Conversation* conversation);
    void leave_flood(Conversation* conversation);
    void keep(Conversation* conversation, std::string_view octets);
    static void digest(Conversation* conversation, std::string_view octets);
    void see_fin(Conversation* conversation);
    void see_reset(Conversation* conversation);
    void see_broken_send(Conversation* conversation, int error);
    void note(Conversation* conversation, EventKind kind, std::size_t bytes);

    ProbeOptions options_;
    int epoll_fd_ = -1;
    std::uint64_t now_us_ = 0;
    CaseInput input_;
    ExchangeOutput output_;
    Timers timers_;
    FreshConversations fresh_;

    std::vector<std::unique_ptr<Conversation>> conversations_;
    std::vector<Conversation*> idle_;
    Conversation* waiting_ =
        nullptr;  // a case that could not start for want of a port or a descriptor
    std::uint64_t retry_us_ = 0;
    std::uint64_t trouble_since_us_ = 0;
    int trouble_errno_ = 0;
    std::size_t in_flight_ = 0;
    std::size_t held_bytes_ = 0;
    std::vector<char> receive_;
    std::uint64_t flood_bytes_ = 0;  // of all floods
    bool send_reset_ = false;        // an end of the stream stands for a reset
};

}  // namespace httpmark

#endif  // HTTPMARK_NATIVE_PROBE_ENGINE_HPP_
