#include "net/log.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <ctime>

#include "check.hpp"

namespace httpmark {

namespace {

constexpr long kPauseNs = 50'000'000;  // between looks at the rings

int open_log(const std::string& path) {
    return open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
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

void AccessLog::on_answer(const AnswerEvent& event) {
    if (event.unix_seconds != time_seconds_) {
        time_seconds_ = event.unix_seconds;
        const std::time_t time = static_cast<std::time_t>(event.unix_seconds);
        std::tm broken{};
        CHECK(gmtime_r(&time, &broken) != nullptr);
        std::array<char, 32> text{};
        CHECK(std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &broken) ==
              time_.size());
        std::memcpy(time_.data(), text.data(), time_.size());
    }
    line_.assign(time_.data(), time_.size());
    const auto add = [&](std::string_view part) {
        line_ += ' ';
        line_ += part;
    };
    add(worker_);
    add(event.peer);
    if (event.method.empty()) {
        add("\"-\"");
    } else {
        add("\"");
        line_ += event.method;
        add(event.target);
        add(event.version);
        line_ += '"';
    }
    add(std::to_string(event.status));
    add(std::to_string(event.content_size));
    if (event.error == nullptr) {
        add("-");
    } else {
        add(error_row(event.error->reason).name);
        if (event.error->offset != ErrorEvent::kNoOffset) {
            line_ += '@';
            line_ += std::to_string(event.error->offset);
        }
    }
    line_ += '\n';
    if (!ring_.put(line_)) {
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
    writer->thread_ = std::thread([raw = writer.get()] { raw->run(); });
    return writer;
}

LogWriter::~LogWriter() {
    stop_.store(true, std::memory_order_release);
    thread_.join();
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
            // A full disk loses lines, as a full ring does.
            log->ring().drop(written < 0 ? octets.size() : static_cast<std::size_t>(written));
        }
    }
}

}  // namespace httpmark
