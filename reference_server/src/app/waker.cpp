#include "app/waker.hpp"

#include "app/mailbox.hpp"

namespace httpmark {

Waker Sink::waker() {
    return {};
}

Waker ResponseWriter::waker() {
    return sink_.waker();
}

void Waker::wake() const {
    if (sleeper_ == nullptr || sleeper_->posted.exchange(true, std::memory_order_acq_rel)) return;
    Letter letter;
    letter.sleeper = sleeper_;
    sleeper_->mailbox->put(std::move(letter));
}

}  // namespace httpmark
