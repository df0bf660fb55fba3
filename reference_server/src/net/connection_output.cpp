// From answers to the wire: at once where it takes them, else from what is kept.
#include <algorithm>
#include <cstring>
#include <new>

#include "check.hpp"
#include "net/asking.hpp"
#include "net/connection.hpp"
#include "net/exchange.hpp"

namespace httpmark {

// The scratch is full: what is in it goes first, and what is larger than all of it is kept apart.
char* Connections::prepare_more(std::size_t size) {
    if (speaking_ != nullptr && turn_is_over()) {
        keep_scratch();
    } else {
        flush();
    }
    if (size <= static_cast<std::size_t>(end_ - at_) && !blocked(*current_)) {
        char* const room = at_;
        at_ += size;
        return room;
    }
    Output* const out = ensure_output(*current_, size);
    if (out == nullptr) return nullptr;
    char* const room = out->data() + out->end;
    out->end += size;
    return room;
}

void Connections::append(const LaterContent& content) {
    flush(content.source != nullptr && content.source->file().descriptor >= 0);
    Output* const out = ensure_output(*current_, 0);
    if (out == nullptr) {
        current_->set(Connection::kBroken);  // the head is out: only a close can tell
        if (content.source != nullptr) content.source->release();
        delete content.stream;
        return;
    }
    CHECK(out->later.left == 0);
    out->later = content;
    if (content.framing == ContentFraming::kClose) current_->set(Connection::kClosing);
}

// What has gathered in the scratch goes out in one send; what the wire leaves is copied. `more`:
// a file follows at once.
void Connections::flush(bool more) {
    Connection& c = *current_;
    const auto size = static_cast<std::size_t>(at_ - scratch_);
    at_ = scratch_;
    if (c.has(Connection::kBroken)) return;
    if (size != 0) {
        if (c.output != nullptr) {
            if (!append_output(c, scratch_, size)) {
                c.set(Connection::kBroken);
            } else if (!c.has(Connection::kRoomAwaited)) {
                push_output(c);
            }
            return;
        }
        if (c.has(Connection::kTls)) {
            if (c.tls == nullptr) return;  // nothing is ever sent in the clear instead
            if (!c.tls->send(*pipe_, scratch_, size)) c.set(Connection::kBroken);
            send_ciphertext(c);
            return;
        }
        const std::ptrdiff_t sent = send_now(c, scratch_, size, more);
        if (sent >= 0 && static_cast<std::size_t>(sent) < size &&
            !append_output(c, scratch_ + sent, size - static_cast<std::size_t>(sent))) {
            c.set(Connection::kBroken);
        }
        return;
    }
    push_output(c);
}

// As if the wire had no room: so a peer that reads fast is full as well.
void Connections::keep_scratch() {
    const auto size = static_cast<std::size_t>(at_ - scratch_);
    at_ = scratch_;
    if (size != 0 && !append_output(*current_, scratch_, size)) {
        current_->set(Connection::kBroken);
    }
}

std::ptrdiff_t Connections::send_now(Connection& c, const char* data, std::size_t size, bool more) {
    return count_sent(c, more ? transport_.send_more(current_id_, data, size)
                              : transport_.send(current_id_, data, size));
}

std::ptrdiff_t Connections::count_sent(Connection& c, std::ptrdiff_t taken) {
    if (taken < 0) {
        c.set(Connection::kBroken);
        return taken;
    }
    Counters::add(counters_.bytes_out, static_cast<std::uint64_t>(taken));
    sent_in_turn_ += static_cast<std::size_t>(taken);
    if (taken > 0 && c.wait == Connection::Wait::kWrite) {
        set_wait(current_id_, Connection::Wait::kWrite, settings_.limits.write_timeout_ms);
    }
    return taken;
}

// Sends what stands in the pipe after what waits already.
void Connections::send_ciphertext(Connection& c) {
    const std::string_view cipher = pipe_->ciphertext();
    std::size_t sent = 0;
    const bool waiting = c.output != nullptr && c.output->cipher.size != c.output->cipher_begin;
    if (!cipher.empty() && !waiting && !c.has(Connection::kBroken)) {
        sent = static_cast<std::size_t>(
            std::max<std::ptrdiff_t>(send_now(c, cipher.data(), cipher.size()), 0));
    }
    if (sent < cipher.size() && !c.has(Connection::kBroken)) {
        Output* const out = ensure_output(c, 0);
        if (out == nullptr || !out->cipher.append(arena_, cipher.substr(sent))) {
            c.set(Connection::kBroken);
        }
    }
    pipe_->clear();
}

void Connections::push_output(Connection& c) {
    if (c.has(Connection::kTls)) {
        push_tls(c);
    } else {
        push_plain(c);
    }
}

// The next bytes to be sent, at most `most` of those that are asked of a source. False where there
// are none, or where the connection is broken because the source cannot be read.
bool Connections::next_octets(Connection& c, std::size_t most, std::string_view& octets) {
    Output& out = *c.output;
    if (out.begin != out.end) {
        octets = {out.data() + out.begin, out.end - out.begin};
        return true;
    }
    LaterContent& later = out.later;
    if (later.left == 0) return false;
    if (later.stream != nullptr) return next_piece(c, octets);
    const auto wanted = static_cast<std::size_t>(std::min<std::uint64_t>(later.left, most));
    octets = {};
    if (later.source == nullptr) {
        octets = {later.bytes + later.offset, wanted};
    } else {
        (void)reason_of([&] {
            octets = later.source->read(later.offset, wanted);
            return Reason::kNone;
        });
    }
    if (!octets.empty()) {
        CHECK(octets.size() <= wanted);
        return true;
    }
    c.set(Connection::kBroken);
    return false;
}

void Connections::sent_octets(Output& out, std::size_t size) {
    if (out.begin != out.end) {
        out.begin += size;
        return;
    }
    out.later.offset += size;
    out.later.left -= size;
    if (out.later.left == 0) release_later(out);
}

void Connections::release_later(Output& out) {
    if (out.later.source != nullptr) out.later.source->release();
    delete out.later.stream;
    out.later = LaterContent();
}

// Sends the next bytes, of a file by the system where it can. Bytes taken; `wanted` were to be
// sent, 0 where there are none.
std::ptrdiff_t Connections::send_next(Connection& c, std::size_t& wanted) {
    const Output& out = *c.output;
    if (out.begin == out.end && out.later.source != nullptr) {
        const ContentSource::File file = out.later.source->file();
        wanted = static_cast<std::size_t>(std::min<std::uint64_t>(out.later.left, kSentInTurnMax));
        const std::ptrdiff_t taken =
            file.descriptor < 0
                ? Transport::kCannot
                : transport_.send_file(current_id_,
                                       {file.descriptor, file.offset + out.later.offset, wanted});
        if (taken != Transport::kCannot) return count_sent(c, taken);
    }
    std::string_view octets;
    wanted = next_octets(c, kReceiveBufferSize, octets) ? octets.size() : 0;
    return wanted == 0 ? 0 : send_now(c, octets.data(), wanted);
}

// Up to what the wire takes, or what one connection may send before the others have their turn.
void Connections::push_plain(Connection& c) {
    for (std::size_t sent = 0; c.output != nullptr && sent < kSentInTurnMax;) {
        std::size_t wanted = 0;
        const std::ptrdiff_t taken = send_next(c, wanted);
        if (c.has(Connection::kBroken)) return;
        if (wanted == 0) {
            if (c.output->later.left == 0) release_output(c);
            return;
        }
        sent_octets(*c.output, static_cast<std::size_t>(taken));
        sent += static_cast<std::size_t>(taken);
        if (static_cast<std::size_t>(taken) < wanted) return;
    }
}

// As above, a record at a time: no more is encrypted than the wire has room for.
void Connections::push_tls(Connection& c) {
    std::size_t sent = 0;
    while (c.output != nullptr && !c.has(Connection::kBroken) && sent < kSentInTurnMax) {
        Output& out = *c.output;
        const std::size_t waiting = out.cipher.size - out.cipher_begin;
        if (waiting != 0) {
            const std::ptrdiff_t taken = send_now(c, out.cipher.data + out.cipher_begin, waiting);
            if (taken < 0) return;
            out.cipher_begin += static_cast<std::size_t>(taken);
            if (static_cast<std::size_t>(taken) < waiting) return;
            out.cipher.size = 0;
            out.cipher_begin = 0;
        }
        std::string_view octets;
        const bool some = c.tls != nullptr && next_octets(c, kTlsRecordMax, octets);
        if (!some) {
            const bool over = c.tls == nullptr || c.output->later.left == 0;
            if (over && !c.has(Connection::kBroken)) release_output(c);
            return;
        }
        octets = octets.substr(0, kTlsRecordMax);
        if (!c.tls->send(*pipe_, octets.data(), octets.size())) {
            c.set(Connection::kBroken);
            return;
        }
        sent_octets(*c.output, octets.size());
        sent += octets.size();
        send_ciphertext(c);
    }
}

std::size_t Connections::unsent(const Output& output) {
    return output.end - output.begin + output.cipher.size - output.cipher_begin;
}

bool Connections::is_full(const Output& output) const {
    // Behind content that comes later nothing can be appended.
    return output.later.left != 0 || unsent(output) > settings_.limits.pending_output_max;
}

Output* Connections::ensure_output(Connection& c, std::size_t room) {
    Output* const old = c.output;
    return old != nullptr && old->capacity - old->end >= room ? old : replace_output(c, room);
}

// Room for that many bytes behind what is there already.
Output* Connections::replace_output(Connection& c, std::size_t room) {
    Output* const old = c.output;
    const std::size_t kept = old == nullptr ? 0 : old->end - old->begin;
    std::size_t capacity = 0;
    char* const block = arena_.allocate(sizeof(Output) + kept + room + kCopySlack, capacity);
    if (block == nullptr) return nullptr;
    Output* const out = new (block) Output();
    out->block_capacity = capacity;
    out->capacity = capacity - sizeof(Output) - kCopySlack;
    if (old != nullptr) {
        std::memcpy(out->data(), old->data() + old->begin, kept);
        out->end = kept;
        out->later = old->later;
        old->later = LaterContent();
        out->cipher = old->cipher;
        out->cipher_begin = old->cipher_begin;
        old->cipher = Buffer();
        release_output(c);
    }
    c.output = out;
    return out;
}

bool Connections::append_output(Connection& c, const char* data, std::size_t size) {
    Output* const out = ensure_output(c, size);
    if (out == nullptr) return false;
    CHECK(out->later.left == 0);
    std::memcpy(out->data() + out->end, data, size);
    out->end += size;
    return true;
}

// Nothing can be encrypted any more: what was not before is not sent.
void Connections::end_tls(Connection& c) {
    delete c.tls;
    c.tls = nullptr;
    c.set(Connection::kClosing);
    if (c.output == nullptr) return;
    Output& out = *c.output;
    out.begin = out.end = 0;
    release_later(out);
    if (out.cipher.size == out.cipher_begin) release_output(c);
}

void Connections::release_output(Connection& c) {
    if (c.output == nullptr) return;
    release_later(*c.output);
    c.output->cipher.release(arena_);
    arena_.release(reinterpret_cast<char*>(c.output), c.output->block_capacity);
    c.output = nullptr;
}

}  // namespace httpmark
