#include "app/event_sender.hpp"

#include <algorithm>
#include <mutex>
#include <string>
#include <utility>

#include "app/waker.hpp"
#include "http/content_stream.hpp"

namespace httpmark {

namespace {

constexpr auto kEventStream = fixed_field("Content-Type", "text/event-stream");
constexpr Field kNotStored{"Cache-Control", "no-store"};

}  // namespace

// What has been sent and is not on the wire yet.
struct EventSender::Queue {
    std::mutex lock;
    std::string octets;
    std::size_t taken = 0;  // of them, by the wire
    std::size_t unsent_max = 0;
    bool ended = false;
    bool gone = false;
    Waker waker;

    void end() {
        {
            const std::lock_guard<std::mutex> held(lock);
            ended = true;
        }
        waker.wake();
    }
};

// What all copies of a sender share: with the last of them, the answer ends.
struct EventSender::Held {
    std::shared_ptr<Queue> queue;

    explicit Held(std::shared_ptr<Queue> made) : queue(std::move(made)) {}
    Held(const Held&) = delete;
    Held& operator=(const Held&) = delete;
    ~Held() { queue->end(); }
};

// The worker's half.
class EventSender::Content final : public ContentStream {
  public:
    explicit Content(std::shared_ptr<Queue> queue) : queue_(std::move(queue)) {}
    ~Content() override {
        const std::lock_guard<std::mutex> held(queue_->lock);
        queue_->gone = true;
    }
    Piece read(std::span<char> room) override {
        Queue& queue = *queue_;
        const std::lock_guard<std::mutex> held(queue.lock);
        const std::size_t size = std::min(room.size(), queue.octets.size() - queue.taken);
        std::copy_n(queue.octets.data() + queue.taken, size, room.data());
        queue.taken += size;
        if (queue.taken < queue.octets.size()) {
            // A client may be a little behind for ever.
            if (queue.taken >= queue.octets.size() / 2) {
                queue.octets.erase(0, queue.taken);
                queue.taken = 0;
            }
            return {size, State::kMore};
        }
        queue.octets = {};  // between events it holds no memory
        queue.taken = 0;
        return {size, queue.ended ? State::kEnd : State::kLater};
    }

  private:
    std::shared_ptr<Queue> queue_;
};

EventSender::EventSender(ResponseWriter& writer, std::size_t unsent_max) {
    auto queue = std::make_shared<Queue>();
    queue->unsent_max = unsent_max;
    queue->waker = writer.waker();
    if (!writer.write_stream(200, {kEventStream, {&kNotStored, 1}},
                             std::make_unique<Content>(queue))) {
        return;
    }
    held_ = std::make_shared<const Held>(std::move(queue));
}

template <class Append>
EventSender::EventFault EventSender::put(const Append& append) const {
    if (held_ == nullptr) return EventFault::kGone;
    Queue& queue = *held_->queue;
    {
        const std::lock_guard<std::mutex> held(queue.lock);
        if (queue.gone || queue.ended) return EventFault::kGone;
        if (queue.octets.size() - queue.taken > queue.unsent_max) return EventFault::kFull;
        const EventFault fault = append(queue.octets);
        if (fault != EventFault::kNone) return fault;
    }
    queue.waker.wake();
    return EventFault::kNone;
}

EventSender::EventFault EventSender::send(const ServerEvent& event) const {
    return put([&](std::string& octets) { return websocket::append_event(octets, event); });
}

EventSender::EventFault EventSender::comment(std::string_view text) const {
    return put([&](std::string& octets) { return websocket::append_comment(octets, text); });
}

void EventSender::end() const {
    if (held_ != nullptr) held_->queue->end();
}

bool EventSender::gone() const {
    if (held_ == nullptr) return true;
    const std::lock_guard<std::mutex> held(held_->queue->lock);
    return held_->queue->gone;
}

}  // namespace httpmark
