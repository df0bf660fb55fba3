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
        LAW(std::string_view(row.clause).starts_with("RFC "), << row.name);
    }
    LAW(names.size() >= 60);
}

// As RFC 9110 15 words them, and RFC 6585 5 for 431.
TEST(Error, every_status_has_the_phrase_of_its_rfc) {
    const std::map<unsigned, std::string_view> phrases = {
        {100, "Continue"},
        {101, "Switching Protocols"},
        {200, "OK"},
        {204, "No Content"},
        {205, "Reset Content"},
        {206, "Partial Content"},
        {301, "Moved Permanently"},
        {302, "Found"},
        {304, "Not Modified"},
        {400, "Bad Request"},
        {403, "Forbidden"},
        {404, "Not Found"},
        {405, "Method Not Allowed"},
        {408, "Request Timeout"},
        {411, "Length Required"},
        {412, "Precondition Failed"},
        {413, "Content Too Large"},
        {414, "URI Too Long"},
        {415, "Unsupported Media Type"},
        {416, "Range Not Satisfiable"},
        {417, "Expectation Failed"},
        {421, "Misdirected Request"},
        {426, "Upgrade Required"},
        {431, "Request Header Fields Too Large"},
        {500, "Internal Server Error"},
        {501, "Not Implemented"},
        {503, "Service Unavailable"},
        {505, "HTTP Version Not Supported"},
    };
    for (unsigned status = 0; status < 1000; ++status) {
        const auto row = phrases.find(status);
        const std::string_view due = row == phrases.end() ? "Unknown" : row->second;
        LAW(status_phrase(status) == due, << status << " " << status_phrase(status));
    }
}

TEST(Error, the_connection_lives_on_only_where_the_framing_is_known) {
    for (unsigned i = 1; i < static_cast<unsigned>(Reason::kCount); ++i) {
        const ErrorRow& row = error_row(static_cast<Reason>(i));
        if (row.status == 400 || row.status == 414 || row.status == 431 || row.status == 408 ||
            row.status == 413 || row.status == 505) {
            LAW(!row.connection_lives, << row.name);
        }
    }
    LAW(error_row(Reason::kNotFound).connection_lives);
    LAW(error_row(Reason::kMethodNotAllowed).connection_lives);
    LAW(error_row(Reason::kMethodUnknown).connection_lives);
}

}  // namespace
}  // namespace httpmark
