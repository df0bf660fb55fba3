#include "content/multipart.hpp"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "guard_page.hpp"
#include "http/parser.hpp"
#include "laws.hpp"

namespace httpmark {
namespace {

using Status = MultipartDecoder::Status;

struct Part {
    std::string head;
    std::string name;
    std::string filename;
    bool has_filename = false;
    std::string content_type;
    std::string content;
    bool is_ended = false;
    bool operator==(const Part&) const = default;
};

struct Decoded {
    std::vector<Part> parts;
    Reason fault = Reason::kNone;
    std::uint64_t offset = 0;
    bool operator==(const Decoded&) const = default;
};

Boundary boundary(std::string_view text = "b") {
    Boundary out;
    LAW(out.set(text), << visible(text));
    return out;
}

// The pieces of the input at a page that cannot be read.
void feed(MultipartDecoder& decoder, std::string_view piece_in, Decoded& out) {
    static GuardPage guard;
    std::string_view input(guard.place(piece_in), piece_in.size());
    while (true) {
        std::string_view piece;
        switch (decoder.decode(input, piece)) {
            case Status::kPartBegin: {
                const MultipartPart& part = decoder.part();
                out.parts.push_back({std::string(part.head), std::string(part.name),
                                     std::string(part.filename), part.has_filename,
                                     std::string(part.content_type), "", false});
                break;
            }
            case Status::kContent:
                LAW(!piece.empty() && !out.parts.empty() && !out.parts.back().is_ended);
                out.parts.back().content += piece;
                break;
            case Status::kPartEnd:
                // What the part said is still there.
                LAW(decoder.part().name == out.parts.back().name);
                out.parts.back().is_ended = true;
                break;
            case Status::kNeedMore:
                LAW(input.empty());
                return;
            case Status::kDone:
                ADD_FAILURE() << "decode() does not end";
                return;
            case Status::kRejected:
                return;
        }
    }
}

Decoded finished(MultipartDecoder& decoder, Decoded out) {
    const Status status = decoder.finish();
    LAW(status == (decoder.fault() == Reason::kNone ? Status::kDone : Status::kRejected));
    LAW(decoder.parts() == out.parts.size() || decoder.fault() != Reason::kNone);
    out.fault = decoder.fault();
    out.offset = decoder.offset();
    return out;
}

Decoded decode(std::string_view input, std::size_t step, const MultipartLimits& limits = {},
               std::string_view text = "b") {
    MultipartDecoder decoder(boundary(text), limits);
    Decoded out;
    for (std::size_t at = 0; at < input.size(); at += step) {
        feed(decoder, input.substr(at, step), out);
    }
    return finished(decoder, std::move(out));
}

// At once, byte by byte, by some steps, and cut in two at each place.
Decoded every_way(std::string_view input, const MultipartLimits& limits = {},
                  std::string_view text = "b") {
    const Decoded whole = decode(input, input.size() + 1, limits, text);
    for (const std::size_t step : {1U, 2U, 3U, 7U}) {
        LAW(decode(input, step, limits, text) == whole, << visible(input) << " by " << step);
    }
    for (std::size_t cut = 1; cut < input.size(); ++cut) {
        MultipartDecoder decoder(boundary(text), limits);
        Decoded out;
        feed(decoder, input.substr(0, cut), out);
        feed(decoder, input.substr(cut), out);
        LAW(finished(decoder, std::move(out)) == whole, << visible(input) << " cut at " << cut);
    }
    return whole;
}

const std::string kHead = "Content-Disposition: form-data; name=\"n\"\r\n";
const std::string kPart = "--b\r\n" + kHead + "\r\n";

TEST(Multipart, a_form_with_a_file) {
    const std::string head =
        "content-disposition: Form-Data; FileName=\"a \\\"b\\\" c\\d\\\\.txt\"; x=y; "
        "name=\"f%22\xC3\xA9\"\r\nContent-Type: text/plain\r\nX: y\r\n"
        "Content-Transfer-Encoding: BINARY\r\n";
    const Decoded out = every_way("preamble\r\n--b \t\r\n" + kHead + "\r\nvalue\r\n--b\r\n" + head +
                                  "\r\nfirst\r\nsecond\r\n\r\n--b--  \r\nepilogue");
    LAW(out.fault == Reason::kNone && out.parts.size() == 2, << out.offset);
    LAW(out.parts[0] == (Part{kHead, "n", "", false, "", "value", true}));
    LAW(out.parts[1] == (Part{head, "f%22\xC3\xA9", "a \"b\" c\\d\\.txt", true, "text/plain",
                              "first\r\nsecond\r\n", true}));
    // The field lines are as a FieldReader wants them.
    FieldReader reader(out.parts[1].head);
    std::string_view name;
    std::string_view value;
    unsigned lines = 0;
    while (reader.next(name, value)) ++lines;
    LAW(lines == 4 && name == "Content-Transfer-Encoding" && value == "BINARY");
}

TEST(Multipart, forms_at_the_edge_of_the_grammar) {
    struct Row {
        std::string input;
        std::vector<std::string> contents;
    };
    for (const Row& row : {Row{"--b--", {}},
                           {"\r\n--b--\r\n", {}},
                           {"x--b\r\n--b--\t\r\n--b\r\n", {}},
                           {kPart + "\r\n--b--", {""}},
                           {kPart + "--b--", {""}},  // the empty line ends the part, too
                           {kPart + "x\r\n--b--", {"x"}},
                           {kPart + "\r\r\n--b--", {"\r"}},
                           {kPart + "\r\n\r\n--b--", {"\r\n"}},
                           {kPart + "\r\n--a\r\n--b--", {"\r\n--a"}},
                           {kPart + "\r\n-\r\n--\r\n--b--", {"\r\n-\r\n--"}},
                           {kPart + "--a\n--b--\r--b--\r\n--b--", {"--a\n--b--\r--b--"}},
                           {kPart + "1\r\n" + kPart + "2\r\n--b--", {"1", "2"}},
                           {kPart + kPart + "\r\n--b--", {"", ""}}}) {
        const Decoded out = every_way(row.input);
        LAW(out.fault == Reason::kNone && out.offset == row.input.size(),
            << visible(row.input) << error_row(out.fault).name << "@" << out.offset);
        std::vector<std::string> contents;
        for (const Part& part : out.parts) contents.push_back(part.content);
        LAW(contents == row.contents, << visible(row.input));
    }
}

struct FaultRow {
    std::string before;  // up to the fault
    std::string after;
    Reason fault;
};

void expect_fault(const FaultRow& row) {
    const Decoded out = every_way(row.before + row.after);
    LAW(out.fault == row.fault && out.offset == row.before.size(),
        << visible(row.before + row.after) << " " << error_row(out.fault).name << "@" << out.offset
        << ", not " << error_row(row.fault).name << "@" << row.before.size());
}

TEST(Multipart, faults_of_delimiters_and_where_they_are) {
    using enum Reason;
    const std::string good = "--b\r\nContent-Disposition: form-data; name=a\r\n";
    for (const FaultRow& row : {FaultRow{"", "", kMultipartUnfinished},
                                {"--b", "", kMultipartUnfinished},
                                {"--b\r\n", "", kMultipartUnfinished},
                                {good, "", kMultipartUnfinished},
                                {kPart + "x\r\n--", "", kMultipartUnfinished},
                                {"--b-", "", kMultipartUnfinished},
                                {"--b--\r", "", kMultipartUnfinished},
                                {"--b", "c\r\n", kDelimiterLine},
                                {"--b", "\n", kDelimiterLine},
                                {"--b ", "x\r\n", kDelimiterLine},
                                {"--b\r", "x", kDelimiterLine},
                                {"--b-", "\r\n", kDelimiterLine},
                                {"--b--", "x", kDelimiterLine},
                                {"--b--", "\n", kDelimiterLine},
                                {"--b--\r", "x", kDelimiterLine},
                                {kPart + "x\r\n--b", "b--", kDelimiterLine},
                                {"--b" + std::string(64, ' '), " \r\n", kDelimiterLine},
                                {"--b--" + std::string(64, ' '), " \r\n", kDelimiterLine}}) {
        expect_fault(row);
    }
}

TEST(Multipart, faults_of_header_sections_and_where_they_are) {
    using enum Reason;
    const std::string cd = "--b\r\nContent-Disposition: ";
    const std::string name = "form-data; name=a";
    const std::string good = cd + name + "\r\n";
    for (const FaultRow& row :
         {FaultRow{"--b\r\n", " a: b\r\n", kPartFieldName},
          {"--b\r\n", ": b\r\n", kPartFieldName},
          {"--b\r\n", "\n", kPartFieldName},
          {"--b\r\na", " : b\r\n", kPartFieldName},
          {"--b\r\na", "\r\n", kPartFieldName},
          {good, "\tfolded\r\n", kPartFieldName},
          {"--b\r\na: ", std::string(1, '\0') + "\r\n", kPartFieldValue},
          {"--b\r\na: b", "\n", kPartFieldValue},
          {"--b\r\na: b", "\x7F\r\n", kPartFieldValue},
          {"--b\r\na: b\r", "c", kPartLineEnd},
          {"--b\r\n\r", "x", kPartLineEnd},
          {"--b\r\n\r", "\n", kPartDispositionMissing},
          {"--b\r\na: b\r\n\r", "\n", kPartDispositionMissing},
          {cd + "form-data\r\n\r", "\n", kPartNameMissing},
          {cd + "form-data; filename=a\r\n\r", "\n", kPartNameMissing},
          {cd, "attachment; name=a\r\n", kPartDisposition},
          {cd, "\r\n", kPartDisposition},
          {cd + "form-data", "s; name=a\r\n", kPartDisposition},
          {cd + "form-data; name", "\r\n", kPartDisposition},
          {cd + name, ", b\r\n", kPartDisposition},
          {cd + "form-data; name=\"a", "\r\n", kPartDisposition},
          {cd + name + "; ", "NAME=b\r\n", kParameterRepeated},
          {cd + name + "; filename=a; ", "Filename=b\r\n", kParameterRepeated},
          {cd + name + "; ", "filename*=UTF-8''a\r\n", kPartExtendedParameter},
          {cd + name + "; ", "x*=a\r\n", kPartExtendedParameter},
          {good, "content-disposition: form-data; name=b\r\n", kPartFieldRepeated},
          {good + "Content-Type: a/b\r\n", "content-type: a/b\r\n", kPartFieldRepeated},
          {good + "Content-Transfer-Encoding: ", "base64\r\n", kPartTransferEncoding},
          {good + "Content-Transfer-Encoding: 8bit\r\n", "content-transfer-encoding: 8bit\r\n",
           kPartFieldRepeated}}) {
        expect_fault(row);
    }
}

TEST(Multipart, limits_are_exact) {
    const auto fault_of = [](const std::string& input, const MultipartLimits& limits, Reason fault,
                             std::uint64_t offset) {
        const Decoded out = every_way(input, limits);
        LAW(out.fault == fault && (fault == Reason::kNone || out.offset == offset),
            << visible(input) << error_row(out.fault).name << "@" << out.offset);
        return out;
    };
    MultipartLimits limits;
    for (limits.part_max = 0; limits.part_max < 12; ++limits.part_max) {
        // Content that looks like a delimiter for a while counts from where it is known to be none.
        for (const std::string content :
             {"123456789", "\r\n--123", "a\r\n--\r\n--c", "\r\r\r\r\r"}) {
            const bool fits = content.size() <= limits.part_max;
            const Decoded out = fault_of(kPart + content + "\r\n--b--", limits,
                                         fits ? Reason::kNone : Reason::kPartTooLarge,
                                         kPart.size() + limits.part_max);
            LAW(out.parts[0].content == content.substr(0, limits.part_max), << visible(content));
        }
    }
    limits = {};
    limits.preamble_max = 4;
    fault_of("1234\r\n--b--", limits, Reason::kNone, 0);
    fault_of("12345\r\n--b--", limits, Reason::kPreambleTooLong, 4);
    fault_of("--x--b--", limits, Reason::kPreambleTooLong, 4);
    fault_of("\r\n--x", limits, Reason::kPreambleTooLong, 4);
    limits.epilogue_max = 3;
    fault_of("--b--\r\n123", limits, Reason::kNone, 0);
    fault_of("--b--\r\n1234", limits, Reason::kEpilogueTooLong, 10);
    limits.part_head_max = kHead.size() + 2;
    fault_of(kPart + "x\r\n--b--", limits, Reason::kNone, 0);
    --limits.part_head_max;
    fault_of(kPart + "x\r\n--b--", limits, Reason::kPartHeadTooLong, kPart.size() - 1);
    limits = {};
    limits.parts_max = 2;
    fault_of(kPart + "\r\n" + kPart + "\r\n--b--", limits, Reason::kNone, 0);
    const std::string two = kPart + "\r\n" + kPart + "\r\n--b\r";
    fault_of(two + "\n", limits, Reason::kPartsTooMany, two.size());
    // The largest header section there may be, whose name and filename both need their own room.
    std::string names = "Content-Disposition: form-data; name=\"\\\\\"; filename=\"";
    while (names.size() + 11 <= kPartHeadMax) names += "\\\"";
    names += "\"\r\n";
    names = "X:" + std::string(kPartHeadMax - 2 - names.size() - 4, 'x') + "\r\n" + names;
    const Decoded large = decode("--b\r\n" + names + "\r\n\r\n--b--", 1);
    LAW(large.fault == Reason::kNone && large.parts[0].name == "\\" &&
            large.parts[0].filename.size() > 2000 &&
            large.parts[0].filename.find_first_not_of('"') == std::string::npos,
        << error_row(large.fault).name << "@" << large.offset);
}

// Content that does all but hold the delimiter comes out as it went in.
TEST(Multipart, tricky_content_comes_out_as_it_went_in) {
    constexpr std::string_view kPieces[] = {"\r\n--b", "\r\n--", "\r\n-", "\r\n", "\r",     "\n",
                                            "--b",     "--bb--", "b",     "-",    "\r\n--c"};
    Random random(17);
    for (unsigned i = 0; i < 1500; ++i) {
        const std::string text = random() % 2 == 0 ? "bb" : "bbbbb-bbbb";
        const std::string delimiter = "\r\n--" + text;
        std::vector<std::string> contents(1 + random() % 3);
        std::string input;
        for (std::string& content : contents) {
            for (unsigned k = random() % 9; k > 0; --k) content += kPieces[random() % 11];
            std::size_t at = 0;
            while ((at = ("\r\n" + content).find(delimiter)) != std::string::npos) {
                content.erase(at, 1);
            }
            input += (input.empty() ? "--" : delimiter.c_str()) + (input.empty() ? text : "") +
                     "\r\n" + kHead + "\r\n" + content;
        }
        input += delimiter + "--\r\n";
        const Decoded out = every_way(input, {}, text);
        LAW(out.fault == Reason::kNone && out.parts.size() == contents.size(), << visible(input));
        for (std::size_t k = 0; k < out.parts.size(); ++k) {
            LAW(out.parts[k].content == contents[k] && out.parts[k].is_ended, << visible(input));
        }
    }
}

// The structure of RFC 2046 5.1.1 found by searching the whole text; a part's head is one of two.
std::optional<std::vector<std::string>> contents_by_search(const std::string& body) {
    const std::string text = "\r\n" + body;
    const std::string delimiter = "\r\n--b";
    std::vector<std::string> out;
    std::size_t at = text.find(delimiter);
    while (at != std::string::npos) {
        at += delimiter.size();
        const bool is_last = text.compare(at, 2, "--") == 0;
        if (is_last) at += 2;
        at = std::min(text.find_first_not_of(" \t", at), text.size());
        if (is_last && at == text.size()) return out;
        if (text.compare(at, 2, "\r\n") != 0) return std::nullopt;
        at += 2;
        if (is_last) return out;
        if (text.compare(at, kHead.size() + 2, kHead + "\r\n") != 0) return std::nullopt;
        at += kHead.size() + 2;
        const std::size_t next = text.find(delimiter, at - 2);
        if (next == std::string::npos) return std::nullopt;
        out.push_back(next < at ? "" : text.substr(at, next - at));
        at = next;
    }
    return std::nullopt;
}

TEST(Multipart, agrees_with_a_search_over_the_whole_text) {
    const std::string head = kHead + "\r\n";
    const std::string pieces[] = {
        "\r\n--b", "\r\n", "--b", "--", "\r\n--b\r\n" + head, "x",        " ",
        "\r",      "\n",   "-",   head, "--b\r\n" + head,     "\r\n--b--"};
    Random random(23);
    unsigned good = 0;
    for (unsigned i = 0; i < 6000; ++i) {
        std::string input = random() % 4 == 0 ? "" : kPart;
        for (unsigned k = random() % 8; k > 0; --k) input += pieces[random() % 13];
        if (random() % 2 == 0) input += "\r\n--b--";
        const Decoded out = every_way(input);
        const auto expected = contents_by_search(input);
        LAW((out.fault == Reason::kNone) == expected.has_value(),
            << visible(input) << error_row(out.fault).name << "@" << out.offset);
        if (!expected) continue;
        ++good;
        std::vector<std::string> contents;
        for (const Part& part : out.parts) contents.push_back(part.content);
        LAW(contents == *expected, << visible(input));
    }
    LAW(good > 1000, << good);
}

TEST(Multipart, any_octet_after_a_delimiter_is_judged) {
    for (unsigned c = 0; c < 256; ++c) {
        const std::string one(1, static_cast<char>(c));
        const Decoded open = every_way("--b" + one + "\r\n" + kHead + "\r\nx\r\n--b--");
        LAW((open.fault == Reason::kNone) == (c == ' ' || c == '\t'), << c);
        const Decoded closed = every_way("--b--" + one);
        LAW((closed.fault == Reason::kNone) == (c == ' ' || c == '\t'), << c);
        // Anywhere else in content it is content.
        const Decoded content = every_way(kPart + one + "\r\n--" + one + "\r\n--b--");
        if (c != 'b') {
            LAW(content.fault == Reason::kNone && content.parts[0].content == one + "\r\n--" + one,
                << c);
        }
    }
}

TEST(Multipart, boundaries) {
    Boundary kept;
    LAW(kept.set("kept"));
    for (std::size_t size = 0; size < 75; ++size) {
        const std::string text(size, 'x');
        Boundary out = kept;
        LAW(out.set(text) == (size >= 1 && size <= 70), << size);
        LAW(out.text() == (size >= 1 && size <= 70 ? text : "kept"), << size);
        if (size == 0 || size > 70) continue;
        LAW(decode("--" + text + "\r\n" + kHead + "\r\nv\r\n--" + text + "--", 1, {}, text).fault ==
                Reason::kNone,
            << size);
    }
    constexpr std::string_view kAllowed =
        "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'()+_,-./:=? ";
    for (unsigned c = 0; c < 256; ++c) {
        const char one = static_cast<char>(c);
        const bool allowed = kAllowed.find(one) != std::string_view::npos;
        LAW(Boundary().set(std::string{'a', one, 'b'}) == allowed, << c);
        LAW(Boundary().set(std::string{'a', one}) == (allowed && one != ' '), << c);
    }
}

TEST(Multipart, a_boundary_from_a_content_type) {
    using enum Reason;
    struct Row {
        std::string text;
        std::string boundary;
        Reason fault = kNone;
        std::size_t offset = 0;
    };
    const std::string type = "multipart/form-data; boundary=";
    for (const Row& row :
         {Row{type + "----WebKitFormBoundary7MA4YWxk", "----WebKitFormBoundary7MA4YWxk"},
          {"Multipart/Form-Data;Boundary=\"a b:c\"; charset=utf-8", "a b:c"},
          {type + "\"a\\=b\"", "a=b"},
          {type + "\"" + std::string(70, 'x') + "\"", std::string(70, 'x')},
          {type + std::string(71, 'x'), "", kBoundarySyntax, 30},
          {type + "\"" + std::string(500, 'x') + "\"", "", kBoundarySyntax, 31},
          {type + "\"\"", "", kBoundarySyntax, 31},
          {type + "\"a \"", "", kBoundarySyntax, 31},
          {type + "a:b", "", kParameterSyntax, 31},
          {type + "a*b", "", kBoundarySyntax, 30},
          {type + "a; boundary=b", "", kParameterRepeated, 33},
          {"multipart/form-data", "", kBoundaryMissing, 19},
          {"multipart/mixed; boundary=a", "", kMultipartType, 0},
          {"multipart", "", kMediaTypeSyntax, 9}}) {
        const BoundaryResult result = boundary_of(row.text);
        LAW(result.fault == row.fault && result.offset == row.offset &&
                result.boundary.text() == row.boundary,
            << row.text << " " << error_row(result.fault).name << "@" << result.offset);
    }
}

}  // namespace
}  // namespace httpmark
