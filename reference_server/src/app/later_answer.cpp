#include "app/later_answer.hpp"

#include <utility>

#include "app/coded_answer.hpp"
#include "app/mailbox.hpp"

namespace httpmark {

namespace {

bool send(std::shared_ptr<WaitingRequest> request, Letter letter) {
    if (request == nullptr || request->gone.load(std::memory_order_acquire)) return false;
    Mailbox& mailbox = *request->mailbox;
    letter.request = std::move(request);
    return mailbox.put(std::move(letter));
}

}  // namespace

LaterAnswer Sink::later() {
    return {};
}

LaterAnswer ResponseWriter::later() {
    if (!is_untouched()) return {};
    LaterAnswer answer = sink_.later();
    if (answer) status_ = kAnsweredLater;
    return answer;
}

LaterAnswer& LaterAnswer::operator=(LaterAnswer&& other) noexcept {
    if (this == &other) return *this;
    if (request_ != nullptr) fail(Reason::kHandlerFailed);
    request_ = std::move(other.request_);
    return *this;
}

LaterAnswer::~LaterAnswer() {
    if (request_ != nullptr) fail(Reason::kHandlerFailed);
}

bool LaterAnswer::gone() const {
    return request_ == nullptr || request_->gone.load(std::memory_order_acquire);
}

bool LaterAnswer::complete(unsigned status, std::span<const Field> fields,
                           std::string_view content) {
    return complete(PreparedAnswer::make(status, fields, content));
}

bool LaterAnswer::complete(std::shared_ptr<const PreparedAnswer> answer) {
    if (answer == nullptr) return false;
    if (request_ != nullptr && request_->accepts) {
        answer = coded_for(*request_->accepts, *answer);
        if (answer == nullptr) return fail(Reason::kNoMemory);
    }
    return send(std::exchange(request_, nullptr), {nullptr, std::move(answer)});
}

bool LaterAnswer::complete(Handler handler) {
    if (!handler) return false;
    if (request_ != nullptr && request_->accepts) {
        handler = with_coded_content(Answer(std::move(handler))).handler;
    }
    return send(std::exchange(request_, nullptr), {nullptr, nullptr, std::move(handler)});
}

bool LaterAnswer::fail(Reason reason) {
    if (reason == Reason::kNone || reason >= Reason::kCount) reason = Reason::kHandlerFailed;
    return send(std::exchange(request_, nullptr), {nullptr, nullptr, {}, reason});
}

}  // namespace httpmark
