#include "app/mailbox.hpp"

#include <utility>

#include "check.hpp"

namespace httpmark {

bool Mailbox::put(Letter&& letter) {
    const std::lock_guard<std::mutex> held(lock_);
    if (reader_ == nullptr) return false;
    letters_.push_back(std::move(letter));
    // Under the lock, so that the reader is still there; it is woken once for all that waits.
    if (letters_.size() == 1) reader_->wake();
    return true;
}

void Mailbox::take(std::vector<Letter>& letters) {
    CHECK(letters.empty());
    const std::lock_guard<std::mutex> held(lock_);
    letters.swap(letters_);
}

void Mailbox::close() {
    std::vector<Letter> unread;  // destroyed without the lock: a handler may own anything
    const std::lock_guard<std::mutex> held(lock_);
    reader_ = nullptr;
    unread.swap(letters_);
}

}  // namespace httpmark
