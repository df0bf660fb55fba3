// A stream of frames has one course of events in every split, whatever was agreed; after a Close
// frame nothing is sent, and all that is sent is whole frames of a server.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "check.hpp"
#include "websocket/session.hpp"

namespace {

using namespace httpmark::websocket;

class StringFrames final : public FrameSink {
  public:
    char* prepare(std::size_t size) override {
        octets.append(size, '\0');
        return octets.data() + octets.size() - size;
    }
    std::string octets;
};

struct Setting {
    SessionSettings settings;
    std::optional<DeflateParameters> agreed;
};

void add(std::string& events, const Event& event) {
    events += event.kind == Event::Kind::kMessage ? (event.is_text ? "T" : "B") : "C";
    events += std::to_string(event.code) + violation_row(event.violation).name + "@" +
              std::to_string(event.offset) + "(";
    events.append(event.message).append(event.reason) += ")";
}

std::string course(std::string_view stream, std::size_t step, const Setting& setting) {
    StringFrames frames;
    Session session(frames, setting.settings, setting.agreed);
    std::string events;
    while (!stream.empty()) {
        std::string part(stream.substr(0, step));
        stream.remove_prefix(part.size());
        std::span<char> input(part);
        Event event;
        while (session.receive(input, event)) {
            add(events, event);
            CHECK(event.message.size() <= setting.settings.limits.message_max);
            CHECK((event.kind == Event::Kind::kClosed) ==
                  (session.state() == Session::State::kClosed));
            if (event.kind != Event::Kind::kMessage) continue;
            CHECK((event.is_text ? session.send_text(event.message)
                                 : session.send_binary(event.message)) == Sent::kYes);
        }
        CHECK(input.empty());
    }
    return events + "|" + frames.octets;
}

void check_frames(std::string_view octets) {
    bool closed = false;
    while (!octets.empty()) {
        CHECK(!closed && octets.size() >= 2);
        const unsigned first = static_cast<unsigned char>(octets[0]);
        std::uint64_t size = static_cast<unsigned char>(octets[1]);
        CHECK((first & 0xB0) == 0x80 && size < 128);
        const std::size_t more = size == 126 ? 2 : (size == 127 ? 8 : 0);
        CHECK(octets.size() >= 2 + more);
        if (more != 0) size = 0;
        for (std::size_t i = 0; i < more; ++i) {
            size = size << 8 | static_cast<unsigned char>(octets[2 + i]);
        }
        CHECK(more == 0 || size > (more == 2 ? 125 : 65535));
        CHECK(octets.size() - 2 - more >= size);
        octets.remove_prefix(2 + more + static_cast<std::size_t>(size));
        closed = (first & 0x0F) == 8;
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* octets, std::size_t size) {
    if (size < 2) return 0;
    Setting setting;
    if ((octets[0] & 1) != 0) setting.settings.limits = {40, 60};
    if ((octets[0] & 2) != 0) {
        const bool forgets = (octets[0] & 4) != 0;
        const std::uint8_t bits = (octets[0] & 8) != 0 ? 9 : 15;
        setting.agreed = DeflateParameters{forgets, forgets, bits, bits};
        setting.settings.deflate.size_min = (octets[0] & 16) != 0 ? 0 : 20;
    }
    // Decompressed, a small input can be much.
    setting.settings.limits.message_max =
        std::min<std::uint64_t>(setting.settings.limits.message_max, 20000);
    const std::string_view stream(reinterpret_cast<const char*>(octets + 2), size - 2);
    const std::string whole = course(stream, stream.size() + 1, setting);
    CHECK(course(stream, 1, setting) == whole);
    CHECK(course(stream, 1 + octets[1] % 7, setting) == whole);
    StringFrames frames;
    Session session(frames, setting.settings, setting.agreed);
    std::string own(stream);
    std::span<char> input(own);
    Event event;
    while (session.receive(input, event)) continue;
    check_frames(frames.octets);
    return 0;
}
