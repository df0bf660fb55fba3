#include "probe/timers.hpp"

#include <algorithm>

namespace httpmark {
namespace {

std::uint64_t wake_us(const Conversation& conversation) {
    return std::min(conversation.until_us, conversation.deadline_us);
}

}  // namespace

// A later time than the armed one is not written into the heap: when the armed one comes, the
// conversation is put back. Most conversations end long before any of their times.
void Timers::arm(Conversation* conversation) {
    const std::uint64_t wake = wake_us(*conversation);
    if (wake >= conversation->armed_us) return;
    conversation->armed_us = wake;
    up(conversation->heap_at);
}

void Timers::insert(Conversation* conversation) {
    conversation->armed_us = wake_us(*conversation);
    heap_.push_back(conversation);
    conversation->heap_at = heap_.size() - 1;
    up(conversation->heap_at);
}

void Timers::remove(Conversation* conversation) {
    const std::size_t at = conversation->heap_at;
    Conversation* last = heap_.back();
    heap_.pop_back();
    if (last == conversation) return;
    set(at, last);
    up(at);
    down(last->heap_at);
}

Conversation* Timers::take_due(std::uint64_t now_us) {
    while (!heap_.empty() && heap_[0]->armed_us <= now_us) {
        Conversation* conversation = heap_[0];
        const bool is_due = wake_us(*conversation) <= now_us;
        conversation->armed_us = is_due ? kNoTime : wake_us(*conversation);
        down(0);
        if (is_due) return conversation;
    }
    return nullptr;
}

void Timers::set(std::size_t at, Conversation* conversation) {
    heap_[at] = conversation;
    conversation->heap_at = at;
}

void Timers::up(std::size_t at) {
    Conversation* conversation = heap_[at];
    while (at > 0) {
        const std::size_t parent = (at - 1) / 2;
        if (heap_[parent]->armed_us <= conversation->armed_us) break;
        set(at, heap_[parent]);
        at = parent;
    }
    set(at, conversation);
}

void Timers::down(std::size_t at) {
    Conversation* conversation = heap_[at];
    for (;;) {
        std::size_t child = 2 * at + 1;
        if (child >= heap_.size()) break;
        if (child + 1 < heap_.size() && heap_[child + 1]->armed_us < heap_[child]->armed_us)
            ++child;
        if (heap_[child]->armed_us >= conversation->armed_us) break;
        set(at, heap_[child]);
        at = child;
    }
    set(at, conversation);
}

}  // namespace httpmark
