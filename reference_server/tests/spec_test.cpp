// The published parser specification's 21 scenarios, by name, re-expressed as laws over generated
// inputs. Every head goes through parse_every_way(): at once, byte by byte, every cut in two,
// every kernel, 64 alignments, an unreadable page after it. Bodies go through talk_every_way().
#include "spec.hpp"

#include <string>
#include <vector>

#include "http/syntax.hpp"

namespace httpmark {
namespace {

TEST(Specification, S01_only_a_host_and_no_body_methods) {
    for (const char* method : {"GET", "PUT", "POST", "PATCH", "DELETE", "HEAD", "OPTIONS"}) {
        const std::string input = std::string(method) + " /a HTTP/1.1\r\n" + kHost + "\r\n";
        expect_accepted(input);
        LAW(judged(parse_every_way(input)) == Reason::kNone);
    }
    for (int c = 0; c < 256; ++c) {
        const std::string input =
            "G" + std::string(1, static_cast<char>(c)) + "T /a HTTP/1.1\r\n" + kHost + "\r\n";
        if (is_tchar(static_cast<unsigned char>(c))) {
            expect_accepted(input);
            LAW(judged(parse_every_way(input)) ==
                (c == 'E' ? Reason::kNone : Reason::kMethodUnknown));
        } else if (c == ' ') {
            // "G T /a ...": a target "T", then no version.
            expect_rejected(input, Reason::kVersionSyntax, 4);
        } else {
            expect_rejected(input, Reason::kMethodOctet, 1);
        }
    }
}

TEST(Specification, S01_only_a_host_and_no_body_path_and_query_octets) {
    for (int c = 0; c < 256; ++c) {
        const auto o = static_cast<unsigned char>(c);
        const std::string one(1, static_cast<char>(c));
        for (const std::string& before :
             {std::string("/"), std::string("/hello"), std::string("/a?"), std::string("/a?b=")}) {
            const std::string input = get(before + one + "x");
            const std::size_t at = 4 + before.size();
            if (o == '%') {
                expect_rejected(input, Reason::kTargetPercent, at + 1);
            } else if (o == ' ') {
                expect_rejected(input, Reason::kVersionSyntax, at + 1);
            } else if (is_target_char(o)) {
                expect_accepted(input);
            } else {
                expect_rejected(input, Reason::kTargetOctet, at);
            }
        }
    }
}

TEST(Specification, S01_only_a_host_and_no_body_percent_pairs_at_offsets_0_to_128) {
    for (std::size_t offset = 0; offset <= 128; ++offset) {
        for (const char* place : {"/", "/?"}) {
            const std::string before = std::string(place) + std::string(offset, 'a');
            expect_quick(get(before + "%4F" + "b"), Reason::kNone, 0);
            expect_quick(get(before + "%zF"), Reason::kTargetPercent, 4 + before.size() + 1);
            expect_quick(get(before + "%4G"), Reason::kTargetPercent, 4 + before.size() + 2);
            expect_quick(get(before + "%"), Reason::kTargetPercent, 4 + before.size() + 1);
            expect_quick(get(before + "%4"), Reason::kTargetPercent, 4 + before.size() + 2);
            expect_quick(get(before + "%%41"), Reason::kTargetPercent, 4 + before.size() + 1);
            for (const char bad : {'\x01', '"', '\x7f', '\xff', '#', '\r', '\n', '\t'}) {
                expect_quick(get(before + bad), Reason::kTargetOctet, 4 + before.size());
            }
        }
    }
}

TEST(Specification, S01_only_a_host_and_no_body_every_percent_pair) {
    for (int a = 0; a < 256; ++a) {
        for (int b = 0; b < 256; ++b) {
            const std::string pair{'%', static_cast<char>(a), static_cast<char>(b)};
            const bool first = is_hexdig(static_cast<unsigned char>(a));
            const bool second = is_hexdig(static_cast<unsigned char>(b));
            const std::size_t bad = first ? 2 : 1;
            for (const std::string& before : {std::string("/hello"), std::string("/hello?")}) {
                expect_quick(get(before + pair),
                             first && second ? Reason::kNone : Reason::kTargetPercent,
                             4 + before.size() + bad);
            }
        }
    }
}

TEST(Specification, S01_only_a_host_and_no_body_versions) {
    const std::string rest = "\r\n" + kHost + "\r\n";
    for (const char* version : {"HTTP/1.1", "HTTP/1.0", "HTTP/1.2", "HTTP/1.9"}) {
        expect_accepted(std::string("GET /a ") + version + rest);
    }
    for (const char* version : {"HTTP/0.9", "HTTP/2.0", "HTTP/3.0", "HTTP/9.9"}) {
        expect_rejected(std::string("GET /a ") + version + rest, Reason::kVersionMajor, 16);
    }
    struct Row {
        const char* version;
        std::size_t at;
    };
    for (const Row& row :
         std::vector<Row>{{"http/1.1", 0},  {"Http/1.1", 1},  {"HTTP", 4},      {"HTTP/", 5},
                          {"HTTP/1", 6},    {"HTTP/1.", 7},   {"HTTP/.1", 5},   {"HTTP/11.1", 6},
                          {"HTTP/1,1", 6},  {"HTTP/x.1", 5},  {"HTTP/1.x", 7},  {"HTTP/+1.1", 5},
                          {"HTTP/ 1.1", 5}, {"HTTP /1.1", 4}, {"HTTPS/1.1", 4}, {"XHTTP/1.1", 0},
                          {"HTTP//1.1", 5}, {"HTP/1.1", 2},   {"HTTP-1.1", 4},  {"", 0},
                          {" HTTP/1.1", 0}}) {
        expect_rejected(std::string("GET /a ") + row.version + rest, Reason::kVersionSyntax,
                        7 + row.at);
    }
    for (const char* version : {"HTTP/1.10", "HTTP/1.1x", "HTTP/1.1 ", "HTTP/1.1\t", "HTTP/1.01"}) {
        const std::string text(version);
        expect_rejected("GET /a " + text + rest, Reason::kVersionLineEnd, 15);
    }
    expect_rejected("GET /a HTTP/1.1\n" + kHost + "\r\n", Reason::kVersionLineEnd, 15);
    expect_rejected("GET /a HTTP/1.1\r\r\n" + kHost + "\r\n", Reason::kVersionLineEnd, 16);
    expect_rejected("GET /a HTTP/1.1\rX" + kHost + "\r\n", Reason::kVersionLineEnd, 16);
}

TEST(Specification, S01_only_a_host_and_no_body_request_lines) {
    const std::string rest = "\r\n" + kHost + "\r\n";
    expect_rejected("GET  /a HTTP/1.1" + rest, Reason::kTargetEmpty, 4);
    expect_rejected("GET /a  HTTP/1.1" + rest, Reason::kVersionSyntax, 7);
    expect_rejected(" GET /a HTTP/1.1" + rest, Reason::kMethodEmpty, 0);
    expect_rejected("\tGET /a HTTP/1.1" + rest, Reason::kMethodOctet, 0);
    expect_rejected("GET\t/a HTTP/1.1" + rest, Reason::kMethodOctet, 3);
    expect_rejected("GET /a\tHTTP/1.1" + rest, Reason::kTargetOctet, 6);
    expect_rejected("GET /a x HTTP/1.1" + rest, Reason::kVersionSyntax, 7);
    expect_rejected("GET" + rest, Reason::kMethodOctet, 3);
    expect_rejected("GET /a" + rest, Reason::kTargetOctet, 6);
    expect_rejected("GET \r\n\r\n", Reason::kTargetOctet, 4);
    expect_rejected("GET a HTTP/1.1" + rest, Reason::kTargetForm, 15);
    expect_rejected("GET ?q HTTP/1.1" + rest, Reason::kTargetForm, 16);
    expect_rejected("GET /a#f HTTP/1.1" + rest, Reason::kTargetOctet, 6);
    expect_rejected("\r\n\r\nGET /a HTTP/1.1" + rest, Reason::kMethodOctet, 2);
    expect_rejected("\nGET /a HTTP/1.1" + rest, Reason::kMethodOctet, 0);
    expect_rejected("\rGET /a HTTP/1.1" + rest, Reason::kBareCrBeforeRequest, 1);
    expect_accepted("\r\nGET /a HTTP/1.1" + rest);
}

TEST(Specification, S02_headers_and_no_body) {
    for (int c = 0; c < 256; ++c) {
        const auto o = static_cast<unsigned char>(c);
        const std::string one(1, static_cast<char>(c));
        const std::size_t line = 21 + kHost.size();
        // A one-octet name, and the byte first, inside and last in a longer one.
        for (const std::string& name : {one, one + "ame", "na" + one + "me", "name" + one}) {
            const std::size_t at = name.size() == 1 ? 0 : name.find(one, name[0] == 'n' ? 1 : 0);
            const std::size_t where = name == "n" || name == "name" || is_tchar(o) ? 0 : at;
            const std::string input = with_field(name + ": value");
            const Parsed parsed = parse_every_way(input);
            if (is_tchar(o)) {
                LAW(parsed.result.verdict == Verdict::kAccepted, << visible(input));
            } else if (c == ':') {
                LAW((parsed.result.verdict == Verdict::kRejected) == (where == 0),
                    << visible(input));
            } else {
                LAW(parsed.result.verdict == Verdict::kRejected &&
                        (parsed.result.offset == line + where ||
                         (c == '\r' &&
                          parsed.result.offset == line + where + (where == 0 ? 1 : 0))),
                    << visible(input) << parsed.result.offset);
            }
        }
        for (const std::string& value : {one, one + "b", "a" + one + "b", "a" + one}) {
            const std::string input = with_field("name: " + value);
            const Parsed parsed = parse_every_way(input);
            const bool good = !is_ctl(o) || c == '\t';
            LAW((parsed.result.verdict == Verdict::kAccepted) == good, << visible(input));
        }
    }
    for (const char* line : {"name:", "name: ", "name:\t \t", "name:value", "a: b\r\nc: d"}) {
        expect_accepted(with_field(line));
    }
}

TEST(Specification, S02_headers_and_no_body_hosts) {
    LAW(judged(parse_every_way("GET / HTTP/1.1\r\n\r\n")) == Reason::kHostMissing);
    LAW(judged(parse_every_way("GET / HTTP/1.0\r\n\r\n")) == Reason::kNone);
    LAW(judged(parse_every_way("GET / HTTP/1.1\r\n" + kHost + kHost + "\r\n")) ==
        Reason::kHostRepeated);
    LAW(judged(parse_every_way("GET / HTTP/1.0\r\n" + kHost + kHost + "\r\n")) ==
        Reason::kHostRepeated);
    LAW(judged(parse_every_way("GET / HTTP/1.1\r\nHost:\r\n\r\n")) == Reason::kHostEmpty);
}

TEST(Specification, S03_spaces_around_content_length) {
    for (const char* value : {"5", " 5", "  5", "\t5", "5 ", "5\t", " \t 5 \t "}) {
        expect_content(post("Content-Length:" + std::string(value) + "\r\n", "hello"), "hello");
    }
    for (const char* value : {" 5 5", " 5 0", " 5\t5"}) {
        expect_status(post("Content-Length:" + std::string(value) + "\r\n", "hello"), {400});
    }
}

TEST(Specification, S04_content_length_holds_only_digits) {
    for (int c = 0; c < 256; ++c) {
        if (is_digit(static_cast<unsigned char>(c))) continue;
        const std::string one(1, static_cast<char>(c));
        const bool space = c == ' ' || c == '\t';
        // The byte before, inside and after the digits, with as much content as a lenient
        // reading would take.
        expect_status(post("Content-Length: 1" + one + "2\r\n", std::string(12, 'a')), {400});
        if (!space) {
            expect_status(post("Content-Length: " + one + "5\r\n", "hello"), {400});
            expect_status(post("Content-Length: 5" + one + "\r\n", "hello"), {400});
        }
    }
    for (const char* value : {"+5", "-5", "0x5", "5.0", "5e0", "5,", ",5", "5;", "\"5\"", "five"}) {
        expect_status(post("Content-Length: " + std::string(value) + "\r\n", "hello"), {400});
    }
    expect_content(post("Content-Length: 0005\r\n", "hello"), "hello");
}

TEST(Specification, S05_content_length_of_more_than_19_digits) {
    expect_status(post("Content-Length: 9223372036854775807\r\n", ""), {413});
    expect_status(post("Content-Length: 9223372036854775808\r\n", ""), {413});
    expect_status(post("Content-Length: 18446744073709551616\r\n", ""), {413});
    expect_status(post("Content-Length: 18446744073709551621\r\n", "hello"), {413});
    expect_status(post("Content-Length: " + std::string(200, '9') + "\r\n", ""), {413});
    expect_content(post("Content-Length: " + std::string(100, '0') + "5\r\n", "hello"), "hello");
}

TEST(Specification, S06_empty_content_length) {
    for (const char* value : {"", " ", "\t", " \t "}) {
        expect_status(post("Content-Length:" + std::string(value) + "\r\n", ""), {400});
    }
}

TEST(Specification, S07_repeated_content_length) {
    // The strictest choice of RFC 9112 6.3: also equal values are refused; rfc strictness takes
    // those and only those.
    ServerSettings rfc;
    rfc.strictness = Strictness::kRfc;
    const std::string line = "Content-Length: 5\r\n";
    expect_status(post(line + line, "hello"), {400});
    expect_status(post("Content-Length: 5, 5\r\n", "hello"), {400});
    expect_status(post(line + line, "hello"), {200}, rfc);
    expect_status(post(line + line + line, "hello"), {200}, rfc);
    expect_status(post("Content-Length: 5, 5\r\n", "hello"), {200}, rfc);
    for (const ServerSettings& settings : {ServerSettings(), rfc}) {
        expect_status(post(line + "Content-Length: 6\r\n", "hello!"), {400}, settings);
        expect_status(post("Content-Length: 6\r\n" + line, "hello!"), {400}, settings);
        expect_status(post("Content-Length: 5, 6\r\n", "hello!"), {400}, settings);
        expect_status(post(line + "Content-Length:\r\n", "hello"), {400}, settings);
        expect_status(post(line + "Content-Length: +5\r\n", "hello"), {400}, settings);
    }
}

TEST(Specification, S08_headers_and_body) {
    for (const std::size_t size :
         {1U, 2U, 15U, 16U, 17U, 31U, 32U, 33U, 63U, 64U, 65U, 127U, 128U}) {
        std::string content;
        for (std::size_t i = 0; i < size; ++i) content += static_cast<char>(i % 251);
        expect_content(
            post("A: b\r\nContent-Length: " + std::to_string(size) + "\r\nC:\r\n", content),
            content);
        const std::string next = get("/hello");
        expect_status(post("Content-Length: " + std::to_string(size) + "\r\n", content) + next,
                      {200, 200});
    }
}

TEST(Specification, S09_takes_all_body_octets_already_there) {
    for (std::size_t there = 0; there <= 40; ++there) {
        Wire wire;
        const std::uint32_t id = wire.connect();
        const std::string content(40, 'b');
        wire.feed(id, post("Content-Length: 40\r\n", content.substr(0, there)));
        LAW(wire.sent(id).empty() == (there < 40));
        wire.feed(id, content.substr(there));
        LAW(statuses(wire.sent(id)) == std::vector<int>{200});
        LAW(content_of(wire.sent(id)) == content);
    }
}

TEST(Specification, S10_transfer_encoding_ends_in_bare_chunked) {
    const std::string content = "5\r\nhello\r\n0\r\n\r\n";
    for (const char* value : {"chunked", "CHUNKED", "cHuNkEd", " chunked ", "\tchunked\t",
                              ",chunked", "chunked,", ", ,chunked, ,"}) {
        expect_content(post("Transfer-Encoding:" + std::string(value) + "\r\n", content), "hello");
    }
    for (const char* value :
         {"", " ", ",", "identity", "gzip", "chunked, gzip", "xchunked", "chunkedx", "chunked;",
          "chunked;a=b", "chunked; a=\"b\"", "\"chunked\"", "chunked x", "@@, chunked",
          "chunked\x80", "gzip chunked", "chunked/1", "chunked, @"}) {
        expect_status(post("Transfer-Encoding: " + std::string(value) + "\r\n", content), {400});
    }
    for (const char* value :
         {"gzip, chunked", "identity, chunked", "gzip;q=1, chunked", "x;a=\"q\\\"\", chunked"}) {
        expect_status(post("Transfer-Encoding: " + std::string(value) + "\r\n", content), {501});
    }
    expect_status(
        "POST /body HTTP/1.0\r\n" + kHost + "Transfer-Encoding: chunked\r\n\r\n" + content, {400});
}

TEST(Specification, S11_transfer_encoding_with_content_length_is_refused) {
    const std::string content = "5\r\nhello\r\n0\r\n\r\n";
    const std::string te = "Transfer-Encoding: chunked\r\n";
    for (const std::string& fields :
         std::vector<std::string>{te + "Content-Length: 5\r\n", "Content-Length: 5\r\n" + te,
                                  te + "Content-Length: 0\r\n", te + "Content-Length: 15\r\n",
                                  "Transfer-Encoding:\r\nContent-Length: 5\r\n",
                                  "Transfer-Encoding: ,\r\nContent-Length: 5\r\n"}) {
        expect_status(post(fields, content), {400});
    }
}

TEST(Specification, S12_repeated_transfer_encoding_lines) {
    const std::string content = "5\r\nhello\r\n0\r\n\r\n";
    const std::string te = "Transfer-Encoding: chunked\r\n";
    expect_status(post(te + te, content), {400});
    expect_status(post("Transfer-Encoding: chunked, chunked\r\n", content), {400});
    expect_status(post(te + "Transfer-Encoding: gzip\r\n", content), {400});
    expect_status(post("Transfer-Encoding: gzip\r\n" + te, content), {501});
    expect_content(post("Transfer-Encoding:\r\n" + te, content), "hello");
}

TEST(Specification, S13_chunked_bodies_with_trailers) {
    expect_content(chunked("0\r\n\r\n"), "");
    expect_content(chunked("5\r\nhello\r\n0\r\n\r\n"), "hello");
    expect_content(chunked("1\r\nh\r\n4\r\nello\r\n000\r\n\r\n"), "hello");
    expect_content(chunked("00000000000000000005\r\nhello\r\n0\r\n\r\n"), "hello");
    expect_content(chunked("a\r\n0123456789\r\nA\r\n0123456789\r\n0\r\n\r\n"),
                   "01234567890123456789");
    for (const char* extension : {";a", ";a=b", ";a=\"b\"", ";a;b;c", " ;a", "\t; a = b",
                                  ";a=\"\\\"\"", ";a=\"\x80 ;\t\"", ";a =b;c"}) {
        expect_content(
            chunked("5" + std::string(extension) + "\r\nhello\r\n0" + extension + "\r\n\r\n"),
            "hello");
    }
    for (const char* trailers : {"", "A: b\r\n", "A:\r\nB: c\r\n", "A: \x80\t b \r\n"}) {
        expect_content(chunked("5\r\nhello\r\n0\r\n" + std::string(trailers) + "\r\n"), "hello");
    }
    for (const char* bad : {"\r\nhello\r\n0\r\n\r\n",
                            " 5\r\nhello\r\n0\r\n\r\n",
                            "5 \r\nhello\r\n0\r\n\r\n",
                            "5 x\r\nhello\r\n0\r\n\r\n",
                            "+5\r\nhello\r\n0\r\n\r\n",
                            "-5\r\nhello\r\n0\r\n\r\n",
                            "0x5\r\nhello\r\n0\r\n\r\n",
                            "5\nhello\r\n0\r\n\r\n",
                            "5\rhello\r\n0\r\n\r\n",
                            "5\r\nhello0\r\n\r\n",
                            "5\r\nhello\n0\r\n\r\n",
                            "5\r\nhello\rX0\r\n\r\n",
                            "5;\r\nhello\r\n0\r\n\r\n",
                            "5;a=\r\nhello\r\n0\r\n\r\n",
                            "5;a=\"b\r\nhello\r\n0\r\n\r\n",
                            "5;a=b c\r\nhello\r\n0\r\n\r\n",
                            "5;a \r\nhello\r\n0\r\n\r\n",
                            "5;=b\r\nhello\r\n0\r\n\r\n",
                            "5;a=\"\x01\"\r\nhello\r\n0\r\n\r\n",
                            "5g\r\nhello\r\n0\r\n\r\n",
                            "g\r\nhello\r\n0\r\n\r\n",
                            "5\r\nhello\r\n0\r\n A: b\r\n\r\n",
                            "5\r\nhello\r\n0\r\nA : b\r\n\r\n",
                            "5\r\nhello\r\n0\r\n: b\r\n\r\n",
                            "5\r\nhello\r\n0\r\nA\r\n\r\n",
                            "5\r\nhello\r\n0\r\nA: \x01\r\n\r\n",
                            "5\r\nhello\r\n0\r\nA: b\n\r\n",
                            "5\r\nhello\r\n0\r\nA: b\r\r\n",
                            "5\r\nhello\r\n0\r\n\n",
                            "5\r\nhello\r\n0\r\n\rX"}) {
        expect_status(chunked(bad), {400});
    }
    expect_status(chunked("ffffffffffffffff\r\n"), {413});
    expect_status(chunked("10000000000000005\r\nhello\r\n0\r\n\r\n"), {413});
    for (int c = 0; c < 256; ++c) {
        const std::string one(1, static_cast<char>(c));
        if (is_hexdig(static_cast<unsigned char>(c))) continue;
        expect_status(chunked(one + "5\r\nhello\r\n0\r\n\r\n"), {400});
    }
}

TEST(Specification, S14_expect_100_continue) {
    const std::string head = post("Expect: 100-continue\r\nContent-Length: 5\r\n", "");
    for (const char* value : {"100-continue", "100-CONTINUE", "100-continue, 100-continue"}) {
        Wire wire;
        const std::uint32_t id = wire.connect();
        wire.feed(id, post("Expect: " + std::string(value) + "\r\nContent-Length: 5\r\n", ""));
        LAW(wire.sent(id) == "HTTP/1.1 100 Continue\r\n\r\n");
        wire.feed(id, "hello");
        LAW(statuses(wire.sent(id)) == (std::vector<int>{100, 200}));
    }
    const auto once = [](const std::string& octets, std::vector<int> wanted,
                         const ServerSettings& settings = {}) {
        LAW(statuses(talk_in(octets, octets.size(), settings, 0).sent) == wanted,
            << visible(octets));
    };
    once(head + "hello", {200});
    once(get("/hello").insert(21, "Expect: 100-continue\r\n"), {200});
    once("POST /body HTTP/1.0\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n", {});
    once("POST /body HTTP/1.0\r\nExpect: x\r\nContent-Length: 5\r\n\r\nhello", {200});
    once(post("Expect: x\r\nContent-Length: 5\r\n", "hello"), {417});
    once(post("Expect: 100-continue, x\r\nContent-Length: 5\r\n", ""), {417});
    once(post("Expect: 100-continue\r\nContent-Length: 99999999999\r\n", ""), {413});
    once("POST /404 HTTP/1.1\r\n" + kHost + "Expect: 100-continue\r\nContent-Length: 5\r\n\r\n",
         {100});
}

TEST(Specification, S15_options_asterisk) {
    const std::string rest = " HTTP/1.1\r\n" + kHost + "\r\n";
    expect_accepted("OPTIONS *" + rest);
    expect_status("OPTIONS *" + rest, {204});
    for (const char* method : {"GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "TRACE", "FOO"}) {
        const std::string line = std::string(method) + " * HTTP/1.1\r\n";
        expect_rejected(line + kHost + "\r\n", Reason::kAsteriskMethod, line.size() - 1);
    }
    expect_rejected("OPTIONS **" + rest, Reason::kTargetForm, 9);
    expect_rejected("OPTIONS *?x" + rest, Reason::kTargetForm, 9);
    expect_rejected("OPTIONS *%41" + rest, Reason::kTargetForm, 9);
    expect_rejected("OPTIONS *\x01" + rest, Reason::kTargetOctet, 9);
    expect_rejected("CONNECT * HTTP/1.1\r\n" + kHost + "\r\n", Reason::kConnectTarget, 19);
}

}  // namespace
}  // namespace httpmark
