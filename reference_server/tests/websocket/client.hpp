// The other side of a WebSocket connection, written apart from the server's code: frames of a
// client, frames of a server as they have to look, and what a session makes of a stream that is cut
// in different ways.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "laws.hpp"
#include "websocket/session.hpp"

namespace httpmark::websocket {

// 7, 16 or 64 bits for the length; kShortest as RFC 6455 5.2 asks.
enum class LengthForm : std::uint8_t { kShortest, kSeven, kSixteen, kSixtyFour };

inline std::string length_octets(std::uint64_t length, LengthForm form, unsigned mask_bit) {
    if (form == LengthForm::kShortest) {
        form = length < 126 ? LengthForm::kSeven
                            : (length < 65536 ? LengthForm::kSixteen : LengthForm::kSixtyFour);
    }
    const int octets = form == LengthForm::kSeven ? 0 : (form == LengthForm::kSixteen ? 2 : 8);
    const std::uint64_t first = octets == 0 ? length : (octets == 2 ? 126 : 127);
    std::string out(1, static_cast<char>(first | mask_bit));
    for (int i = octets - 1; i >= 0; --i) out += static_cast<char>(length >> (8 * i) & 0xFF);
    return out;
}

inline constexpr std::string_view kKey = "\x37\xFA\x21\x3D";  // the one of RFC 6455 5.7

// A masked frame whose first byte is given: FIN, RSV and opcode.
inline std::string client_frame(unsigned first, std::string_view payload,
                                std::string_view key = kKey,
                                LengthForm form = LengthForm::kShortest) {
    std::string out(1, static_cast<char>(first));
    out += length_octets(payload.size(), form, 0x80);
    out += key;
    for (std::size_t i = 0; i < payload.size(); ++i) {
        out += static_cast<char>(payload[i] ^ key[i % 4]);
    }
    return out;
}
inline std::string text(std::string_view payload) {
    return client_frame(0x81, payload);
}
inline std::string binary(std::string_view payload) {
    return client_frame(0x82, payload);
}
inline std::string ping(std::string_view payload = {}) {
    return client_frame(0x89, payload);
}
inline std::string pong(std::string_view payload = {}) {
    return client_frame(0x8A, payload);
}
inline std::string code_octets(unsigned code) {
    return {static_cast<char>(code >> 8), static_cast<char>(code & 0xFF)};
}
inline std::string close_with(unsigned code, std::string_view reason = {}) {
    return client_frame(0x88, code_octets(code) + std::string(reason));
}
// One message in frames of the sizes given; the last frame has the rest.
inline std::string fragments(unsigned opcode, std::string_view payload,
                             const std::vector<std::size_t>& sizes, std::string_view between = {}) {
    std::string out;
    for (const std::size_t size : sizes) {
        out += client_frame(opcode, payload.substr(0, size));
        out += between;
        payload.remove_prefix(std::min(size, payload.size()));
        opcode = 0;
    }
    return out + client_frame(0x80 | opcode, payload);
}

// A frame of the server: never masked, the length in its shortest form.
inline std::string server_frame(unsigned first, std::string_view payload) {
    std::string out(1, static_cast<char>(first));
    return (out += length_octets(payload.size(), LengthForm::kShortest, 0)) += payload;
}
inline std::string text_back(std::string_view payload) {
    return server_frame(0x81, payload);
}
inline std::string binary_back(std::string_view payload) {
    return server_frame(0x82, payload);
}
inline std::string pong_back(std::string_view payload = {}) {
    return server_frame(0x8A, payload);
}
inline std::string close_back(unsigned code) {
    return server_frame(0x88, code_octets(code));
}
// What a session says of a violation: its code, and its name as the reason.
inline std::string refused(Violation violation) {
    const ViolationRow& row = violation_row(violation);
    return server_frame(0x88, code_octets(row.code) + row.name);
}

class StringFrames final : public FrameSink {
  public:
    char* prepare(std::size_t size) override {
        if (octets.size() + size > room) return nullptr;
        octets.append(size, '\0');
        return octets.data() + octets.size() - size;
    }
    std::string octets;
    std::size_t room = ~std::size_t{0};
};

// An event with its own bytes.
struct Seen {
    Event::Kind kind;
    bool is_text;
    std::string message;
    std::uint16_t code;
    std::string reason;
    Violation violation;
    std::uint64_t offset;
    bool operator==(const Seen&) const = default;
};
inline Seen seen(const Event& event) {
    return {event.kind,
            event.is_text,
            std::string(event.message),
            event.code,
            std::string(event.reason),
            event.violation,
            event.offset};
}

struct Heard {
    std::vector<Seen> events;
    std::string sent;
    Session::State state = Session::State::kOpen;
    bool operator==(const Heard&) const = default;
};

struct SessionSetting {
    SessionSettings settings;
    std::optional<DeflateParameters> agreed;
};

// Gives one part to a session that sends every message back. The part stands in memory of its own,
// so that a sanitizer sees what reads beyond it.
inline void hear(Session& session, std::string_view part, Heard& heard) {
    std::vector<char> octets(part.begin(), part.end());
    std::span<char> input(octets);
    Event event;
    while (session.receive(input, event)) {
        heard.events.push_back(seen(event));
        if (event.kind != Event::Kind::kMessage) continue;
        const Sent sent =
            event.is_text ? session.send_text(event.message) : session.send_binary(event.message);
        LAW(sent == Sent::kYes);
    }
    LAW(input.empty());
}

// What a session hears when the stream comes in parts of these sizes, the last one repeated.
inline Heard listen(std::string_view stream, const std::vector<std::size_t>& sizes,
                    const SessionSetting& setting = {}) {
    StringFrames frames;
    Session session(frames, setting.settings, setting.agreed);
    Heard heard;
    std::size_t at = 0;
    for (std::size_t i = 0; at < stream.size(); ++i) {
        const std::size_t size = sizes[std::min(i, sizes.size() - 1)];
        hear(session, stream.substr(at, size), heard);
        at += std::min(size, stream.size() - at);
    }
    heard.sent = frames.octets;
    heard.state = session.state();
    return heard;
}

// At once, byte by byte, in parts of 7, and cut in two at every place; at 40 of them where the
// stream is long.
inline Heard listen_every_way(std::string_view stream, const SessionSetting& setting = {}) {
    const std::size_t all = std::max<std::size_t>(stream.size(), 1);
    const Heard whole = listen(stream, {all}, setting);
    LAW(listen(stream, {1}, setting) == whole, << visible(stream));
    LAW(listen(stream, {7}, setting) == whole, << visible(stream));
    Random random(stream.size());
    const bool is_long = stream.size() > 600;
    for (std::size_t i = 1; i < (is_long ? 41 : all); ++i) {
        const std::size_t cut = is_long ? 1 + random() % (all - 1) : i;
        LAW(listen(stream, {cut, all}, setting) == whole, << visible(stream) << " cut at " << cut);
    }
    return whole;
}

}  // namespace httpmark::websocket
