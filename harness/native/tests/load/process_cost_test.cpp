// Counters over threads; software events, as these every machine has.
#include "load/process_cost.hpp"

#include <gtest/gtest.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <ctime>
#include <functional>
#include <string>
#include <thread>

namespace {

using namespace httpmark;

void burn_ms(int ms) {
    timespec now = {};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    const long end = now.tv_sec * 1000 + now.tv_nsec / 1'000'000 + ms;
    while (now.tv_sec * 1000 + now.tv_nsec / 1'000'000 < end) {
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    }
}

TEST(EventCounter, counts_what_our_threads_do) {
    const auto counter = EventCounter::of_self(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK);
    if (!counter) GTEST_SKIP() << "perf_event_open is not allowed here";
    std::thread([] { burn_ms(50); }).join();
    const auto nanoseconds = counter->read();
    ASSERT_TRUE(nanoseconds.has_value());
    EXPECT_GT(*nanoseconds, 45'000'000u);
    EXPECT_LT(*nanoseconds, 500'000'000u);
}

TEST(EventCounter, counts_another_process) {
    const auto counter =
        EventCounter::of_processes(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK, {getpid()});
    if (!counter) GTEST_SKIP() << "perf_event_open is not allowed here";
    burn_ms(50);
    EXPECT_GT(counter->read().value_or(0), 45'000'000u);
}

TEST(EventCounter, counts_threads_that_a_process_begins_later) {
    const auto counter =
        EventCounter::of_processes(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK, {getpid()});
    if (!counter) GTEST_SKIP() << "perf_event_open is not allowed here";
    std::thread([] { burn_ms(50); }).join();
    EXPECT_GT(counter->read().value_or(0), 45'000'000u);
}

// A process that burns when it is told to, and says when it has.
class Burner {
  public:
    explicit Burner(const std::function<void()>& burn) {
        if (pipe(told_) != 0 || pipe(said_) != 0) std::abort();
        pid_ = fork();
        if (pid_ != 0) return;
        char word = 0;
        while (read(told_[0], &word, 1) == 1) {
            burn();
            if (write(said_[1], &word, 1) != 1) break;
        }
        _exit(0);
    }
    ~Burner() {
        for (const int fd : {told_[0], told_[1], said_[0], said_[1]}) close(fd);
        kill(pid_, SIGKILL);
        waitpid(pid_, nullptr, 0);
    }
    void burn() {
        char word = 'b';
        ASSERT_EQ(write(told_[1], &word, 1), 1);
        ASSERT_EQ(read(said_[0], &word, 1), 1);
    }
    int pid() const { return pid_; }

  private:
    int told_[2];
    int said_[2];
    int pid_ = -1;
};

// What the burner used from one look to the next, with one burning between.
std::optional<TreeCost> cost_of_burning(const std::function<void()>& burn, std::string* complaint) {
    Burner burner(burn);
    burner.burn();  // before the first look: not to be counted
    const Books before = read_books(process_tree({burner.pid()}));
    burner.burn();
    const Books after = read_books_again({burner.pid()}, before);
    return cost_between(before, after, {burner.pid()}, complaint);
}

TEST(Books, many_threads_do_not_put_the_clock_of_their_process_off) {
    const pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (int i = 0; i < 400; ++i) std::thread([] { pause(); }).detach();
        for (;;) burn_ms(100);
    }
    clockid_t clock = 0;
    ASSERT_EQ(clock_getcpuclockid(pid, &clock), 0);
    const auto used_ns = [clock] {
        timespec used = {};
        clock_gettime(clock, &used);
        return used.tv_sec * 1'000'000'000L + used.tv_nsec;
    };
    const auto threads = [pid] {
        const Books books = read_books({pid});
        return books.contains(pid) ? books.at(pid).threads.size() : 0;
    };
    while (threads() < 401) usleep(1'000);
    const long before = used_ns();
    const Books books = read_books({pid});
    const long looked = used_ns() - before;
    EXPECT_LE(static_cast<long>(books.at(pid).cpu_ns) - before, looked / 2);
    kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
}

TEST(TreeCost, a_thread_that_has_ended_is_counted) {
    std::string complaint;
    const auto cost = cost_of_burning([] { std::thread([] { burn_ms(60); }).join(); }, &complaint);
    ASSERT_TRUE(cost.has_value()) << complaint;
    EXPECT_GT(cost->cpu_ns, 58'000'000u);
    EXPECT_LT(cost->cpu_ns, 110'000'000u);
    EXPECT_GT(cost->ended_ns, 50'000'000u);
}

TEST(TreeCost, a_child_that_has_ended_is_counted) {
    std::string complaint;
    const auto cost = cost_of_burning(
        [] {
            const pid_t child = fork();
            if (child == 0) {
                burn_ms(60);
                _exit(0);
            }
            waitpid(child, nullptr, 0);
        },
        &complaint);
    ASSERT_TRUE(cost.has_value()) << complaint;
    EXPECT_GT(cost->cpu_ns, 40'000'000u);  // to the tick, twice
    EXPECT_LT(cost->cpu_ns, 110'000'000u);
}

TEST(TreeCost, a_child_that_lives_is_counted_and_so_is_one_that_was_there_before) {
    std::string complaint;
    const auto cost = cost_of_burning(
        [] {
            int ready[2];
            if (pipe(ready) != 0) _exit(1);
            if (fork() == 0) {
                prctl(PR_SET_PDEATHSIG, SIGKILL);
                burn_ms(60);
                close(ready[1]);  // done
                pollfd never = {-1, 0, 0};
                poll(&never, 1, 5000);
                _exit(0);
            }
            close(ready[1]);
            char word = 0;
            if (read(ready[0], &word, 1) != 0) _exit(1);
            close(ready[0]);
        },
        &complaint);
    ASSERT_TRUE(cost.has_value()) << complaint;
    // ThreadSanitizer has a thread of its own in each process.
    const std::size_t each = read_books({getpid()}).at(getpid()).threads.size();
    EXPECT_EQ(cost->threads.size(), 3 * each);
    EXPECT_GT(cost->cpu_ns, 58'000'000u);
    EXPECT_LT(cost->cpu_ns, 110'000'000u);
}

TEST(TreeCost, what_ended_children_used_is_not_known_where_sigchld_is_ignored) {
    std::string complaint;
    const auto cost = cost_of_burning(
        [] {
            std::signal(SIGCHLD, SIG_IGN);
            static pid_t last = 0;
            if (last != 0) kill(last, SIGKILL);
            last = fork();
            if (last == 0) {
                pollfd never = {-1, 0, 0};
                poll(&never, 1, 5000);
                _exit(0);
            }
        },
        &complaint);
    EXPECT_FALSE(cost.has_value());
    EXPECT_NE(complaint.find("SIGCHLD"), std::string::npos) << complaint;
}

TEST(TreeCost, a_root_that_has_ended_has_no_cost) {
    Books before;
    int pid = 0;
    {
        Burner burner([] {});
        pid = burner.pid();
        before = read_books({pid});
    }
    std::string complaint;
    EXPECT_FALSE(cost_between(before, read_books_again({pid}, before), {pid}, &complaint));
    EXPECT_EQ(complaint, "a process of the server has ended");
}

TEST(EventCounter, an_event_that_is_not_there_is_no_count) {
    EXPECT_FALSE(EventCounter::of_self(PERF_TYPE_HARDWARE, ~0ULL).has_value());
    EXPECT_FALSE(
        EventCounter::of_processes(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK, {}).has_value());
}

}  // namespace
