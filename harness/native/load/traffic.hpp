// The connections of one worker and what goes over them, whatever the mode of the load.
#ifndef HTTPMARK_NATIVE_LOAD_TRAFFIC_HPP_
#define HTTPMARK_NATIVE_LOAD_TRAFFIC_HPP_

#include <sys/socket.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "load/connect_pace.hpp"
#include "load/connection.hpp"
#include "load/counts.hpp"
#include "load/mode.hpp"
#include "load/plan.hpp"
#include "load/poller.hpp"
#include "load/response.hpp"

namespace httpmark {

class Traffic {
  public:
    // As of LoadWorker.
    Traffic(const LoadPlan& plan, std::size_t connections,
            const std::vector<ResponseVerifier>& verifiers, std::size_t first_index,
            std::size_t number);
    ~Traffic();
    Traffic(const Traffic&) = delete;
    Traffic& operator=(const Traffic&) = delete;

    const LoadPlan& plan() const { return plan_; }
    Mode& mode() { return *mode_; }
    Poller& poller() { return poller_; }
    std::size_t number() const { return number_; }  // of the worker
    std::vector<LoadConnection>& connections() { return connections_; }
    LoadConnection& connection(std::uint32_t index) { return connections_[index]; }
    WorkerResult& result() { return result_; }
    const WorkerResult& result() const { return result_; }
    LoadCounts& counts() { return result_.counts; }

    // --- the turns of a run (traffic.cpp)

    bool is_sending() const { return is_sending_; }  // requests may still go out
    void set_sending(bool on) { is_sending_ = on; }
    bool is_in_window() const { return is_in_window_; }
    void begin_window(std::uint64_t now_ns);
    void end_window(std::uint64_t now_ns);
    // To be told at each turn of the loop.
    void set_wall_clock(std::int64_t seconds) { wall_seconds_ = seconds; }
    // Requests that were sent, or are to be, and have no answer yet.
    std::uint64_t unanswered() const { return unanswered_; }
    std::uint64_t heard_ns() const { return heard_ns_; }  // when bytes came last, on any connection
    // What a server does not answer is an error, unless it was busy with others until the end.
    void account_for_unanswered(std::uint64_t now_ns);
    // Answers still come, and the rest of them is not waited for.
    void cut_short() { is_cut_short_ = true; }

    // --- opening and closing connections (traffic_open.cpp)

    // Opens all, at the plan's rate divided by its threads.
    void connect_all();
    // Goes on with one that is being opened: none keeps others waiting.
    void advance(LoadConnection* connection);
    // Gives up those that take too long, and tries again those that failed.
    void mind_openings(std::uint64_t now_ns);
    // When the next one is tried again; Mode::kNoTime: there is none.
    std::uint64_t next_retry_ns() const;
    // No connection is left, and none will be.
    bool is_lost() const { return live_ == 0 && retries_.empty(); }
    void close_socket(LoadConnection* connection);
    void close_all();

    // --- requests (traffic_send.cpp)

    // Puts `count` requests after those that are to be sent. `at_ns` is what their latency is
    // counted from.
    void enqueue(LoadConnection* connection, std::uint32_t count, std::uint64_t at_ns,
                 std::uint64_t sent_ns) {
        connection->queued += count;
        connection->unanswered += count;
        unanswered_ += count;
        connection->groups.add({at_ns, sent_ns, count});
    }
    // Sends what is queued, as far as the socket takes it.
    void flush(LoadConnection* connection);
    // As many requests as the plan's depth, one after the other.
    std::string_view batch() const {
        return std::string_view(block_).substr(0, block_at_[plan_.depth]);
    }
    // As send(2), through TLS where the plan has it.
    static ssize_t transmit(LoadConnection* connection, const char* data, std::size_t size) {
        if (connection->tls.is_open()) return connection->tls.send(data, size);
        return send(connection->fd, data, size, MSG_NOSIGNAL);
    }
    void watch_writable(LoadConnection* connection, bool on) {
        if (connection->wants_writable != on) change_watch(connection, on);
    }

    // --- answers (traffic_receive.cpp)

    void on_readable(LoadConnection* connection);

    // --- ends of connections (traffic_end.cpp)

    // Requests that are out are lost.
    void reopen(LoadConnection* connection);
    // The oldest `count` requests of a connection will not be answered.
    void lose(LoadConnection* connection, std::uint32_t count);

  private:
    using Phase = LoadConnection::Phase;

    // Since when a Date has been seen that the answers to a kind of request still have.
    struct DateSpan {
        std::uint64_t changes = 0;
        std::uint64_t since_ns = 0;
    };
    struct Appointment {
        std::uint32_t index = 0;
        std::uint64_t at_ns = 0;
    };

    void open(LoadConnection* connection);
    int open_socket(std::uint32_t index);
    bool advance_connect(LoadConnection* connection);
    bool advance_handshake(LoadConnection* connection);
    void give_up_opening(LoadConnection* connection, const std::string& why);
    bool may_begin(std::size_t begun) const;
    std::size_t settled() const { return result_.established + result_.counts.errors.connect; }
    bool watch_reading(const LoadConnection& connection);
    void change_watch(LoadConnection* connection, bool writable);

    bool read_once(LoadConnection* connection);
    std::size_t digest(LoadConnection* connection, std::string_view octets, std::uint64_t now_ns);
    bool count_checked(LoadConnection* connection, const CheckResult& result,
                       std::string_view octets, std::uint64_t now_ns);
    void count_fault(const LoadConnection& connection, const CheckResult& result,
                     std::string_view octets);
    void answered(LoadConnection* connection, std::uint64_t count, std::uint64_t now_ns,
                  bool verified);
    void look_at_date(LoadConnection* connection, std::uint64_t now_ns);
    void note_response(std::uint64_t ns, std::uint64_t count, std::uint64_t now_ns);
    void complain(const LoadConnection& connection, const CheckResult& result,
                  std::string_view octets);

    void on_end(LoadConnection* connection, bool is_reset);
    void reopen_and_resend(LoadConnection* connection);
    void replace(LoadConnection* connection);
    void end_answered_half(LoadConnection* connection);

    const LoadPlan& plan_;
    // Latency is counted from when requests were due, and so the window is cut by it.
    const bool counts_from_due_;
    std::size_t first_index_;
    std::size_t number_;
    Poller poller_;
    std::vector<LoadConnection> connections_;
    std::vector<ResponseVerifier> verifiers_;
    std::vector<DateSpan> dates_;  // of each
    // depth + kinds requests one after the other, and where each begins.
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
    bool is_cut_short_ = false;
    std::size_t slice_ = 0;  // of the window, and where it ends
    std::uint64_t slice_end_ns_ = 0;
    std::uint64_t heard_ns_ = 0;
    std::int64_t wall_seconds_ = 0;
    WorkerResult result_;
    std::unique_ptr<Mode> mode_;
};

}  // namespace httpmark

#endif  // HTTPMARK_NATIVE_LOAD_TRAFFIC_HPP_
