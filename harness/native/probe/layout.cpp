#include "probe/layout.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "probe/frames.hpp"

namespace httpmark {
namespace {

class Object {
  public:
    Object& add(std::string_view name, const std::string& json) {
        text_ += text_.empty() ? "" : ", ";
        text_.append("\"").append(name).append("\": ").append(json);
        return *this;
    }
    Object& add(std::string_view name, std::uint64_t number) {
        return add(name, std::to_string(number));
    }
    std::string done() const { return "{" + text_ + "}"; }

  private:
    std::string text_;
};

constexpr unsigned kNumbers = 256;  // of one byte

// Every word that has a name.
template <typename Word>
std::string words() {
    Object object;
    for (unsigned number = 0; number < kNumbers; ++number) {
        const char* name = name_of(static_cast<Word>(number));
        if (name != nullptr) object.add(name, number);
    }
    return object.done();
}

template <std::size_t count>
std::string record(const std::array<FrameField, count>& fields) {
    std::string list;
    for (const FrameField& field : fields) {
        list += list.empty() ? "" : ", ";
        list.append("[\"").append(field.name).append("\", \"u");
        list.append(std::to_string(8 * field.bytes)).append("\"]");
    }
    return Object().add("bytes", bytes_of(fields)).add("fields", "[" + list + "]").done();
}

}  // namespace

std::string frame_layout_json() {
    Object flags;
    flags.add("step", words<StepFlag>());
    flags.add("case", words<CaseFlag>());
    flags.add("exchange", words<ExchangeFlag>());
    Object limits;
    limits.add("case_bytes_max", kCaseBytesMax).add("received_bytes_max", kReceivedBytesMax);
    limits.add("events_max", kEventsMax).add("steps_done_max", kStepsDoneMax);
    limits.add("never_us", kNever);
    Object layout;
    layout.add("steps", words<StepOp>()).add("awaits", words<AwaitKind>());
    layout.add("outcomes", words<Outcome>()).add("ends", words<End>());
    layout.add("events", words<EventKind>()).add("flags", flags.done());
    layout.add("request_frame", record(kCaseFields)).add("step_record", record(kStepFields));
    layout.add("await_record", record(kAwaitFields));
    layout.add("exchange_frame", record(kExchangeFields)).add("event_record", record(kEventFields));
    layout.add("limits", limits.done());
    return layout.done();
}

}  // namespace httpmark
