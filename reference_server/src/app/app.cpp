#include "app/app.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "check.hpp"
#include "http/chunked.hpp"
#include "http/syntax.hpp"
#include "http/uri.hpp"

namespace httpmark {

namespace {

constexpr Field kPlain{"Content-Type", "text/plain"};
constexpr Field kJson{"Content-Type", "application/json"};
constexpr std::string_view kLineEnd = "\r\n";
constexpr std::size_t kParametersMax = 256;

// Writes JSON twice through the same code: first to count, then into the room that was given.
class JsonWriter {
  public:
    explicit JsonWriter(char* out) : out_(out) {}
    void raw(std::string_view text) {
        if (out_ != nullptr && !text.empty()) std::memcpy(out_ + size_, text.data(), text.size());
        size_ += text.size();
    }
    void character(char c) { raw({&c, 1}); }
    void number(std::uint64_t value) {
        std::array<char, 20> digits;
        std::size_t at = digits.size();
        do {
            digits[--at] = static_cast<char>('0' + value % 10);
            value /= 10;
        } while (value != 0);
        raw({digits.data() + at, digits.size() - at});
    }
    void base64(std::string_view octets) {
        constexpr std::string_view kAlphabet =
            "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        if (out_ == nullptr) {
            size_ += 2 + (octets.size() + 2) / 3 * 4;
            return;
        }
        character('"');
        char* out = out_ + size_;
        std::size_t i = 0;
        const auto at = [&](std::size_t k) { return static_cast<unsigned>(octet(octets[k])); };
        for (; i + 2 < octets.size(); i += 3) {
            const unsigned word = at(i) << 16 | at(i + 1) << 8 | at(i + 2);
            *out++ = kAlphabet[word >> 18];
            *out++ = kAlphabet[word >> 12 & 63];
            *out++ = kAlphabet[word >> 6 & 63];
            *out++ = kAlphabet[word & 63];
        }
        if (i < octets.size()) {
            const bool two = i + 1 < octets.size();
            const unsigned word = at(i) << 16 | (two ? at(i + 1) << 8 : 0U);
            *out++ = kAlphabet[word >> 18];
            *out++ = kAlphabet[word >> 12 & 63];
            *out++ = two ? kAlphabet[word >> 6 & 63] : '=';
            *out++ = '=';
        }
        size_ = static_cast<std::size_t>(out - out_);
        character('"');
    }
    // Bytes as a JSON string, RFC 8259 7; what is no UTF-8 becomes U+FFFD.
    void string(std::string_view octets) {
        character('"');
        for (std::size_t i = 0; i < octets.size();) {
            const unsigned char c = octet(octets[i]);
            const std::size_t length = utf8_length(octets.substr(i));
            if (length == 0) {
                raw("\xEF\xBF\xBD");
                ++i;
                continue;
            }
            if (c == '"' || c == '\\') {
                character('\\');
                character(static_cast<char>(c));
            } else if (c < 0x20) {
                constexpr std::string_view kHex = "0123456789abcdef";
                raw("\\u00");
                character(kHex[c >> 4]);
                character(kHex[c & 15]);
            } else {
                raw(octets.substr(i, length));
            }
            i += length;
        }
        character('"');
    }
    std::size_t size() const { return size_; }

  private:
    // Bytes of the well-formed UTF-8 sequence at the front (RFC 3629 4), 0 when there is none.
    static std::size_t utf8_length(std::string_view text) {
        const unsigned char c = octet(text[0]);
        if (c < 0x80) return 1;
        std::size_t length = 0;
        unsigned low = 0x80;
        unsigned high = 0xBF;
        if (c >= 0xC2 && c <= 0xDF) {
            length = 2;
        } else if (c >= 0xE0 && c <= 0xEF) {
            length = 3;
            if (c == 0xE0) low = 0xA0;
            if (c == 0xED) high = 0x9F;
        } else if (c >= 0xF0 && c <= 0xF4) {
            length = 4;
            if (c == 0xF0) low = 0x90;
            if (c == 0xF4) high = 0x8F;
        } else {
            return 0;
        }
        if (text.size() < length) return 0;
        for (std::size_t i = 1; i < length; ++i) {
            const unsigned next = octet(text[i]);
            if (next < (i == 1 ? low : 0x80U) || next > (i == 1 ? high : 0xBFU)) return 0;
        }
        return length;
    }

    char* out_;
    std::size_t size_ = 0;
};

template <class Write>
Reason write_json(ResponseWriter& writer, const Write& write) {
    JsonWriter counter(nullptr);
    write(counter);
    char* room = nullptr;
    const std::array<Field, 1> fields{kJson};
    if (!writer.start(200, fields, counter.size(), room)) return writer.fault();
    if (room != nullptr) {
        JsonWriter filler(room);
        write(filler);
    }
    return Reason::kNone;
}

void write_fields(JsonWriter& json, std::string_view section, bool trailers) {
    FieldReader reader(section);
    std::string_view name;
    std::string_view value;
    bool first = true;
    json.character('[');
    while (reader.next(name, value)) {
        if (trailers && is_forbidden_trailer(name)) continue;
        json.raw(first ? "[" : ",[");
        first = false;
        json.base64(name);
        json.character(',');
        json.base64(value);
        json.character(']');
    }
    json.character(']');
}

Reason answer_mirror(const Request& request, ResponseWriter& writer) {
    const RequestHead& head = request.head;
    const std::string_view section(request.data + head.fields_begin,
                                   request.head_size - head.fields_begin);
    const std::array<char, 8> version{'H', 'T',
                                      'T', 'P',
                                      '/', static_cast<char>('0' + head.version_major),
                                      '.', static_cast<char>('0' + head.version_minor)};
    return write_json(writer, [&](JsonWriter& json) {
        json.raw("{\"method\":");
        json.base64(head.method_name.in(request.data));
        json.raw(",\"target\":");
        json.base64(head.target.in(request.data));
        json.raw(",\"authority\":");
        json.base64(head.authority.in(request.data));
        json.raw(",\"version\":");
        json.base64({version.data(), version.size()});
        json.raw(",\"fields\":");
        write_fields(json, section, false);
        json.raw(",\"content\":");
        json.base64(request.content);
        json.raw(",\"trailers\":");
        write_fields(json, request.trailers, true);
        json.raw(",\"request_number\":");
        json.number(request.number);
        json.character('}');
    });
}

Reason answer_echo(const Request& request, ResponseWriter& writer) {
    struct Parameter {
        std::string_view name;
        std::string_view value;
    };
    std::array<Parameter, kParametersMax> parameters;
    std::size_t count = 0;
    static thread_local std::array<char, 65536> decoded;
    if (request.target.query.size() > decoded.size()) return Reason::kHandlerFailed;
    char* room = decoded.data();
    std::string_view rest = request.target.query;
    while (!rest.empty()) {
        const std::size_t end = std::min(rest.find('&'), rest.size());
        const std::string_view pair = rest.substr(0, end);
        rest.remove_prefix(std::min(end + 1, rest.size()));
        if (pair.empty()) continue;
        const std::size_t equals = std::min(pair.find('='), pair.size());
        Parameter parameter;
        const auto decode = [&](std::string_view text) {
            const auto out = percent_decode(text, room, true);
            CHECK(out.has_value());  // the parser has seen every pair
            room += out->size();
            return *out;
        };
        parameter.name = decode(pair.substr(0, equals));
        parameter.value = decode(pair.substr(std::min(equals + 1, pair.size())));
        // A name given twice keeps its place and takes the later value.
        const auto seen = std::find_if(
            parameters.begin(), parameters.begin() + static_cast<std::ptrdiff_t>(count),
            [&](const Parameter& p) { return p.name == parameter.name; });
        if (seen != parameters.begin() + static_cast<std::ptrdiff_t>(count)) {
            seen->value = parameter.value;
        } else if (count == parameters.size()) {
            return writer.write(400, {kPlain}, "too many parameters\n") ? Reason::kNone
                                                                        : writer.fault();
        } else {
            parameters[count++] = parameter;
        }
    }
    return write_json(writer, [&](JsonWriter& json) {
        json.character('{');
        for (std::size_t i = 0; i < count; ++i) {
            if (i != 0) json.character(',');
            json.string(parameters[i].name);
            json.character(':');
            json.string(parameters[i].value);
        }
        json.character('}');
    });
}

// RFC 9110 9.3.8: the head as it came, without what is likely to be a secret.
Reason answer_trace(const Request& request, ResponseWriter& writer) {
    const RequestHead& head = request.head;
    const std::string_view line(request.data + head.method_name.begin,
                                head.fields_begin - head.method_name.begin);
    const auto each_field = [&](const auto& take) {
        FieldReader reader(std::string_view(request.data + head.fields_begin,
                                            request.head_size - head.fields_begin));
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
    const std::array<Field, 1> fields{Field{"Content-Type", "message/http"}};
    if (!writer.start(200, fields, size, out)) return writer.fault();
    if (out == nullptr) return Reason::kNone;
    const auto put = [&](std::string_view part) { out = std::copy(part.begin(), part.end(), out); };
    put(line);
    each_field(put);
    put(kLineEnd);
    return Reason::kNone;
}

}  // namespace

Reason answer(const Route& route, const Request& request, ResponseWriter& writer) {
    const auto written = [&](bool done) { return done ? Reason::kNone : writer.fault(); };
    if (request.head.form == TargetForm::kAsterisk) return written(writer.write(204, {}, {}));
    switch (route.handler) {
        case Handler::kHello:
        case Handler::kGetOnly:
        case Handler::kSlow:
        case Handler::kEarly:
            return written(writer.write(200, {kPlain}, kHelloContent));
        case Handler::kBody:
            return written(
                writer.write(200, {{"Content-Type", "application/octet-stream"}}, request.content));
        case Handler::kMirror:
            return answer_mirror(request, writer);
        case Handler::kEcho:
            return answer_echo(request, writer);
        case Handler::kNoContent:
            return written(writer.write(204, {}, {}));
        case Handler::kNotModified:
            return written(writer.write(304, {{"ETag", "\"hello\""}}, {}));
        case Handler::kRedirect:
            return written(writer.write(302, {{"Location", "/hello"}}, {}));
        case Handler::kBig: {
            const std::array<Field, 1> fields{kPlain};
            return written(writer.write_fill(200, fields, kBigAnswerSize));
        }
        case Handler::kNotFound:
            return Reason::kNotFound;
        case Handler::kTrace:
            return answer_trace(request, writer);
        case Handler::kFunction:
            return route.function(request, writer);
        case Handler::kMetrics:
            break;  // needs the counters of all workers: Connections answers it
    }
    return Reason::kHandlerFailed;
}

}  // namespace httpmark
