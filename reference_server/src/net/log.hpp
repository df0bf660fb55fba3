// The access log. A worker formats a line into a ring of its own and goes on; one thread takes the
// lines of all workers to the file. A full ring loses lines, which are counted, and never waits.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "net/connection.hpp"

namespace httpmark {

// Bytes from one thread to one other.
class LogRing {
  public:
    static constexpr std::size_t kSize = 256 * 1024;  // a power of two
    static constexpr std::size_t kRoomMax = 1024;     // most lines are shorter

    // All of it or, when there is no room, nothing.
    bool put(std::string_view octets);
    // Where up to `size` bytes may be written in one piece; nullptr where there is no such room.
    char* room(std::size_t size) {
        const std::uint64_t written = written_.load(std::memory_order_relaxed);
        if (size > kRoomMax || written - taken_.load(std::memory_order_acquire) + size > kSize)
            [[unlikely]] {
            return nullptr;
        }
        return octets_.get() + written % kSize;
    }
    // What was written there, up to `end`.
    void commit(const char* end);
    // What stands there in one piece, to be given back by drop(); empty when there is nothing.
    std::string_view peek() const;
    void drop(std::size_t size);

  private:
    std::unique_ptr<char[]> octets_ = std::make_unique<char[]>(kSize + kRoomMax);
    alignas(64) std::atomic<std::uint64_t> written_{0};
    alignas(64) std::atomic<std::uint64_t> taken_{0};
};

// One worker's part: an answer is a line of time (UTC), worker, peer, request-line, status, bytes
// of content, and what was wrong with the byte where ("-" for what is not known):
//   2026-11-21T07:00:00Z 0 127.0.0.1:40000 "GET /hello HTTP/1.1" 200 12 -
//   2026-11-21T07:00:00Z 0 127.0.0.1:40002 "-" 400 15 target-percent@7
// No line can be broken or forged: a request-line is there only where every byte of it was valid,
// and then it holds neither a quote nor a control byte.
class AccessLog final : public Observer {
  public:
    explicit AccessLog(unsigned worker);

    void on_answer(const AnswerEvent& event) override;
    LogRing& ring() { return ring_; }
    std::uint64_t lost() const { return lost_.load(std::memory_order_relaxed); }

  private:
    void begin_with(const AnswerEvent& event);
    char* write_line(char* out, const AnswerEvent& event) const;

    LogRing ring_;
    std::string line_;
    // What lines begin with as long as the second and the peer are the same, and kCopySlack bytes.
    std::string begin_;
    std::size_t peer_at_;
    std::size_t begin_size_ = 0;
    std::string peer_;
    std::int64_t time_seconds_ = -1;
    std::atomic<std::uint64_t> lost_{0};
};

// The thread. Opens the file for appending, again at each reopen(): logs are rotated by renaming.
class LogWriter {
  public:
    // nullptr with `error` set when the file cannot be opened. `logs` stay the caller's.
    static std::unique_ptr<LogWriter> start(const std::string& path, std::vector<AccessLog*> logs,
                                            std::string& error);
    ~LogWriter();  // after the last line has been written
    LogWriter(const LogWriter&) = delete;
    LogWriter& operator=(const LogWriter&) = delete;

    void reopen() { reopen_.store(true, std::memory_order_relaxed); }

  private:
    LogWriter(int file, std::string path, std::vector<AccessLog*> logs)
        : path_(std::move(path)), logs_(std::move(logs)), file_(file) {}
    void run();
    void write_all();

    std::string path_;
    std::vector<AccessLog*> logs_;
    int file_;
    std::atomic<bool> reopen_{false};
    std::atomic<bool> stop_{false};
    std::thread thread_;
};

}  // namespace httpmark
