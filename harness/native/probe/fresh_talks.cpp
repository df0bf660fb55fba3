#include "probe/fresh_talks.hpp"

namespace httpmark {

void FreshTalks::append(Talk* talk) {
    talk->is_fresh = true;
    ++count_;
    talk->fresh_before = last_;
    talk->fresh_after = nullptr;
    (last_ != nullptr ? last_->fresh_after : first_) = talk;
    last_ = talk;
}

void FreshTalks::remove(Talk* talk) {
    if (!talk->is_fresh) return;
    talk->is_fresh = false;
    --count_;
    (talk->fresh_before != nullptr ? talk->fresh_before->fresh_after : first_) = talk->fresh_after;
    (talk->fresh_after != nullptr ? talk->fresh_after->fresh_before : last_) = talk->fresh_before;
}

void FreshTalks::touch(Talk* talk, std::uint64_t now_us) {
    talk->active_us = now_us;
    if (!talk->is_fresh) return;
    remove(talk);
    append(talk);
}

void FreshTalks::age(std::uint64_t now_us) {
    while (first_ != nullptr && now_us - first_->active_us >= fresh_us_) remove(first_);
}

}  // namespace httpmark
