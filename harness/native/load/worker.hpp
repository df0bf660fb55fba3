// One thread of the load generator: its own epoll, its own connections, nothing shared.
#ifndef HTTPMARK_NATIVE_LOAD_WORKER_HPP_
#define HTTPMARK_NATIVE_LOAD_WORKER_HPP_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "load/traffic.hpp"

namespace httpmark {

class LoadWorker {
  public:
    // `verifiers`: one per request of the plan, each already acquainted with its response.
    // `first_index`: of its connections among the plan's; `number`: of the worker.
    LoadWorker(const LoadPlan& plan, std::size_t connections,
               const std::vector<ResponseVerifier>& verifiers, std::size_t first_index = 0,
               std::size_t number = 0);

    // Opens the connections, at the plan's rate divided by its threads.
    void connect_all() { traffic_.connect_all(); }
    // Warm-up, window, drain. The connections stay open: what a server has for each it can still be
    // asked for.
    void run(std::uint64_t start_ns);
    void close_all() { traffic_.close_all(); }

    const WorkerResult& result() const { return traffic_.result(); }

  private:
    void set_times(std::uint64_t start_ns);
    void pass_turns(std::uint64_t now_ns);
    bool is_draining(std::uint64_t now_ns);
    std::span<const epoll_event> wait(std::uint64_t now_ns);
    void handle(const epoll_event& event);
    void close_books();

    const LoadPlan& plan_;
    Traffic traffic_;
    // The turns of a run, and the next of them.
    std::uint64_t window_ns_ = 0;
    std::uint64_t middle_ns_ = 0;
    std::uint64_t stop_ns_ = 0;
    std::uint64_t give_up_ns_ = 0;
    std::uint64_t enough_ns_ = 0;
    std::uint64_t next_ns_ = 0;
    bool is_past_middle_ = false;
};

}  // namespace httpmark

#endif  // HTTPMARK_NATIVE_LOAD_WORKER_HPP_
