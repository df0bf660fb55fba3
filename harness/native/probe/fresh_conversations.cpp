#include "probe/fresh_conversations.hpp"

namespace httpmark {

void FreshConversations::append(Conversation* conversation) {
    conversation->is_fresh = true;
    ++count_;
    conversation->fresh_before = last_;
    conversation->fresh_after = nullptr;
    (last_ != nullptr ? last_->fresh_after : first_) = conversation;
    last_ = conversation;
}

void FreshConversations::remove(Conversation* conversation) {
    if (!conversation->is_fresh) return;
    conversation->is_fresh = false;
    --count_;
    (conversation->fresh_before != nullptr ? conversation->fresh_before->fresh_after : first_) =
        conversation->fresh_after;
    (conversation->fresh_after != nullptr ? conversation->fresh_after->fresh_before : last_) =
        conversation->fresh_before;
}

void FreshConversations::touch(Conversation* conversation, std::uint64_t now_us) {
    conversation->active_us = now_us;
    if (!conversation->is_fresh) return;
    remove(conversation);
    append(conversation);
}

void FreshConversations::age(std::uint64_t now_us) {
    while (first_ != nullptr && now_us - first_->active_us >= fresh_us_) remove(first_);
}

}  // namespace httpmark
