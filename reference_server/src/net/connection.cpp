// Slots: how connections come, what the wire tells of them, and how they go.
#include "net/connection.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <new>

#include "check.hpp"
#include "net/asking.hpp"
#include "net/exchange.hpp"

namespace httpmark {

namespace {

// In 31 bits: no connection's token is ever one of those the loop keeps for itself.
std::uint32_t next_generation(const Connection& c) {
    return (c.generation + 1) & 0x7FFFFFFF;
}

char* map_scratch(std::size_t size) {
    void* block = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (block == MAP_FAILED) throw std::bad_alloc();
    return static_cast<char*>(block);
}

const Router& empty_router() {
    static const std::shared_ptr<const Router> router = [] {
        std::string error;
        return Router::Builder().build(error);
    }();
    return *router;
}

}  // namespace

Connections::Connections(const ServerSettings& settings, Transport& transport, std::uint64_t now_ms)
    : settings_(settings),
      router_(settings.router == nullptr ? empty_router() : *settings.router),
      transport_(transport),
      arena_(settings.limits.memory_max),
      wheel_(*this, static_cast<std::uint32_t>(now_ms / kTickMs)),
      date_(settings.server_name),
      now_ms_(now_ms),
      mailbox_(std::make_shared<Mailbox>(static_cast<Mailbox::Reader&>(*this))),
      scratch_(map_scratch(kOutputScratchSize)) {
    at_ = scratch_;
    end_ = scratch_ + kOutputScratchSize - kCopySlack;
    judge_common_way();
}

Connections::~Connections() {
    close_all();
    mailbox_->close();
    munmap(scratch_, kOutputScratchSize);
}

std::uint32_t Connections::open(std::int32_t handle, bool tls) {
    std::unique_ptr<TlsSession> session;
    if (tls) {
        CHECK(tls_context_ != nullptr);
        session.reset(TlsSession::make(tls_context_, *pipe_));
        if (session == nullptr) return kNoSlot;
    }
    if (free_head_ == kNoSlot) {
        std::unique_ptr<Connection[]> chunk(new (std::nothrow) Connection[kChunk]);
        if (chunk == nullptr) return kNoSlot;
        if (!room_for([&] { slots_.push_back(std::move(chunk)); })) return kNoSlot;
        for (std::uint32_t i = kChunk; i-- > 0;) {
            slots_.back()[i].deadline = free_head_;
            free_head_ = capacity_ + i;
        }
        capacity_ += kChunk;
    }
    const std::uint32_t id = free_head_;
    Connection& c = slot(id);
    free_head_ = c.deadline;
    const std::uint32_t generation = next_generation(c);
    c = Connection();
    c.generation = generation;
    c.handle = handle;
    c.state = Connection::State::kOpen;
    ++open_count_;
    Counters::add(counters_.accepted);
    if (!tls) {
        set_wait(id, Connection::Wait::kIdle, settings_.limits.idle_timeout_ms);
        return id;
    }
    c.set(Connection::kTls);
    c.tls = session.release();
    set_wait(id, Connection::Wait::kHandshake, settings_.limits.handshake_timeout_ms);
    return id;
}

void Connections::set_tls(std::shared_ptr<const TlsContext> context) {
    tls_context_ = std::move(context);
    if (pipe_ == nullptr) pipe_ = std::make_unique<TlsPipe>();
}

void Connections::refuse_open(std::uint32_t id) {
    current_ = &slot(id);
    current_id_ = id;
    if (current_->tls != nullptr) {  // before the handshake there is nothing to answer in
        free_slot(id);
        return;
    }
    refuse(*current_, Reason::kTooManyConnections, Method::kUnknown);
    flush();
    settle(id);
}

void Connections::free_slot(std::uint32_t id) {
    Connection& c = slot(id);
    CHECK(c.state != Connection::State::kFree);
    if (c.state == Connection::State::kUpgraded) lose_websocket(id);
    wheel_.remove(id);
    release_exchange(c);
    release_output(c);
    delete c.tls;
    c.tls = nullptr;
    transport_.close(id);
    c.state = Connection::State::kFree;
    c.generation = next_generation(c);
    c.deadline = free_head_;
    free_head_ = id;
    --open_count_;
    Counters::add(counters_.closed);
}

void Connections::close_all() {
    for (std::uint32_t id = 0; id < capacity_; ++id) {
        if (slot(id).state != Connection::State::kFree) free_slot(id);
    }
}

void Connections::on_data(std::uint32_t id, const char* data, std::size_t size) {
    Connection& c = slot(id);
    Counters::add(counters_.bytes_in, size);
    if (c.state != Connection::State::kOpen && c.tls == nullptr) {
        if (c.state == Connection::State::kUpgraded) {
            receive_frames(id, data, data + size);
            return;
        }
        // RFC 9112 9.6: read and thrown away, so that no RST overtakes the last answer.
        c.lingered += static_cast<std::uint32_t>(size);
        if (c.lingered > settings_.limits.linger_max) free_slot(id);
        return;
    }
    if (c.tls != nullptr) {
        receive_tls(id, data, size);
    } else {
        receive(id, data, data + size);
    }
}

void Connections::on_end(std::uint32_t id) {
    Connection& c = slot(id);
    if (c.state == Connection::State::kLinger) {
        free_slot(id);
        return;
    }
    c.set(Connection::kPeerClosed);
    current_ = &c;
    current_id_ = id;
    resume(id);
}

void Connections::on_broken(std::uint32_t id) {
    free_slot(id);
}

void Connections::on_sendable(std::uint32_t id) {
    Connection& c = slot(id);
    current_ = &c;
    current_id_ = id;
    push_output(c);
    resume(id);
}

void Connections::drain() {
    draining_ = true;
    judge_common_way();
    for (std::uint32_t id = 0; id < capacity_; ++id) {
        Connection& c = slot(id);
        if (c.state == Connection::State::kUpgraded) drain_websocket(id);
        if (c.state != Connection::State::kOpen || c.output != nullptr) continue;
        if (is_between_requests(c)) release_exchange(c);
        if (c.exchange == nullptr) begin_linger(id);
    }
}

}  // namespace httpmark
