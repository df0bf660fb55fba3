#include "websocket/handshake.hpp"

#include <set>
#include <string>
#include <vector>

#include "http/syntax.hpp"
#include "laws.hpp"
#include "scan/scan.hpp"

namespace httpmark::websocket {
namespace {

constexpr std::string_view kSampleKey = "dGhlIHNhbXBsZSBub25jZQ==";
const std::string kSubprotocols[] = {"chat", "soap"};

// A request read by the server's own parser, and what the handshake makes of it.
Handshake judged(const std::string& request, DeflateSettings deflate = {}) {
    HeadParser parser;
    const ParseResult result = parser.parse(request.data(), request.size(), Limits{},
                                            Strictness::kStrict, *best_scan_kernel());
    LAW(result.verdict == Verdict::kAccepted, << visible(request));
    const RequestHead& head = parser.head();
    const std::string_view fields =
        std::string_view(request).substr(head.fields_begin, result.offset - head.fields_begin);
    return judge_handshake(head, fields, {kSubprotocols, deflate});
}

// The handshake of RFC 6455 1.2, with lines left out and others added.
std::string request(std::string_view without = {}, std::string_view with = {},
                    std::string_view first = "GET /chat HTTP/1.1") {
    std::string out = std::string(first) + "\r\nHost: server.example.com\r\n";
    for (const std::string_view line :
         {"Upgrade: websocket", "Connection: Upgrade",
          "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==", "Sec-WebSocket-Version: 13"}) {
        if (without.empty() || !line.starts_with(without)) out.append(line) += "\r\n";
    }
    return out.append(with) + "\r\n";
}

std::string field_lines(const Handshake& handshake) {
    std::string text;
    for (const Field& field : handshake_fields(handshake)) {
        LAW(field_is_safe(field));
        text.append(field.name).append(": ").append(field.value).append("\r\n");
    }
    return text;
}

Refusal refusal(const std::string& text) {
    return judged(text).refusal;
}

TEST(Handshake, the_example_of_the_rfc) {
    const std::string text = request({},
                                     "Origin: http://example.com\r\n"
                                     "Sec-WebSocket-Protocol: chat, superchat\r\n");
    const Handshake handshake = judged(text);
    LAW(handshake.refusal == Refusal::kNone);
    LAW(handshake.origin == "http://example.com" && handshake.subprotocol == "chat");
    LAW(!handshake.deflate);
    LAW(field_lines(handshake) ==
        "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"
        "Sec-WebSocket-Protocol: chat\r\n");
}

TEST(Handshake, every_refusal_has_a_name_a_status_and_a_clause) {
    std::set<std::string> names;
    for (unsigned i = 1; i < static_cast<unsigned>(Refusal::kCount); ++i) {
        const Refusal one = static_cast<Refusal>(i);
        const RefusalRow& row = refusal_row(one);
        LAW(names.insert(row.name).second, << row.name);
        LAW(row.status == 400 || row.status == 426, << row.name);
        LAW(std::string_view(row.clause).starts_with("RFC "), << row.name);
        // RFC 9110 15.5.22, RFC 6455 4.4.
        bool upgrade = false;
        bool version = false;
        for (const Field& field : refusal_fields(one)) {
            LAW(field_is_safe(field));
            upgrade |= field.name == "Upgrade" && field.value == "websocket";
            version |= field.name == "Sec-WebSocket-Version" && field.value == "13";
        }
        LAW((upgrade && version) == (row.status == 426), << row.name);
        LAW(!row.is_no_offer || row.status == 426, << row.name);
    }
}

// Each refusal by a request with one thing wrong.
TEST(Handshake, every_refusal_has_a_request) {
    struct Row {
        Refusal refusal;
        std::string text;
    };
    const std::string key = "Sec-WebSocket-Key: ";
    const std::vector<Row> rows = {
        {Refusal::kNotHttp11, request({}, {}, "GET /chat HTTP/1.0")},
        {Refusal::kUpgradeMissing, request("Upgrade")},
        {Refusal::kUpgradeOther, request("Upgrade", "Upgrade: h2c\r\n")},
        {Refusal::kUpgradeOther, request("Upgrade", "Upgrade: websocket/13\r\n")},
        {Refusal::kUpgradeOther, request("Upgrade", "Upgrade: web socket\r\n")},
        {Refusal::kMethod, request({}, {}, "POST /chat HTTP/1.1")},
        {Refusal::kMethod, request({}, {}, "HEAD /chat HTTP/1.1")},
        {Refusal::kConnection, request("Connection")},
        {Refusal::kConnection, request("Connection", "Connection: keep-alive\r\n")},
        {Refusal::kContent, request({}, "Content-Length: 5\r\n")},
        {Refusal::kContent, request({}, "Transfer-Encoding: chunked\r\n")},
        {Refusal::kVersionMissing, request("Sec-WebSocket-V")},
        {Refusal::kVersionRepeated, request({}, "Sec-WebSocket-Version: 13\r\n")},
        {Refusal::kVersionOther, request("Sec-WebSocket-V", "Sec-WebSocket-Version: 12\r\n")},
        {Refusal::kVersionOther, request("Sec-WebSocket-V", "Sec-WebSocket-Version: 13, 8\r\n")},
        {Refusal::kVersionOther, request("Sec-WebSocket-V", "Sec-WebSocket-Version: 013\r\n")},
        {Refusal::kVersionOther, request("Sec-WebSocket-V", "Sec-WebSocket-Version:\r\n")},
        {Refusal::kKeyMissing, request("Sec-WebSocket-K")},
        {Refusal::kKeyRepeated, request({}, key + std::string(kSampleKey) + "\r\n")},
        {Refusal::kKeySyntax, request("Sec-WebSocket-K", key + "\r\n")},
        {Refusal::kKeySyntax, request("Sec-WebSocket-K", key + "MTIzNDU2Nzg5MDEyMzQ1\r\n")},
        {Refusal::kSubprotocolSyntax, request({}, "Sec-WebSocket-Protocol: a b\r\n")},
        {Refusal::kSubprotocolSyntax, request({}, "Sec-WebSocket-Protocol: ,\r\n")},
        {Refusal::kSubprotocolSyntax, request({}, "Sec-WebSocket-Protocol:\r\n")},
        {Refusal::kSubprotocolRepeated, request({}, "Sec-WebSocket-Protocol: a, b, a\r\n")},
        {Refusal::kSubprotocolRepeated,
         request({}, "Sec-WebSocket-Protocol: a\r\nSec-WebSocket-Protocol: a\r\n")},
        {Refusal::kExtensionSyntax, request({}, "Sec-WebSocket-Extensions: a;\r\n")},
        {Refusal::kOriginRepeated, request({}, "Origin: http://a\r\nOrigin: http://b\r\n")},
    };
    std::set<Refusal> met;
    for (const Row& row : rows) {
        const Refusal found = refusal(row.text);
        LAW(found == row.refusal, << visible(row.text) << " is " << refusal_row(found).name);
        met.insert(row.refusal);
    }
    LAW(met.size() + 1 == static_cast<std::size_t>(Refusal::kCount));
}

TEST(Handshake, what_clients_may_write) {
    for (const std::string& text : {
             request("Upgrade", "Upgrade: WebSocket\r\n"),
             request("Upgrade", "upgrade: foo, websocket\r\n"),
             request("Upgrade", "Upgrade: h2c\r\nUpgrade: , websocket ,\r\n"),
             request("Connection", "Connection: keep-alive, Upgrade\r\n"),
             request("Connection", "Connection: keep-alive\r\nconnection: UPGRADE\r\n"),
             request("Sec-WebSocket-V", "SEC-WEBSOCKET-VERSION: \t 13 \t\r\n"),
             request({}, "Content-Length: 0\r\n"),
             request({}, "Sec-WebSocket-Protocol: a,,b\r\n"),
             request({}, "Sec-WebSocket-Extensions: x\r\nSec-WebSocket-Extensions: y\r\n"),
             request({}, {}, "GET /chat HTTP/1.2"),
         }) {
        LAW(refusal(text) == Refusal::kNone, << visible(text));
    }
}

std::string key_of(const std::string& octets) {
    constexpr char kAlphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    std::string out;
    for (std::size_t i = 0; i < octets.size(); i += 3) {
        unsigned bits = 0;
        for (std::size_t k = i; k < i + 3; ++k) {
            bits = bits << 8 | (k < octets.size() ? static_cast<unsigned char>(octets[k]) : 0U);
        }
        for (unsigned k = 0; k < 4; ++k) {
            out += i * 8 + k * 6 < octets.size() * 8 ? kAlphabet[bits >> (18 - 6 * k) & 63] : '=';
        }
    }
    return out;
}

// A key is what an encoder makes of 16 bytes, and nothing else.
TEST(Handshake, keys) {
    LAW(key_of("the sample nonce") == kSampleKey);
    const auto key = [](std::string_view text) {
        return refusal(
            request("Sec-WebSocket-K", "Sec-WebSocket-Key: " + std::string(text) + "\r\n"));
    };
    Random random(5);
    for (unsigned round = 0; round < 300; ++round) {
        std::string octets(16, '\0');
        for (char& c : octets) c = static_cast<char>(random());
        LAW(key(key_of(octets)) == Refusal::kNone, << key_of(octets));
    }
    for (std::size_t size = 0; size < 40; ++size) {
        LAW((key(key_of(std::string(size, 'k'))) == Refusal::kNone) == (size == 16), << size);
    }
    // Every byte at every place.
    for (std::size_t at = 0; at < kSampleKey.size(); ++at) {
        for (unsigned c = 0x21; c < 256; ++c) {
            if (c == 0x7F) continue;
            std::string text(kSampleKey);
            text[at] = static_cast<char>(c);
            const bool is_alphabet = is_alpha(static_cast<unsigned char>(c)) ||
                                     is_digit(static_cast<unsigned char>(c)) || c == '+' ||
                                     c == '/';
            const bool good = at < 21    ? is_alphabet
                              : at == 21 ? c == 'A' || c == 'Q' || c == 'g' || c == 'w'
                                         : c == '=';
            LAW((key(text) == Refusal::kNone) == good, << at << " " << c);
        }
    }
}

// The client's order counts, and case does.
TEST(Handshake, subprotocols) {
    const auto chosen = [](const std::string& list) {
        // The view is of the request, which has to live as long.
        const std::string text = request({}, "Sec-WebSocket-Protocol: " + list + "\r\n");
        const Handshake handshake = judged(text);
        LAW(handshake.refusal == Refusal::kNone, << list);
        return std::string(handshake.subprotocol);
    };
    LAW(chosen("chat") == "chat");
    LAW(chosen("soap, chat") == "soap");
    LAW(chosen("x, chat, soap") == "chat");
    LAW(chosen("Chat").empty() && chosen("x").empty());
    LAW(chosen("x\r\nSec-WebSocket-Protocol: soap") == "soap");
    LAW(field_lines(judged(request())).find("Protocol:") == std::string::npos);
}

TEST(Handshake, deflate_is_negotiated_where_it_is_turned_on) {
    const std::string text =
        request({}, "Sec-WebSocket-Extensions: permessage-deflate; server_max_window_bits=10\r\n");
    LAW(!judged(text).deflate && judged(text).extensions.empty());
    DeflateSettings settings;
    settings.enabled = true;
    const Handshake handshake = judged(text, settings);
    LAW(handshake.deflate && handshake.deflate->server_max_window_bits == 10);
    LAW(field_lines(handshake).ends_with(
        "\r\nSec-WebSocket-Extensions: permessage-deflate; server_max_window_bits=10\r\n"));
}

}  // namespace
}  // namespace httpmark::websocket
