// One thread of the load generator: its own epoll, its own connections, nothing shared.
#ifndef HTTPMARK_NATIVE_LOAD_WORKER_HPP_
#define HTTPMARK_NATIVE_LOAD_WORKER_HPP_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "load/plan.hpp"
#include "load/response.hpp"

struct epoll_event;

namespace httpmark {

// At what pace connections are opened. One that took as long as a lost SYN (RFC 6298: 1 s until it
// is sent again) says that the listen queue was full: from there on it goes at half the pace, and
// what was lost is not made up for, or the queue would be full again at once.
class ConnectPace {
 public:
  ConnectPace(double rate, std::uint64_t now_ns) : rate_(rate), start_ns_(now_ns) {}

  std::uint64_t next_due_ns() const;
  void begun() { ++begun_; }
  void opened(std::uint64_t begun_ns, std::uint64_t now_ns);
  double rate() const { return rate_; }

 private:
  double rate_;  // a second
  std::uint64_t start_ns_;
  std::size_t begun_ = 0;  // since start_ns_
};

// When the requests of an open loop are due, whatever became of those before. Its sums are counted
// from the start: of the clock's nanoseconds a double has steps of four after a year.
class ArrivalSchedule {
 public:
  // Constant: at first_ns, and every mean_ns from there on. Poisson: from the start on.
  ArrivalSchedule(std::uint64_t start_ns, Arrivals arrivals, double first_ns, double mean_ns,
                  std::uint64_t seed);
  // To the nearest: what is due at the end of a window is not to be due a nanosecond before it.
  std::uint64_t due_ns() const { return start_ns_ + static_cast<std::uint64_t>(after_ns_ + 0.5); }
  void advance();

 private:
  std::uint64_t start_ns_;
  Arrivals arrivals_;
  double first_ns_;
  double mean_ns_;
  double after_ns_;
  std::uint64_t count_ = 0;
  std::mt19937_64 random_;
};

// As epoll_wait(2), to the nanosecond where the kernel can (`has_ns`, set to false where it
// cannot), else to the next millisecond.
int wait_for_events(int epoll_fd, epoll_event* events, int count, std::uint64_t wait_ns,
                    bool* has_ns);

class LoadWorker {
 public:
  // `verifiers`: one per request of the plan, each already acquainted with its response.
  // `first_index`: of its connections among the plan's; `number`: of the worker.
  LoadWorker(const LoadPlan& plan, std::size_t connections,
             const std::vector<ResponseVerifier>& verifiers, std::size_t first_index = 0,
             std::size_t number = 0);
  ~LoadWorker();
  LoadWorker(const LoadWorker&) = delete;
  LoadWorker& operator=(const LoadWorker&) = delete;

  // Opens the connections, at the plan's rate divided by its threads.
  void connect_all();
  // Warm-up, window, drain. The connections stay open: what a server has for each it can still be
  // asked for.
  void run(std::uint64_t start_ns);
  void close_all();

  const WorkerResult& result() const { return result_; }

 private:
  struct SendGroup {
    std::uint64_t at_ns = 0;  // open: when the requests were due
    std::uint64_t sent_ns = 0;
    std::uint64_t count = 0;
  };

  enum class Phase : std::uint8_t { kNone, kConnecting, kHandshake, kOpen };

  struct Connection {
    int fd = -1;
    Phase phase = Phase::kNone;
    std::uint8_t failures = 0;  // to open it, one behind the other
    TlsStream tls;
    bool wants_writable = false;
    bool closing = false;  // its last answer announced close
    bool is_free = false;  // open: in free_
    std::uint32_t index = 0;
    std::uint32_t queued = 0;      // requests to send, the one that is half out included
    std::uint32_t unanswered = 0;  // requests sent or queued and not answered yet
    std::uint32_t send_kind = 0;   // the request to send next
    std::uint32_t receive_kind = 0;
    std::uint64_t responses = 0;    // verified, since the window began
    std::uint64_t heard_ns = 0;     // when octets came last
    std::size_t send_offset = 0;    // octets of it that are out
    std::size_t need = 0;           // of partial, before looking at it again makes sense
    std::uint32_t group_first = 0;  // ring of send times: groups of requests sent together
    std::uint32_t group_count = 0;
    std::uint64_t begun_ns = 0;  // to be opened
    std::uint64_t connected_ns = 0;
    std::string partial;  // the front of an answer that is not whole yet
    std::vector<SendGroup> groups;
  };

  // Since when a Date has been seen that the answers to a kind of request still have.
  struct DateSpan {
    std::uint64_t changes = 0;
    std::uint64_t since_ns = 0;
  };

  struct Appointment {
    std::uint32_t index = 0;
    std::uint64_t at_ns = 0;
  };

  int open_socket(std::uint32_t index);
  static ssize_t transmit(Connection* connection, const char* data, std::size_t size);
  static ssize_t receive(Connection* connection, char* data, std::size_t size);
  // Opens it; what cannot be done at once the loop does: none keeps others waiting.
  void open(Connection* connection);
  void advance(Connection* connection);
  void give_up_opening(Connection* connection, const std::string& why);
  void mind_openings(std::uint64_t now_ns);
  void close_socket(Connection* connection);
  int wait(epoll_event* events, std::uint64_t wait_ns);
  // The server has announced the close: what it did not answer it has not looked at.
  void reopen_and_resend(Connection* connection);
  // Requests that are out are lost.
  void reopen(Connection* connection);
  void replace(Connection* connection);
  void lose(Connection* connection, std::uint32_t count);
  static std::uint32_t answerable(const Connection& connection);
  void end_answered_half(Connection* connection);
  static void drop_group(Connection* connection);
  void enqueue(Connection* connection, std::uint32_t count, std::uint64_t at_ns,
               std::uint64_t sent_ns);
  void start(Connection* connection);
  // Open loop.
  void schedule_first(std::uint64_t start_ns);
  void dispatch(std::uint64_t now_ns, std::uint64_t until_ns);
  void set_free(Connection* connection);
  void account_for_unanswered(std::uint64_t now_ns);
  void pour(Connection* connection);
  void watch_for_writing_only(Connection* connection);
  void flush(Connection* connection);
  void on_readable(Connection* connection);
  bool read_once(Connection* connection);
  // Answers at the front of `octets`; returns how many octets are done with, or npos when the
  // connection is gone.
  std::size_t digest(Connection* connection, std::string_view octets, std::uint64_t now_ns);
  void answered(Connection* connection, std::uint64_t count, std::uint64_t now_ns, bool verified);
  void look_at_date(Connection* connection, std::uint64_t now_ns);
  void on_end(Connection* connection, bool is_reset);
  void refill(Connection* connection, std::uint32_t answered, std::uint64_t now_ns);
  void complain(const Connection& connection, const CheckResult& result, std::string_view octets);
  bool watch_reading(const Connection& connection) const;
  void watch_writable(Connection* connection, bool on);
  void begin_window(std::uint64_t now_ns);
  void note_response(std::uint64_t ns, std::uint64_t count, std::uint64_t now_ns);

  const LoadPlan& plan_;
  std::size_t first_index_;
  std::size_t number_;
  int epoll_fd_;
  std::vector<Connection> connections_;
  std::vector<ResponseVerifier> verifiers_;
  std::vector<DateSpan> dates_;  // of each
  // depth + kinds requests one behind the other, and where each begins.
  std::string block_;
  std::vector<std::size_t> block_at_;
  std::vector<char> receive_;
  std::uint64_t unanswered_ = 0;
  std::size_t live_ = 0;
  ConnectPace* pace_ = nullptr;      // while the first connections are opened
  std::deque<Appointment> opening_;  // since when
  std::deque<Appointment> retries_;  // when
  bool is_sending_ = false;
  bool is_in_window_ = false;
  bool has_ns_wait_ = true;
  std::size_t slice_ = 0;  // of the window, and where it ends
  std::uint64_t slice_end_ns_ = 0;
  std::uint64_t heard_ns_ = 0;  // when octets came last, on any connection
  std::int64_t wall_seconds_ = 0;
  // Open loop: when the next request is due, the requests that were due and have no connection yet,
  // and the connections with room for one more, in turn.
  std::optional<ArrivalSchedule> schedule_;
  std::deque<std::uint64_t> backlog_;
  std::deque<std::uint32_t> free_;
  WorkerResult result_;
};

}  // namespace httpmark

#endif  // HTTPMARK_NATIVE_LOAD_WORKER_HPP_
