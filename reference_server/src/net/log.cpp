#include "net/log.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <system_error>

#include "check.hpp"

namespace httpmark {

namespace {

constexpr std::size_t kDigitsMax = 20;
constexpr std::size_t kTimeSize = 20;
// Of a line, besides texts of any size: three numbers, spaces, quotes and the end; and what is
// written beyond its beginning.
constexpr std::size_t kMoreOfLine = 3 * kDigitsMax + 32 + kCopySlack;
constexpr long kPauseNs = 50'000'000;  // between looks at the rings

// Without waiting: a FIFO that nobody reads is an error, and a full one keeps nobody.
int open_log(const std::string& path) {
    return open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK, 0644);
}

}  // namespace

bool LogRing::put(std::string_view octets) {
    const std::uint64_t written = written_.load(std::memory_order_relaxed);
    if (written - taken_.load(std::memory_order_acquire) + octets.size() > kSize) return false;
    const std::size_t at = written % kSize;
    const std::size_t first = std::min(octets.size(), kSize - at);
    std::memcpy(octets_.get() + at, octets.data(), first);
    std::memcpy(octets_.get(), octets.data() + first, octets.size() - first);
    written_.store(written + octets.size(), std::memory_order_release);
    return true;
}

void LogRing::commit(const char* end) {
    const std::uint64_t written = written_.load(std::memory_order_relaxed);
    const auto reached = static_cast<std::size_t>(end - octets_.get());
    if (reached > kSize) std::memcpy(octets_.get(), octets_.get() + kSize, reached - kSize);
    written_.store(written - written % kSize + reached, std::memory_order_release);
}

std::string_view LogRing::peek() const {
    const std::uint64_t taken = taken_.load(std::memory_order_relaxed);
    const std::size_t there =
        static_cast<std::size_t>(written_.load(std::memory_order_acquire) - taken);
    const std::size_t at = taken % kSize;
    return {octets_.get() + at, std::min(there, kSize - at)};
}

void LogRing::drop(std::size_t size) {
    taken_.store(taken_.load(std::memory_order_relaxed) + size, std::memory_order_release);
}

AccessLog::AccessLog(unsigned worker)
    : begin_(std::string(kTimeSize, ' ') + ' ' + std::to_string(worker) + ' '),
      peer_at_(begin_.size()) {}

void AccessLog::begin_with(const AnswerEvent& event) {
    if (event.unix_seconds != time_seconds_) {
        const std::time_t time = static_cast<std::time_t>(event.unix_seconds);
        std::tm broken{};
        CHECK(gmtime_r(&time, &broken) != nullptr);
        std::array<char, 32> text{};
        CHECK(std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &broken) == kTimeSize);
        begin_.replace(0, kTimeSize, text.data(), kTimeSize);
        time_seconds_ = event.unix_seconds;
    }
    peer_ = event.peer;
    begin_.resize(peer_at_);
    begin_.append(peer_).append(" \"");
    begin_size_ = begin_.size();
    begin_.resize(begin_size_ + kCopySlack);
}

// Returns the end of the line.
char* AccessLog::write_line(char* out, const AnswerEvent& event) const {
    const auto put = [&](std::string_view part) {
        std::memcpy(out, part.data(), part.size());
        out += part.size();
    };
    const auto put_number = [&](std::uint64_t number) {
        out = std::to_chars(out, out + kDigitsMax, number).ptr;
    };
    out = put_steps<64>(out, begin_.data(), begin_size_);
    put(event.request_line.empty() ? "-" : event.request_line);
    *out++ = '"';
    *out++ = ' ';
    put_number(event.status);
    *out++ = ' ';
    put_number(event.content_size);
    *out++ = ' ';
    if (event.error == nullptr) {
        *out++ = '-';
    } else {
        put(error_row(event.error->reason).name);
        if (event.error->offset != ErrorEvent::kNoOffset) {
            *out++ = '@';
            put_number(event.error->offset);
        }
    }
    *out++ = '\n';
    return out;
}

void AccessLog::on_answer(const AnswerEvent& event) {
    if (event.unix_seconds != time_seconds_ || event.peer != peer_) begin_with(event);
    const std::size_t reason =
        event.error == nullptr ? 1 : std::strlen(error_row(event.error->reason).name);
    const std::size_t most = begin_size_ + event.request_line.size() + reason + kMoreOfLine;
    if (char* const room = ring_.room(most); room != nullptr) [[likely]] {
        ring_.commit(write_line(room, event));
        return;
    }
    if (line_.size() < most) line_.resize(most);
    const char* const end = write_line(line_.data(), event);
    if (!ring_.put({line_.data(), static_cast<std::size_t>(end - line_.data())})) {
        lost_.store(lost_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    }
}

std::unique_ptr<LogWriter> LogWriter::start(const std::string& path, std::vector<AccessLog*> logs,
                                            std::string& error) {
    const int file = open_log(path);
    if (file < 0) {
        error = "access log " + path + ": " + std::strerror(errno);
        return nullptr;
    }
    std::unique_ptr<LogWriter> writer(new LogWriter(file, path, std::move(logs)));
    try {
        writer->thread_ = std::thread([raw = writer.get()] { raw->run(); });
    } catch (const std::system_error& fault) {
        error = std::string("cannot start a thread: ") + fault.what();
        return nullptr;
    }
    return writer;
}

LogWriter::~LogWriter() {
    stop_.store(true, std::memory_order_release);
    if (thread_.joinable()) thread_.join();
    close(file_);
}

void LogWriter::run() {
    while (!stop_.load(std::memory_order_acquire)) {
        if (reopen_.exchange(false, std::memory_order_relaxed)) {
            const int fresh = open_log(path_);
            if (fresh >= 0) {
                close(file_);
                file_ = fresh;
            } else {
                std::fprintf(stderr, "httpmark-server: access log is kept as it is: %s: %s\n",
                             path_.c_str(), std::strerror(errno));
            }
        }
        write_all();
        const timespec pause{0, kPauseNs};
        nanosleep(&pause, nullptr);
    }
    write_all();
}

void LogWriter::write_all() {
    for (AccessLog* const log : logs_) {
        for (std::string_view octets = log->ring().peek(); !octets.empty();
             octets = log->ring().peek()) {
            const ssize_t written = write(file_, octets.data(), octets.size());
            if (written < 0 && errno == EINTR) continue;
            if (written < 0 && errno == EAGAIN) return;  // the lines wait in the ring
            // A full disk loses lines, as a full ring does.
            log->ring().drop(written < 0 ? octets.size() : static_cast<std::size_t>(written));
        }
    }
}

}  // namespace httpmark
