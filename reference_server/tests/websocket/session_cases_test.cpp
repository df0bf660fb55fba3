// The families of cases that the Autobahn test-suite publishes for WebSocket servers (1 framing, 2
// Pings, 3 reserved bits, 4 opcodes, 5 fragmentation, 6 UTF-8, 7 closing, 9 limits, 10 fragments of
// one size, 12 and 13 compression), as cases of our own against a server that echoes. Each comes
// whole, byte by byte and cut in two.
#include <string>
#include <string_view>
#include <vector>

#include "laws.hpp"
#include "websocket/client.hpp"
#include "websocket/deflate.hpp"
#include "websocket/session.hpp"

namespace httpmark::websocket {
namespace {

// What the client sends, and every byte that it gets back.
struct Case {
    const char* family;
    const char* title;
    std::string sent;
    std::string due;
};

const std::string kBye = close_with(1000, "bye");
const std::string kByeBack = close_back(1000);
const std::string kGreek = "\xCE\xBA\xE1\xBD\xB9\xCF\x83\xCE\xBC\xCE\xB5";

void check(const std::vector<Case>& cases, const SessionSetting& setting = {}) {
    for (const Case& one : cases) {
        const Heard heard = listen_every_way(one.sent, setting);
        LAW(heard.sent == one.due, << one.family << " " << one.title << ": " << visible(heard.sent)
                                   << ", not " << visible(one.due));
    }
}

TEST(SessionCases, family_1_framing) {
    std::vector<Case> cases;
    for (const std::size_t size : {0U, 125U, 126U, 127U, 128U, 65535U, 65536U}) {
        const std::string stars(size, '*');
        const std::string octets(size, '\xFE');
        cases.push_back({"1.1", "text", text(stars) + kBye, text_back(stars) + kByeBack});
        cases.push_back({"1.2", "binary", binary(octets) + kBye, binary_back(octets) + kByeBack});
    }
    check(cases);
    const std::string stars(65536, '*');
    LAW(listen(text(stars) + kBye, {997}).sent == text_back(stars) + kByeBack);
}

TEST(SessionCases, family_2_pings_and_pongs) {
    const std::string octets("\x00\xFF\xFE\xFD\xFC\xFB\x00\xFF", 8);
    std::string ten;
    std::string ten_back;
    for (char c = '0'; c <= '9'; ++c) {
        ten += ping(std::string("payload-") + c);
        ten_back += pong_back(std::string("payload-") + c);
    }
    const std::string most(125, '\xFE');
    check({
        {"2.1", "without payload", ping() + kBye, pong_back() + kByeBack},
        {"2.2", "text payload", ping("Hello, world!") + kBye,
         pong_back("Hello, world!") + kByeBack},
        {"2.3", "payload that is no UTF-8", ping(octets) + kBye, pong_back(octets) + kByeBack},
        {"2.4", "125 bytes", ping(most) + kBye, pong_back(most) + kByeBack},
        {"2.5", "126 bytes", ping(most + "x") + kBye, refused(Violation::kControlTooLong)},
        {"2.7", "an unsolicited Pong", pong() + kBye, kByeBack},
        {"2.8", "an unsolicited Pong with payload", pong("unsolicited") + kBye, kByeBack},
        {"2.9", "an unsolicited Pong, then a Ping", pong("unsolicited") + ping("ping") + kBye,
         pong_back("ping") + kByeBack},
        {"2.10", "ten Pings", ten + kBye, ten_back + kByeBack},
    });
}

TEST(SessionCases, family_3_reserved_bits) {
    const std::string no = refused(Violation::kReservedBit);
    std::vector<Case> cases;
    for (unsigned rsv = 1; rsv <= 7; ++rsv) {
        const unsigned bits = rsv << 4;
        cases.push_back({"3", "text", client_frame(0x81 | bits, "x") + kBye, no});
        cases.push_back({"3", "after a good message",
                         text("small") + client_frame(0x81 | bits, "x") + ping(),
                         text_back("small") + no});
        cases.push_back({"3", "binary", client_frame(0x82 | bits, "x"), no});
        cases.push_back({"3", "Ping", client_frame(0x89 | bits, "x"), no});
        cases.push_back({"3", "Close", client_frame(0x88 | bits, code_octets(1000)), no});
        cases.push_back(
            {"3", "continuation", client_frame(0x01, "x") + client_frame(0x80 | bits, "y"), no});
    }
    check(cases);
}

TEST(SessionCases, family_4_opcodes) {
    const std::string no = refused(Violation::kOpcodeUnknown);
    std::vector<Case> cases;
    for (const unsigned opcode : {3U, 4U, 5U, 6U, 7U, 11U, 12U, 13U, 14U, 15U}) {
        cases.push_back({"4", "empty", client_frame(0x80 | opcode, "") + kBye, no});
        cases.push_back({"4", "with payload", client_frame(0x80 | opcode, "reserved"), no});
        cases.push_back({"4", "after a good message",
                         text("Hello") + client_frame(0x80 | opcode, "") + ping(),
                         text_back("Hello") + no});
    }
    check(cases);
}

TEST(SessionCases, family_5_fragmentation) {
    const std::string first = client_frame(0x01, "fragment1");
    const std::string middle = client_frame(0x00, "fragment2");
    const std::string last = client_frame(0x80, "fragment2");
    const std::string both = text_back("fragment1fragment2");
    const std::string nothing = refused(Violation::kContinuationOfNothing);
    const std::string control = refused(Violation::kControlFragmented);
    check({
        {"5.1", "a Ping in two frames", client_frame(0x09, "a") + client_frame(0x80, "b"), control},
        {"5.2", "a Pong in two frames", client_frame(0x0A, "a") + client_frame(0x80, "b"), control},
        {"5.3", "text in two frames", first + last + kBye, both + kByeBack},
        {"5.6", "a Ping between them", first + ping("ping") + last + kBye,
         pong_back("ping") + both + kByeBack},
        {"5.7", "a Pong between them", first + pong("pong") + last + kBye, both + kByeBack},
        {"5.9", "a last continuation of nothing", last + text("Hello"), nothing},
        {"5.12", "a continuation of nothing", middle + text("Hello"), nothing},
        {"5.15", "a message, then a continuation of nothing", first + last + middle + text("x"),
         both + nothing},
        {"5.16", "continuation, text, continuation, twice", middle + text("x") + last, nothing},
        {"5.18", "text in two frames of text", first + text("fragment2"),
         refused(Violation::kMessageNotFinished)},
        {"5.18", "text, then binary", first + binary("fragment2"),
         refused(Violation::kMessageNotFinished)},
        {"5.19", "five frames and Pings",
         first + middle + ping("p1") + middle + middle + ping("p2") + last + kBye,
         pong_back("p1") + pong_back("p2") +
             text_back("fragment1fragment2fragment2fragment2fragment2") + kByeBack},
        {"5.20", "a Close between frames", first + kBye + last, kByeBack},
    });
}

// 6.2, 6.5 and 6.6: texts; 6.7 and 6.8: the first and the last character of each length; 6.11:
// around the surrogates and the last one of all; 6.22 and 6.23: noncharacters and U+FFFD.
constexpr std::string_view kTexts[] = {
    "",
    "Hello-\xC2\xB5@\xC3\x9F\xC3\xB6\xC3\xA4\xC3\xBC\xC3\xA0\xC3\xA1-UTF-8!!",
    "\xCE\xBA\xE1\xBD\xB9\xCF\x83\xCE\xBC\xCE\xB5",
    "\xCE\xBA",
    "\xCE\xBA\xE1\xBD\xB9",
    std::string_view("\0", 1),
    "\xC2\x80",
    "\xE0\xA0\x80",
    "\xF0\x90\x80\x80",
    "\x7F",
    "\xDF\xBF",
    "\xEF\xBF\xBF",
    "\xED\x9F\xBF",
    "\xEE\x80\x80",
    "\xF4\x8F\xBF\xBF",
    "\xEF\xB7\x90",
    "\xEF\xBF\xBE",
    "\xEF\xBF\xBD",
    "\xF0\x9F\xBF\xBE",
    "\xF3\xBF\xBF\xBF",
};
// A row for each of: 6.3 and 6.4, a surrogate, and what is above U+10FFFF, within a text; 6.6,
// texts that are cut; 6.9 and 6.10, forms of five and six bytes, and what is above; 6.12, lonely
// continuations; 6.13, lonely first bytes; 6.14, without the last byte; 6.16, bytes that never are;
// 6.17 and 6.18, longer forms than needed; 6.19, of NUL; 6.20 and 6.21, surrogates alone and in
// pairs.
constexpr std::string_view kNoTexts[] = {
    // clang-format off
    "\xCE\xBA\xE1\xBD\xB9\xED\xA0\x80" "edited", "\xCE\xBA\xF4\x90\x80\x80" "edited",
    "\xCE", "\xCE\xBA\xE1", "\xCE\xBA\xE1\xBD",
    "\xF8\x88\x80\x80\x80", "\xFC\x84\x80\x80\x80\x80", "\xF7\xBF\xBF\xBF",
    "\xFB\xBF\xBF\xBF\xBF", "\xFD\xBF\xBF\xBF\xBF\xBF", "\xF4\x90\x80\x80",
    "\x80", "\xBF", "\x80\xBF\x80\xBF",
    "\xC0 \xC1 ", "\xC2 \xDF ", "\xE0 \xE1 ", "\xF0 \xF1 ", "\xF8 ", "\xFC ",
    "\xC0", "\xE0\x80", "\xF0\x80\x80", "\xDF", "\xEF\xBF", "\xF7\xBF\xBF",
    "\xFE", "\xFF", "\xFE\xFE\xFF\xFF",
    "\xC0\xAF", "\xE0\x80\xAF", "\xF0\x80\x80\xAF", "\xC1\xBF", "\xE0\x9F\xBF", "\xF0\x8F\xBF\xBF",
    "\xC0\x80", "\xE0\x80\x80", "\xF0\x80\x80\x80",
    "\xED\xA0\x80", "\xED\xAD\xBF", "\xED\xBF\xBF", "\xED\xA0\x80\xED\xB0\x80", "\xED\xAF\xBF\xED\xBF\xBF",
    // clang-format on
};

// One text in frames of all sorts; as binary, it is never at fault.
void add_cases(std::vector<Case>& cases, const std::string& octets, const std::string& due) {
    const std::vector<std::size_t> ones(octets.size(), 1);
    // A Ping is answered unless the byte before it can begin no character.
    const unsigned first = octets.empty() ? 0U : static_cast<unsigned char>(octets[0]);
    const bool is_over = (first > 0x7F && first < 0xC2) || first > 0xF4;
    const std::string in_two = fragments(1, octets, {1}, ping());
    cases.push_back({"6", "in one frame", text(octets) + kBye, due});
    cases.push_back({"6", "a byte a frame", fragments(1, octets, ones) + kBye, due});
    cases.push_back({"6", "with a Ping", in_two + kBye, (is_over ? "" : pong_back()) + due});
    cases.push_back({"6", "as binary", binary(octets) + kBye, binary_back(octets) + kByeBack});
}

TEST(SessionCases, family_6_utf_8) {
    const std::string no = refused(Violation::kTextNotUtf8);
    std::vector<Case> cases;
    for (const std::string_view octets : kTexts) {
        add_cases(cases, std::string(octets), text_back(octets) + kByeBack);
    }
    for (const std::string_view octets : kNoTexts) add_cases(cases, std::string(octets), no);
    // 6.1, nothing in three frames, and something between two that are empty.
    cases.push_back(
        {"6.1.2", "empty frames", fragments(1, "", {0, 0}) + kBye, text_back("") + kByeBack});
    cases.push_back({"6.1.3", "empty around", fragments(1, "middle", {0, 6}) + kBye,
                     text_back("middle") + kByeBack});
    // A Ping behind the fault is not answered: the connection has failed before.
    cases.push_back({"6.4.1", "fail fast", client_frame(0x01, kGreek + "\xF4\x90") + ping(), no});
    // That the first character is cut shows only with the next one.
    cases.push_back({"6.4.2", "fail fast, in the next frame",
                     client_frame(0x01, kGreek + "\xF4") + ping("?") + client_frame(0x00, "\x90"),
                     pong_back("?") + no});
    check(cases);
}

TEST(SessionCases, family_7_closing) {
    const std::string most(123, '*');
    const std::string utf8 = refused(Violation::kCloseReasonNotUtf8);
    std::vector<Case> cases = {
        {"7.1.1", "after a message", text("Hello") + kBye, text_back("Hello") + kByeBack},
        {"7.1.2", "twice", kBye + kBye, kByeBack},
        {"7.1.3", "then a Ping", kBye + ping(), kByeBack},
        {"7.1.4", "then text", kBye + text("Hello"), kByeBack},
        {"7.1.5", "within a message", client_frame(0x01, "a") + kBye + client_frame(0x80, "b"),
         kByeBack},
        {"7.1.6", "after a large message", text(std::string(262144, '*')) + kBye + ping(),
         text_back(std::string(262144, '*')) + kByeBack},
        {"7.3.1", "without payload", client_frame(0x88, ""), server_frame(0x88, "")},
        {"7.3.2", "one byte", client_frame(0x88, "a"), refused(Violation::kCloseTooShort)},
        {"7.3.3", "a code", close_with(1000), close_back(1000)},
        {"7.3.4", "a code and a reason", close_with(1000, "Hello"), close_back(1000)},
        {"7.3.5", "the longest reason", close_with(1000, most), close_back(1000)},
        {"7.3.6", "a reason too long", close_with(1000, most + "x"),
         refused(Violation::kControlTooLong)},
        {"7.5.1", "a reason that is no UTF-8", close_with(1000, kGreek + "\xED\xA0\x80 "), utf8},
        {"7.5.1", "a reason that is cut", close_with(1000, kGreek + "\xCE"), utf8},
    };
    for (const unsigned code : {1000U, 1001U, 1002U, 1003U, 1007U, 1008U, 1009U, 1010U, 1011U,
                                3000U, 3999U, 4000U, 4999U}) {
        cases.push_back({"7.7", "a good code", close_with(code), close_back(code)});
    }
    for (const unsigned code : {0U, 1U, 999U, 1004U, 1005U, 1006U, 1012U, 1013U, 1014U, 1015U,
                                1016U, 1100U, 2000U, 2999U, 5000U, 65535U}) {
        cases.push_back({"7.9", "a code that may not be", close_with(code, "x"),
                         refused(Violation::kCloseCode)});
    }
    check(cases);
}

std::string octets_of(std::size_t size, unsigned seed) {
    Random random(seed);
    std::string out(size, '\0');
    for (char& c : out) c = static_cast<char>(random());
    return out;
}

// Messages of up to 4 MiB whole, in frames and in parts; the longest that may be, and one byte
// more.
TEST(SessionCases, family_9_limits) {
    for (const std::size_t size :
         {std::size_t{65536}, std::size_t{1} << 20, std::size_t{4} << 20}) {
        const std::string payload = octets_of(size, 9);
        const std::string due = binary_back(payload) + kByeBack;
        const std::string in_one = binary(payload) + kBye;
        const std::string in_frames =
            fragments(2, payload, std::vector<std::size_t>(size / 16384, 16384)) + kBye;
        for (const std::size_t part : {std::size_t{64}, std::size_t{1300}, std::size_t{65536}}) {
            if (size > 65536 && part == 64) continue;
            LAW(listen(in_one, {part}).sent == due, << size << " by " << part);
            LAW(listen(in_frames, {part}).sent == due, << size << " by " << part);
        }
    }
    SessionSetting setting;
    setting.settings.limits = {1000, 1500};
    const std::string fits = octets_of(1500, 1);
    check(
        {
            {"9", "the longest frame", binary(fits.substr(0, 1000)) + kBye,
             binary_back(fits.substr(0, 1000)) + kByeBack},
            {"9", "a longer frame", binary(fits.substr(0, 1001)) + kBye,
             refused(Violation::kFrameTooLarge)},
            {"9", "the longest message", fragments(2, fits, {700, 799}) + kBye,
             binary_back(fits) + kByeBack},
            {"9", "a longer message", fragments(2, fits + "x", {700, 800}) + kBye,
             refused(Violation::kMessageTooLarge)},
        },
        setting);
    // 9.7 and 9.8: a thousand messages, one behind the other.
    for (const std::size_t size : {0U, 16U, 64U, 256U, 1024U}) {
        std::string sent;
        std::string due;
        for (unsigned i = 0; i < 1000; ++i) {
            const std::string payload(size, static_cast<char>('a' + i % 26));
            sent += i % 2 == 0 ? text(payload) : binary(payload);
            due += i % 2 == 0 ? text_back(payload) : binary_back(payload);
        }
        LAW(listen(sent, {sent.size()}).sent == due, << size);
        LAW(listen(sent, {1460}).sent == due, << size);
    }
}

TEST(SessionCases, family_10_fragments_of_one_size) {
    const std::string payload(65536, '*');
    const std::string sent = fragments(1, payload, std::vector<std::size_t>(50, 1300)) + kBye;
    for (const std::size_t part : {std::size_t{1}, std::size_t{1306}, sent.size()}) {
        LAW(listen(sent, {part}).sent == text_back(payload) + kByeBack, << part);
    }
}

// A client of permessage-deflate: what it sends compressed, and what it reads.
class Peer {
  public:
    // It compresses what the server decompresses, so the two sides are exchanged.
    explicit Peer(const DeflateParameters& agreed)
        : deflater_({agreed.client_no_context_takeover, agreed.server_no_context_takeover,
                     agreed.client_max_window_bits, agreed.server_max_window_bits},
                    6),
          inflater_({agreed.client_no_context_takeover, agreed.server_no_context_takeover,
                     agreed.client_max_window_bits, agreed.server_max_window_bits}) {}
    std::string payload(std::string_view message) {
        MessageBuffer out;
        LAW(deflater_.deflate(message, out));
        return std::string(out.view());
    }
    // Takes one frame of the server from the front.
    std::string message(std::string_view& octets) {
        const unsigned first = static_cast<unsigned char>(octets[0]);
        const unsigned length = static_cast<unsigned char>(octets[1]);
        std::size_t size = length;
        const std::size_t more = length == 126 ? 2 : (length == 127 ? 8 : 0);
        if (more != 0) size = 0;
        for (std::size_t i = 2; i < 2 + more; ++i) {
            size = size << 8 | static_cast<unsigned char>(octets[i]);
        }
        const std::string_view payload = octets.substr(2 + more, size);
        octets.remove_prefix(2 + more + size);
        if ((first & 0x40) == 0) return std::string(payload);
        MessageBuffer out;
        LAW(inflater_.take(payload, out, 1U << 24) == Violation::kNone);
        LAW(inflater_.finish(out, 1U << 24) == Violation::kNone);
        return std::string(out.view());
    }

  private:
    MessageDeflater deflater_;
    MessageInflater inflater_;
};

SessionSetting compressed(const DeflateParameters& agreed) {
    SessionSetting setting;
    setting.agreed = agreed;
    setting.settings.deflate.size_min = 0;
    return setting;
}

// What is easy to compress, what is not, and what lies between.
std::string message_of(std::size_t size, unsigned kind) {
    if (kind == 0) return std::string(size, '*');
    Random random(static_cast<unsigned>(size));
    std::string out;
    while (out.size() < size) {
        out += kind == 1 ? "{\"id\": " + std::to_string(random() % 1000) + "}, "
                         : std::string(1, static_cast<char>('!' + random() % 90));
    }
    return out.substr(0, size);
}

void check_compressed(const DeflateParameters& agreed, std::size_t size, unsigned count) {
    Peer peer(agreed);
    std::vector<std::string> messages;
    std::string sent;
    for (unsigned i = 0; i < count; ++i) {
        messages.push_back(message_of(size + i % 7, i % 3));
        const std::string payload = peer.payload(messages.back());
        // Every other one in three frames; a Ping between them is not compressed.
        sent += i % 2 == 0 ? client_frame(0xC1, payload)
                           : fragments(0x41, payload, {payload.size() / 3, payload.size() / 3});
    }
    std::string once;
    for (const std::size_t part : {std::size_t{1}, std::size_t{1000}, sent.size()}) {
        if (part == 1 && sent.size() > 20000) continue;
        const Heard heard = listen(sent, {part}, compressed(agreed));
        LAW(heard.events.size() == count);
        for (unsigned i = 0; i < count && i < heard.events.size(); ++i) {
            LAW(heard.events[i].message == messages[i], << size);
        }
        if (!once.empty()) LAW(heard.sent == once);
        once = heard.sent;
    }
    std::string_view rest = once;
    for (const std::string& message : messages) LAW(peer.message(rest) == message, << size);
    LAW(rest.empty());
}

TEST(SessionCases, family_12_compressed_messages) {
    for (const std::size_t size : {0U, 1U, 16U, 64U, 256U, 1024U, 4096U, 8192U, 131072U}) {
        check_compressed({}, size, size > 10000 ? 12 : 100);
    }
}

TEST(SessionCases, family_13_every_parameter) {
    for (const bool server_forgets : {false, true}) {
        for (const bool client_forgets : {false, true}) {
            for (const unsigned server_bits : {8U, 9U, 12U, 15U}) {
                for (const unsigned client_bits : {8U, 9U, 15U}) {
                    check_compressed(
                        {server_forgets, client_forgets, static_cast<std::uint8_t>(server_bits),
                         static_cast<std::uint8_t>(client_bits)},
                        2000, 9);
                }
            }
        }
    }
}

TEST(SessionCases, compressed_streams_that_may_not_be) {
    const auto refuse = [](std::string_view payload) { return client_frame(0xC1, payload); };
    MessageBuffer bomb;
    MessageDeflater deflater({}, 9);
    LAW(deflater.deflate(std::string(20000, '*'), bomb));
    SessionSetting setting = compressed({});
    setting.settings.limits = {100000, 10000};
    const std::string large(bomb.view());
    LAW(large.size() < 100);
    MessageBuffer cut;
    MessageDeflater second({}, 9);
    LAW(second.deflate("what is cut before it ends", cut));
    const std::string whole(cut.view());
    MessageBuffer wrong;
    MessageDeflater third({}, 9);
    LAW(third.deflate("text and \xFF", wrong));
    MessageBuffer half;
    MessageDeflater fourth({}, 9);
    LAW(fourth.deflate("text and \xE2\x82", half));
    const std::string hello("\xF2\x48\xCD\xC9\xC9\x07\x00", 7);  // RFC 7692 7.2.3.1
    check(
        {
            {"12", "the example", refuse(hello) + kBye, server_frame(0xC1, hello) + kByeBack},
            {"12", "the example in two frames",
             client_frame(0x41, hello.substr(0, 3)) + client_frame(0x80, hello.substr(3)) + kBye,
             server_frame(0xC1, hello) + kByeBack},
            {"12", "a bomb", refuse(large), refused(Violation::kMessageTooLarge)},
            {"12", "a bomb in frames", fragments(0x41, large, {5, 5, 20}),
             refused(Violation::kMessageTooLarge)},
            {"12", "no such block", refuse("\x07"), refused(Violation::kDeflateSyntax)},
            {"12", "a message that is cut", refuse(whole.substr(0, whole.size() - 4)),
             refused(Violation::kDeflateNotFinished)},
            {"12", "no UTF-8", refuse(wrong.view()), refused(Violation::kTextNotUtf8)},
            {"12", "text that is cut", refuse(half.view()), refused(Violation::kTextNotUtf8)},
            {"12", "RSV1 in a continuation",
             client_frame(0x41, hello.substr(0, 3)) + client_frame(0xC0, hello.substr(3)),
             refused(Violation::kReservedBit)},
            {"12", "RSV1 in a Ping", client_frame(0xC9, ""), refused(Violation::kReservedBit)},
            {"12", "plain between compressed", refuse(hello) + text("plain") + kBye,
             server_frame(0xC1, hello) + server_frame(0xC1, {"\x2A\xC8\x49\xCC\xCC\x03\x00", 7}) +
                 kByeBack},
        },
        setting);
}

}  // namespace
}  // namespace httpmark::websocket
