#include "comparison.hpp"

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

namespace httpmark {

using namespace std::string_literals;
using oracle::Subject;

Tally tally;

// ---- The same setting in the words of both
// -------------------------------------------------------

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

struct Place {
    Reason reason;
    Subject subject;
};

// The reasons of the server, and what they are about.
constexpr Place kPlaces[] = {
    {Reason::kBareCrBeforeRequest, Subject::kMethod},
    {Reason::kMethodEmpty, Subject::kMethod},
    {Reason::kMethodOctet, Subject::kMethod},
    {Reason::kMethodTooLong, Subject::kMethod},
    {Reason::kMethodUnknown, Subject::kMethod},
    {Reason::kTargetEmpty, Subject::kTarget},
    {Reason::kTargetOctet, Subject::kTarget},
    {Reason::kTargetPercent, Subject::kTarget},
    {Reason::kTargetTooLong, Subject::kTarget},
    {Reason::kTargetForm, Subject::kTarget},
    {Reason::kTargetScheme, Subject::kTarget},
    {Reason::kTargetAuthority, Subject::kTarget},
    {Reason::kTargetUserinfo, Subject::kTarget},
    {Reason::kTargetHostEmpty, Subject::kTarget},
    {Reason::kConnectTarget, Subject::kTarget},
    {Reason::kAsteriskMethod, Subject::kTarget},
    {Reason::kVersionSyntax, Subject::kVersion},
    {Reason::kVersionLineEnd, Subject::kVersion},
    {Reason::kVersionMajor, Subject::kVersion},
    {Reason::kFieldNameEmpty, Subject::kField},
    {Reason::kFieldNameOctet, Subject::kField},
    {Reason::kFieldFold, Subject::kField},
    {Reason::kFieldSpaceBeforeColon, Subject::kField},
    {Reason::kFieldValueOctet, Subject::kField},
    {Reason::kFieldBareCr, Subject::kField},
    {Reason::kFieldBareLf, Subject::kField},
    {Reason::kFieldNameTooLong, Subject::kField},
    {Reason::kFieldValueTooLong, Subject::kField},
    {Reason::kFieldLinesTooMany, Subject::kField},
    {Reason::kHeadTooLong, Subject::kField},
    {Reason::kHostMissing, Subject::kHost},
    {Reason::kHostRepeated, Subject::kHost},
    {Reason::kHostInvalid, Subject::kHost},
    {Reason::kHostEmpty, Subject::kHost},
    {Reason::kTransferCodingSyntax, Subject::kTransferEncoding},
    {Reason::kTransferCodingInOldVersion, Subject::kTransferEncoding},
    {Reason::kTransferCodingTwice, Subject::kTransferEncoding},
    {Reason::kTransferCodingParameters, Subject::kTransferEncoding},
    {Reason::kTransferCodingNotFinal, Subject::kTransferEncoding},
    {Reason::kTransferCodingEmpty, Subject::kTransferEncoding},
    {Reason::kTransferCodingEmptyMember, Subject::kTransferEncoding},
    {Reason::kTransferCodingUnknown, Subject::kTransferEncoding},
    {Reason::kTransferCodingWithLength, Subject::kTransferEncoding},
    {Reason::kLengthSyntax, Subject::kContentLength},
    {Reason::kLengthRepeated, Subject::kContentLength},
    {Reason::kLengthTooLarge, Subject::kContent},
    {Reason::kContentTooLarge, Subject::kContent},
    {Reason::kMisdirected, Subject::kMisdirected},
    {Reason::kExpectationUnknown, Subject::kExpect},
    {Reason::kChunkSizeSyntax, Subject::kChunk},
    {Reason::kChunkSizeTooLarge, Subject::kChunk},
    {Reason::kChunkExtensionSyntax, Subject::kChunk},
    {Reason::kChunkLineTooLong, Subject::kChunk},
    {Reason::kChunkExtensionTooLong, Subject::kChunk},
    {Reason::kChunkExtensionsTooLong, Subject::kChunk},
    {Reason::kChunkLineEnd, Subject::kChunk},
    {Reason::kChunkDataEnd, Subject::kChunk},
    {Reason::kTrailerNameEmpty, Subject::kTrailer},
    {Reason::kTrailerNameOctet, Subject::kTrailer},
    {Reason::kTrailerFold, Subject::kTrailer},
    {Reason::kTrailerSpaceBeforeColon, Subject::kTrailer},
    {Reason::kTrailerValueOctet, Subject::kTrailer},
    {Reason::kTrailerBareCr, Subject::kTrailer},
    {Reason::kTrailerBareLf, Subject::kTrailer},
    {Reason::kTrailerNameTooLong, Subject::kTrailer},
    {Reason::kTrailerValueTooLong, Subject::kTrailer},
    {Reason::kTrailerLinesTooMany, Subject::kTrailer},
    {Reason::kTrailersTooLong, Subject::kTrailer},
    {Reason::kTrailerForbidden, Subject::kTrailer},
    // It needs to know of the head and the content: the connection's.
    {Reason::kRequestTooLarge, Subject::kNone},
    // A choice of the connection's, off by default.
    {Reason::kFieldRepeated, Subject::kNone},
    {Reason::kNone, Subject::kNone},
    {Reason::kIncomplete, Subject::kNone},
    {Reason::kIdleTimeout, Subject::kNone},
    {Reason::kHeadTimeout, Subject::kNone},
    {Reason::kBodyTimeout, Subject::kNone},
    {Reason::kHandlerTimeout, Subject::kNone},
    {Reason::kHandlerFailed, Subject::kNone},
    {Reason::kNotFound, Subject::kNone},
    {Reason::kMethodNotAllowed, Subject::kNone},
    {Reason::kLengthRequired, Subject::kNone},
    {Reason::kMediaType, Subject::kNone},
    {Reason::kUpgradeRequired, Subject::kNone},
    {Reason::kHandshakeInvalid, Subject::kNone},
    {Reason::kOriginForbidden, Subject::kNone},
    {Reason::kPathInvalid, Subject::kNone},
    {Reason::kForbidden, Subject::kNone},
    {Reason::kPreconditionFailed, Subject::kNone},
    {Reason::kFileBusy, Subject::kNone},
    {Reason::kFileFailed, Subject::kNone},
    {Reason::kNoMemory, Subject::kNone},
    {Reason::kTooManyConnections, Subject::kNone},
};

// A new reason must be given its place, but for what handlers find in content.
constexpr bool each_reason_has_one_place() {
    for (unsigned reason = 0; reason < static_cast<unsigned>(Reason::kCount); ++reason) {
        if (reason == static_cast<unsigned>(Reason::kMediaTypeSyntax)) {
            reason = static_cast<unsigned>(Reason::kDecodedTooLarge) + 1;
        }
        unsigned places = 0;
        for (const Place& place : kPlaces) places += static_cast<unsigned>(place.reason) == reason;
        if (places != 1) return false;
    }
    return true;
}
static_assert(each_reason_has_one_place());

Subject subject_of(Reason reason) {
    for (const Place& place : kPlaces) {
        if (place.reason == reason) return place.subject;
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

// Bytes with others after them that must not matter.
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

// What the server makes of the first `size` bytes, given that it has seen some of them before.
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

// Nothing when the oracle asks for more before the deciding byte, and decides the same after it.
std::string impurity_of_oracle(std::string_view input, const oracle::Options& options,
                               const Answer& wanted) {
    const bool decided = wanted.verdict != oracle::Verdict::kNeedMore;
    for (std::size_t size = 0; size <= input.size(); ++size) {
        const Answer due = decided && size >= wanted.decided ? wanted : Answer{};
        if (answer_of(oracle::read_head(input.substr(0, size), options)) != due) {
            return "the oracle is not a pure function of the prefix of " + std::to_string(size);
        }
    }
    return "";
}

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

    // Until the deciding byte the server must ask for more; at it, decide as the oracle did.
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
                return complaint(*all[k], size, seen, due, "byte by byte " + parts);
            }
            if (depth != Depth::kEveryPrefix) continue;
            HeadParser fresh;
            const Padded alone(input.substr(0, size), kTails[(turn + size) % kTails.size()]);
            const Answer anew = server_answer(fresh, alone.data(), size, setting, *all[k]);
            if (anew != due) return complaint(*all[k], size, anew, due, "prefix alone");
        }
    }
    return depth == Depth::kEveryPrefix ? impurity_of_oracle(input, options, wanted) : "";
}

// ---- Chunked bodies
// ------------------------------------------------------------------------------

struct ServerChunked {
    Answer answer;
    std::string content;
    std::string trailers;
};

// Gives the decoder `input` in pieces of `step` bytes.
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

}  // namespace httpmark
