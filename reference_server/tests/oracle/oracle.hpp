// A slow second opinion on one request: the grammar of RFC 9110, RFC 9112 and RFC 3986 read byte
// by byte, each function under the rule it implements. It shares no line with the server and
// includes none of its headers; where the RFCs leave a choice, the choice is a member of Options.
//
// The answer is a pure function of the bytes given. When it is kNeedMore, more bytes may change
// it; when it is anything else, none can.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace httpmark::oracle {

enum class Verdict { kNeedMore, kAccepted, kRejected };

// What a fault is about; coarser than the reasons of the server, fine enough to tell rules apart.
enum class Subject {
    kNone,
    kMethod,
    kTarget,
    kVersion,
    kField,
    kHost,
    kTransferEncoding,
    kContentLength,
    kMisdirected,
    kContent,
    kExpect,
    kChunk,
    kTrailer,
};

// The defaults are the strictest choice the RFCs allow.
struct Options {
    std::size_t empty_lines_max = 1;     // before the request-line, RFC 9112 2.2
    bool empty_host = false;             // in the Host field, RFC 9112 3.2
    bool equal_content_lengths = false;  // repeated or listed, RFC 9110 8.6
    bool browser_query = false;          // [ ] \ ^ ` { | } raw in a query
    bool tls = false;                    // the connection is secured, RFC 9110 7.4

    std::uint64_t method_max = 32;
    std::uint64_t target_max = 8192;
    std::uint64_t field_name_max = 256;
    std::uint64_t field_value_max = 8192;
    std::uint64_t field_lines_max = 100;
    std::uint64_t head_max = 32768;  // empty lines before it included
    std::uint64_t body_max = 33554432;
    std::uint64_t chunk_line_max = 1024;
    std::uint64_t trailer_lines_max = 100;
    std::uint64_t trailers_max = 16384;
};

struct Field {
    std::string_view name;
    std::string_view value;  // without the whitespace around it
    bool operator==(const Field&) const = default;
};

enum class Framing { kNoContent, kLength, kChunked };

struct Head {
    Verdict verdict = Verdict::kNeedMore;
    int status = 0;
    Subject subject = Subject::kNone;
    // The number of bytes that decide: the length of the head when it is accepted or when its
    // fields are refused, else one more than the offset of the faulty byte.
    std::size_t decided = 0;
    bool complete = false;  // the grammar held to the end of the head; what follows is filled in

    std::string_view method;
    std::string_view target;
    std::string_view authority;  // of the target if it names one, else of Host
    unsigned version_major = 0;
    unsigned version_minor = 0;
    std::vector<Field> fields;

    // Only when accepted.
    Framing framing = Framing::kNoContent;
    std::uint64_t content_length = 0;
    bool expects_continue = false;
    bool connection_is_list = true;  // every Connection line matches its grammar
    bool persists = false;           // only when connection_is_list
};

Head read_head(std::string_view octets, const Options& options);

struct Chunked {
    Verdict verdict = Verdict::kNeedMore;
    int status = 0;
    Subject subject = Subject::kNone;
    std::size_t decided = 0;  // as above; when accepted, the bytes after are another message's
    std::string content;
    std::vector<Field> trailers;
};

Chunked read_chunked(std::string_view octets, const Options& options);

}  // namespace httpmark::oracle
