#include "load/start_gate.hpp"

#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <ctime>
#include <string>

#include "shared/clock.hpp"
#include "shared/flags.hpp"

namespace httpmark {
namespace {

constexpr std::size_t kLineBytesMax = 64;

// A line without its end; empty where none came whole.
std::string read_line(int fd) {
    std::string line;
    while (line.size() < kLineBytesMax) {
        char octet = 0;
        const ssize_t got = read(fd, &octet, 1);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return {};
        if (octet == '\n') return line;
        line += octet;
    }
    return {};
}

std::int64_t realtime_ns() {
    timespec now = {};
    clock_gettime(CLOCK_REALTIME, &now);
    return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

}  // namespace

StartGate::StartGate(int fd) : fd_(fd) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
}

void StartGate::tell(std::size_t established) const {
    const std::string line = std::to_string(established) + "\n";
    if (write(fd_, line.data(), line.size()) != static_cast<ssize_t>(line.size())) {
        die(kExitEnvironment, "--start-fd cannot be written to");
    }
}

std::uint64_t StartGate::wait(std::uint64_t earliest_ns) {
    const std::string line = read_line(fd_);
    std::int64_t wanted = 0;
    const char* end = line.data() + line.size();
    const auto [stop, error] = std::from_chars(line.data(), end, wanted);
    if (line.empty() || error != std::errc() || stop != end) {
        die(kExitEnvironment, "nobody said when to begin");
    }
    const std::int64_t ahead = wanted - realtime_ns();
    const std::uint64_t now = monotonic_ns();
    wanted_ns_ = now + static_cast<std::uint64_t>(ahead);
    return std::max({earliest_ns, now, ahead > 0 ? wanted_ns_ : now});
}

std::uint64_t StartGate::late_ns(std::uint64_t at_ns) const {
    return at_ns - std::min(at_ns, wanted_ns_);
}

}  // namespace httpmark
