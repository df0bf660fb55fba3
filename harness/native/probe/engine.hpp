// Plays cases against one server: a fresh connection each, single-threaded, many in flight.
//
// How a connection is closed was measured (124 K cases, 64 in flight, loopback): the server first
// costs 39 us of the probe's CPU a case; the probe first 68 us, because its TIME_WAIT sockets fill
// the port table; the probe first with SO_LINGER 0 41 us. So the server's close is waited for where
// it announced one, and what is still open at the end of a case is reset.
#ifndef HTTPMARK_NATIVE_PROBE_ENGINE_HPP_
#define HTTPMARK_NATIVE_PROBE_ENGINE_HPP_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "probe/frames.hpp"
#include "probe/response_framing.hpp"
#include "shared/endpoint.hpp"
#include "shared/tls.hpp"

namespace httpmark {

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

  // Until the input has ended and every exchange is written. The exit code; anything but 0 has been
  // explained on standard error.
  int run();

 private:
  enum class Phase : std::uint8_t { kIdle, kConnecting, kSteps, kSettle };

  // One case on its connection.
  struct Talk {
    int fd = -1;
    Phase phase = Phase::kIdle;
    bool entered = false;  // the current step has begun
    bool wants_writable = false;
    bool is_fresh = false;  // counts against in_flight
    bool peer_fin = false;
    bool own_fin = false;
    bool is_dead = false;  // nothing can come or go any more
    bool is_refused = false;
    bool head_only = false;
    bool has_unsent = false;
    bool has_session = false;  // the TLS handshake was over once
    std::uint8_t flags = 0;
    End end = End::kOpen;
    std::size_t step = 0;
    std::size_t step_sent = 0;  // octets of the current SEND that are out
    std::size_t responses_taken = 0;
    std::uint64_t start_us = 0;
    std::uint64_t deadline_us = 0;
    std::uint64_t until_us = 0;  // of the current step or of settling
    std::uint64_t first_send_us = 0;
    std::uint64_t active_us = 0;
    std::uint32_t connect_us = 0;
    std::uint32_t first_us = kNever;
    std::uint32_t sent = 0;
    std::uint16_t final_responses = 0;
    std::uint64_t armed_us = 0;  // its time in the heap, never after the time it has to wake at
    std::size_t heap_at = 0;
    Talk* fresh_before = nullptr;
    Talk* fresh_after = nullptr;
    TlsStream tls;
    ResponseFraming framing;
    std::vector<bool> responses;  // those seen, in order: true = final
    std::string received;
    std::vector<ProbeEvent> events;
    ProbeCase play;
  };

  // Standard input and output.
  void read_input();
  void start_cases();
  bool write_output();
  void want_input();

  // The life of a talk.
  enum class Begin { kStarted, kTryLater };
  Begin begin(Talk* talk);
  void on_event(Talk* talk, std::uint32_t events);
  void on_timer(Talk* talk);
  bool connected(Talk* talk);
  // Plays steps until one has to wait. May end the talk.
  void advance(Talk* talk);
  bool play_send(Talk* talk, const ProbeStep& step);
  bool take_response(Talk* talk, AwaitKind kind);
  void settle(Talk* talk);
  void finish(Talk* talk);
  void refuse(Talk* talk);

  ssize_t send_octets(Talk* talk, const char* octets, std::size_t size);
  ssize_t receive_octets(Talk* talk, char* octets, std::size_t size);
  void read_available(Talk* talk);
  void digest(Talk* talk, std::string_view octets);
  RequestKind kind_of_next_response(const Talk& talk) const;
  void see_fin(Talk* talk);
  void see_reset(Talk* talk);
  void see_broken_send(Talk* talk, int error);
  void note(Talk* talk, EventKind kind, std::size_t octets);
  void watch_writable(Talk* talk, bool on);
  void set_interest(Talk* talk);

  // Time: a heap of talks by the time they have to be looked at.
  std::uint64_t wake_us(const Talk& talk) const;
  void arm(Talk* talk);
  void heap_insert(Talk* talk);
  void heap_remove(Talk* talk);
  void heap_up(std::size_t at);
  void heap_down(std::size_t at);
  void heap_set(std::size_t at, Talk* talk);
  int wait_ms() const;
  void fire_timers();

  // Who counts against in_flight: a list by last activity.
  void fresh_append(Talk* talk);
  void fresh_remove(Talk* talk);
  void touch(Talk* talk);
  void age_fresh();

  Talk* acquire();

  ProbeOptions options_;
  int epoll_fd_ = -1;
  std::uint64_t now_us_ = 0;

  std::string input_;
  std::size_t input_at_ = 0;
  bool input_ended_ = false;
  bool input_pollable_ = false;
  bool input_armed_ = false;
  std::string complaint_;

  std::string output_;
  std::size_t output_at_ = 0;
  std::uint64_t output_since_us_ = 0;
  bool output_pollable_ = false;
  bool output_blocked_ = false;
  bool output_failed_ = false;

  std::vector<std::unique_ptr<Talk>> talks_;
  std::vector<Talk*> idle_;
  Talk* waiting_ = nullptr;  // a case that could not start for want of a port or a descriptor
  std::uint64_t retry_us_ = 0;
  std::uint64_t trouble_since_us_ = 0;
  int trouble_errno_ = 0;
  std::size_t in_flight_ = 0;
  std::size_t fresh_count_ = 0;
  std::size_t held_bytes_ = 0;
  Talk* fresh_first_ = nullptr;
  Talk* fresh_last_ = nullptr;
  std::vector<Talk*> heap_;
  std::vector<char> receive_;
  bool send_reset_ = false;  // an end of the stream stands for a reset
};

}  // namespace httpmark

#endif  // HTTPMARK_NATIVE_PROBE_ENGINE_HPP_
