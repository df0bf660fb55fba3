#include "process_cost.hpp"

#include <dirent.h>
#include <fcntl.h>
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

}  // namespace

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
