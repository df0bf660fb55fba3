#include "application.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "check.hpp"
#include "content/json_writer.hpp"
#include "http/chunked.hpp"
#include "http/syntax.hpp"
#include "http/uri.hpp"

namespace httpmark::example {

namespace {

constexpr auto kPlain = fixed_field("Content-Type", "text/plain");
constexpr auto kOctets = fixed_field("Content-Type", "application/octet-stream");
constexpr auto kJson = fixed_field("Content-Type", "application/json");
constexpr auto kHttpMessage = fixed_field("Content-Type", "message/http");
constexpr std::string_view kHello = "Hello World!";
constexpr std::string_view kLineEnd = "\r\n";
constexpr std::size_t kParametersMax = 256;
constexpr std::uint32_t kSlowMs = 500;
constexpr std::uint64_t kBigSize = 1048576;

Reason reason_of(const ResponseWriter& writer, bool written) {
    return written ? Reason::kNone : writer.fault();
}

// Writes into a room of its own, and once more into the answer's where the text is longer.
template <class Write>
Reason write_json(ResponseWriter& writer, const Write& write) {
    std::array<char, 2048> text;
    JsonWriter json(text);
    write(json);
    if (const auto whole = json.finish()) {
        return reason_of(writer, writer.write(200, kJson, *whole));
    }
    CHECK(json.fault() == JsonFault::kNoRoom);
    char* room = nullptr;
    if (!writer.start(200, kJson, json.size(), room)) return writer.fault();
    if (room != nullptr) {
        JsonWriter again({room, json.size()});
        write(again);
        CHECK(again.finish().has_value());
    }
    return Reason::kNone;
}

void write_fields(JsonWriter& json, std::string_view section, bool trailers) {
    FieldReader reader(section);
    std::string_view name;
    std::string_view value;
    json.begin_array();
    while (reader.next(name, value)) {
        if (trailers && is_forbidden_trailer(name)) continue;
        json.begin_array().base64(name).base64(value).end_array();
    }
    json.end_array();
}

Reason answer_mirror(const Request& request, ResponseWriter& writer) {
    const RequestHead& head = request.head;
    const std::array<char, 8> version{'H', 'T',
                                      'T', 'P',
                                      '/', static_cast<char>('0' + head.version_major),
                                      '.', static_cast<char>('0' + head.version_minor)};
    return write_json(writer, [&](JsonWriter& json) {
        json.begin_object();
        json.key("method").base64(head.method_name.in(request.data));
        json.key("target").base64(head.target.in(request.data));
        json.key("authority").base64(head.authority.in(request.data));
        json.key("version").base64({version.data(), version.size()});
        json.key("fields");
        write_fields(json, request.fields(), false);
        json.key("content").base64(request.content);
        json.key("trailers");
        write_fields(json, request.trailers, true);
        json.key("request_number").number(request.number);
        json.end_object();
    });
}

struct Parameter {
    std::string_view name;
    std::string_view value;
};
// Of one query. Made once for each thread: what is behind `count` means nothing.
struct Parameters {
    std::array<Parameter, kParametersMax> all;
    std::array<char, 65536> decoded;
    std::size_t count;
};

// Up to the next byte that is `end`, and behind it.
std::string_view cut(std::string_view& rest, char end) {
    std::size_t size = 0;
    while (size < rest.size() && rest[size] != end) ++size;
    const std::string_view part(rest.data(), size);
    rest.remove_prefix(std::min(size + 1, rest.size()));
    return part;
}

// False when there are too many.
bool decode_query(std::string_view query, Parameters& out) {
    char* room = out.decoded.data();
    out.count = 0;
    while (!query.empty()) {
        std::string_view value = cut(query, '&');
        if (value.empty()) continue;
        const auto decode = [&](std::string_view text) {
            const auto decoded = percent_decode(text, room, true);
            CHECK(decoded.has_value());  // the parser has seen every pair
            room += decoded->size();
            return *decoded;
        };
        Parameter parameter;
        parameter.name = decode(cut(value, '='));
        parameter.value = decode(value);
        // A name given twice keeps its place and takes the later value.
        Parameter* const end_of_all = out.all.data() + out.count;
        Parameter* const seen = std::find_if(out.all.data(), end_of_all, [&](const Parameter& p) {
            return p.name == parameter.name;
        });
        if (seen != end_of_all) {
            seen->value = parameter.value;
        } else if (out.count == kParametersMax) {
            return false;
        } else {
            out.all[out.count++] = parameter;
        }
    }
    return true;
}

Reason answer_echo(const Request& request, ResponseWriter& writer) {
    static thread_local Parameters parameters;
    const std::string_view query = request.target.query;
    if (query.size() > parameters.decoded.size()) return Reason::kHandlerFailed;
    if (!decode_query(query, parameters)) {
        return reason_of(writer, writer.write(400, kPlain, "too many parameters\n"));
    }
    return write_json(writer, [&](JsonWriter& json) {
        json.begin_object();
        for (std::size_t i = 0; i < parameters.count; ++i) {
            json.key(parameters.all[i].name).string(parameters.all[i].value);
        }
        json.end_object();
    });
}

// RFC 9110 9.3.8: the head as it came, without what is likely to be a secret.
Reason answer_trace(const Request& request, ResponseWriter& writer) {
    const RequestHead& head = request.head;
    const std::string_view line(request.data + head.method_name.begin,
                                head.fields_begin - head.method_name.begin);
    const auto each_field = [&](const auto& take) {
        FieldReader reader(request.fields());
        std::string_view name;
        std::string_view value;
        while (reader.next(name, value)) {
            if (equals_ignoring_case(name, "authorization") ||
                equals_ignoring_case(name, "proxy-authorization") ||
                equals_ignoring_case(name, "cookie")) {
                continue;
            }
            for (const std::string_view part : {name, std::string_view(": "), value, kLineEnd}) {
                take(part);
            }
        }
    };
    std::size_t size = line.size() + kLineEnd.size();
    each_field([&](std::string_view part) { size += part.size(); });
    char* out = nullptr;
    if (!writer.start(200, kHttpMessage, size, out)) return writer.fault();
    if (out == nullptr) return Reason::kNone;
    const auto put = [&](std::string_view part) { out = std::copy(part.begin(), part.end(), out); };
    put(line);
    each_field(put);
    put(kLineEnd);
    return Reason::kNone;
}

Reason answer_slowly(const Request& request, ResponseWriter& writer) {
    if (!request.asked_again) {
        writer.defer(kSlowMs);
        return Reason::kNone;
    }
    return reason_of(writer, writer.write(200, kPlain, kHello));
}

// The same byte for as long as it is asked for.
class Filling final : public ContentSource {
  public:
    std::string_view read(std::uint64_t, std::size_t most) override {
        return {kFill.data(), std::min(most, kFill.size())};
    }

  private:
    alignas(64) static constexpr auto kFill = [] {
        std::array<char, 16384> fill{};
        for (char& c : fill) c = 'x';
        return fill;
    }();
};

Reason answer_big(const Request&, ResponseWriter& writer) {
    static Filling filling;  // keeps nothing: all workers may read from it
    return reason_of(writer, writer.write_source(200, kPlain, kBigSize, filling));
}

}  // namespace

void add_routes(Router::Builder& routes) {
    const Answer hello(200, {{"Content-Type", "text/plain"}}, kHello);
    const auto any = [&](std::string_view path, Answer answer, RouteOptions options = {}) {
        routes.add(kAnyMethod, path, std::move(answer), std::move(options));
    };
    // OPTIONS is answered as any other method is, and 405 where a route has it not.
    routes.set_automatic_options(false);
    routes.set_trace(answer_trace, {.wants_head = true});
    any("/{rest...}", hello);
    any("/hello", hello);
    any("/body",
        [](const Request& request, ResponseWriter& writer) {
            return reason_of(writer, writer.write(200, kOctets, request.content));
        },
        {.wants_content = true});
    any("/mirror", answer_mirror, {.wants_content = true, .wants_head = true});
    any("/echo", answer_echo, {.wants_head = true});
    any("/slow", answer_slowly);
    any("/early", hello, {.early = true});
    any("/204", Answer(204, {}, {}));
    any("/304", Answer(304, {{"ETag", "\"hello\""}}, {}));
    any("/redirect", Answer(302, {{"Location", "/hello"}}, {}));
    any("/big", answer_big);
    any("/404", [](const Request&, ResponseWriter&) { return Reason::kNotFound; });
    routes.add(method_bit(Method::kGet), "/get-only", hello);
}

}  // namespace httpmark::example
