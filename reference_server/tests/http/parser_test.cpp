// What the specification's scenarios leave out: forms of target, meaning of heads, mutations of
// good requests in every way they can arrive, alignment of line ends to block ends.
#include "http/parser.hpp"

#include <string>
#include <vector>

#include "splits.hpp"

namespace httpmark {
namespace {

const std::string kRest = " HTTP/1.1\r\nHost: h\r\n\r\n";

TEST(Parser, absolute_form) {
    for (const char* target :
         {"http://h/p", "HTTP://h/p", "hTtP://h:80/p?q", "http://h", "http://h?q",
          "http://[::1]:80/", "https://h/", "http://h/%41", "http://a%41/", "http://h:/"}) {
        expect_accepted("GET " + std::string(target) + kRest);
    }
    struct Row {
        const char* target;
        Reason reason;
    };
    for (const Row& row : {Row{"ftp://h/", Reason::kTargetScheme},
                           {"http:/p", Reason::kTargetForm},
                           {"http:///p", Reason::kTargetHostEmpty},
                           {"http://", Reason::kTargetHostEmpty},
                           {"http://:80/", Reason::kTargetHostEmpty},
                           {"http://u:p@h/", Reason::kTargetUserinfo},
                           {"http://u@h/", Reason::kTargetUserinfo},
                           {"http://h:x/", Reason::kTargetAuthority},
                           {"http://[::1/", Reason::kTargetAuthority},
                           {"http://h:99999/", Reason::kTargetAuthority},
                           {"h", Reason::kTargetForm},
                           {"h:80", Reason::kTargetScheme},
                           {"http", Reason::kTargetForm},
                           {"http://h/[", Reason::kTargetOctet},
                           {"http://h]/", Reason::kTargetAuthority}}) {
        const std::string line = "GET " + std::string(row.target) + " HTTP/1.1\r\n";
        expect_rejected("GET " + std::string(row.target) + kRest, row.reason, line.size() - 1);
    }
    expect_rejected("GET http://h/?[" + kRest, Reason::kTargetOctet, 14);
    expect_rejected("GET http://h/#f" + kRest, Reason::kTargetOctet, 13);
    expect_rejected("GET http://h/%zz" + kRest, Reason::kTargetPercent, 14);
    const Parsed parsed = parse_every_way("GET http://a:1/p HTTP/1.1\r\nHost: b\r\n\r\n");
    const std::string text = "GET http://a:1/p HTTP/1.1\r\nHost: b\r\n\r\n";
    LAW(parsed.head.authority.in(text.data()) == "a:1");
    LAW(judged(parse_every_way("GET https://h/" + kRest)) == Reason::kMisdirected);
    LAW(judged(parse_every_way("GET https://h/" + kRest), {}, true) == Reason::kNone);
    LAW(judged(parse_every_way("GET http://h/ HTTP/1.1\r\n\r\n")) == Reason::kHostMissing);
    LAW(judged(parse_every_way("GET http://h/ HTTP/1.1\r\nHost: a b\r\n\r\n")) ==
        Reason::kHostInvalid);
}

TEST(Parser, authority_form_is_for_connect) {
    for (const char* target : {"h:443", "[::1]:443", "h:0"}) {
        LAW(judged(parse_every_way("CONNECT " + std::string(target) + kRest)) ==
            Reason::kMethodUnknown);
    }
    for (const char* target : {"h", "h:", "h:99999", "h:abc", "/", "http://h/", ":443", "h:443/"}) {
        const std::string line = "CONNECT " + std::string(target) + " HTTP/1.1\r\n";
        expect_rejected("CONNECT " + std::string(target) + kRest, Reason::kConnectTarget,
                        line.size() - 1);
    }
}

TEST(Parser, methods_of_any_length) {
    for (std::size_t size = 1; size <= 40; ++size) {
        const std::string input = std::string(size, 'M') + " /" + kRest;
        if (size <= 32) {
            expect_accepted(input);
            LAW(judged(parse_every_way(input)) == Reason::kMethodUnknown);
        } else {
            expect_rejected(input, Reason::kMethodTooLong, 32);
        }
    }
    expect_rejected(std::string(32, 'M') + "\x01" + kRest, Reason::kMethodOctet, 32);
    expect_rejected(std::string(33, 'M') + "\x01" + kRest, Reason::kMethodTooLong, 32);
}

// Each known one, and all that differ from it in one letter, in case or in length.
TEST(Parser, methods_and_their_neighbours) {
    for (const std::string name :
         {"GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"}) {
        std::vector<std::string> all{name, name + "S", name.substr(1), "X" + name};
        for (std::size_t i = 0; i < name.size(); ++i) {
            all.push_back(name);
            all.back()[i] = static_cast<char>(name[i] | 0x20);
            all.push_back(name);
            all.back()[i] = static_cast<char>(name[i] ^ 1);
        }
        for (const std::string& one : all) {
            LAW(parse_every_way(one + " /" + kRest).head.method == method_of(one), << one);
        }
    }
    LAW(method_of("HEAD") == Method::kHead && method_of("OPTIONS") == Method::kOptions);
}

// The section ends before, at and behind the end of the first blocks, with and without a request
// behind it, under limits that let just this head pass, or not.
TEST(Parser, ends_of_heads_at_every_place_of_a_block) {
    for (std::size_t size = 60; size <= 132; ++size) {
        std::string head = "GET / HTTP/1.1\r\nHost: h\r\nX: ";
        head += std::string(size - head.size() - 4, 'x') + "\r\n\r\n";
        expect_accepted(head);
        const Parsed parsed = parse_every_way(head + "GET / HTTP/1.1\r\n");
        LAW(parsed.result.verdict == Verdict::kAccepted && parsed.result.offset == size);
        ParserSetting setting;
        setting.limits.head_max = size;
        expect_accepted(head, setting);
        setting.limits.head_max = size - 1;
        expect_rejected(head, Reason::kHeadTooLong, size - 1, setting);
        for (const char wrong : {'\r', ' ', 'G', '\0'}) {
            head.back() = wrong;
            expect_rejected(head, Reason::kFieldBareCr, size - 1);
        }
    }
}

// Of any number of digits, at every place of a block, with whitespace on each side.
TEST(Parser, lengths_of_content) {
    for (std::size_t digits = 0; digits <= 24; ++digits) {
        for (const char* before : {"", " ", "\t", "  "}) {
            for (const char* after : {"", " ", "\t"}) {
                const std::string number = std::string("123456789012345678901234", digits);
                const std::string value = before + number + after;
                const Parsed parsed = parse_every_way(
                    "POST /p HTTP/1.1\r\nHost: h\r\nContent-Length:" + value + "\r\n\r\n");
                const std::uint32_t about =
                    parsed.head.flags & (kLengthSeen | kLengthIsInvalid | kLengthOverflows);
                if (digits == 0) {
                    LAW(about == (kLengthSeen | kLengthIsInvalid), << value);
                } else if (digits > 19) {
                    LAW(about == (kLengthSeen | kLengthOverflows), << value);
                } else {
                    LAW(about == kLengthSeen && parsed.head.content_length == std::stoull(number),
                        << value);
                }
            }
        }
    }
    for (std::size_t padding = 0; padding < 70; ++padding) {
        const std::string start = "POST /" + std::string(padding, 'p') + " HTTP/1.1\r\nHost: h\r\n";
        const Parsed parsed = parse_every_way(start + "Content-Length: 1207\r\n\r\n");
        LAW(parsed.head.content_length == 1207 && parsed.head.has(kLengthSeen));
        LAW(judged(
                parse_every_way(start + "Content-Length: 1207\r\ncontent-length: 1207\r\n\r\n")) ==
            Reason::kLengthRepeated);
    }
}

TEST(Parser, the_order_of_verdicts_on_a_head) {
    const auto verdict = [](const std::string& fields, const char* method = "GET") {
        const std::string input = std::string(method) + " / HTTP/1.1\r\n" + fields + "\r\n";
        return judged(parse_every_way(input));
    };
    LAW(verdict("Transfer-Encoding: @\r\nContent-Length: x\r\n", "FOO") == Reason::kHostMissing);
    LAW(verdict("Host: h\r\nTransfer-Encoding: @\r\nContent-Length: x\r\n", "FOO") ==
        Reason::kTransferCodingSyntax);
    LAW(verdict("Host: h\r\nContent-Length: x\r\n", "FOO") == Reason::kLengthSyntax);
    LAW(verdict("Host: h\r\nContent-Length: 99999999999999\r\n", "FOO") == Reason::kMethodUnknown);
    LAW(verdict("Host: h\r\nContent-Length: 99999999999999\r\nExpect: x\r\n") ==
        Reason::kContentTooLarge);
    LAW(verdict("Host: h\r\nExpect: x\r\n") == Reason::kExpectationUnknown);
    LAW(verdict("Host: h\r\nExpect:\r\n") == Reason::kNone);
}

TEST(Parser, strictness) {
    ParserSetting rfc;
    rfc.strictness = Strictness::kRfc;
    ParserSetting browser;
    browser.strictness = Strictness::kBrowser;
    const std::string request = "GET /" + kRest;
    std::string lead;
    for (unsigned lines = 0; lines <= 9; ++lines, lead += "\r\n") {
        if (lines <= 1) {
            expect_accepted(lead + request);
        } else {
            expect_rejected(lead + request, Reason::kMethodOctet, 2);
        }
        for (const ParserSetting& setting : {rfc, browser}) {
            if (lines <= 8) {
                expect_accepted(lead + request, setting);
            } else {
                expect_rejected(lead + request, Reason::kMethodOctet, 16, setting);
            }
        }
    }
    for (const char c : std::string("[]\\^`{|}")) {
        const std::string query = std::string("GET /a?b") + c + "c" + kRest;
        const std::string path = std::string("GET /a") + c + "c" + kRest;
        expect_rejected(query, Reason::kTargetOctet, 8);
        expect_rejected(query, Reason::kTargetOctet, 8, rfc);
        expect_accepted(query, browser);
        expect_rejected(path, Reason::kTargetOctet, 6, browser);
    }
    for (const char c : std::string("\"<>#\x01\x7f\xff")) {
        expect_rejected(std::string("GET /a?b") + c + kRest, Reason::kTargetOctet, 8, browser);
    }
    const std::string empty_host = "GET / HTTP/1.1\r\nHost:\r\n\r\n";
    LAW(judged(parse_every_way(empty_host)) == Reason::kHostEmpty);
    LAW(judged(parse_every_way(empty_host, rfc), rfc) == Reason::kNone);
}

TEST(Parser, line_ends_at_every_place_of_a_block) {
    for (std::size_t size = 0; size <= 160; ++size) {
        expect_accepted("GET / HTTP/1.1\r\nHost: h\r\nX: " + std::string(size, 'v') + "\r\n\r\n");
        expect_accepted("GET /" + std::string(size, 'p') + kRest);
        if (size > 0)
            expect_accepted("GET / HTTP/1.1\r\nHost: h\r\n" + std::string(size, 'n') + ":\r\n\r\n");
    }
}

// More lines that may be of a known field than a block, or two, can hold.
TEST(Parser, many_lines_that_look_known) {
    for (const char* line :
         {"eaaaaa:\r\n", "Expect: 100-continue\r\n", "Cookie: c\r\n", "h:\r\n"}) {
        for (const unsigned count : {6U, 7U, 8U, 15U, 16U, 17U, 31U, 48U, 49U, 64U, 98U}) {
            std::string input = "GET / HTTP/1.1\r\n";
            for (unsigned i = 0; i < count; ++i) input += line;
            input += "Host: h\r\nContent-Length: 7\r\n\r\n";
            const Parsed parsed = parse_every_way(input);
            LAW(parsed.result.verdict == Verdict::kAccepted, << line << ' ' << count);
            LAW(parsed.head.field_count == count + 2);
            LAW(parsed.head.content_length == 7);
            LAW(parsed.head.authority.in(input.data()) == "h");
        }
    }
}

TEST(Parser, ports_of_every_length) {
    const std::string before = "GET / HTTP/1.1\r\nHost: ";
    for (const char* host : {"h", "127.0.0.1", "a.example", "%41", "[::1]"}) {
        for (const char* port : {"", ":", ":0", ":9", ":80", ":443", ":8080", ":00080", ":10000",
                                 ":65535", ":000080"}) {
            LAW(judged(parse_every_way(before + host + port + "\r\n\r\n")) == Reason::kNone,
                << host << port);
            LAW(judged(parse_every_way(before + "\t" + host + port + " \r\n\r\n")) == Reason::kNone,
                << host << port);
        }
        for (const char* port : {":65536", ":70000", ":99999", ":655350", ":/", ":8:", "::", ":8/",
                                 ":/8", ":808a", ":a080", ":80 80", ":1\xB2", ":6553;", ":/5535",
                                 ":1234:", ":+80", ":\xFF\xFF\xFF\xFF\xFF"}) {
            LAW(judged(parse_every_way(before + host + port + "\r\n\r\n")) == Reason::kHostInvalid,
                << host << port);
        }
    }
}

TEST(Parser, known_names_in_every_case_and_neighbours_of_them) {
    for (const std::string name :
         {"content-length", "transfer-encoding", "connection", "expect", "host", "upgrade"}) {
        std::string upper = name;
        for (char& c : upper) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
        for (const std::string& spelled : {name, upper}) {
            const std::string base = "GET / HTTP/1.1\r\nHost: h\r\n";
            const Parsed with = parse_every_way(
                base + spelled + (name == "connection" ? ": close\r\n\r\n" : ": 1\r\n\r\n"));
            const Parsed without = parse_every_way(base + "\r\n");
            LAW(with.head.flags != without.head.flags, << spelled);
            for (std::size_t i = 0; i < spelled.size(); ++i) {
                std::string near = spelled;
                near[i] = near[i] == '_' ? 'x' : '_';
                LAW(parse_every_way(base + near + ": 1\r\n\r\n").head.flags == without.head.flags,
                    << near);
                near[i] = static_cast<char>(spelled[i] ^ 0x01);
                if (near[i] == ':') continue;
                const Parsed other = parse_every_way(base + near + ": 1\r\n\r\n");
                LAW(other.result.verdict != Verdict::kAccepted ||
                        other.head.flags == without.head.flags,
                    << near);
            }
        }
    }
}

// Mutated requests: whatever they are, they are it in every split and with every kernel.
TEST(Parser, mutations_have_one_verdict) {
    Random random(20);
    const std::vector<std::string> seeds = {
        "GET /hello?a=%41b HTTP/1.1\r\nHost: 127.0.0.1:8080\r\nAccept: */*\r\n\r\n",
        "POST /body HTTP/1.1\r\nHost: [::1]:80\r\nContent-Length: 5\r\nConnection: close, "
        "x\r\n\r\n",
        "\r\nOPTIONS * HTTP/1.0\r\nTransfer-Encoding: gzip, chunked\r\nExpect: "
        "100-continue\r\n\r\n",
        "GET http://a.example:80/x?y HTTP/1.1\r\nhost:a\r\nX-Long-Name-That-Spans: \tv\x80\xff "
        "\r\n\r\n",
    };
    const std::string special = std::string("\r\n \t:%/?[]@\x7f\xff\x01") + '\0';
    ParserSetting small;
    small.limits.target_max = 20;
    small.limits.field_name_max = 20;
    small.limits.field_value_max = 20;
    small.limits.field_lines_max = 3;
    small.limits.head_max = 128;
    for (unsigned round = 0; round < 6000; ++round) {
        std::string input = seeds[random() % seeds.size()];
        for (unsigned change = 1 + random() % 3; change > 0; --change) {
            const std::size_t at = random() % input.size();
            const char octet_in = random() % 2 == 0 ? special[random() % special.size()]
                                                    : static_cast<char>(random());
            switch (random() % 4) {
                case 0:
                    input[at] = octet_in;
                    break;
                case 1:
                    input.insert(at, 1, octet_in);
                    break;
                case 2:
                    input.erase(at, 1 + random() % 3);
                    break;
                default:
                    input.insert(at, input.substr(random() % input.size(), random() % 20));
                    break;
            }
            if (input.empty()) input = "G";
        }
        const ParserSetting setting = round % 3 == 0 ? small : ParserSetting();
        const Parsed first = parse_once(input, setting, *kernels().front());
        for (const ScanKernel* kernel : kernels()) {
            const Parsed parsed = parse_at_once_and_by_octet(input, setting, *kernel);
            LAW(same(parsed.result, first.result), << kernel->name << " " << visible(input));
            LAW(first.result.verdict != Verdict::kAccepted || same(parsed.head, first.head),
                << kernel->name << " " << visible(input));
        }
        check_every_split(input, setting, *kernels()[round % kernels().size()], first);
    }
}

TEST(Parser, fields_are_read_back_in_order) {
    FieldReader reader("A: b\r\nC:\t d e \r\nC:\r\n\r\n");
    std::string_view name;
    std::string_view value;
    LAW(reader.next(name, value) && name == "A" && value == "b");
    LAW(reader.next(name, value) && name == "C" && value == "d e");
    LAW(reader.next(name, value) && name == "C" && value.empty());
    LAW(!reader.next(name, value));
}

}  // namespace
}  // namespace httpmark
