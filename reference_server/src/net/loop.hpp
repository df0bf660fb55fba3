// The door to the kernel. Completion-shaped: orders go in, completions come out. Bytes that have
// come are handed over where they lie; bytes to be sent are the loop's business from the moment
// it says it has taken them. A loop knows bytes, handles and tokens, and nothing of HTTP.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "net/file_part.hpp"

namespace httpmark {

// Slot index in the low half, generation in the high half: a stale completion is told by it.
using LoopToken = std::uint64_t;

class LoopEvents {
  public:
    static constexpr LoopToken kRefused = ~LoopToken{0};

    // A new connection; its token, or kRefused to have it closed at once.
    virtual LoopToken on_accept(std::int32_t handle, std::uint32_t listener) = 0;
    // The handle of a live connection, -1 when the token is stale.
    virtual std::int32_t handle_of(LoopToken token) = 0;
    virtual void on_data(LoopToken token, const char* data, std::size_t size) = 0;
    virtual void on_end(LoopToken token) = 0;
    virtual void on_broken(LoopToken token) = 0;
    virtual void on_sendable(LoopToken token) = 0;
    // No descriptor is left for a new connection. True: one has been closed to make room.
    virtual bool on_full() = 0;
    // No connection can be taken on for want of descriptors or memory: pause the listeners for a
    // while, else the queue is announced for ever.
    virtual void on_starved() = 0;
    // Another thread has called wake().
    virtual void on_wake() = 0;
    // The clock has been read after a wait; events follow.
    virtual void on_turn() = 0;

  protected:
    ~LoopEvents() = default;
};

class Loop {
  public:
    static constexpr std::ptrdiff_t kBroken = -1;
    static constexpr std::ptrdiff_t kCannot = -2;

    virtual ~Loop() = default;

    // False with `error` set when the kernel refuses. Owns nothing it is given.
    virtual bool start(LoopEvents& events, std::string& error) = 0;
    virtual bool add_listener(int socket, std::uint32_t listener, std::string& error) = 0;
    virtual void remove_listener(int socket) = 0;
    // Paused, connections stay in the kernel's queue; a few that are under way may still come.
    virtual void pause_listener(std::uint32_t listener, bool paused) = 0;
    // Whether connections can be taken on again after on_starved(), if only to be closed.
    virtual bool has_reserve() = 0;
    // "address:port" of the other end, "unix" or, where the kernel does not say, "-".
    virtual std::string peer(std::int32_t handle) = 0;

    // Bytes taken, perhaps fewer than `size`: then ask for room. What has been taken goes out in
    // order, and before a later shutdown_write(). kBroken: the connection is gone.
    virtual std::ptrdiff_t send(std::int32_t handle, LoopToken token, const char* data,
                                std::size_t size) = 0;
    // The same, of bytes that others will follow at once: these may be waited for.
    virtual std::ptrdiff_t send_more(std::int32_t handle, LoopToken token, const char* data,
                                     std::size_t size) {
        return send(handle, token, data, size);
    }
    // The same, of bytes of a file, which must have them: kBroken, too, where it ends before the
    // first. kCannot: they have to be read.
    virtual std::ptrdiff_t send_file(std::int32_t, LoopToken, const FilePart&) { return kCannot; }
    // What the connection waits for: bytes, room to send, both or neither. A fresh one waits for
    // bytes. Room is announced for as long as it is asked for.
    virtual void set_interest(std::int32_t handle, LoopToken token, bool octets, bool room) = 0;
    virtual void shutdown_write(std::int32_t handle, LoopToken token) = 0;
    virtual void close(std::int32_t handle, LoopToken token) = 0;

    // Bytes have been taken that the kernel does not have yet. They are lost with the loop.
    virtual bool has_unsent() const { return false; }

    // Waits at most `timeout_ms` (-1 for ever) and hands out what has completed.
    virtual void turn(int timeout_ms) = 0;
    // From any thread.
    virtual void wake() = 0;
};

// Loop::send_file() by sendfile(2), for a socket that does not block. A peer that has gone is told
// by SIGPIPE as well, which the thread must block.
std::ptrdiff_t send_file_at_once(int socket, const FilePart& part);

// What getpeername() tells of a descriptor, as text.
std::string peer_name(int descriptor);

struct LoopSettings {
    std::size_t receive_size;
    unsigned accepts_per_wake;
    // io_uring only: connections live in the ring's own table and take no descriptor of the
    // process.
    bool direct_descriptors = false;
    unsigned direct_descriptors_max = 19000;
};
std::unique_ptr<Loop> make_epoll_loop(const LoopSettings& settings);
#if defined(HTTPMARK_HAS_URING)
std::unique_ptr<Loop> make_uring_loop(const LoopSettings& settings);
#endif

}  // namespace httpmark
