// What a handler is told of a request. All of it are views: they live as long as the call.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "http/parser.hpp"
#include "http/syntax.hpp"

namespace httpmark {

struct Route;

// Bytes up to the next slash. Most segments are short: a loop is quicker than a call.
inline std::size_t segment_size(std::string_view path) {
    std::size_t size = 0;
    while (size < path.size() && path[size] != '/') ++size;
    return size;
}

struct Target {
    std::string_view path;
    std::string_view query;  // raw, without the '?'
    bool has_query = false;
};
// Path and query of a target in origin-form or absolute-form (where an empty path is "/").
Target split_target(std::string_view target, TargetForm form);

// The same in origin-form, of a target in a head: behind it at least " HTTP/1.1" and two line ends
// are there to be read.
[[gnu::always_inline]] inline std::string_view path_in(const char* data, Span target) {
    const char* const begin = data + target.begin;
    return {begin, find_octet(begin, target.size, '?')};
}
// What it is with that path, and as many bytes as that.
[[gnu::always_inline]] inline Target origin_target(std::string_view path, std::size_t size) {
    const bool has_query = path.size() != size;
    const std::size_t query = path.size() + (has_query ? 1 : 0);
    return {path, {path.data() + query, size - query}, has_query};
}

// The trailer fields of a request, in order, without those that frame or route a message, which are
// no trailers (RFC 9110 6.5.1).
class TrailerReader {
  public:
    explicit TrailerReader(std::string_view section) : reader_(section) {}
    bool next(std::string_view& name, std::string_view& value);

  private:
    FieldReader reader_;
};

// What the two sides of a TLS connection have agreed on.
struct TlsFacts {
    std::string version;      // "TLSv1.3"
    std::string cipher;       // "TLS_AES_256_GCM_SHA384"
    std::string server_name;  // that the client asked for (RFC 6066 3); empty without one, or where
                              // it is made of anything but letters, digits, '-', '_' and dots
    std::string protocol;     // by ALPN (RFC 7301); empty where the client offered none
    // Of the client's certificate, where one was asked for and has been verified: RFC 4514, all
    // that is not ASCII escaped. Empty otherwise.
    std::string client_subject;
};

// Who sends requests on a connection.
class ClientFacts {
  public:
    // Address and port, "[::1]:8080" for IPv6; "unix" on a Unix socket; "-" where it cannot be
    // told.
    virtual std::string peer() const = 0;
    virtual bool is_tls() const = 0;
    virtual std::optional<TlsFacts> tls() const = 0;

  protected:
    ~ClientFacts() = default;
};

struct Request {
    const RequestHead& head;
    const Route& route;
    // What the spans of `head` refer to. nullptr where the head had to be kept until now, and the
    // route does not want it.
    const char* data;
    std::uint32_t head_size;
    std::uint32_t number;  // on this connection, from 1
    Target target;
    std::string_view content;
    std::string_view trailers;            // field lines as received, for a TrailerReader
    bool asked_again = false;             // the time that ResponseWriter::defer() was told is over
    const ClientFacts* client = nullptr;  // for the functions below

    // What stands in the path where the route's pattern has {name} or {name...}, as it came: see
    // percent_decode(). Empty where the pattern has no such name.
    std::string_view value(std::string_view name) const;
    // What that means: percent pairs are the bytes that they stand for, "/" and NUL among them.
    std::string decoded_value(std::string_view name) const;
    // The first parameter of that name in the query, decoded as a form is. For more of them there
    // is Form::of_urlencoded(target.query).
    std::optional<std::string> parameter(std::string_view name) const;
    // The first field line of that name, in any case.
    std::optional<std::string_view> field(std::string_view wanted) const;
    // Each of them, in order: each(value).
    template <class Each>
    void each_field(std::string_view wanted, const Each& each) const {
        FieldReader reader(fields());
        std::string_view name;
        std::string_view value;
        while (reader.next(name, value)) {
            if (same_ignoring_case(name, wanted)) each(value);
        }
    }
    // The first cookie of that name.
    std::optional<std::string_view> cookie(std::string_view name) const;
    // As ClientFacts says it. Each call asks the system.
    std::string peer() const { return client == nullptr ? "-" : client->peer(); }
    bool is_tls() const { return client != nullptr && client->is_tls(); }
    // Nothing where the connection has no TLS.
    std::optional<TlsFacts> tls() const { return client == nullptr ? std::nullopt : client->tls(); }
    // The field lines as received, for a FieldReader.
    std::string_view fields() const {
        if (data == nullptr) return {};
        return {data + head.fields_begin, head_size - head.fields_begin};
    }
};

}  // namespace httpmark
