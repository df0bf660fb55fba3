// httpmark-server: the routes that the capabilities of a server image ask for, behind the command.
// It is written on the library's public header alone, as any application is.
#include <algorithm>
#include <array>
#include <charconv>
#include <httpmark/httpmark.hpp>
#include <string>
#include <string_view>

namespace httpmark::example {

namespace {

constexpr auto kPlain = fixed_field("Content-Type", "text/plain");
constexpr auto kOctets = fixed_field("Content-Type", "application/octet-stream");
constexpr auto kHttpMessage = fixed_field("Content-Type", "message/http");
constexpr std::string_view kHello = "Hello World!";
constexpr std::string_view kLineEnd = "\r\n";
constexpr std::size_t kParametersMax = 256;
constexpr std::uint32_t kSlowMs = 500;
constexpr std::uint64_t kBigSize = 1048576;
constexpr unsigned kEventsAtATime = 3;
constexpr unsigned kEvents = 9;
constexpr std::uint64_t kEventsAgainMs = 50;

template <class Reader>
void write_fields(JsonWriter& json, Reader reader) {
    std::string_view name;
    std::string_view value;
    json.begin_array();
    while (reader.next(name, value)) {
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
    return answer_json(writer, 200, [&](JsonWriter& json) {
        json.begin_object();
        json.key("method").base64(head.method_name.in(request.data));
        json.key("target").base64(head.target.in(request.data));
        json.key("authority").base64(head.authority.in(request.data));
        json.key("version").base64({version.data(), version.size()});
        json.key("fields");
        write_fields(json, FieldReader(request.fields()));
        json.key("content").base64(request.content);
        json.key("trailers");
        write_fields(json, TrailerReader(request.trailers));
        json.key("request_number").number(request.number);
        json.end_object();
    });
}

// Of one query. Made once for each thread: what is behind `count` means nothing.
struct Parameters {
    std::array<FormField, kParametersMax + 1> all;
    std::array<char, 65536> decoded;
    std::size_t count;
};

// False when there are too many.
bool decode_query(std::string_view query, Parameters& out) {
    // Of their number only different names count; the parser has seen every percent pair.
    FormReader reader(query, {.fields_max = query.size() + 1}, BrokenPercent::kKept);
    char* room = out.decoded.data();
    const auto decode = [&](std::string_view& text) {
        text = decode_form(text, room);
        room += text.size();
    };
    std::size_t count = 0;
    while (reader.next(out.all[count])) {
        FormField& parameter = out.all[count];
        if (!reader.means_itself()) {
            decode(parameter.name);
            decode(parameter.value);
        }
        // A name given twice keeps its place and takes the later value.
        std::size_t place = 0;
        while (place < count && out.all[place].name != parameter.name) ++place;
        if (place < count) {
            out.all[place].value = parameter.value;
        } else if (++count > kParametersMax) {
            return false;
        }
    }
    out.count = count;
    return true;
}

Reason answer_echo(const Request& request, ResponseWriter& writer) {
    static thread_local constinit Parameters parameters{};
    const std::string_view query = request.target.query;
    if (query.size() > parameters.decoded.size()) return Reason::kHandlerFailed;
    if (!decode_query(query, parameters)) {
        return writer.answer(400, kPlain, "too many parameters\n");
    }
    return answer_json(writer, 200, [&](JsonWriter& json) {
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
    return writer.answer(200, kPlain, kHello);
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
    return writer.write_source(200, kPlain, kBigSize, filling) ? Reason::kNone : writer.fault();
}

// Some events, and the end. A client of server-sent events comes back by itself then, and says
// which event was the last that it has seen, until a 204 tells it that there are no more.
Reason answer_events(const Request& request, ResponseWriter& writer) {
    const std::string_view last = request.field("last-event-id").value_or("");
    unsigned number = 0;
    std::from_chars(last.data(), last.data() + last.size(), number);
    if (number >= kEvents) return writer.answer(204, {}, {});
    const EventSender sender(writer);
    if (!sender) return writer.fault();
    for (unsigned i = 0; i < kEventsAtATime && number < kEvents; ++i) {
        const std::string text = std::to_string(++number);
        sender.send({.type = "number", .id = text, .retry_ms = kEventsAgainMs, .data = text});
    }
    return Reason::kNone;
}

// Every message goes back as it came. None is read before there is room for it.
void send_back(WebSocket& socket, const WebSocketMessage& message) {
    const auto sent =
        message.is_text ? socket.send_text(message.content) : socket.send_binary(message.content);
    if (sent == WebSocket::Sent::kNoMemory) socket.close(websocket::kCloseInternalError);
}

}  // namespace

void add_routes(Router::Builder& routes) {
    const Answer hello(200, {{"Content-Type", "text/plain"}}, kHello);
    const auto any = [&](std::string_view path, Answer answer, RouteOptions options = {}) {
        routes.add(kAnyMethod, path, std::move(answer), std::move(options));
    };
    // OPTIONS is answered as any other method is, and 405 where a route has it not.
    routes.set_automatic_options(false);
    routes.set_trace(answer_trace);
    any("/{rest...}", hello);
    any("/hello", hello);
    any("/body",
        [](const Request& request, ResponseWriter& writer) {
            return writer.answer(200, kOctets, request.content);
        },
        {.wants_content = true, .coded_content = CodedContent::kAsItCame});
    any("/mirror", answer_mirror,
        {.wants_content = true, .coded_content = CodedContent::kAsItCame});
    any("/echo", answer_echo);
    any("/slow", answer_slowly);
    any("/early", hello, {.early = true});
    any("/204", Answer(204, {}, {}));
    any("/304", Answer(304, {{"ETag", "\"hello\""}}, {}));
    any("/redirect", Answer(302, {{"Location", "/hello"}}, {}));
    any("/big", answer_big);
    any("/events", answer_events);
    any("/404", [](const Request&, ResponseWriter&) { return Reason::kNotFound; });
    routes.add(method_bit(Method::kGet), "/get-only", hello);
    routes.add_websocket("/websocket", {.on_message = send_back, .deflate = {.enabled = true}});
}

}  // namespace httpmark::example

int main(int argc, char** argv) {
    return httpmark::run(argc, argv, httpmark::example::add_routes);
}
