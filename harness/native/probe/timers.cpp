#include "probe/timers.hpp"

#include <algorithm>

namespace httpmark {
namespace {

std::uint64_t wake_us(const Talk& talk) {
    return std::min(talk.until_us, talk.deadline_us);
}

}  // namespace

// A later time than the armed one is not written into the heap: when the armed one comes, the talk
// is put back. Most talks end long before any of their times.
void Timers::arm(Talk* talk) {
    const std::uint64_t wake = wake_us(*talk);
    if (wake >= talk->armed_us) return;
    talk->armed_us = wake;
    up(talk->heap_at);
}

void Timers::insert(Talk* talk) {
    talk->armed_us = wake_us(*talk);
    heap_.push_back(talk);
    talk->heap_at = heap_.size() - 1;
    up(talk->heap_at);
}

void Timers::remove(Talk* talk) {
    const std::size_t at = talk->heap_at;
    Talk* last = heap_.back();
    heap_.pop_back();
    if (last == talk) return;
    set(at, last);
    up(at);
    down(last->heap_at);
}

Talk* Timers::take_due(std::uint64_t now_us) {
    while (!heap_.empty() && heap_[0]->armed_us <= now_us) {
        Talk* talk = heap_[0];
        const bool is_due = wake_us(*talk) <= now_us;
        talk->armed_us = is_due ? kNoTime : wake_us(*talk);
        down(0);
        if (is_due) return talk;
    }
    return nullptr;
}

void Timers::set(std::size_t at, Talk* talk) {
    heap_[at] = talk;
    talk->heap_at = at;
}

void Timers::up(std::size_t at) {
    Talk* talk = heap_[at];
    while (at > 0) {
        const std::size_t parent = (at - 1) / 2;
        if (heap_[parent]->armed_us <= talk->armed_us) break;
        set(at, heap_[parent]);
        at = parent;
    }
    set(at, talk);
}

void Timers::down(std::size_t at) {
    Talk* talk = heap_[at];
    for (;;) {
        std::size_t child = 2 * at + 1;
        if (child >= heap_.size()) break;
        if (child + 1 < heap_.size() && heap_[child + 1]->armed_us < heap_[child]->armed_us)
            ++child;
        if (heap_[child]->armed_us >= talk->armed_us) break;
        set(at, heap_[child]);
        at = child;
    }
    set(at, talk);
}

}  // namespace httpmark
