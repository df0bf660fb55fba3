#include "inputs.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace httpmark {

using namespace std::string_literals;

namespace {

std::uint64_t from_environment(const char* name, std::uint64_t otherwise) {
    const char* text = std::getenv(name);
    return text == nullptr ? otherwise : std::strtoull(text, nullptr, 0);
}

}  // namespace

// ---- Inputs
// --------------------------------------------------------------------------------------

std::string with_host(const std::string& line, const std::string& fields) {
    return line + "\r\nHost: a\r\n" + fields + "\r\n";
}

const std::vector<std::string>& base_requests() {
    static const std::vector<std::string> all = {
        "GET / HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET /hello HTTP/1.1\r\nHost: localhost:8080\r\n\r\nGET /next",
        "\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
        "\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET /a/b%2Fc/%00%fF?x=%41&y=/?:@!$'()*+,; HTTP/1.1\r\nHost: a\r\n\r\n",
        "HEAD //..//./%2e%2e HTTP/1.1\r\nhOsT:\t a.b-c_d~%41!$&'()*+,;=:65535 \t\r\n\r\n",
        "GET http://example.org:80/p?q HTTP/1.1\r\nHost: other\r\n\r\n",
        "GET HTTP://[2001:db8::1.2.3.4]:/?[ HTTP/1.1\r\nHost: [::]\r\n\r\n",
        "GET http://u@h/ HTTP/1.1\r\nHost: h\r\n\r\n",
        "GET https://example.org?q HTTP/1.1\r\nHost: example.org\r\n\r\n",
        "OPTIONS * HTTP/1.1\r\nHost: [v1f.a:b]:1\r\n\r\n",
        "GET * HTTP/1.1\r\nHost: a\r\n\r\n",
        "CONNECT example.org:443 HTTP/1.1\r\nHost: example.org:443\r\n\r\n",
        "PATCH /x HTTP/1.0\r\n\r\n",
        "GET /x HTTP/1.0\r\nConnection: keep-alive\r\nHost: a\r\n\r\n",
        "GET /x HTTP/1.9\r\nConnection: x, ,close\r\nHost: a\r\n\r\n",
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        "BREW /pot-0 HTTP/1.1\r\nHost: a\r\n\r\n",
        "!#$%&'*+-.^_`|~09AZaz / HTTP/1.1\r\nHost: a\r\n\r\n",
        "POST /p HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n0123456789",
        "PUT /p HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\n01234",
        "PUT /p HTTP/1.1\r\nHost: a\r\nContent-Length: 33554432\r\nExpect: 100-Continue\r\n\r\n",
        "POST /p HTTP/1.1\r\nHost: a\r\nContent-Length: 9223372036854775807\r\n\r\n",
        "POST /p HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "POST /p HTTP/1.1\r\nTransfer-Encoding: gzip;a=\"b\\\"c\" ; d = e, chunked\r\nHost: "
        "a\r\n\r\n",
        "POST /p HTTP/1.1\r\nHost: a\r\ntransfer-encoding: , "
        "ChunkeD\t,\r\nTransfer-Encoding:\r\n\r\n",
        "POST /p HTTP/1.1\r\nTransfer-Encoding: chunked\r\nContent-Length: 1\r\nHost: a\r\n\r\n",
        "DELETE /d HTTP/1.1\r\nHost: 127.0.0.1\r\nExpect: 100-continue\r\nExpect: x\r\n\r\n",
        "GET /n HTTP/1.1\r\n!#$%&'*+-.^_`|~: \t\r\nHost: a\r\nX:\r\ny:a\tb \x80\xff~!\r\n\r\n",
        "GET /long/path/of/more/than/sixty/four/octets/in/one/target/segment?and=query%20too "
        "HTTP/1.1\r\nHost: www.example.org\r\nUser-Agent: Mozilla/5.0 (X11; Linux x86_64)\r\n"
        "Accept: text/html;q=0.9,*/*;q=0.8\r\nCookie: a=b; c=d\r\n\r\n",
    };
    return all;
}

const std::vector<std::string>& base_bodies() {
    static const std::vector<std::string> all = {
        "0\r\n\r\n",
        "5\r\nhello\r\n0\r\n\r\nGET",
        "5;a=b;c=\"d \\\" e\t\x80\" ; f\r\nhello\r\n00;g\r\n\r\n",
        "1\t ;\t x \t= \t\"\"\r\nA\r\nA\r\n0123456789\r\n0\r\nTrailer: yes\r\nx:\t\r\n\r\n",
        "000000000000000000000001\r\n\n\r\n0000000000000000000000000\r\nContent-Length: 3\r\n\r\n",
        "2000000\r\n",
        "1fffFFf;quoted=\"\\\x01\"\r\n",
        "FFFFFFFFFFFFFFFFF\r\n",
    };
    return all;
}

std::uint64_t seed() {
    static const std::uint64_t value = from_environment("HTTPMARK_ORACLE_SEED", 20260101);
    return value;
}
std::uint64_t runs() {
    static const std::uint64_t value = from_environment("HTTPMARK_ORACLE_RUNS", 300000);
    return value;
}

// What a list of words can be joined to; each slot of the grammar has its own.
std::string words_from(Dice& dice, const std::vector<std::string>& vocabulary, std::size_t most) {
    std::string text;
    for (std::size_t left = dice.below(most + 1); left > 0; --left) text += dice.one_of(vocabulary);
    return text;
}

const std::vector<std::string>& host_words() {
    static const std::vector<std::string> all = {
        "[", "]",     ":",     "::",  "1", "ffff",  "a.b", "127.0.0.1", "255",
        ".", "v1.",   "%41",   "%4",  "@", "/",     "80",  "0",         "256",
        "G", "65535", "65536", "-_~", "!", "12345", " ",   "\xc3"};
    return all;
}
const std::vector<std::string>& target_words() {
    static const std::vector<std::string> all = {
        "http:", "https:", "HtTp:", "//",   "/",     "?", "#",    "@",   "[",
        "]",     "[::1]",  ":",     "80",   "65536", "a", "host", "%41", "%zz",
        "%",     "*",      "ftp:",  "u:p@", "|",     "{", "\"",   "a.b", "1:2"};
    return all;
}
const std::vector<std::string>& coding_words() {
    static const std::vector<std::string> all = {
        "chunked", "Chunked",   "gzip", "identity", ",", ",",   " , ",
        ";",       "=",         "\"",   "\\",       " ", "\t",  "a",
        "q=1",     "chunked, ", "x\"y", "\"a,b\"",  "@", "\x80"};
    return all;
}
const std::vector<std::string>& length_words() {
    static const std::vector<std::string> all = {"0",
                                                 "5",
                                                 "05",
                                                 "5",
                                                 ",",
                                                 ", ",
                                                 " ",
                                                 "\t",
                                                 "33554432",
                                                 "33554433",
                                                 "40",
                                                 "41",
                                                 "+",
                                                 "-",
                                                 "0x1",
                                                 "9223372036854775807",
                                                 "9223372036854775808",
                                                 "18446744073709551616",
                                                 "a",
                                                 "\xb2"};
    return all;
}
const std::vector<std::string>& expect_words() {
    static const std::vector<std::string> all = {
        "100-continue", "100-Continue", ",", ", ", " ", ";", "=", "a", "\"", "100-continue\t"};
    return all;
}
const std::vector<std::string>& connection_words() {
    static const std::vector<std::string> all = {"close", "Close", "keep-alive", "Keep-Alive", ",",
                                                 ", ",    " ",     "\t",         "upgrade",    "x"};
    return all;
}
const std::vector<std::string>& version_words() {
    static const std::vector<std::string> all = {"HTTP",     "/", "1",   ".",     "1.1",
                                                 "HTTP/",    "0", "2.0", "http/", "HTTP/1.",
                                                 "HTTP/1.0", "9", " ",   "\r"};
    return all;
}
const std::vector<std::string>& chunk_words() {
    static const std::vector<std::string> all = {"0",           "1",
                                                 "5",           "f",
                                                 "F",           "g",
                                                 "00",          ";",
                                                 ";a",          "=",
                                                 "=b",          "\"",
                                                 "\"c\"",       "\\",
                                                 "\\\"",        " ",
                                                 "\t",          "\r\n",
                                                 "\r\n",        "\r\n",
                                                 "\r",          "\n",
                                                 "A\r\n",       "abcde\r\n",
                                                 "1\r\nx\r\n",  "0\r\n\r\n",
                                                 "n: v\r\n",    ":",
                                                 "Host: x\r\n", "\x80",
                                                 "\x7f",        "2000000",
                                                 "1ffffff",     "8000000000000000"};
    return all;
}

constexpr std::string_view kPchars = "abcxyzABCXYZ0189-._~!$&'()*+,;=:@/abcdefghijklmnop";
constexpr std::string_view kTchars = "abcXYZ019!#$%&'*+-.^_`|~abcdefghijklmnopqrstuvwxyz";
constexpr std::string_view kValueOctets = "abc XYZ\t019~!\"#(),/:;<=>?@[\\]{}\x80\xff";

std::string some_target(Dice& dice) {
    if (dice.one_in(6)) return words_from(dice, target_words(), 8);
    std::string target = "/" + dice.run(kPchars, dice.below(dice.one_in(4) ? 90 : 12));
    while (dice.one_in(3)) {
        target += dice.one_in(8) ? "%" + dice.run("09afAF:/@`gG ", 2)
                                 : "%" + dice.run("0123456789abcdefABCDEF", 2);
        target += dice.run(kPchars, dice.below(5));
    }
    if (dice.one_in(2)) target += "?" + dice.run(kPchars, dice.below(20));
    if (dice.one_in(12)) target += dice.run("[]\\^`{|}\"<>#", 1 + dice.below(2));
    return target;
}

std::string some_field(Dice& dice) {
    static const std::array<std::string_view, 8> kSpaces = {"",   " ",  "",     " ",
                                                            "\t", "  ", " \t ", ""};
    std::string name;
    std::string value;
    switch (dice.below(9)) {
        case 0:
            name = "Host";
            value = dice.one_in(2) ? "a.example" : words_from(dice, host_words(), 6);
            break;
        case 1:
            name = "Transfer-Encoding";
            value = dice.one_in(2) ? "chunked" : words_from(dice, coding_words(), 6);
            break;
        case 2:
            name = "Content-Length";
            value = dice.one_in(2) ? std::to_string(dice.below(50))
                                   : words_from(dice, length_words(), 3);
            break;
        case 3:
            name = "Expect";
            value = dice.one_in(2) ? "100-continue" : words_from(dice, expect_words(), 4);
            break;
        case 4:
            name = "Connection";
            value = words_from(dice, connection_words(), 5);
            break;
        default:
            name = dice.run(kTchars, 1 + dice.below(dice.one_in(5) ? 40 : 12));
            value = dice.run(kValueOctets, dice.below(dice.one_in(5) ? 140 : 20));
    }
    for (char& c : name) {
        if (c >= 'a' && c <= 'z' && dice.one_in(6)) c = static_cast<char>(c - 32);
    }
    return name + ":" + std::string(dice.one_of(kSpaces)) + value +
           std::string(dice.one_of(kSpaces));
}

std::string some_request(Dice& dice) {
    static const std::array<std::string_view, 14> kMethods = {
        "GET",   "GET",    "GET",     "POST",    "POST",  "HEAD", "PUT",
        "PATCH", "DELETE", "OPTIONS", "CONNECT", "TRACE", "get",  "BREW"};
    static const std::array<std::string_view, 8> kVersions = {"HTTP/1.1", "HTTP/1.1", "HTTP/1.1",
                                                              "HTTP/1.1", "HTTP/1.1", "HTTP/1.0",
                                                              "HTTP/1.7", "HTTP/3.1"};
    std::string request = dice.one_in(12) ? "\r\n" : "";
    request += dice.one_in(15) ? dice.run(kTchars, 1 + dice.below(40))
                               : std::string(dice.one_of(kMethods));
    request += " " + some_target(dice) + " ";
    request += dice.one_in(20) ? words_from(dice, version_words(), 4)
                               : std::string(dice.one_of(kVersions));
    request += "\r\n";
    if (!dice.one_in(5)) request += "Host: example.org\r\n";
    for (std::size_t left = dice.below(6); left > 0; --left) request += some_field(dice) + "\r\n";
    if (dice.one_in(60)) {
        for (std::size_t left = 90 + dice.below(15); left > 0; --left) request += "x:\r\n";
    }
    return request + "\r\n" + (dice.one_in(4) ? "0\r\n\r\n" : "");
}

std::string some_body(Dice& dice) {
    if (dice.one_in(4)) return words_from(dice, chunk_words(), 12);
    std::string body;
    const auto extensions = [&dice] {
        std::string text;
        while (dice.one_in(3)) {
            text += dice.run(" \t", dice.below(3)) + ";" + dice.run(" \t", dice.below(3));
            text += dice.run(kTchars, 1 + dice.below(5));
            if (dice.one_in(2)) continue;
            text += dice.run(" \t", dice.below(3)) + "=" + dice.run(" \t", dice.below(3));
            text += dice.one_in(2) ? dice.run(kTchars, 1 + dice.below(5))
                                   : "\"" + dice.run("ab \t;=\r!\x80", dice.below(6)) + "\\\"\"";
        }
        return text;
    };
    for (std::size_t left = dice.below(4); left > 0; --left) {
        const std::size_t size = 1 + dice.below(dice.one_in(5) ? 70 : 20);
        std::array<char, 32> digits;
        std::snprintf(digits.data(), digits.size(), dice.one_in(2) ? "%zx" : "0%zX", size);
        body += digits.data() + extensions() + "\r\n" + dice.run("ab\r\n0;", size) + "\r\n";
    }
    body += dice.run("0", 1 + dice.below(3)) + extensions() + "\r\n";
    while (dice.one_in(3)) body += some_field(dice) + "\r\n";
    return body + "\r\n" + dice.run("GET /\r\n", dice.below(4));
}

// One small harm of the kinds that parsers stumble over.
std::string harmed(Dice& dice, std::string text, const std::string& other) {
    static const std::string kHarm = "\r\n \t\0%:;,\"\\=\x7f\x80\xff/?#@[]"s;
    const std::size_t at = dice.below(text.size() + 1);
    const auto line_begin = [&text](std::size_t from) {
        const std::size_t lf = from == 0 ? std::string::npos : text.rfind('\n', from - 1);
        return lf == std::string::npos ? 0 : lf + 1;
    };
    const auto line_at = [&](std::size_t from) {
        const std::size_t begin = line_begin(from);
        const std::size_t lf = text.find('\n', begin);
        return text.substr(begin, lf == std::string::npos ? lf : lf + 1 - begin);
    };
    switch (dice.below(12)) {
        case 0:
            return text.insert(at, 1, dice.one_of(kHarm));
        case 1:
            if (at < text.size()) text[at] = dice.one_of(kHarm);
            return text;
        case 2:
            if (at < text.size()) text[at] = dice.octet();
            return text;
        case 3:
            return text.erase(std::min(at, text.size()), 1 + dice.below(3));
        case 4:
            return text.insert(at, "\r\n");
        case 5:  // a line twice
            return text.insert(line_begin(at), line_at(dice.below(text.size() + 1)));
        case 6: {  // two lines change places
            const std::string line = line_at(at);
            const std::size_t begin = line_begin(at);
            text.erase(begin, line.size());
            return text.insert(line_begin(dice.below(text.size() + 1)), line);
        }
        case 7: {  // a number becomes another
            const std::size_t digit = text.find_first_of("0123456789", at);
            if (digit != std::string::npos) text[digit] = dice.one_of("0123456789aF"s);
            return text;
        }
        case 8:  // the front of this with the end of another
            return text.substr(0, at) + other.substr(dice.below(other.size() + 1));
        case 9:  // moves what follows to another place in its block
            return text.insert(at, dice.run("aB0", 1 + dice.below(70)));
        case 10:
            return text.erase(std::min(at, text.size()), dice.below(40));
        default:
            return text.substr(0, at);
    }
}

Depth sometimes_deep(Dice& dice) {
    return dice.one_in(40) ? Depth::kEveryPrefix : Depth::kOctetByOctet;
}

}  // namespace httpmark
