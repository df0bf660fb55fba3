#include "http/error.hpp"

#include <map>
#include <set>
#include <string>
#include <string_view>

#include "laws.hpp"

namespace httpmark {
namespace {

TEST(Error, every_reason_has_a_name_a_status_with_a_phrase_and_a_clause) {
    std::set<std::string> names;
    for (unsigned i = 1; i < static_cast<unsigned>(Reason::kCount); ++i) {
        const ErrorRow& row = error_row(static_cast<Reason>(i));
        LAW(names.insert(row.name).second, << row.name);
        LAW(row.status >= 400 && row.status < 600, << row.name);
        LAW(status_phrase(row.status) != "Unknown", << row.name);
        const std::string_view clause = row.clause;
        LAW(clause.starts_with("RFC ") || clause.starts_with("WHATWG "), << row.name);
    }
    LAW(names.size() >= 90);
}

// As the registry of RFC 9110 16.2 has them.
const std::map<unsigned, std::string_view> kPhrases = {
    {100, "Continue"},
    {101, "Switching Protocols"},
    {102, "Processing"},
    {103, "Early Hints"},
    {200, "OK"},
    {201, "Created"},
    {202, "Accepted"},
    {203, "Non-Authoritative Information"},
    {204, "No Content"},
    {205, "Reset Content"},
    {206, "Partial Content"},
    {207, "Multi-Status"},
    {208, "Already Reported"},
    {226, "IM Used"},
    {300, "Multiple Choices"},
    {301, "Moved Permanently"},
    {302, "Found"},
    {303, "See Other"},
    {304, "Not Modified"},
    {305, "Use Proxy"},
    {307, "Temporary Redirect"},
    {308, "Permanent Redirect"},
    {400, "Bad Request"},
    {401, "Unauthorized"},
    {402, "Payment Required"},
    {403, "Forbidden"},
    {404, "Not Found"},
    {405, "Method Not Allowed"},
    {406, "Not Acceptable"},
    {407, "Proxy Authentication Required"},
    {408, "Request Timeout"},
    {409, "Conflict"},
    {410, "Gone"},
    {411, "Length Required"},
    {412, "Precondition Failed"},
    {413, "Content Too Large"},
    {414, "URI Too Long"},
    {415, "Unsupported Media Type"},
    {416, "Range Not Satisfiable"},
    {417, "Expectation Failed"},
    {421, "Misdirected Request"},
    {422, "Unprocessable Content"},
    {423, "Locked"},
    {424, "Failed Dependency"},
    {425, "Too Early"},
    {426, "Upgrade Required"},
    {428, "Precondition Required"},
    {429, "Too Many Requests"},
    {431, "Request Header Fields Too Large"},
    {451, "Unavailable For Legal Reasons"},
    {500, "Internal Server Error"},
    {501, "Not Implemented"},
    {502, "Bad Gateway"},
    {503, "Service Unavailable"},
    {504, "Gateway Timeout"},
    {505, "HTTP Version Not Supported"},
    {506, "Variant Also Negotiates"},
    {507, "Insufficient Storage"},
    {508, "Loop Detected"},
    {511, "Network Authentication Required"},
};

TEST(Error, every_status_has_the_phrase_of_its_rfc) {
    for (unsigned status = 0; status < 1000; ++status) {
        const auto row = kPhrases.find(status);
        const std::string_view due = row == kPhrases.end() ? "Unknown" : row->second;
        LAW(status_phrase(status) == due, << status << " " << status_phrase(status));
        if (status < 100) continue;
        const StatusLine& line = status_line(status);
        const std::string_view text(line.text.data(), line.size);
        LAW(text == "HTTP/1.1 " + std::to_string(status) + " " + std::string(due) + "\r\n",
            << text);
    }
}

TEST(Error, the_connection_lives_on_only_where_the_framing_is_known) {
    for (unsigned i = 1; i < static_cast<unsigned>(Reason::kCount); ++i) {
        const ErrorRow& row = error_row(static_cast<Reason>(i));
        // What is wrong with a handshake leaves the request as it is.
        if (row.reason == Reason::kHandshakeInvalid) continue;
        if (row.reason == Reason::kPathInvalid) continue;  // a whole request, and a good one
        // And here it is a handler that finds fault with what has come.
        if (row.reason >= Reason::kMediaTypeSyntax && row.reason <= Reason::kDecodedTooLarge) {
            LAW(row.connection_lives, << row.name);
            continue;
        }
        if (row.status == 400 || row.status == 414 || row.status == 431 || row.status == 408 ||
            row.status == 413 || row.status == 505) {
            LAW(!row.connection_lives, << row.name);
        }
    }
    LAW(error_row(Reason::kNotFound).connection_lives);
    LAW(error_row(Reason::kPathInvalid).connection_lives);
    LAW(error_row(Reason::kMethodNotAllowed).connection_lives);
    LAW(error_row(Reason::kMethodUnknown).connection_lives);
    LAW(error_row(Reason::kHandshakeInvalid).connection_lives);
}

}  // namespace
}  // namespace httpmark
