// Answers from other threads.
#include <utility>

#include "app/later_answer.hpp"
#include "check.hpp"
#include "net/connection.hpp"
#include "net/exchange.hpp"

namespace httpmark {

// For the handler that is being asked; end_answer() sees what became of it.
LaterAnswer Connections::later() {
    forget_asked();
    asked_later_ =
        std::make_shared<WaitingRequest>(mailbox_, current_id_, slot(current_id_).generation);
    return LaterAnswer(asked_later_);
}

// Nothing of it is waited for: the handler has failed all the same.
void Connections::forget_asked() {
    asked_reader_ = nullptr;
    if (asked_later_ == nullptr) return;
    asked_later_->gone.store(true, std::memory_order_release);
    asked_later_ = nullptr;
}

void Connections::read_mail() {
    mailbox_->take(letters_);
    for (const Letter& letter : letters_) {
        if (letter.sleeper != nullptr) {
            wake_up(*letter.sleeper);
        } else {
            deliver(letter);
        }
    }
    letters_.clear();
}

void Connections::deliver(const Letter& letter) {
    const std::uint32_t id = letter.request->id;
    if (!is_current(id, letter.request->generation)) return;
    Connection& c = slot(id);
    if (c.exchange == nullptr || c.exchange->later != letter.request) return;
    current_ = &c;
    current_id_ = id;
    Exchange& x = *c.exchange;
    CHECK(x.stage == Exchange::Stage::kWaiting);
    x.stage = Exchange::Stage::kBody;
    x.later = nullptr;
    c.wait = Connection::Wait::kNothing;
    Request request = kept_request(c);
    request.asked_again = true;
    respond_by(c, request, letter);
    leave_waiting(id);
}

// The answer that was waited for has been written, or put off once more.
void Connections::leave_waiting(std::uint32_t id) {
    Connection& c = slot(id);
    Exchange* const x = c.exchange;
    if (x != nullptr && x->stage != Exchange::Stage::kWaiting) {
        if (x->parked.size != 0 && !c.has(Connection::kClosing)) {
            x->stage = Exchange::Stage::kParked;
        } else {
            release_exchange(c);
        }
    }
    flush();
    resume(id);
}

}  // namespace httpmark
