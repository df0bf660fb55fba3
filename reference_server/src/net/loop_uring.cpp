// io_uring behind the same interface: multishot accept and receive into provided buffers, one send
// in flight per connection from a small pool of the loop's own, direct descriptors as an option.
#include <fcntl.h>
#include <liburing.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <vector>

#include "check.hpp"
#include "net/descriptor_reserve.hpp"
#include "net/loop.hpp"
#include "net/uring_buffers.hpp"
#include "net/uring_peers.hpp"

namespace httpmark {

namespace {

constexpr unsigned kQueueSize = 1024;
constexpr unsigned kCompletionsSize = 8192;
constexpr int kLastSendSeconds = 30;
constexpr std::uint64_t kLookAgainMs = 500;
constexpr unsigned kLooksMax = 2000;  // at a time: each is two completions

// What a completion is about, in the top byte of its user data; then 24 bits of generation and
// 32 of handle, so that a completion for a descriptor's former owner is told apart.
enum class Operation : std::uint8_t {
    kAccept = 1,
    kReceive,
    kSend,
    kRoom,
    kWake,
    kGiveUp,
    kShutdown,
    kSendAtOnce,
    kIgnored,
};

class UringLoop final : public Loop {
  public:
    explicit UringLoop(const LoopSettings& settings) : settings_(settings) {
        CHECK(ReceiveBuffers::kSize <= settings.receive_size);
    }

    ~UringLoop() override {
        if (ready_) io_uring_queue_exit(&ring_);
        // Deferred closes whose send never completed.
        for (std::int32_t handle = 0; handle < peers_.size(); ++handle) {
            if (peers_[handle].closing && !settings_.direct_descriptors) ::close(handle);
        }
        if (wake_ >= 0) ::close(wake_);
    }

    bool start(LoopEvents& events, std::string& error) override {
        events_ = &events;
        wake_ = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
        reserve_.hold();
        io_uring_params parameters{};
        // Enabled by the worker's own thread in its first turn: that makes it the single issuer.
        parameters.flags = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN |
                           IORING_SETUP_R_DISABLED | IORING_SETUP_CQSIZE | IORING_SETUP_CLAMP;
        parameters.cq_entries = kCompletionsSize;
        int fault = io_uring_queue_init_params(kQueueSize, &ring_, &parameters);
        if (fault < 0 || wake_ < 0) {
            error = std::string("io_uring cannot be had here (kernel 6.1 is needed): ") +
                    std::strerror(fault < 0 ? -fault : errno);
            return false;
        }
        ready_ = true;
        if (!receive_.map() || !send_.map()) {
            error = std::string("io_uring buffers: ") + std::strerror(errno);
            return false;
        }
        fault = receive_.register_at(ring_);
        if (fault == 0 && settings_.direct_descriptors) {
            fault = io_uring_register_files_sparse(&ring_, settings_.direct_descriptors_max);
        }
        if (fault < 0) {
            error = std::string("io_uring registration: ") + std::strerror(-fault);
            return false;
        }
        receive_.give_all();
        arm_wake();
        return true;
    }

    bool add_listener(int socket, std::uint32_t listener, std::string&) override {
        if (listeners_.size() <= listener) listeners_.resize(listener + 1, -1);
        listeners_[listener] = socket;
        arm_accept(listener);
        return true;
    }

    void remove_listener(int socket) override {
        for (std::uint32_t i = 0; i < listeners_.size(); ++i) {
            if (listeners_[i] != socket) continue;
            listeners_[i] = -1;
            cancel(pack(Operation::kAccept, 0, i));
        }
        if (enabled_) io_uring_submit(&ring_);  // the descriptor is closed after this call
    }

    void pause_listener(std::uint32_t listener, bool paused) override {
        accepting_paused_ = paused;
        if (paused) {
            cancel(pack(Operation::kAccept, 0, listener));
        } else if (!accept_armed_[listener]) {
            arm_accept(listener);
        }
    }

    bool has_reserve() override { return reserve_.hold(); }

    // The ring's own descriptors are not to be asked.
    std::string peer(std::int32_t handle) override {
        return settings_.direct_descriptors ? "-" : peer_name(handle);
    }

    std::ptrdiff_t send(std::int32_t handle, LoopToken, const char* data,
                        std::size_t size) override {
        UringPeer& peer = peers_[handle];
        if (peer.send_buffer != SendBuffers::kNone) return 0;
        // Slow readers hold the whole pool: the others are not to wait for them.
        if (send_.empty()) return send_at_once(handle, data, size, 0);
        peer.send_buffer = send_.take();
        peer.send_begin = 0;
        peer.send_end = static_cast<std::uint32_t>(std::min(size, SendBuffers::kSize));
        std::memcpy(send_.at(peer.send_buffer), data, peer.send_end);
        arm_send(handle, peer);
        return static_cast<std::ptrdiff_t>(peer.send_end);
    }

    // The ring has no sendfile(): a file, and what goes before it, is sent at once, without it.
    std::ptrdiff_t send_more(std::int32_t handle, LoopToken token, const char* data,
                             std::size_t size) override {
        const bool waits = peers_[handle].send_buffer != SendBuffers::kNone;
        return waits || settings_.direct_descriptors ? send(handle, token, data, size)
                                                     : send_at_once(handle, data, size, MSG_MORE);
    }
    std::ptrdiff_t send_file(std::int32_t handle, LoopToken, const FilePart& part) override {
        if (settings_.direct_descriptors) return kCannot;
        if (peers_[handle].send_buffer != SendBuffers::kNone) return 0;
        return send_file_at_once(handle, part);
    }

    void set_interest(std::int32_t handle, LoopToken, bool octets, bool room) override {
        UringPeer& peer = peers_[handle];
        peer.wants_octets = octets;
        peer.wants_room = room;
        if (octets && !peer.receiving) arm_receive(handle, peer);
        if (!octets && peer.receiving && !peer.receive_cancelled) {
            peer.receive_cancelled = true;
            cancel(pack(Operation::kReceive, peer.generation, handle));
        }
        if (room && peer.send_buffer == SendBuffers::kNone && !peer.polling) arm_room(handle, peer);
    }

    void shutdown_write(std::int32_t handle, LoopToken) override {
        UringPeer& peer = peers_[handle];
        if (peer.send_buffer != SendBuffers::kNone) {
            peer.shutdown_due = true;
            return;
        }
        start_shutdown(handle, peer);
    }

    void close(std::int32_t handle, LoopToken) override {
        UringPeer& peer = peers_[handle];
        if (peer.receiving && !peer.receive_cancelled) {
            peer.receive_cancelled = true;
            cancel(pack(Operation::kReceive, peer.generation, handle));
        }
        if (peer.polling) cancel(pack(Operation::kRoom, peer.generation, handle));
        peer.wants_octets = false;
        peer.wants_room = false;
        peer.token = LoopEvents::kRefused;
        peer.closing = true;
        if (peer.shutting) return;
        if (peer.send_buffer == SendBuffers::kNone) {
            finish_close(handle, peer);
            return;
        }
        // What was taken still has to go out, but not for ever.
        io_uring_sqe* const sqe = next_entry();
        io_uring_prep_timeout(sqe, &last_send_timeout_, 0, 0);
        io_uring_sqe_set_data64(sqe, pack(Operation::kGiveUp, peer.generation, handle));
    }

    bool has_unsent() const override { return !send_.all_are_free(); }

    void wake() override {
        const std::uint64_t one = 1;
        (void)!write(wake_, &one, sizeof one);
    }

    void turn(int timeout_ms) override {
        if (!enabled_) {
            // liburing 2.3 declares a wrapper and does not export it.
            CHECK(syscall(__NR_io_uring_register, ring_.ring_fd, IORING_REGISTER_ENABLE_RINGS,
                          nullptr, 0) == 0);
            enabled_ = true;
        }
        if (!receivers_.empty()) {
            const int most = static_cast<int>(kLookAgainMs);
            timeout_ms = timeout_ms < 0 ? most : std::min(timeout_ms, most);
        }
        __kernel_timespec timeout{};
        timeout.tv_sec = timeout_ms / 1000;
        timeout.tv_nsec = timeout_ms % 1000 * 1000000LL;
        io_uring_cqe* first = nullptr;
        if (timeout_ms < 0) {
            io_uring_submit_and_wait(&ring_, 1);
        } else {
            io_uring_submit_and_wait_timeout(&ring_, &first, 1, &timeout, nullptr);
        }
        events_->on_turn();
        io_uring_cqe* cqe = nullptr;
        while (io_uring_peek_cqe(&ring_, &cqe) == 0) {
            const std::uint64_t data = cqe->user_data;
            const int result = cqe->res;
            const unsigned flags = cqe->flags;
            io_uring_cqe_seen(&ring_, cqe);
            complete(data, result, flags);
        }
        if (!receivers_.empty()) look_again();
    }

  private:
    static std::uint64_t pack(Operation operation, std::uint32_t generation, std::int64_t handle) {
        return static_cast<std::uint64_t>(operation) << 56 |
               (std::uint64_t{generation} & 0xFFFFFF) << 32 |
               (static_cast<std::uint64_t>(handle) & 0xFFFFFFFF);
    }

    io_uring_sqe* next_entry() {
        io_uring_sqe* sqe = io_uring_get_sqe(&ring_);
        if (sqe == nullptr) {
            CHECK(enabled_);
            io_uring_submit(&ring_);
            sqe = io_uring_get_sqe(&ring_);
            CHECK(sqe != nullptr);
        }
        return sqe;
    }

    void mark_direct(io_uring_sqe* sqe) const {
        if (settings_.direct_descriptors) sqe->flags |= IOSQE_FIXED_FILE;
    }

    void arm_wake() {
        io_uring_sqe* const sqe = next_entry();
        io_uring_prep_poll_multishot(sqe, wake_, POLLIN);
        io_uring_sqe_set_data64(sqe, pack(Operation::kWake, 0, 0));
    }

    void arm_accept(std::uint32_t listener) {
        io_uring_sqe* const sqe = next_entry();
        if (settings_.direct_descriptors) {
            io_uring_prep_multishot_accept_direct(sqe, listeners_[listener], nullptr, nullptr, 0);
        } else {
            io_uring_prep_multishot_accept(sqe, listeners_[listener], nullptr, nullptr,
                                           SOCK_NONBLOCK | SOCK_CLOEXEC);
        }
        io_uring_sqe_set_data64(sqe, pack(Operation::kAccept, 0, listener));
        if (accept_armed_.size() <= listener) accept_armed_.resize(listener + 1, false);
        accept_armed_[listener] = true;
    }

    void arm_receive(std::int32_t handle, UringPeer& peer) {
        io_uring_sqe* const sqe = next_entry();
        io_uring_prep_recv_multishot(sqe, handle, nullptr, 0, 0);
        sqe->flags |= IOSQE_BUFFER_SELECT;
        sqe->buf_group = ReceiveBuffers::kGroup;
        mark_direct(sqe);
        io_uring_sqe_set_data64(sqe, pack(Operation::kReceive, peer.generation, handle));
        peer.receiving = true;
        peer.receive_cancelled = false;
    }

    // A kernel (6.18 was caught at it) can lose an end of stream or a reset that comes right after
    // bytes: both wake-ups meet one run of a multishot receive, which takes the bytes and sleeps
    // again for ever. So a connection that falls silent after bytes is looked at once more, by a
    // receive armed afresh: that one sees the end if it is there. Costs nothing while bytes come.
    void note_octets(std::int32_t handle, UringPeer& peer) {
        peer.stirred = true;
        if (peer.listed) return;
        peer.listed = true;
        receivers_.push_back(handle);
    }

    void look_again() {
        timespec now{};
        clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
        const std::uint64_t now_ms = static_cast<std::uint64_t>(now.tv_sec) * 1000 +
                                     static_cast<std::uint64_t>(now.tv_nsec) / 1000000;
        if (now_ms < look_again_ms_) return;
        look_again_ms_ = now_ms + kLookAgainMs;
        std::size_t kept = 0;
        unsigned looks = 0;
        for (const std::int32_t handle : receivers_) {
            UringPeer& peer = peers_[handle];
            if (looks == kLooksMax || (peer.stirred && !peer.closing)) {
                peer.stirred = false;
                receivers_[kept++] = handle;
                continue;
            }
            peer.listed = false;
            if (peer.receiving && !peer.receive_cancelled) {
                ++looks;
                peer.receive_cancelled = true;
                cancel(pack(Operation::kReceive, peer.generation, handle));
            }
        }
        receivers_.resize(kept);
    }

    void arm_send(std::int32_t handle, const UringPeer& peer) {
        io_uring_sqe* const sqe = next_entry();
        io_uring_prep_send(sqe, handle, send_.at(peer.send_buffer) + peer.send_begin,
                           peer.send_end - peer.send_begin, MSG_NOSIGNAL | MSG_WAITALL);
        mark_direct(sqe);
        io_uring_sqe_set_data64(sqe, pack(Operation::kSend, peer.generation, handle));
    }

    // What the socket has room for, without a buffer of the pool: the bytes have been copied, or
    // refused, when the call returns.
    std::ptrdiff_t send_at_once(std::int32_t handle, const char* data, std::size_t size, int more) {
        std::ptrdiff_t taken = 0;
        if (settings_.direct_descriptors) {
            taken = send_by_ring(handle, data, size);
        } else {
            taken = ::send(handle, data, size, MSG_NOSIGNAL | MSG_DONTWAIT | more);
            if (taken < 0) taken = -errno;
        }
        if (taken >= 0) return taken;
        return taken == -EAGAIN || taken == -EINTR || taken == -ENOBUFS ? 0 : kBroken;
    }

    // A descriptor of the ring's table is out of reach of send(). With MSG_DONTWAIT the ring tries
    // once, while it is handed the entry, and completes it there and then: the result stands in the
    // queue after what is still to be looked at. Bytes taken or a negative error.
    std::ptrdiff_t send_by_ring(std::int32_t handle, const char* data, std::size_t size) {
        // Where completions have run over, the next is not to be had before they are fetched.
        if (io_uring_cq_has_overflow(&ring_) ||
            io_uring_cq_ready(&ring_) + io_uring_sq_ready(&ring_) + 1 >= ring_.cq.ring_entries) {
            return -EAGAIN;
        }
        io_uring_sqe* const sqe = next_entry();
        io_uring_prep_send(sqe, handle, data, size, MSG_NOSIGNAL | MSG_DONTWAIT);
        mark_direct(sqe);
        const std::uint64_t mine = pack(Operation::kSendAtOnce, ++sends_at_once_, handle);
        io_uring_sqe_set_data64(sqe, mine);
        while (io_uring_sq_ready(&ring_) != 0) {
            if (io_uring_submit(&ring_) > 0) continue;
            io_uring_prep_nop(
                sqe);  // refused for now: `data` is not ours for longer than this call
            io_uring_sqe_set_data64(sqe, pack(Operation::kIgnored, 0, 0));
            return -EAGAIN;
        }
        const unsigned head = *ring_.cq.khead;
        for (unsigned i = io_uring_smp_load_acquire(ring_.cq.ktail); i-- != head;) {
            const io_uring_cqe& cqe = ring_.cq.cqes[i & ring_.cq.ring_mask];
            if (cqe.user_data == mine) return cqe.res;
        }
        return -EPIPE;  // what went out is not known
    }

    void arm_room(std::int32_t handle, UringPeer& peer) {
        io_uring_sqe* const sqe = next_entry();
        io_uring_prep_poll_add(sqe, handle, POLLOUT);
        mark_direct(sqe);
        io_uring_sqe_set_data64(sqe, pack(Operation::kRoom, peer.generation, handle));
        peer.polling = true;
    }

    void cancel(std::uint64_t user_data) {
        io_uring_sqe* const sqe = next_entry();
        io_uring_prep_cancel64(sqe, user_data, 0);
        io_uring_sqe_set_data64(sqe, pack(Operation::kIgnored, 0, 0));
    }

    // The ring hands a shutdown to a thread of its own, which looks the descriptor up when it gets
    // to it: by then it may be another connection's. So an ordinary descriptor is shut at once, and
    // one of the ring's table is not given back before the shutdown has completed.
    void start_shutdown(std::int32_t handle, UringPeer& peer) {
        if (!settings_.direct_descriptors) {
            shutdown(handle, SHUT_WR);
            return;
        }
        io_uring_sqe* const sqe = next_entry();
        io_uring_prep_shutdown(sqe, handle, SHUT_WR);
        mark_direct(sqe);
        io_uring_sqe_set_data64(sqe, pack(Operation::kShutdown, peer.generation, handle));
        peer.shutting = true;
    }

    void finish_close(std::int32_t handle, UringPeer& peer) {
        peer.forget();
        io_uring_sqe* const sqe = next_entry();
        if (settings_.direct_descriptors) {
            io_uring_prep_close_direct(sqe, static_cast<unsigned>(handle));
        } else {
            io_uring_prep_close(sqe, handle);
        }
        io_uring_sqe_set_data64(sqe, pack(Operation::kIgnored, 0, 0));
    }

    void complete(std::uint64_t data, int result, unsigned flags) {
        const auto operation = static_cast<Operation>(data >> 56);
        const auto handle = static_cast<std::int32_t>(data & 0xFFFFFFFF);
        switch (operation) {
            case Operation::kAccept:
                accepted(static_cast<std::uint32_t>(handle), result, flags);
                return;
            case Operation::kWake: {
                std::uint64_t drained = 0;
                (void)!read(wake_, &drained, sizeof drained);
                // It ends, as every multishot, where its completion finds the queue full.
                if ((flags & IORING_CQE_F_MORE) == 0) arm_wake();
                events_->on_wake();
                return;
            }
            case Operation::kSendAtOnce:
            case Operation::kIgnored:
                return;
            default:
                break;
        }
        UringPeer& peer = peers_[handle];
        const bool current = (peer.generation & 0xFFFFFF) == ((data >> 32) & 0xFFFFFF);
        switch (operation) {
            case Operation::kReceive:
                received(handle, peer, current, result, flags);
                break;
            case Operation::kSend:
                if (current) sent(handle, peer, result);
                break;
            case Operation::kRoom:
                if (!current) break;
                peer.polling = false;
                if (peer.wants_room && result >= 0) tell_of_room(handle, peer);
                break;
            case Operation::kShutdown:
                if (!current) break;
                peer.shutting = false;
                if (peer.closing) finish_close(handle, peer);
                break;
            case Operation::kGiveUp:
                if (current && peer.closing) {
                    cancel(pack(Operation::kSend, peer.generation, handle));
                    peer.broken = true;
                }
                break;
            default:
                break;
        }
    }

    void accepted(std::uint32_t listener, int result, unsigned flags) {
        if (listeners_[listener] < 0) {
            if (result >= 0 && !settings_.direct_descriptors) ::close(result);
            return;
        }
        if (result >= 0) {
            begin(result, listener);
        } else {
            const auto shed = reserve_.shed_one(listeners_[listener], -result, [&](int taken) {
                // One that has no place in the ring's own table cannot be served.
                if (settings_.direct_descriptors || !events_->on_full()) {
                    ::close(taken);
                    return;
                }
                io_uring_submit(&ring_);  // the close: its descriptor is the next reserve
                begin(taken, listener);
            });
            // An order to accept fails for want of descriptors although none waits.
            if (shed != DescriptorReserve::Shed::kGoOn) events_->on_starved();
        }
        if ((flags & IORING_CQE_F_MORE) != 0) return;
        accept_armed_[listener] = false;
        if (!accepting_paused_) arm_accept(listener);
    }

    void begin(std::int32_t handle, std::uint32_t listener) {
        UringPeer& peer = peers_[handle];
        peer.forget();
        const std::uint32_t ours = peer.generation;
        peer.wants_octets = true;
        const LoopToken token = events_->on_accept(handle, listener);
        UringPeer& after = peers_[handle];
        if (after.generation != ours) return;
        if (token == LoopEvents::kRefused) return finish_close(handle, after);
        after.token = token;
        if (after.wants_octets && !after.receiving && !after.closing) arm_receive(handle, after);
    }

    void received(std::int32_t handle, UringPeer& peer, bool current, int result, unsigned flags) {
        const bool has_buffer = (flags & IORING_CQE_F_BUFFER) != 0;
        const auto buffer = static_cast<std::uint16_t>(flags >> IORING_CQE_BUFFER_SHIFT);
        const bool more = (flags & IORING_CQE_F_MORE) != 0;
        if (!current || peer.closing) {
            if (has_buffer) receive_.give_back(buffer);
            if (current && !more) peer.receiving = false;
            return;
        }
        if (!more) peer.receiving = false;
        const LoopToken token = peer.token;
        const std::uint32_t generation = peer.generation;
        if (result > 0) {
            note_octets(handle, peer);
            events_->on_data(token, receive_.at(buffer), static_cast<std::size_t>(result));
        } else if (result == 0) {
            events_->on_end(token);
        } else if (result != -ENOBUFS && result != -ECANCELED && result != -EINTR &&
                   result != -EAGAIN) {
            events_->on_broken(token);
        }
        if (has_buffer) receive_.give_back(buffer);
        UringPeer& after = peers_[handle];
        if (result != 0 && after.generation == generation && !after.closing && after.wants_octets &&
            !after.receiving) {
            arm_receive(handle, after);
        }
    }

    void sent(std::int32_t handle, UringPeer& peer, int result) {
        if (result > 0) {
            peer.send_begin += static_cast<std::uint32_t>(result);
            if (peer.send_begin < peer.send_end && !peer.broken) {
                arm_send(handle, peer);
                return;
            }
        } else if (result == -EINTR || result == -EAGAIN) {
            arm_send(handle, peer);
            return;
        }
        const bool complete = peer.send_begin == peer.send_end;
        send_.give_back(peer.send_buffer);
        peer.send_buffer = SendBuffers::kNone;
        if (peer.closing) {
            cancel(pack(Operation::kGiveUp, peer.generation, handle));
            finish_close(handle, peer);
            return;
        }
        if (!complete) {
            events_->on_broken(peer.token);
            return;
        }
        if (peer.shutdown_due) {
            peer.shutdown_due = false;
            start_shutdown(handle, peer);
        }
        if (peer.wants_room) tell_of_room(handle, peer);
    }

    // Once, and then whenever there is some again, for as long as it is asked for.
    void tell_of_room(std::int32_t handle, const UringPeer& peer) {
        const std::uint32_t generation = peer.generation;
        events_->on_sendable(peer.token);
        UringPeer& after = peers_[handle];
        if (after.generation == generation && !after.closing && after.wants_room &&
            after.send_buffer == SendBuffers::kNone && !after.polling) {
            arm_room(handle, after);
        }
    }

    LoopSettings settings_;
    LoopEvents* events_ = nullptr;
    io_uring ring_{};
    bool ready_ = false;
    bool enabled_ = false;
    int wake_ = -1;
    DescriptorReserve reserve_;
    ReceiveBuffers receive_;
    SendBuffers send_;
    std::vector<int> listeners_;
    std::vector<bool> accept_armed_;
    bool accepting_paused_ = false;
    UringPeers peers_;
    std::vector<std::int32_t> receivers_;
    std::uint64_t look_again_ms_ = 0;
    std::uint32_t sends_at_once_ = 0;
    __kernel_timespec last_send_timeout_{kLastSendSeconds, 0};
};

}  // namespace

std::unique_ptr<Loop> make_uring_loop(const LoopSettings& settings) {
    return std::make_unique<UringLoop>(settings);
}

}  // namespace httpmark
