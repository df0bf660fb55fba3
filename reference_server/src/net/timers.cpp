#include "net/timers.hpp"

#include <bit>

#include "check.hpp"

namespace httpmark {

void TimerWheel::link(std::uint32_t id, unsigned slot) {
    TimerNode& node = nodes_.timer_node(id);
    node.slot = static_cast<std::uint16_t>(slot);
    node.previous = kNone;
    node.next = heads_[slot];
    if (node.next != kNone) nodes_.timer_node(node.next).previous = id;
    heads_[slot] = id;
    occupied_[slot / kSlots] |= std::uint64_t{1} << (slot % kSlots);
}

void TimerWheel::insert(std::uint32_t id, std::uint32_t expires) {
    TimerNode& node = nodes_.timer_node(id);
    CHECK(!node.queued());
    // The current slot has been emptied already: what is due now goes to the next tick.
    std::uint32_t delta = expires - now_;
    if (delta == 0 || delta > 0x7FFFFFFF) delta = 1;
    constexpr std::uint32_t kSpan = (1U << (kBits * kLevels)) - 1;
    if (delta > kSpan) delta = kSpan;  // handed out early, and put in again by its owner
    node.expires = now_ + delta;
    unsigned level = 0;
    while (delta >= (1U << (kBits * (level + 1)))) ++level;
    link(id, level * kSlots + ((node.expires >> (kBits * level)) % kSlots));
}

void TimerWheel::remove(std::uint32_t id) {
    TimerNode& node = nodes_.timer_node(id);
    if (!node.queued()) return;
    const unsigned slot = node.slot;
    if (node.previous == kNone) {
        heads_[slot] = node.next;
        if (node.next == kNone) occupied_[slot / kSlots] &= ~(std::uint64_t{1} << (slot % kSlots));
    } else {
        nodes_.timer_node(node.previous).next = node.next;
    }
    if (node.next != kNone) nodes_.timer_node(node.next).previous = node.previous;
    node.slot = TimerNode::kUnqueued;
}

void TimerWheel::cascade(unsigned level) {
    const unsigned slot = level * kSlots + ((now_ >> (kBits * level)) % kSlots);
    std::uint32_t id = heads_[slot];
    heads_[slot] = kNone;
    occupied_[level] &= ~(std::uint64_t{1} << (slot % kSlots));
    while (id != kNone) {
        TimerNode& node = nodes_.timer_node(id);
        const std::uint32_t next = node.next;
        const std::uint32_t delta = node.expires - now_;
        unsigned into = 0;
        while (delta >= (1U << (kBits * (into + 1)))) ++into;
        CHECK(into < level);
        link(id, into * kSlots + ((node.expires >> (kBits * into)) % kSlots));
        id = next;
    }
}

std::uint32_t TimerWheel::take_due(std::uint32_t now) {
    while (true) {
        const std::uint32_t id = heads_[now_ % kSlots];
        if (id != kNone) {
            remove(id);
            return id;
        }
        if (now - now_ - 1 > 0x7FFFFFFE) return kNone;  // now_ has reached now
        const std::uint32_t until = ticks_until_next();
        if (until == kNone || until > now - now_) {
            now_ = now;  // nothing on the way, not even a cascade
            return kNone;
        }
        now_ += until;
        for (unsigned level = kLevels - 1; level > 0; --level) {
            if ((now_ & ((1U << (kBits * level)) - 1)) == 0) cascade(level);
        }
    }
}

std::uint32_t TimerWheel::ticks_until_next() const {
    std::uint32_t best = kNone;
    for (unsigned level = 0; level < kLevels; ++level) {
        if (occupied_[level] == 0) continue;
        const unsigned shift = kBits * level;
        const unsigned current = (now_ >> shift) % kSlots;
        // Distance to the next occupied slot; the current one comes round last.
        const std::uint64_t rotated =
            std::rotr(occupied_[level], static_cast<int>((current + 1) % kSlots));
        const auto slots = static_cast<std::uint32_t>(std::countr_zero(rotated)) + 1;
        const std::uint32_t boundary = ((now_ >> shift) + slots) << shift;
        const std::uint32_t ticks = boundary - now_;
        if (ticks < best) best = ticks;
    }
    return best;
}

}  // namespace httpmark
