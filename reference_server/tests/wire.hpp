// A wire for Connections that is all in memory: what is sent is kept, room can be withheld.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "check.hpp"
#include "laws.hpp"
#include "net/connection.hpp"
#include "routes.hpp"

namespace httpmark {

inline constexpr std::uint64_t kWireStartMs = 1000000;
inline constexpr std::int64_t kWireDate = 784111777;  // Sun, 06 Nov 1994 08:49:37 GMT

class Wire final : public Transport {
  public:
    explicit Wire(const ServerSettings& settings = {})
        : settings_(with_routes(settings)), connections_(settings_, *this, kWireStartMs) {
        connections_.set_time(kWireStartMs, kWireDate);
    }

    std::uint32_t connect(bool tls = false) {
        const std::uint32_t id = connections_.open(7, tls);
        CHECK(id != Connections::kNoSlot);
        if (peers_.size() <= id) peers_.resize(id + 1);
        peers_[id] = Peer();
        peers_[id].generation = connections_.slot(id).generation;
        return id;
    }
    // Bytes from the client; dropped when the server has closed.
    void feed(std::uint32_t id, std::string_view octets) {
        if (!alive(id) || octets.empty()) return;
        // A copy that ends where it ends, so that a sanitizer sees reads beyond it.
        const std::vector<char> copy(octets.begin(), octets.end());
        connections_.on_data(id, copy.data(), copy.size());
        connections_.end_turn();
    }
    void end(std::uint32_t id) {
        if (alive(id)) connections_.on_end(id);
        connections_.end_turn();
    }
    void pass(std::uint64_t ms) {
        now_ms_ += ms;
        connections_.set_time(now_ms_, kWireDate);
        connections_.run_timers();
        connections_.end_turn();
    }
    // Room for that many bytes; what was blocked is told so.
    void give_room(std::uint32_t id, std::size_t room) {
        peers_[id].room = room;
        if (alive(id) && peers_[id].wants_room) connections_.on_sendable(id);
        connections_.end_turn();
    }
    bool alive(std::uint32_t id) const { return !peers_[id].closed; }
    const std::string& sent(std::uint32_t id) const { return peers_[id].sent; }
    bool shut(std::uint32_t id) const { return peers_[id].shut; }
    bool reading(std::uint32_t id) const { return peers_[id].reading; }
    bool wants_room(std::uint32_t id) const { return peers_[id].wants_room; }
    unsigned sends(std::uint32_t id) const { return peers_[id].sends; }
    Connections& connections() { return connections_; }
    std::uint64_t now_ms() const { return now_ms_; }

    std::ptrdiff_t send(std::uint32_t id, const char* data, std::size_t size) override {
        Peer& peer = peers_[id];
        CHECK(!peer.closed);
        LAW(!peer.shut, << "bytes after the end of the stream");
        if (peer.broken) return kBroken;
        ++peer.sends;
        const std::size_t taken = std::min(size, peer.room);
        peer.sent.append(data, taken);
        peer.room -= taken;
        return static_cast<std::ptrdiff_t>(taken);
    }
    void set_interest(std::uint32_t id, bool octets, bool room) override {
        peers_[id].reading = octets;
        peers_[id].wants_room = room;
    }
    void shutdown_write(std::uint32_t id) override { peers_[id].shut = true; }
    void close(std::uint32_t id) override {
        if (id < peers_.size()) peers_[id].closed = true;
    }
    // Of the documentation's network (RFC 5737), a port for each connection.
    std::string peer(std::uint32_t id) override {
        ++peers_asked_;
        return "192.0.2.7:" + std::to_string(5000 + id);
    }
    unsigned peers_asked() const { return peers_asked_; }
    void wake() override { ++wakes_; }
    unsigned wakes() const { return wakes_; }
    // What a worker does that was woken.
    void deliver() {
        if (std::exchange(wakes_, 0U) != 0) connections_.read_mail();
        connections_.end_turn();
    }
    void break_peer(std::uint32_t id) { peers_[id].broken = true; }

    // As a system that can send files.
    void send_files() { sends_files_ = true; }
    unsigned file_sends() const { return file_sends_; }
    std::ptrdiff_t send_file(std::uint32_t id, const FilePart& part) override {
        if (!sends_files_) return kCannot;
        ++file_sends_;
        std::string octets(std::min(part.size, peers_[id].room), '\0');
        if (octets.empty()) return peers_[id].broken ? kBroken : 0;
        const ssize_t got =
            pread(part.descriptor, octets.data(), octets.size(), static_cast<off_t>(part.offset));
        return got <= 0 ? kBroken : send(id, octets.data(), static_cast<std::size_t>(got));
    }

  private:
    struct Peer {
        std::string sent;
        std::size_t room = ~std::size_t{0} >> 1;
        std::uint32_t generation = 0;
        unsigned sends = 0;
        bool reading = true;
        bool wants_room = false;
        bool shut = false;
        bool closed = false;
        bool broken = false;
    };
    ServerSettings settings_;
    std::vector<Peer> peers_;
    unsigned wakes_ = 0;
    unsigned peers_asked_ = 0;
    Connections connections_;
    std::uint64_t now_ms_ = kWireStartMs;
    bool sends_files_ = false;
    unsigned file_sends_ = 0;
};

struct Talk {
    std::string sent;
    bool closed = false;  // FIN sent or closed
};

inline Talk talk_in(std::string_view octets, std::size_t cut, const ServerSettings& settings,
                    std::size_t step) {
    Wire wire(settings);
    const std::uint32_t id = wire.connect();
    if (step != 0) {
        for (std::size_t i = 0; i < octets.size(); i += step) wire.feed(id, octets.substr(i, step));
    } else {
        wire.feed(id, octets.substr(0, cut));
        wire.feed(id, octets.substr(cut));
    }
    Talk talk{wire.sent(id), wire.shut(id) || !wire.alive(id)};
    LAW(wire.connections().open_count() == (wire.alive(id) ? 1U : 0U));
    return talk;
}

// The same bytes at once, byte by byte and cut in two at each place: one transcript.
inline Talk talk_every_way(std::string_view octets, const ServerSettings& settings = {}) {
    const Talk whole = talk_in(octets, octets.size(), settings, 0);
    const Talk by_octet = talk_in(octets, 0, settings, 1);
    LAW(by_octet.sent == whole.sent && by_octet.closed == whole.closed,
        << visible(octets) << "\n at once: " << visible(whole.sent)
        << "\n by byte: " << visible(by_octet.sent));
    for (std::size_t cut = 1; cut < octets.size(); ++cut) {
        const Talk parts = talk_in(octets, cut, settings, 0);
        LAW(parts.sent == whole.sent && parts.closed == whole.closed,
            << visible(octets) << " cut at " << cut << "\n at once: " << visible(whole.sent)
            << "\n cut: " << visible(parts.sent));
    }
    return whole;
}

// The status codes of a transcript, in order; understands what this server writes.
inline std::vector<int> statuses(std::string_view sent) {
    std::vector<int> out;
    while (sent.starts_with("HTTP/1.1 ")) {
        const int status = std::stoi(std::string(sent.substr(9, 3)));
        out.push_back(status);
        const std::string_view head = sent.substr(0, 1024);  // sanitizers walk all they are given
        const std::size_t end = head.find("\r\n\r\n");
        if (end == std::string_view::npos) return out;
        std::size_t length = 0;
        const std::size_t field = head.find("Content-Length: ");
        if (field < end) length = std::stoul(std::string(sent.substr(field + 16, 20)));
        sent.remove_prefix(std::min(end + 4 + length, sent.size()));
    }
    if (!sent.empty()) out.push_back(-1);
    return out;
}

}  // namespace httpmark
