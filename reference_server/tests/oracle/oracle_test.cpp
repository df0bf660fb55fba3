// The server's parser against the oracle: for every input both must give the same verdict, after
// the same octet, for the same kind of reason, with the same fields; for every kernel, whole and
// octet by octet.
//
// HTTPMARK_ORACLE_SEED  seed of the random tests (printed first; default fixed)
// HTTPMARK_ORACLE_RUNS  inputs of each of the big random tests (default 300000)
#include "oracle.hpp"

#include <gtest/gtest.h>

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

#include "http/chunked.hpp"
#include "http/error.hpp"
#include "http/framing.hpp"
#include "http/parser.hpp"
#include "limits.hpp"
#include "scan/scan.hpp"

namespace httpmark {
namespace {

using namespace std::string_literals;
using oracle::Subject;

std::uint64_t from_environment(const char* name, std::uint64_t otherwise) {
    const char* text = std::getenv(name);
    return text == nullptr ? otherwise : std::strtoull(text, nullptr, 0);
}

struct Tally {
    std::uint64_t inputs = 0;
    std::uint64_t verdicts = 0;  // of the server, each compared with the oracle's
    std::uint64_t accepted = 0;
    std::uint64_t rejected = 0;
    std::uint64_t undecided = 0;
    std::set<std::string> reasons;  // all that the server gave
};
Tally tally;

// ---- The same setting in the words of both
// -------------------------------------------------------

struct Setting {
    const char* name;
    Strictness strictness;
    bool tls;
    Limits limits;
};

Limits small_limits() {
    Limits limits;
    limits.method_max = 7;
    limits.target_max = 40;
    limits.field_name_max = 17;
    limits.field_value_max = 24;
    limits.field_lines_max = 4;
    limits.head_max = 150;
    limits.body_max = 40;
    limits.chunk_line_max = 16;
    limits.trailer_lines_max = 2;
    limits.trailers_max = 48;
    return limits;
}

const std::vector<Setting>& settings() {
    static const std::vector<Setting> all = {
        {"strict", Strictness::kStrict, false, {}},
        {"rfc", Strictness::kRfc, false, {}},
        {"browser", Strictness::kBrowser, false, {}},
        {"strict over TLS", Strictness::kStrict, true, {}},
        {"strict with small limits", Strictness::kStrict, false, small_limits()},
        {"browser with small limits", Strictness::kBrowser, true, small_limits()},
    };
    return all;
}

oracle::Options options_of(const Setting& setting) {
    const bool lenient = setting.strictness != Strictness::kStrict;
    oracle::Options options;
    options.empty_lines_max = lenient ? 8 : 1;
    options.empty_host = lenient;
    options.equal_content_lengths = lenient;
    options.browser_query = setting.strictness == Strictness::kBrowser;
    options.tls = setting.tls;
    options.method_max = setting.limits.method_max;
    options.target_max = setting.limits.target_max;
    options.field_name_max = setting.limits.field_name_max;
    options.field_value_max = setting.limits.field_value_max;
    options.field_lines_max = setting.limits.field_lines_max;
    options.head_max = setting.limits.head_max;
    options.body_max = setting.limits.body_max;
    options.chunk_line_max = setting.limits.chunk_line_max;
    options.trailer_lines_max = setting.limits.trailer_lines_max;
    options.trailers_max = setting.limits.trailers_max;
    return options;
}

// The reasons of the server, gathered under what they are about. No default: a new reason must be
// given its place here.
Subject subject_of(Reason reason) {
    switch (reason) {
        case Reason::kBareCrBeforeRequest:
        case Reason::kMethodEmpty:
        case Reason::kMethodOctet:
        case Reason::kMethodTooLong:
        case Reason::kMethodUnknown:
            return Subject::kMethod;
        case Reason::kTargetEmpty:
        case Reason::kTargetOctet:
        case Reason::kTargetPercent:
        case Reason::kTargetTooLong:
        case Reason::kTargetForm:
        case Reason::kTargetScheme:
        case Reason::kTargetAuthority:
        case Reason::kTargetUserinfo:
        case Reason::kTargetHostEmpty:
        case Reason::kConnectTarget:
        case Reason::kAsteriskMethod:
            return Subject::kTarget;
        case Reason::kVersionSyntax:
        case Reason::kVersionLineEnd:
        case Reason::kVersionMajor:
            return Subject::kVersion;
        case Reason::kFieldNameEmpty:
        case Reason::kFieldNameOctet:
        case Reason::kFieldFold:
        case Reason::kFieldSpaceBeforeColon:
        case Reason::kFieldValueOctet:
        case Reason::kFieldBareCr:
        case Reason::kFieldBareLf:
        case Reason::kFieldNameTooLong:
        case Reason::kFieldValueTooLong:
        case Reason::kFieldLinesTooMany:
        case Reason::kHeadTooLong:
            return Subject::kField;
        case Reason::kHostMissing:
        case Reason::kHostRepeated:
        case Reason::kHostInvalid:
        case Reason::kHostEmpty:
            return Subject::kHost;
        case Reason::kTransferCodingSyntax:
        case Reason::kTransferCodingInOldVersion:
        case Reason::kTransferCodingTwice:
        case Reason::kTransferCodingParameters:
        case Reason::kTransferCodingNotFinal:
        case Reason::kTransferCodingEmpty:
        case Reason::kTransferCodingEmptyMember:
        case Reason::kTransferCodingUnknown:
        case Reason::kTransferCodingWithLength:
            return Subject::kTransferEncoding;
        case Reason::kLengthSyntax:
        case Reason::kLengthRepeated:
            return Subject::kContentLength;
        case Reason::kLengthTooLarge:
        case Reason::kContentTooLarge:
            return Subject::kContent;
        case Reason::kMisdirected:
            return Subject::kMisdirected;
        case Reason::kExpectationUnknown:
            return Subject::kExpect;
        case Reason::kChunkSizeSyntax:
        case Reason::kChunkSizeTooLarge:
        case Reason::kChunkExtensionSyntax:
        case Reason::kChunkLineTooLong:
        case Reason::kChunkExtensionTooLong:
        case Reason::kChunkExtensionsTooLong:
        case Reason::kChunkLineEnd:
        case Reason::kChunkDataEnd:
            return Subject::kChunk;
        case Reason::kTrailerNameEmpty:
        case Reason::kTrailerNameOctet:
        case Reason::kTrailerFold:
        case Reason::kTrailerSpaceBeforeColon:
        case Reason::kTrailerValueOctet:
        case Reason::kTrailerBareCr:
        case Reason::kTrailerBareLf:
        case Reason::kTrailerNameTooLong:
        case Reason::kTrailerValueTooLong:
        case Reason::kTrailerLinesTooMany:
        case Reason::kTrailersTooLong:
        case Reason::kTrailerForbidden:
            return Subject::kTrailer;
        case Reason::kNone:
        case Reason::kRequestTooLarge:  // needs to know of the head and the content: the
                                        // connection's
        case Reason::kFieldRepeated:    // a choice of the connection's, off by default
        case Reason::kIncomplete:
        case Reason::kIdleTimeout:
        case Reason::kHeadTimeout:
        case Reason::kBodyTimeout:
        case Reason::kHandlerTimeout:
        case Reason::kHandlerFailed:
        case Reason::kNotFound:
        case Reason::kMethodNotAllowed:
        case Reason::kLengthRequired:
        case Reason::kMediaType:
        case Reason::kNoMemory:
        case Reason::kTooManyConnections:
        case Reason::kCount:
            break;
    }
    return Subject::kNone;
}

// ---- Words for people
// ----------------------------------------------------------------------------

std::string escaped(std::string_view octets) {
    std::string text = "\"";
    for (const char c : octets) {
        const auto octet = static_cast<unsigned char>(c);
        if (c == '\r') {
            text += "\\r";
        } else if (c == '\n') {
            text += "\\n";
        } else if (c == '"' || c == '\\') {
            text += {'\\', c};
        } else if (octet >= 0x20 && octet < 0x7F) {
            text += c;
        } else {
            std::array<char, 8> code;
            std::snprintf(code.data(), code.size(), "\\%03o", octet);
            text += code.data();
        }
    }
    return text + "\"";
}

struct Answer {
    oracle::Verdict verdict = oracle::Verdict::kNeedMore;
    int status = 0;
    Subject subject = Subject::kNone;
    std::size_t decided = 0;
    bool operator==(const Answer&) const = default;
};

std::string words(const Answer& answer) {
    static constexpr std::array kSubjects = {
        "nothing", "method",      "target",  "version", "field", "host",   "transfer-encoding",
        "length",  "misdirected", "content", "expect",  "chunk", "trailer"};
    const std::string at = " decided by " + std::to_string(answer.decided) + " octets";
    switch (answer.verdict) {
        case oracle::Verdict::kNeedMore:
            return "need more";
        case oracle::Verdict::kAccepted:
            return "accepted," + at;
        case oracle::Verdict::kRejected:
            break;
    }
    return "rejected, " + std::to_string(answer.status) + " for " +
           kSubjects[static_cast<std::size_t>(answer.subject)] + "," + at;
}

template <typename Found>
Answer answer_of(const Found& found) {
    if (found.verdict == oracle::Verdict::kNeedMore) return {};
    return {found.verdict, found.status, found.subject, found.decided};
}

Answer rejected(Reason reason, std::size_t decided) {
    tally.reasons.insert(error_row(reason).name);
    return {oracle::Verdict::kRejected, error_row(reason).status, subject_of(reason), decided};
}

void count(const Answer& answer) {
    if (answer.verdict == oracle::Verdict::kAccepted) ++tally.accepted;
    if (answer.verdict == oracle::Verdict::kRejected) ++tally.rejected;
    if (answer.verdict == oracle::Verdict::kNeedMore) ++tally.undecided;
}

std::string difference_in(const char* what, std::string_view server, std::string_view oracle) {
    if (server == oracle) return "";
    return std::string(what) + ": server " + escaped(server) + ", oracle " + escaped(oracle);
}

// ---- Heads
// ---------------------------------------------------------------------------------------

std::vector<const ScanKernel*> kernels() {
    std::vector<const ScanKernel*> here;
    for (const ScanKernel* kernel : scan_kernels()) {
        if (kernel->supported()) here.push_back(kernel);
    }
    return here;
}

// Octets with others behind them that must not matter.
class Padded {
  public:
    Padded(std::string_view octets, std::string_view tail) : octets_(octets), size_(octets.size()) {
        while (octets_.size() < size_ + 128) octets_ += tail;
    }
    const char* data() const { return octets_.data(); }
    std::size_t size() const { return size_; }

  private:
    std::string octets_;
    std::size_t size_;
};

// What the server makes of the first `size` octets, given that it has seen some of them before.
Answer server_answer(HeadParser& parser, const char* data, std::size_t size, const Setting& setting,
                     const ScanKernel& kernel) {
    ++tally.verdicts;
    const ParseResult result = parser.parse(data, size, setting.limits, setting.strictness, kernel);
    if (result.verdict == Verdict::kNeedMore) return {};
    if (result.verdict == Verdict::kRejected) return rejected(result.reason, result.offset + 1);
    const Reason reason =
        judge_head(parser.head(), setting.limits, setting.strictness, setting.tls);
    if (reason != Reason::kNone) return rejected(reason, result.offset);
    return {oracle::Verdict::kAccepted, 0, Subject::kNone, result.offset};
}

std::vector<oracle::Field> fields_in(std::string_view section) {
    std::vector<oracle::Field> fields;
    FieldReader reader(section);
    oracle::Field field;
    while (reader.next(field.name, field.value)) fields.push_back(field);
    return fields;
}

std::string words(const std::vector<oracle::Field>& fields) {
    std::string text;
    for (const auto& field : fields) {
        text.append(field.name).append("=").append(field.value).append("|");
    }
    return text;
}

// What the server took from a head whose grammar held.
std::string difference_in_parts(const RequestHead& head, const char* data,
                                const oracle::Head& expected) {
    const bool accepted = expected.verdict == oracle::Verdict::kAccepted;
    const std::string_view section(data + head.fields_begin, expected.decided - head.fields_begin);
    std::string found;
    found += difference_in("method", head.method_name.in(data), expected.method);
    found += difference_in("target", head.target.in(data), expected.target);
    if (head.version_major != expected.version_major ||
        head.version_minor != expected.version_minor) {
        found += "version differs";
    }
    if (head.field_count != expected.fields.size()) found += "count of fields differs";
    const auto fields = fields_in(section);
    if (fields != expected.fields) {
        found += difference_in("fields", words(fields), words(expected.fields));
    }
    if (!accepted || !found.empty()) return found;

    found += difference_in("authority", head.authority.in(data), expected.authority);
    const Framing framing = framing_of(head);
    const bool same_framing =
        (expected.framing == oracle::Framing::kChunked && framing.kind == BodyKind::kChunked) ||
        (expected.framing == oracle::Framing::kLength && expected.content_length > 0 &&
         framing.kind == BodyKind::kLength && framing.length == expected.content_length) ||
        (expected.framing != oracle::Framing::kChunked && expected.content_length == 0 &&
         framing.kind != BodyKind::kChunked && framing.length == 0);
    if (!same_framing) found += "framing differs";
    if (head.is_http_1_1() && head.has(kExpectContinue) != expected.expects_continue) {
        found += "expectation differs";
    }
    if (expected.connection_is_list && wants_persistence(head) != expected.persists) {
        found += "persistence differs";
    }
    return found;
}

enum class Depth { kWhole, kOctetByOctet, kEveryPrefix };

// Nothing when the server agrees with the oracle; else where and how not.
std::string head_difference(std::string_view input, const Setting& setting, Depth depth) {
    static const auto all = kernels();
    static constexpr std::array<std::string_view, 6> kTails = {
        "\r\n\r\n", "\xff", "%", "a: b\r\n", " ", std::string_view("\0", 1)};
    const auto options = options_of(setting);
    const oracle::Head expected = oracle::read_head(input, options);
    const Answer wanted = answer_of(expected);
    count(wanted);
    const std::size_t turn = input.size() + tally.inputs;
    const Padded padded(input, kTails[turn % kTails.size()]);
    const char* data = padded.data();

    const auto complaint = [&](const ScanKernel& kernel, std::size_t size, const Answer& seen,
                               const Answer& due, const std::string& detail) {
        return "setting " + std::string(setting.name) + ", kernel " + kernel.name + ", first " +
               std::to_string(size) + " octets: server " + words(seen) + "; oracle " + words(due) +
               (detail.empty() ? "" : "; " + detail);
    };
    for (const ScanKernel* kernel : all) {
        HeadParser parser;
        const Answer seen = server_answer(parser, data, input.size(), setting, *kernel);
        std::string parts;
        if (seen == wanted && expected.complete) {
            parts = difference_in_parts(parser.head(), data, expected);
        }
        if (seen != wanted || !parts.empty()) {
            return complaint(*kernel, input.size(), seen, wanted, parts);
        }
    }
    if (depth == Depth::kWhole) return "";

    // Until the deciding octet the server must ask for more; at it, decide as the oracle did.
    const bool decided = wanted.verdict != oracle::Verdict::kNeedMore;
    const std::size_t last = decided ? wanted.decided : input.size();
    for (std::size_t k = 0; k < all.size(); ++k) {
        if (depth == Depth::kOctetByOctet && k != turn % all.size()) continue;
        HeadParser parser;
        for (std::size_t size = 0; size <= last; ++size) {
            const Answer due = decided && size == last ? wanted : Answer{};
            const Answer seen = server_answer(parser, data, size, setting, *all[k]);
            std::string parts;
            if (seen == due && size == last && expected.complete) {
                parts = difference_in_parts(parser.head(), data, expected);
            }
            if (seen != due || !parts.empty()) {
                return complaint(*all[k], size, seen, due, "octet by octet " + parts);
            }
            if (depth != Depth::kEveryPrefix) continue;
            HeadParser fresh;
            const Padded alone(input.substr(0, size), kTails[(turn + size) % kTails.size()]);
            const Answer anew = server_answer(fresh, alone.data(), size, setting, *all[k]);
            if (anew != due) return complaint(*all[k], size, anew, due, "prefix alone");
        }
    }
    if (depth == Depth::kEveryPrefix) {
        for (std::size_t size = 0; size <= input.size(); ++size) {
            const Answer due = decided && size >= last ? wanted : Answer{};
            if (answer_of(oracle::read_head(input.substr(0, size), options)) != due) {
                return "the oracle is not a pure function of the prefix of " + std::to_string(size);
            }
        }
    }
    return "";
}

// ---- Chunked bodies
// ------------------------------------------------------------------------------

struct ServerChunked {
    Answer answer;
    std::string content;
    std::string trailers;
};

// Gives the decoder `input` in pieces of `step` octets.
ServerChunked server_chunked(std::string_view input, std::size_t step, const Setting& setting) {
    using Status = ChunkedDecoder::Status;
    ++tally.verdicts;
    ServerChunked seen;
    ChunkedDecoder decoder;
    std::size_t taken = 0;
    while (taken < input.size()) {
        std::string_view rest = input.substr(taken, step);
        taken += rest.size();
        for (Status status = Status::kContent; status != Status::kNeedMore;) {
            std::string_view piece;
            status = decoder.decode(rest, setting.limits, piece);
            if (status == Status::kContent) seen.content += piece;
            if (status == Status::kTrailer) seen.trailers += piece;
            if (status == Status::kDone) {
                seen.answer = {oracle::Verdict::kAccepted, 0, Subject::kNone, taken - rest.size()};
                return seen;
            }
            if (status == Status::kRejected) {
                seen.answer =
                    rejected(decoder.reason(), static_cast<std::size_t>(decoder.offset()) + 1);
                return seen;
            }
        }
    }
    return seen;
}

std::string chunked_difference(std::string_view input, const Setting& setting, Depth depth) {
    const auto options = options_of(setting);
    const oracle::Chunked expected = oracle::read_chunked(input, options);
    const Answer wanted = answer_of(expected);
    count(wanted);
    for (const std::size_t step :
         {input.size() + 1, std::size_t{1}, std::size_t{2}, std::size_t{7}}) {
        const ServerChunked seen = server_chunked(input, step, setting);
        std::string parts;
        if (seen.answer == wanted) {
            if (wanted.verdict != oracle::Verdict::kRejected || !seen.content.empty()) {
                parts = difference_in("content", seen.content, expected.content);
            }
            if (wanted.verdict == oracle::Verdict::kAccepted) {
                const auto trailers = fields_in(seen.trailers);
                if (trailers != expected.trailers) {
                    parts += difference_in("trailers", words(trailers), words(expected.trailers));
                }
            }
        }
        if (seen.answer != wanted || !parts.empty()) {
            return "setting " + std::string(setting.name) + ", " + std::to_string(step) +
                   " octets at a time: server " + words(seen.answer) + "; oracle " + words(wanted) +
                   "; " + parts;
        }
    }
    if (depth != Depth::kEveryPrefix) return "";
    const bool decided = wanted.verdict != oracle::Verdict::kNeedMore;
    for (std::size_t size = 0; size <= input.size(); ++size) {
        const Answer due = decided && size >= wanted.decided ? wanted : Answer{};
        const std::string_view prefix = input.substr(0, size);
        if (answer_of(oracle::read_chunked(prefix, options)) != due) {
            return "the oracle is not a pure function of the prefix of " + std::to_string(size);
        }
        const Answer seen = server_chunked(prefix, size + 1, setting).answer;
        if (seen != due) {
            return "setting " + std::string(setting.name) + ", first " + std::to_string(size) +
                   " octets: server " + words(seen) + "; oracle " + words(due);
        }
    }
    return "";
}

// ---- Reporting a disagreement
// --------------------------------------------------------------------

using Compare = std::string (*)(std::string_view, const Setting&, Depth);

// What a complaint says, but for where it says it.
std::string kind_of(const std::string& complaint) {
    std::string kind = complaint.substr(0, complaint.find(';'));
    for (const std::string_view before : {"by ", "first "}) {
        const std::size_t found = kind.rfind(before);
        if (found == std::string::npos) continue;
        const std::size_t begin = found + before.size();
        const std::size_t end = kind.find_first_not_of("0123456789", begin);
        kind.erase(begin, end == std::string::npos ? end : end - begin);
    }
    return kind;
}

// Leaves out what can be left out while the two still disagree in the same way.
std::string shrunk(std::string input, const Setting& setting, Compare compare) {
    const std::string kind = kind_of(compare(input, setting, Depth::kEveryPrefix));
    for (bool smaller = input.size() < 2000; smaller;) {
        smaller = false;
        for (std::size_t size = input.size(); size > 0; size /= 2) {
            for (std::size_t at = 0; at + size <= input.size();) {
                std::string candidate = input;
                candidate.erase(at, size);
                const std::string found = compare(candidate, setting, Depth::kEveryPrefix);
                if (!found.empty() && kind_of(found) == kind) {
                    input = candidate;
                    smaller = true;
                } else {
                    ++at;
                }
            }
        }
    }
    return input;
}

constexpr int kDisagreementsShown = 12;

// False once the test at hand has seen so many that more would not help.
bool check(Compare compare, const std::string& input, const Setting& setting, Depth depth) {
    ++tally.inputs;
    const std::string found = compare(input, setting, depth);
    if (found.empty()) return true;
    static const ::testing::TestInfo* test = nullptr;
    static int disagreements = 0;
    if (test != ::testing::UnitTest::GetInstance()->current_test_info()) {
        test = ::testing::UnitTest::GetInstance()->current_test_info();
        disagreements = 0;
    }
    if (disagreements < kDisagreementsShown) {
        const std::string small = shrunk(input, setting, compare);
        ADD_FAILURE() << "input  " << escaped(input) << "\n       " << found << "\nshrunk "
                      << escaped(small) << "\n       "
                      << compare(small, setting, Depth::kEveryPrefix);
    }
    return ++disagreements < kDisagreementsShown;
}

const Setting& strict() {
    return settings().front();
}

// ---- Inputs
// --------------------------------------------------------------------------------------

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

class Dice {
  public:
    explicit Dice(std::uint64_t seed) : engine_(seed) {}
    std::size_t below(std::size_t n) { return static_cast<std::size_t>(engine_() % n); }
    bool one_in(std::size_t n) { return below(n) == 0; }
    template <typename List>
    const auto& one_of(const List& list) {
        return list[below(std::size(list))];
    }
    char octet() { return static_cast<char>(below(256)); }
    std::string run(std::string_view alphabet, std::size_t size) {
        std::string text;
        while (text.size() < size) text += alphabet[below(alphabet.size())];
        return text;
    }

  private:
    std::mt19937_64 engine_;
};

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

// ---- The oracle by itself: the decisions, so that the two cannot be wrong together unseen
// ---------

std::string with_host(const std::string& line, const std::string& fields = "") {
    return line + "\r\nHost: a\r\n" + fields + "\r\n";
}

TEST(Oracle, KnowsTheDecisions) {
    const std::vector<std::pair<std::string, int>> decisions = {
        // octets, status or 0
        {with_host("GET / HTTP/1.1"), 0},
        {"\r\n" + with_host("GET / HTTP/1.1"), 0},
        {"\r\n\r\n" + with_host("GET / HTTP/1.1"), 400},
        {"\n" + with_host("GET / HTTP/1.1"), 400},
        {"GET / HTTP/1.1\nHost: a\r\n\r\n", 400},
        {"GET / HTTP/1.1\r\nHost: a\n\r\n", 400},
        {"GET / HTTP/1.1\r\nHost: a\r\n\n", 400},
        {"GET / HTTP/1.1\r\nHost: a\rb\r\n\r\n", 400},
        {"GET / HTTP/1.1\r\n Host: a\r\n\r\n", 400},
        {with_host("GET  / HTTP/1.1"), 400},
        {with_host("GET /  HTTP/1.1"), 400},
        {with_host("GET\t/ HTTP/1.1"), 400},
        {with_host("GET / HTTP/1.1 "), 400},
        {with_host("GET /"), 400},
        {with_host("BREW / HTTP/1.1"), 501},
        {with_host("get / HTTP/1.1"), 501},
        {with_host("TRACE / HTTP/1.1"), 501},
        {std::string(33, 'A'), 501},
        {std::string(32, 'A') + "@", 400},
        {"GET /" + std::string(8192, 'a'), 414},
        {with_host("GET http://b/ HTTP/1.1"), 0},
        {with_host("GET https://b/ HTTP/1.1"), 421},
        {with_host("GET http:/// HTTP/1.1"), 400},
        {with_host("GET http://u@b/ HTTP/1.1"), 400},
        {with_host("GET ftp://b/ HTTP/1.1"), 400},
        {with_host("GET b:80 HTTP/1.1"), 400},
        {with_host("CONNECT b:80 HTTP/1.1"), 501},
        {with_host("CONNECT b HTTP/1.1"), 400},
        {with_host("CONNECT b: HTTP/1.1"), 400},
        {with_host("OPTIONS * HTTP/1.1"), 0},
        {with_host("GET * HTTP/1.1"), 400},
        {with_host("GET //a/../%00 HTTP/1.1"), 0},
        {with_host("GET /%zz HTTP/1.1"), 400},
        {with_host("GET /%4 HTTP/1.1"), 400},
        {with_host("GET /a#b HTTP/1.1"), 400},
        {with_host("GET /?| HTTP/1.1"), 400},
        {with_host("GET /\x80 HTTP/1.1"), 400},
        {with_host("GET / HTTP/1.9"), 0},
        {with_host("GET / HTTP/2.0"), 505},
        {with_host("GET / HTTP/0.9"), 505},
        {with_host("GET / HTTP/1.10"), 400},
        {with_host("GET / http/1.1"), 400},
        {"PRI * HTTP/2.0\r\n", 505},
        {"GET / HTTP/1.0\r\n\r\n", 0},
        {"GET / HTTP/1.1\r\n\r\n", 400},
        {"GET / HTTP/1.1\r\nHost:\r\n\r\n", 400},
        {"GET / HTTP/1.0\r\nHost: @\r\n\r\n", 400},
        {with_host("GET / HTTP/1.1", "host: a\r\n"), 400},
        {"GET / HTTP/1.1\r\nHost: [::1]:8080\r\n\r\n", 0},
        {"GET / HTTP/1.1\r\nHost: [1:2:3:4:5:6:7:8]:\r\n\r\n", 0},
        {"GET / HTTP/1.1\r\nHost: [1:2:3:4:5:6:7::]\r\n\r\n", 0},
        {"GET / HTTP/1.1\r\nHost: [::2:3:4:5:6:7:8]\r\n\r\n", 0},
        {"GET / HTTP/1.1\r\nHost: [1::3:4:5:6:7:8]\r\n\r\n", 0},
        {"GET / HTTP/1.1\r\nHost: [1:2:3:4:5:6:7:8::]\r\n\r\n", 400},
        {"GET / HTTP/1.1\r\nHost: [1:2:3:4:5:6:7]\r\n\r\n", 400},
        {"GET / HTTP/1.1\r\nHost: [1::2::3]\r\n\r\n", 400},
        {"GET / HTTP/1.1\r\nHost: [:1:2:3:4:5:6:7]\r\n\r\n", 400},
        {"GET / HTTP/1.1\r\nHost: [12345::]\r\n\r\n", 400},
        {"GET / HTTP/1.1\r\nHost: [::1.2.3.4]\r\n\r\n", 0},
        {"GET / HTTP/1.1\r\nHost: [1:2:3:4:5:6:1.2.3.4]\r\n\r\n", 0},
        {"GET / HTTP/1.1\r\nHost: [::1.2.3.256]\r\n\r\n", 400},
        {"GET / HTTP/1.1\r\nHost: [::1.2.3.04]\r\n\r\n", 400},
        {"GET / HTTP/1.1\r\nHost: [::1.2.3.4:1]\r\n\r\n", 400},
        {"GET / HTTP/1.1\r\nHost: [fe80::1%25eth0]\r\n\r\n", 400},
        {"GET / HTTP/1.1\r\nHost: [vF.~:]\r\n\r\n", 0},
        {"GET / HTTP/1.1\r\nHost: [v.a]\r\n\r\n", 400},
        {"GET / HTTP/1.1\r\nHost: a:65535\r\n\r\n", 0},
        {"GET / HTTP/1.1\r\nHost: a:65536\r\n\r\n", 400},
        {"GET / HTTP/1.1\r\nHost: a:8x\r\n\r\n", 400},
        {"GET / HTTP/1.1\r\nHost: a b\r\n\r\n", 400},
        {"GET / HTTP/1.1\r\nHost: 1.2.3.999\r\n\r\n", 0},
        {with_host("GET / HTTP/1.1", "X : y\r\n"), 400},
        {with_host("GET / HTTP/1.1", "X: y\r\n z\r\n"), 400},
        {with_host("GET / HTTP/1.1", "X: \x01\r\n"), 400},
        {with_host("GET / HTTP/1.1", "X: \x7f\r\n"), 400},
        {with_host("GET / HTTP/1.1", "X:\t\xff\r\n"), 0},
        {with_host("GET / HTTP/1.1", ":y\r\n"), 400},
        {with_host("GET / HTTP/1.1", "X\r\n"), 400},
        {with_host("GET / HTTP/1.1", "X\x80: y\r\n"), 400},
        {with_host("GET / HTTP/1.1", std::string(257, 'n')), 431},
        {with_host("GET / HTTP/1.1", "x:" + std::string(8193, 'v')), 431},
        {with_host("POST / HTTP/1.1", "Content-Length: 007\r\n"), 0},
        {with_host("POST / HTTP/1.1", "Content-Length: +7\r\n"), 400},
        {with_host("POST / HTTP/1.1", "Content-Length:\r\n"), 400},
        {with_host("POST / HTTP/1.1", "Content-Length: 7, 7\r\n"), 400},
        {with_host("POST / HTTP/1.1", "Content-Length: 7\r\nContent-Length: 7\r\n"), 400},
        {with_host("POST / HTTP/1.1", "Content-Length: 33554433\r\n"), 413},
        {with_host("POST / HTTP/1.1", "Content-Length: 99999999999999999999999\r\n"), 413},
        {with_host("BREW / HTTP/1.1", "Content-Length: 9223372036854775808\r\n"), 501},
        {with_host("GET https://b/ HTTP/1.1", "Content-Length: 9223372036854775808\r\n"), 421},
        {with_host("POST / HTTP/1.1", "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n"), 400},
        {with_host("POST / HTTP/1.1", "Transfer-Encoding: chunked\r\n"), 0},
        {with_host("POST / HTTP/1.1", "Transfer-Encoding: , chunked,,\r\n"), 0},
        {with_host("POST / HTTP/1.1", "Transfer-Encoding: gzip, chunked\r\n"), 501},
        {with_host("POST / HTTP/1.1", "Transfer-Encoding: gzip\r\n"), 400},
        {with_host("POST / HTTP/1.1", "Transfer-Encoding: chunked, gzip\r\n"), 400},
        {with_host("POST / HTTP/1.1", "Transfer-Encoding: chunked, chunked\r\n"), 400},
        {with_host("POST / HTTP/1.1", "Transfer-Encoding: chunked;a=b\r\n"), 400},
        {with_host("POST / HTTP/1.1", "Transfer-Encoding:\r\n"), 400},
        {with_host("POST / HTTP/1.0", "Transfer-Encoding: chunked\r\n"), 400},
        {with_host("POST / HTTP/1.1", "Expect: 100-CONTINUE\r\n"), 0},
        {with_host("POST / HTTP/1.1", "Expect: 200-ok\r\n"), 417},
        {with_host("POST / HTTP/1.0", "Expect: 200-ok\r\n"), 0},
    };
    for (const auto& [octets, status] : decisions) {
        const oracle::Head head = oracle::read_head(octets, {});
        EXPECT_NE(head.verdict, oracle::Verdict::kNeedMore) << escaped(octets);
        EXPECT_EQ(head.status, status) << escaped(octets);
        EXPECT_EQ(head_difference(octets, strict(), Depth::kEveryPrefix), "") << escaped(octets);
    }
}

TEST(Oracle, KnowsTheDecisionsOnChunkedBodies) {
    const std::vector<std::pair<std::string, int>> decisions = {
        // octets, status or 0
        {"0\r\n\r\n", 0},
        {"5;a=\"\\\"\r\n\r\n", 400},
        {"1;a=\"b\\\"\"\r\nx\r\n0\r\n\r\n", 0},
        {"1 ;a\r\nx\r\n0\r\n\r\n", 0},
        {"1 \r\nx\r\n0\r\n\r\n", 400},
        {"1;a \r\nx\r\n0\r\n\r\n", 400},
        {"1;\r\nx\r\n0\r\n\r\n", 400},
        {"1;a=\r\nx\r\n0\r\n\r\n", 400},
        {" 1\r\nx\r\n0\r\n\r\n", 400},
        {"0x1\r\nx\r\n0\r\n\r\n", 400},
        {"-1\r\nx\r\n0\r\n\r\n", 400},
        {"\r\n", 400},
        {"1\nx\r\n0\r\n\r\n", 400},
        {"1\r\nx\n0\r\n\r\n", 400},
        {"1\r\nxy\r\n0\r\n\r\n", 400},
        {"2000001\r\n", 413},
        {"fffffffffffffffffffffffff\r\n", 413},
        {std::string(1025, '0'), 400},
        {"0\r\nA: b\r\n\r\n", 0},
        {"0\r\nA : b\r\n\r\n", 400},
        {"0\r\n A: b\r\n\r\n", 400},
        {"0\r\nA: b\n\r\n", 400},
        {"0\r\nx: " + std::string(8192, 'v'), 431},
    };
    for (const auto& [octets, status] : decisions) {
        const oracle::Chunked body = oracle::read_chunked(octets, {});
        EXPECT_NE(body.verdict, oracle::Verdict::kNeedMore) << escaped(octets);
        EXPECT_EQ(body.status, status) << escaped(octets);
        EXPECT_EQ(chunked_difference(octets, strict(), Depth::kEveryPrefix), "") << escaped(octets);
    }
}

// ---- The server against the oracle
// ---------------------------------------------------------------

TEST(ServerAgrees, OnEveryPrefixOfTheBases) {
    for (const Setting& setting : settings()) {
        for (const auto& base : base_requests()) {
            if (!check(head_difference, base, setting, Depth::kEveryPrefix)) return;
        }
        for (const auto& base : base_bodies()) {
            if (!check(chunked_difference, base, setting, Depth::kEveryPrefix)) return;
        }
    }
}

// 413 for a length beyond 2^63-1 comes behind 400 for lengths that differ, 501 and 421.
TEST(ServerAgrees, OnLengthsBeyondTheHighest) {
    for (const Setting& setting : settings()) {
        for (const char* line : {"GET /", "BREW /", "GET https://b/"}) {
            for (const char* lengths :
                 {"9223372036854775808", "9223372036854775807, 92233720368547758079",
                  "92233720368547758079, 9223372036854775807",
                  "9223372036854775808, 09223372036854775808"}) {
                const std::string input =
                    with_host(line + " HTTP/1.1"s, "Content-Length: "s + lengths + "\r\n");
                if (!check(head_difference, input, setting, Depth::kEveryPrefix)) return;
            }
        }
    }
}

// Every octet value put in place of each octet and before each, and each octet left out.
void edit_everywhere(Compare compare, const std::vector<std::string>& bases,
                     const Setting& setting) {
    for (const auto& base : bases) {
        for (std::size_t at = 0; at <= base.size(); ++at) {
            for (int value = 0; value < 256; ++value) {
                std::string input = base;
                input.insert(at, 1, static_cast<char>(value));
                if (!check(compare, input, setting, Depth::kOctetByOctet)) return;
                if (at == base.size() || base[at] == static_cast<char>(value)) continue;
                input = base;
                input[at] = static_cast<char>(value);
                if (!check(compare, input, setting, Depth::kOctetByOctet)) return;
            }
            std::string input = base;
            if (at < base.size()) input.erase(at, 1);
            if (!check(compare, input, setting, Depth::kOctetByOctet)) return;
        }
    }
}

TEST(ServerAgrees, OnEverySingleOctetEditOfHeads) {
    edit_everywhere(head_difference, base_requests(), strict());
}

TEST(ServerAgrees, OnEverySingleOctetEditOfChunkedBodies) {
    edit_everywhere(chunked_difference, base_bodies(), strict());
}

// "%" at offset `percent` of the request, in the path and in the query.
TEST(ServerAgrees, OnEveryPercentPairAroundBlockEdges) {
    for (const bool in_query : {false, true}) {
        for (const std::size_t percent : {15U, 16U, 17U, 31U, 32U, 33U, 63U, 64U, 65U}) {
            std::string input = "GET /";
            if (in_query) input += "?";
            input.append(percent - input.size(), 'a');
            input += "%..b HTTP/1.1\r\nHost: a\r\n\r\n";
            for (int pair = 0; pair < 65536; ++pair) {
                input[percent + 1] = static_cast<char>(pair >> 8);
                input[percent + 2] = static_cast<char>(pair & 0xFF);
                if (!check(head_difference, input, strict(), Depth::kWhole)) return;
            }
        }
    }
}

// Every octet at every place of the first two blocks: as a digit behind "%", in a target, in a
// field name and in a field value. A wrong entry in one lane of one table shows here.
TEST(ServerAgrees, OnEveryOctetAtEveryPlaceOfABlock) {
    struct Slot {
        std::string before;
        char filler;
        std::string marker;
        std::string after;
    };
    const std::string end = " HTTP/1.1\r\nHost: a\r\n\r\n";
    const std::string get = "GET / HTTP/1.1\r\nHost: a\r\n";
    const std::vector<Slot> slots = {
        {"GET /", 'a', "%", "0" + end},  {"GET /", 'a', "%0", end},
        {"GET /?", 'a', "%", "0" + end}, {"GET /?", 'a', "%0", end},
        {"GET /", 'a', "", end},         {"GET /?", 'a', "", end},
        {get, 'n', "n", "n: v\r\n\r\n"}, {get + "n:", 'v', "v", "v\r\n\r\n"}};
    for (const Slot& slot : slots) {
        for (std::size_t at = slot.before.size() + slot.marker.size(); at < 194; ++at) {
            std::string input = slot.before;
            input.append(at - slot.before.size() - slot.marker.size(), slot.filler);
            input += slot.marker + '?' + slot.after;
            for (int value = 0; value < 256; ++value) {
                input[at] = static_cast<char>(value);
                if (!check(head_difference, input, strict(), Depth::kWhole)) return;
            }
        }
    }
}

TEST(ServerAgrees, OnWordsInEverySlot) {
    Dice dice(seed() + 1);
    const std::string get = "GET / HTTP/1.1\r\n";
    const std::string host = "Host: a\r\n";
    using Make = std::function<std::string()>;
    const auto field = [&](const std::string& line, const std::string& name,
                           const std::vector<std::string>& vocabulary, std::size_t most) -> Make {
        return [&dice, line, name, &vocabulary, most] {
            std::string input = line;
            do {
                input += name + ":" + words_from(dice, vocabulary, most) + "\r\n";
            } while (dice.one_in(4));
            return input + "\r\n";
        };
    };
    const std::vector<Make> makers = {
        field(get, "Host", host_words(), 9),
        field("GET / HTTP/1.0\r\n", "Host", host_words(), 4),
        [&] { return get + "Host: [" + dice.run("0:1.f:", dice.below(22)) + "]\r\n\r\n"; },
        [&] {
            return get + "Host: [::" + dice.run("0123456789.", 5 + dice.below(11)) + "]\r\n\r\n";
        },
        field(get + host, "Transfer-Encoding", coding_words(), 7),
        field("POST / HTTP/1.0\r\n" + host, "Transfer-Encoding", coding_words(), 3),
        field(get + host, "Content-Length", length_words(), 4),
        field(get + host + "Transfer-Encoding: chunked\r\n", "Content-Length", length_words(), 2),
        field(get + host, "Expect", expect_words(), 5),
        field(get + host, "Connection", connection_words(), 6),
        field("GET / HTTP/1.0\r\n" + host, "Connection", connection_words(), 6),
        [&] {
            static const std::array<std::string_view, 5> kMethods = {"GET", "OPTIONS", "CONNECT",
                                                                     "POST", "X"};
            return std::string(dice.one_of(kMethods)) + " " + words_from(dice, target_words(), 8) +
                   " HTTP/1.1\r\nHost: a\r\n\r\n";
        },
        [&] {
            return "GET http://" + words_from(dice, target_words(), 6) +
                   " HTTP/1.1\r\nHost: a\r\n\r\n";
        },
        [&] {
            return "CONNECT " + words_from(dice, host_words(), 6) + " HTTP/1.1\r\nHost: a\r\n\r\n";
        },
        [&] { return "GET / " + words_from(dice, version_words(), 5) + "\r\nHost: a\r\n\r\n"; },
    };
    for (std::uint64_t run = 0; run < runs() / 2; ++run) {
        const std::string input = makers[run % makers.size()]();
        const Setting& setting = settings()[dice.below(4)];
        if (!check(head_difference, input, setting, sometimes_deep(dice))) return;
    }
    for (std::uint64_t run = 0; run < runs() / 2; ++run) {
        const std::string input = words_from(dice, chunk_words(), 14);
        if (!check(chunked_difference, input, dice.one_of(settings()), sometimes_deep(dice)))
            return;
    }
}

TEST(ServerAgrees, OnGeneratedAndHarmedRequests) {
    Dice dice(seed() + 2);
    std::string other = base_requests().front();
    for (std::uint64_t run = 0; run < runs(); ++run) {
        std::string input = dice.one_in(4) ? dice.one_of(base_requests()) : some_request(dice);
        const std::string whole = input;
        for (std::size_t harms = dice.below(4); harms > 0; --harms) {
            input = harmed(dice, input, other);
        }
        other = whole;
        if (!check(head_difference, input, dice.one_of(settings()), sometimes_deep(dice))) return;
    }
}

TEST(ServerAgrees, OnGeneratedAndHarmedChunkedBodies) {
    Dice dice(seed() + 3);
    std::string other = base_bodies().front();
    for (std::uint64_t run = 0; run < runs() / 2; ++run) {
        std::string input = dice.one_in(4) ? dice.one_of(base_bodies()) : some_body(dice);
        const std::string whole = input;
        for (std::size_t harms = dice.below(4); harms > 0; --harms) {
            input = harmed(dice, input, other);
        }
        other = whole;
        if (!check(chunked_difference, input, dice.one_of(settings()), sometimes_deep(dice)))
            return;
    }
}

// Around each default limit: one below, at it and one above.
TEST(ServerAgrees, OnTheEdgesOfTheLimits) {
    const std::string get = "GET / HTTP/1.1\r\nHost: a\r\n";
    for (const std::size_t more : {0U, 1U, 2U, 3U}) {
        std::string lines;
        for (std::size_t i = 0; i < 97 + more; ++i) lines += "x: y\r\n";
        std::string filler;
        for (int i = 0; i < 4; ++i) filler += "x:" + std::string(8000, 'v') + "\r\n";
        const std::string head = get + filler + "y:";
        std::string trailers = "x:" + std::string(8100, 'v') + "\r\n";
        trailers += trailers + "y:";
        const std::vector<std::string> heads = {
            std::string(30 + more, 'M') + " / HTTP/1.1\r\nHost: a\r\n\r\n",
            std::string(30 + more, 'M') + "@ / HTTP/1.1\r\nHost: a\r\n\r\n",
            "GET /" + std::string(8189 + more, 't') + " HTTP/1.1\r\nHost: a\r\n\r\n",
            "GET /" + std::string(8189 + more, 't') + "\" HTTP/1.1\r\nHost: a\r\n\r\n",
            "GET http://" + std::string(8179 + more, 't') + " HTTP/1.1\r\nHost: a\r\n\r\n",
            get + std::string(254 + more, 'n') + ": v\r\n\r\n",
            get + std::string(254 + more, 'n') + " : v\r\n\r\n",
            get + "n:" + std::string(8190 + more, 'v') + "\r\n\r\n",
            get + "n:" + std::string(8190 + more, ' ') + "\r\n\r\n",
            get + "n:" + std::string(8190 + more, 'v') + "\n\r\n\r\n",
            get + lines + "\r\n",
            get + lines + " z\r\n\r\n",
            head + std::string(32768 - head.size() - 6 + more, 'v') + "\r\n\r\n",
            "\r\n" + head + std::string(32768 - head.size() - 8 + more, 'v') + "\r\n\r\n",
            "\r\n" + head + std::string(32768 - head.size() - 6 + more, 'v') + "\r\n\r\n",
            head + std::string(32768 - head.size() - 2 + more, 'v') + "\x01\r\n\r\n",
        };
        for (const auto& input : heads) {
            if (!check(head_difference, input, strict(), Depth::kOctetByOctet)) return;
        }
        const std::vector<std::string> bodies = {
            std::string(1020 + more, '0') + "\r\n\r\n",
            "1;" + std::string(1018 + more, 'a') + "\r\nx\r\n0\r\n\r\n",
            "1;" + std::string(1020 + more, 'a') + "@\r\nx\r\n0\r\n\r\n",
            "0\r\n" + lines + "x: y\r\n\r\n",
            "0\r\n" + trailers + std::string(16384 - trailers.size() - 6 + more, 'v') + "\r\n\r\n",
            "0\r\n" + std::string(254 + more, 'n') + ": v\r\n\r\n",
            "0\r\nn:" + std::string(8190 + more, 'v') + "\r\n\r\n",
        };
        for (const auto& input : bodies) {
            if (!check(chunked_difference, input, strict(), Depth::kOctetByOctet)) return;
        }
    }
}

}  // namespace
}  // namespace httpmark

int main(int argc, char** argv) {
    std::printf("HTTPMARK_ORACLE_SEED=%llu HTTPMARK_ORACLE_RUNS=%llu kernels:",
                static_cast<unsigned long long>(httpmark::seed()),
                static_cast<unsigned long long>(httpmark::runs()));
    for (const auto* kernel : httpmark::kernels()) std::printf(" %s", kernel->name);
    std::printf("\n");
    ::testing::InitGoogleTest(&argc, argv);
    const int result = RUN_ALL_TESTS();
    const auto& tally = httpmark::tally;
    std::printf(
        "inputs %llu (accepted %llu, rejected %llu, undecided %llu), verdicts compared %llu, "
        "reasons seen %zu\n",
        static_cast<unsigned long long>(tally.inputs),
        static_cast<unsigned long long>(tally.accepted),
        static_cast<unsigned long long>(tally.rejected),
        static_cast<unsigned long long>(tally.undecided),
        static_cast<unsigned long long>(tally.verdicts), tally.reasons.size());
    return result;
}
