#include "process_cost.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace httpmark {
namespace {

std::string read_small_file(const std::string& path) {
  std::string text(4096, '\0');
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return {};
  const ssize_t got = read(fd, text.data(), text.size());
  close(fd);
  text.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  return text;
}

std::uint64_t number_after(const std::string& text, const char* name) {
  const std::size_t at = text.find(name);
  if (at == std::string::npos) return 0;
  return std::strtoull(text.c_str() + at + std::strlen(name), nullptr, 10);
}

int open_event(std::uint32_t type, std::uint64_t config, int tid, bool inherits) {
  perf_event_attr attributes = {};
  attributes.size = sizeof attributes;
  attributes.type = type;
  attributes.config = config;
  attributes.inherit = inherits ? 1 : 0;
  attributes.exclude_hv = 1;
  return static_cast<int>(
      syscall(SYS_perf_event_open, &attributes, tid, -1, -1, PERF_FLAG_FD_CLOEXEC));
}

}  // namespace

EventCounter& EventCounter::operator=(EventCounter&& other) noexcept {
  std::swap(fds_, other.fds_);
  return *this;
}

EventCounter::~EventCounter() {
  for (const int fd : fds_) close(fd);
}

std::optional<EventCounter> EventCounter::of_processes(std::uint32_t type, std::uint64_t config,
                                                       const std::vector<int>& pids) {
  EventCounter counter;
  for (const auto& [tid, cost] : read_process_costs(pids)) {
    const int fd = open_event(type, config, tid, false);
    if (fd < 0) return std::nullopt;
    counter.fds_.push_back(fd);
  }
  if (counter.fds_.empty()) return std::nullopt;
  return counter;
}

std::optional<EventCounter> EventCounter::of_self(std::uint32_t type, std::uint64_t config) {
  EventCounter counter;
  const int fd = open_event(type, config, 0, true);
  if (fd < 0) return std::nullopt;
  counter.fds_.push_back(fd);
  return counter;
}

std::optional<EventCounter> EventCounter::instructions_of_processes(const std::vector<int>& pids) {
  return of_processes(PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS, pids);
}

std::optional<EventCounter> EventCounter::instructions_of_self() {
  return of_self(PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS);
}

std::optional<std::uint64_t> EventCounter::read() const {
  std::uint64_t sum = 0;
  for (const int fd : fds_) {
    std::uint64_t value = 0;
    if (::read(fd, &value, sizeof value) != sizeof value) return std::nullopt;
    sum += value;
  }
  return sum;
}

TaskCost read_schedstat(const std::string& path) {
  TaskCost cost;
  unsigned long long on_cpu = 0;
  unsigned long long delay = 0;
  if (std::sscanf(read_small_file(path).c_str(), "%llu %llu", &on_cpu, &delay) == 2) {
    cost.on_cpu_ns = on_cpu;
    cost.run_delay_ns = delay;
  }
  return cost;
}

std::map<int, TaskCost> read_process_costs(const std::vector<int>& pids) {
  std::map<int, TaskCost> costs;
  for (const int pid : pids) {
    const std::string folder = "/proc/" + std::to_string(pid) + "/task";
    DIR* tasks = opendir(folder.c_str());
    if (tasks == nullptr) continue;
    while (const dirent* entry = readdir(tasks)) {
      const int tid = std::atoi(entry->d_name);
      if (tid <= 0) continue;
      const std::string task = folder + "/" + entry->d_name;
      const std::string status = read_small_file(task + "/status");
      if (status.find("\nState:\tZ") != std::string::npos) continue;  // ended, not yet waited for
      TaskCost cost = read_schedstat(task + "/schedstat");
      cost.context_switches = number_after(status, "\nvoluntary_ctxt_switches:") +
                              number_after(status, "\nnonvoluntary_ctxt_switches:");
      costs[tid] = cost;
    }
    closedir(tasks);
  }
  return costs;
}

}  // namespace httpmark
