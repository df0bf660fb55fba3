#include "websocket/session.hpp"

#include <string>

#include "laws.hpp"
#include "websocket/client.hpp"

namespace httpmark::websocket {
namespace {

SessionSetting small(std::uint64_t frame_max, std::uint64_t message_max) {
    SessionSetting setting;
    setting.settings.limits = {frame_max, message_max};
    return setting;
}

// A session that is driven by hand.
struct Driven {
    StringFrames frames;
    Session session;
    Heard heard;
    explicit Driven(const SessionSetting& setting = {})
        : session(frames, setting.settings, setting.agreed) {}
    // The octets sent since the last look.
    std::string sent() { return std::exchange(frames.octets, {}); }
    void give(std::string_view stream) { hear(session, stream, heard); }
};

TEST(Session, messages_come_whole_with_their_kind) {
    const Heard heard = listen_every_way(text("Hello") + binary(std::string("\0\xFF", 2)) +
                                         fragments(1, "\xC3\xA4\xE2\x82\xAC", {1, 0, 2, 1}));
    LAW(heard.events.size() == 3 && heard.state == Session::State::kOpen);
    LAW(heard.events[0].is_text && heard.events[0].message == "Hello");
    LAW(!heard.events[1].is_text && heard.events[1].message == std::string("\0\xFF", 2));
    LAW(heard.events[2].is_text && heard.events[2].message == "\xC3\xA4\xE2\x82\xAC");
}

// Every violation with the offset of the byte that shows it.
TEST(Session, every_violation_is_told_with_its_code_its_name_and_its_offset) {
    struct Row {
        Violation violation;
        std::string stream;
        std::uint64_t offset;
    };
    const std::string good = text("Hello");  // 11 bytes
    const std::string begun = client_frame(0x01, "Hello");
    const Row rows[] = {
        {Violation::kReservedBit, good + client_frame(0xC1, "x"), 11},
        {Violation::kOpcodeUnknown, good + client_frame(0x83, ""), 11},
        {Violation::kControlFragmented, good + client_frame(0x09, ""), 11},
        {Violation::kControlTooLong, good + ping(std::string(126, 'x')), 12},
        {Violation::kContinuationOfNothing, good + client_frame(0x80, "x"), 11},
        {Violation::kMessageNotFinished, begun + text("x"), 11},
        {Violation::kNotMasked, good + server_frame(0x81, "x"), 12},
        {Violation::kLengthNotMinimal, good + client_frame(0x81, "x", kKey, LengthForm::kSixteen),
         14},
        {Violation::kLengthHighBit, good + std::string("\x81\xFF\x80", 3), 13},
        {Violation::kFrameTooLarge, good + text("0123456789abcdefg"), 12},
        {Violation::kMessageTooLarge, begun + client_frame(0x80, "0123456789abcdef"), 12},
        {Violation::kTextNotUtf8, good + text("ab\xFFzz"), 11 + 6 + 2},
        {Violation::kTextNotUtf8, good + text("ab\xC3"), 11 + 6 + 2},
        {Violation::kCloseTooShort, good + client_frame(0x88, "\x03"), 11 + 6},
        {Violation::kCloseCode, good + close_with(1005), 11 + 6},
        {Violation::kCloseReasonNotUtf8, good + close_with(1000, "a\xC3(z"), 11 + 6 + 4},
        {Violation::kCloseReasonNotUtf8, good + close_with(1000, "a\xC3"), 11 + 6 + 3},
    };
    for (const Row& row : rows) {
        // A length is over a small limit before it is in the wrong form.
        const bool is_limit = row.violation == Violation::kFrameTooLarge ||
                              row.violation == Violation::kMessageTooLarge;
        const Heard heard = listen_every_way(row.stream + text("never seen"),
                                             is_limit ? small(16, 20) : SessionSetting());
        const ViolationRow& due = violation_row(row.violation);
        LAW(heard.state == Session::State::kClosed, << due.name);
        const Seen& last = heard.events.back();
        LAW(last.kind == Event::Kind::kClosed && last.violation == row.violation &&
                last.code == due.code && last.offset == row.offset,
            << due.name << ": " << violation_row(last.violation).name << "@" << last.offset);
        LAW(heard.sent.ends_with(refused(row.violation)), << due.name);
        LAW(heard.events.size() <= 2, << due.name);
    }
}

TEST(Session, text_is_refused_at_the_byte_that_makes_it_hopeless_before_its_message_ends) {
    // 'fail fast': the frame announces much more, and is not waited for.
    const std::string valid = "\xCE\xBA\xE1\xBD\xB9\xCF\x83";
    const std::string all = client_frame(0x01, valid + "\xF4\x90\x80\x80" + std::string(50, 'z'));
    const std::string up_to_fault = all.substr(0, 6 + valid.size() + 2);
    const Heard heard = listen_every_way(up_to_fault);
    LAW(heard.events.size() == 1 && heard.events[0].violation == Violation::kTextNotUtf8);
    LAW(heard.events[0].offset == up_to_fault.size() - 1);
    LAW(listen_every_way(up_to_fault.substr(0, up_to_fault.size() - 1)).events.empty());
}

TEST(Session, the_client_closes) {
    // Nothing that follows is read.
    const std::string behind = text("late") + ping() + "\xFF\xFF";
    for (const char* reason : {"", "bye", "\xC3\xA4"}) {
        const Heard heard = listen_every_way(close_with(1001, reason) + behind);
        LAW(heard.sent == close_back(1001) && heard.state == Session::State::kClosed);
        LAW(heard.events.size() == 1 && heard.events[0].code == 1001 &&
            heard.events[0].reason == reason && heard.events[0].violation == Violation::kNone);
    }
    const Heard silent = listen_every_way(client_frame(0x88, "") + behind);
    LAW(silent.sent == server_frame(0x88, "") && silent.events[0].code == kCloseNoCode);
}

TEST(Session, the_server_closes_and_waits_for_the_answer) {
    Driven driven;
    driven.give(client_frame(0x01, "half"));
    LAW(driven.session.close(1000, "done") == Sent::kYes);
    LAW(driven.sent() == server_frame(0x88, code_octets(1000) + "done"));
    LAW(driven.session.state() == Session::State::kClosing);
    // Messages are discarded, Pings not answered, and nothing can be sent.
    driven.give(client_frame(0x80, " a message\xFF") + text("another") + ping("?") + pong());
    LAW(driven.heard.events.empty() && driven.sent().empty());
    LAW(driven.session.send_text("x") == Sent::kClosed);
    LAW(driven.session.send_binary("x") == Sent::kClosed);
    LAW(driven.session.ping("x") == Sent::kClosed);
    LAW(driven.session.close(1000) == Sent::kClosed);
    driven.give(close_with(1000) + text("late"));
    LAW(driven.heard.events.size() == 1 && driven.heard.events[0].code == 1000);
    LAW(driven.sent().empty() && driven.session.state() == Session::State::kClosed);
    LAW(driven.session.send_text("x") == Sent::kClosed);
}

TEST(Session, a_violation_while_closing_ends_without_a_second_close_frame) {
    Driven driven;
    LAW(driven.session.close(1001) == Sent::kYes && driven.sent() == close_back(1001));
    driven.give(server_frame(0x81, "not masked"));
    LAW(driven.heard.events.size() == 1 &&
        driven.heard.events[0].violation == Violation::kNotMasked);
    LAW(driven.sent().empty() && driven.session.state() == Session::State::kClosed);
}

TEST(Session, a_connection_that_is_lost_is_told_once) {
    for (const char* state : {"open", "closing", "closed"}) {
        Driven driven;
        if (std::string_view(state) == "closing") driven.session.close(1000);
        if (std::string_view(state) == "closed") driven.give(close_with(1000));
        Event event;
        const bool told = driven.session.lost(event);
        LAW(told == (std::string_view(state) != "closed"), << state);
        LAW(!told || (event.kind == Event::Kind::kClosed && event.code == kCloseAbnormal));
        LAW(!driven.session.lost(event) && driven.session.state() == Session::State::kClosed);
    }
}

TEST(Session, what_may_be_sent) {
    Driven driven;
    LAW(driven.session.send_text("\xC3\xA4") == Sent::kYes);
    LAW(driven.session.send_binary("\xFF") == Sent::kYes);
    LAW(driven.session.ping(std::string(125, 'p')) == Sent::kYes);
    LAW(driven.sent() ==
        text_back("\xC3\xA4") + binary_back("\xFF") + server_frame(0x89, std::string(125, 'p')));
    LAW(driven.session.send_text("\xC3") == Sent::kNotUtf8);
    LAW(driven.session.ping(std::string(126, 'p')) == Sent::kTooLong);
    for (const unsigned code :
         {0U, 999U, 1004U, 1006U, 1010U, 1012U, 1015U, 2999U, 5000U, 65535U}) {
        LAW(driven.session.close(static_cast<std::uint16_t>(code)) == Sent::kCode, << code);
    }
    LAW(driven.session.close(kCloseNoCode, "reason without a code") == Sent::kCode);
    LAW(driven.session.close(1000, std::string(124, 'r')) == Sent::kTooLong);
    LAW(driven.session.close(1000, "\xFF") == Sent::kNotUtf8);
    LAW(driven.sent().empty() && driven.session.state() == Session::State::kOpen);
    LAW(driven.session.close(4999, std::string(123, 'r')) == Sent::kYes);
    LAW(driven.sent() == server_frame(0x88, code_octets(4999) + std::string(123, 'r')));
    Driven silent;
    LAW(silent.session.close(kCloseNoCode) == Sent::kYes &&
        silent.sent() == server_frame(0x88, ""));
}

TEST(Session, short_memory_is_told_and_ends_what_cannot_go_on) {
    Driven driven;
    driven.frames.room = 3;
    LAW(driven.session.send_text("too much") == Sent::kNoMemory);
    LAW(driven.session.close(1000) == Sent::kNoMemory);
    LAW(driven.session.state() == Session::State::kOpen && driven.sent().empty());
    driven.frames.room = 0;
    driven.give(ping("a Pong is owed"));
    LAW(driven.heard.events.size() == 1 &&
        driven.heard.events[0].violation == Violation::kNoMemory);
    LAW(driven.session.state() == Session::State::kClosed && driven.sent().empty());
    // A Close frame is answered if it can be, and ends in any case.
    Driven closing;
    closing.frames.room = 0;
    closing.give(close_with(1000));
    LAW(closing.heard.events[0].violation == Violation::kNone &&
        closing.session.state() == Session::State::kClosed);
}

// A compressed message that was not sent is one that later messages must not refer to.
TEST(Session, after_short_memory_messages_can_still_be_read) {
    SessionSetting setting;
    setting.agreed = DeflateParameters();
    Driven driven(setting);
    const std::string message =
        "a message that is long enough to be compressed, and compressed, "
        "and compressed, and compressed, and compressed";
    driven.frames.room = 10;
    LAW(driven.session.send_text(message) == Sent::kNoMemory && driven.sent().empty());
    driven.frames.room = 1000;
    LAW(driven.session.send_text(message) == Sent::kYes && driven.sent() == text_back(message));
    Driven good(setting);
    LAW(good.session.send_text(message) == Sent::kYes && good.sent().size() < message.size());
}

TEST(Session, an_application_may_close_between_two_messages_of_one_receive) {
    StringFrames frames;
    Session session(frames, {}, {});
    std::string stream = text("one") + text("two") + close_with(1000);
    std::span<char> input(stream);
    Event event;
    LAW(session.receive(input, event) && event.message == "one");
    LAW(session.close(1001, "enough") == Sent::kYes);
    LAW(event.message == "one");
    LAW(session.receive(input, event) && event.kind == Event::Kind::kClosed && event.code == 1000);
    LAW(frames.octets == server_frame(0x88, code_octets(1001) + "enough"));
}

// Random streams of frames, good and bad: whatever the cut, one course of events; after the close
// nothing is sent; and each message that is told was sent by the client.
TEST(Session, any_stream_has_one_course_of_events) {
    for (unsigned seed = 0; seed < 400; ++seed) {
        Random random(seed);
        std::string stream;
        for (unsigned i = 0; i < 6; ++i) {
            std::string payload(random() % 40, 'a');
            if (random() % 8 == 0) payload += static_cast<char>(random());
            constexpr unsigned kFirst[] = {0x81, 0x82, 0x01, 0x00, 0x80, 0x89, 0x8A, 0x80, 0x88};
            const unsigned first = kFirst[random() % (i == 5 ? 9 : 8)];
            stream += client_frame(random() % 30 == 0 ? random() : first,
                                   first == 0x88 ? code_octets(999 + random() % 15) : payload);
        }
        const Heard heard = listen_every_way(stream, small(60, 80));
        for (std::size_t i = 0; i < heard.events.size(); ++i) {
            const bool is_last = i + 1 == heard.events.size();
            LAW(heard.events[i].kind == Event::Kind::kMessage || is_last);
        }
    }
}

}  // namespace
}  // namespace httpmark::websocket
