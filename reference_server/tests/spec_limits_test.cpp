// The scenarios of the specification that are about limits.
#include <string>
#include <vector>

#include "spec.hpp"

namespace httpmark {
namespace {

ServerSettings limited(std::uint64_t Limits::*limit, std::uint64_t value) {
    ServerSettings settings;
    settings.limits.*limit = value;
    return settings;
}

TEST(Specification, S16_limit_on_the_request_size) {
    for (const std::size_t size : {0U, 1U, 7U}) {
        const std::string request = post("Content-Length: 2000\r\n", std::string(2000, 'a'));
        const ServerSettings over = limited(&Limits::request_max, request.size() - 1 - size);
        const ServerSettings fits = limited(&Limits::request_max, request.size() + size);
        LAW(statuses(talk_in(request, request.size(), over, 0).sent) == std::vector<int>{413});
        LAW(statuses(talk_in(request, 0, over, 1).sent) == std::vector<int>{413});
        LAW(statuses(talk_in(request, 0, fits, 1).sent) == std::vector<int>{200});
    }
    std::string many = chunked("");
    for (int i = 0; i < 600; ++i) many += "1\r\na\r\n";
    many += "0\r\n\r\n";
    LAW(statuses(talk_in(many, 0, limited(&Limits::request_max, many.size()), 1).sent) ==
        std::vector<int>{200});
    LAW(statuses(talk_in(many, 0, limited(&Limits::request_max, many.size() - 1), 1).sent) ==
        std::vector<int>{413});
    LAW(statuses(
            talk_in(many, many.size(), limited(&Limits::request_max, many.size() - 1), 0).sent) ==
        std::vector<int>{413});
}

TEST(Specification, S17_limit_on_the_body) {
    const ServerSettings settings = limited(&Limits::body_max, 10);
    expect_status(post("Content-Length: 10\r\n", "0123456789"), {200}, settings);
    expect_status(post("Content-Length: 11\r\n", "0123456789a"), {413}, settings);
    expect_status(chunked("a\r\n0123456789\r\n0\r\n\r\n"), {200}, settings);
    expect_status(chunked("b\r\n0123456789a\r\n0\r\n\r\n"), {413}, settings);
    expect_status(chunked("9\r\n012345678\r\n1\r\n9\r\n0\r\n\r\n"), {200}, settings);
    expect_status(chunked("9\r\n012345678\r\n2\r\n9a\r\n0\r\n\r\n"), {413}, settings);
    expect_status(chunked("10\r\n"), {413}, settings);
    expect_status(post("Content-Length: 1\r\n", "a"), {413}, limited(&Limits::body_max, 0));
}

TEST(Specification, S18_limit_on_the_target) {
    ParserSetting setting;
    setting.limits.target_max = 100;
    for (const char* place : {"/", "/?"}) {
        const std::string before(place);
        for (std::size_t size = 95; size <= 105; ++size) {
            const std::string input = get(before + std::string(size - before.size(), 'a'));
            if (size <= 100) {
                expect_accepted(input, setting);
            } else {
                expect_rejected(input, Reason::kTargetTooLong, 104, setting);
            }
        }
        // A bad byte at the bound is a bad byte, after it the bound comes first.
        const std::string full = before + std::string(100 - before.size(), 'a');
        expect_rejected(get(full + "\x01"), Reason::kTargetOctet, 104, setting);
        expect_rejected(get(full + "a\x01"), Reason::kTargetTooLong, 104, setting);
        expect_rejected(get(full.substr(0, 98) + "%4z"), Reason::kTargetPercent, 104, setting);
        expect_rejected(get(full.substr(0, 99) + "%4z"), Reason::kTargetTooLong, 104, setting);
    }
    const std::string absolute = "http://example.org/" + std::string(81, 'a');
    expect_accepted(get(absolute), setting);
    expect_rejected(get(absolute + "a"), Reason::kTargetTooLong, 104, setting);
    expect_status(get("/" + std::string(200, 'a')), {414}, limited(&Limits::target_max, 100));
    const Parsed parsed =
        parse_once(get("/?" + std::string(8000 - 15, 'a')), {}, *kernels().back());
    LAW(parsed.result.verdict == Verdict::kAccepted);
}

TEST(Specification, S19_limits_on_headers) {
    const std::size_t line = 21 + kHost.size();
    ParserSetting setting;
    setting.limits.field_name_max = 100;
    setting.limits.field_value_max = 120;
    setting.limits.field_lines_max = 4;
    for (std::size_t size = 90; size <= 130; ++size) {
        const std::string name(size, 'n');
        if (size <= 100) {
            expect_accepted(with_field(name + ": v"), setting);
        } else {
            expect_rejected(with_field(name + ": v"), Reason::kFieldNameTooLong, line + 100,
                            setting);
        }
        const std::string value(size, 'v');
        if (size <= 120) {
            expect_accepted(with_field("n:" + value), setting);
        } else {
            expect_rejected(with_field("n:" + value), Reason::kFieldValueTooLong, line + 122,
                            setting);
        }
    }
    // Whitespace around the value counts, or the bound would depend on what comes later.
    expect_accepted(with_field("n:" + std::string(120, ' ')), setting);
    expect_rejected(with_field("n:" + std::string(121, ' ')), Reason::kFieldValueTooLong,
                    line + 122, setting);
    std::string lines;
    for (int i = 0; i < 3; ++i) lines += (i == 0 ? "" : "\r\n") + std::string("x: y");
    expect_accepted(with_field(lines), setting);
    expect_rejected(with_field(lines + "\r\nz: y"), Reason::kFieldLinesTooMany, line + 18, setting);
    expect_rejected(with_field(lines + "\r\n\x01: y"), Reason::kFieldNameOctet, line + 18, setting);
    setting = {};
    setting.limits.head_max = 200;
    for (std::size_t size = 190; size <= 210; ++size) {
        const std::string empty = with_field("n:");
        const std::string input = with_field("n:" + std::string(size - empty.size(), 'v'));
        LAW(input.size() == size);
        if (size <= 200) {
            expect_accepted(input, setting);
        } else {
            expect_rejected(input, Reason::kHeadTooLong, 200, setting);
        }
    }
    expect_status(with_field("n: " + std::string(300, 'v')), {431},
                  limited(&Limits::head_max, 200));
}

TEST(Specification, S20_limits_on_trailers) {
    const std::string start = chunked("0\r\n");
    const auto trailer = [&](const std::string& lines) { return start + lines + "\r\n"; };
    const ServerSettings names = limited(&Limits::field_name_max, 40);
    expect_status(trailer(std::string(40, 'n') + ": v\r\n"), {200}, names);
    expect_status(trailer(std::string(41, 'n') + ": v\r\n"), {431}, names);
    const ServerSettings values = limited(&Limits::field_value_max, 40);
    expect_status(trailer("n:" + std::string(40, 'v') + "\r\n"), {200}, values);
    expect_status(trailer("n:" + std::string(41, 'v') + "\r\n"), {431}, values);
    const ServerSettings lines = limited(&Limits::trailer_lines_max, 2);
    expect_status(trailer("a: b\r\nc: d\r\n"), {200}, lines);
    expect_status(trailer("a: b\r\nc: d\r\ne: f\r\n"), {431}, lines);
    const ServerSettings size = limited(&Limits::trailers_max, 12);
    expect_status(trailer("abcd:efg\r\n"), {200}, size);
    expect_status(trailer("abcd:efgh\r\n"), {431}, size);
}

TEST(Specification, S21_limit_on_chunk_metadata) {
    const ServerSettings settings = limited(&Limits::chunk_line_max, 20);
    const auto line = [&](const std::string& metadata) {
        return chunked(metadata + "\r\nhello\r\n0\r\n\r\n");
    };
    expect_status(line(std::string(17, '0') + "5"), {200}, settings);
    expect_status(line(std::string(18, '0') + "5"), {400}, settings);
    expect_status(line("5;" + std::string(16, 'a')), {200}, settings);
    expect_status(line("5;" + std::string(17, 'a')), {400}, settings);
    expect_status(chunked("5\r\nhello\r\n0;" + std::string(17, 'a') + "\r\n\r\n"), {400}, settings);
}

}  // namespace
}  // namespace httpmark
