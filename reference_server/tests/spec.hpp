// What the scenarios of the specification say and expect.
#pragma once

#include <string>
#include <vector>

#include "splits.hpp"
#include "wire.hpp"

namespace httpmark {

inline const std::string kHost = "Host: example.org\r\n";

inline std::string get(const std::string& target) {
    return "GET " + target + " HTTP/1.1\r\n" + kHost + "\r\n";
}
inline std::string with_field(const std::string& line) {
    return "GET /hello HTTP/1.1\r\n" + kHost + line + "\r\n\r\n";
}
inline std::string post(const std::string& fields, const std::string& content) {
    return "POST /body HTTP/1.1\r\n" + kHost + fields + "\r\n" + content;
}
inline std::string chunked(const std::string& content) {
    return post("Transfer-Encoding: chunked\r\n", content);
}
inline void expect_status(const std::string& octets, std::vector<int> wanted,
                          const ServerSettings& settings = {}) {
    const Talk talk = talk_every_way(octets, settings);
    LAW(statuses(talk.sent) == wanted, << visible(octets) << " -> " << visible(talk.sent));
    const bool refused = !wanted.empty() && wanted.back() >= 400;
    if (refused) LAW(talk.closed, << visible(octets));
}
// What the last answer carried.
inline std::string content_of(const std::string& sent) {
    const std::size_t at = sent.rfind("\r\n\r\n");
    return at == std::string::npos ? "" : sent.substr(at + 4);
}
inline void expect_content(const std::string& octets, const std::string& content) {
    const Talk talk = talk_every_way(octets);
    LAW(statuses(talk.sent) == std::vector<int>{200}, << visible(octets) << visible(talk.sent));
    LAW(content_of(talk.sent) == content, << visible(octets) << visible(talk.sent));
}

// Quick: at once and byte by byte, one kernel after the other; for families of many thousands.
inline void expect_quick(const std::string& input, Reason reason, std::size_t offset) {
    static std::size_t turn = 0;
    const ScanKernel& kernel = *kernels()[turn++ % kernels().size()];
    const Parsed parsed = parse_at_once_and_by_octet(input, {}, kernel);
    if (reason == Reason::kNone) {
        LAW(parsed.result.verdict == Verdict::kAccepted, << visible(input));
    } else {
        LAW(parsed.result.verdict == Verdict::kRejected && parsed.result.reason == reason &&
                parsed.result.offset == offset,
            << visible(input) << " is " << error_row(parsed.result.reason).name << "@"
            << parsed.result.offset << " not " << error_row(reason).name << "@" << offset);
    }
}

}  // namespace httpmark
