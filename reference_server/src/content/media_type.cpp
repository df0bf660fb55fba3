#include "content/media_type.hpp"

#include <algorithm>
#include <array>

#include "http/syntax.hpp"
#include "limits.hpp"

namespace httpmark {

namespace {

struct FileType {
    std::string_view extension;
    std::string_view media_type;
};

constexpr auto kFileTypes = std::to_array<FileType>({
    {"7z", "application/x-7z-compressed"},
    {"aac", "audio/aac"},
    {"apng", "image/apng"},
    {"atom", "application/atom+xml"},
    {"avif", "image/avif"},
    {"bin", "application/octet-stream"},
    {"bmp", "image/bmp"},
    {"css", "text/css"},
    {"csv", "text/csv"},
    {"eot", "application/vnd.ms-fontobject"},
    {"epub", "application/epub+zip"},
    {"flac", "audio/flac"},
    {"gif", "image/gif"},
    {"gz", "application/gzip"},
    {"htm", "text/html"},
    {"html", "text/html"},
    {"ico", "image/vnd.microsoft.icon"},
    {"ics", "text/calendar"},
    {"jpeg", "image/jpeg"},
    {"jpg", "image/jpeg"},
    {"js", "text/javascript"},
    {"json", "application/json"},
    {"jsonld", "application/ld+json"},
    {"jxl", "image/jxl"},
    {"m4a", "audio/mp4"},
    {"map", "application/json"},
    {"md", "text/markdown"},
    {"mjs", "text/javascript"},
    {"mp3", "audio/mpeg"},
    {"mp4", "video/mp4"},
    {"mpeg", "video/mpeg"},
    {"oga", "audio/ogg"},
    {"ogg", "audio/ogg"},
    {"ogv", "video/ogg"},
    {"opus", "audio/ogg"},
    {"otf", "font/otf"},
    {"pdf", "application/pdf"},
    {"png", "image/png"},
    {"rss", "application/rss+xml"},
    {"rtf", "application/rtf"},
    {"svg", "image/svg+xml"},
    {"tar", "application/x-tar"},
    {"tif", "image/tiff"},
    {"tiff", "image/tiff"},
    {"ttf", "font/ttf"},
    {"txt", "text/plain"},
    {"vtt", "text/vtt"},
    {"wasm", "application/wasm"},
    {"wav", "audio/wav"},
    {"weba", "audio/webm"},
    {"webm", "video/webm"},
    {"webmanifest", "application/manifest+json"},
    {"webp", "image/webp"},
    {"woff", "font/woff"},
    {"woff2", "font/woff2"},
    {"xhtml", "application/xhtml+xml"},
    {"xml", "application/xml"},
    {"xz", "application/x-xz"},
    {"zip", "application/zip"},
    {"zst", "application/zstd"},
});
constexpr std::size_t kExtensionMax = 16;

constexpr bool file_types_are_sorted() {
    for (std::size_t i = 0; i < kFileTypes.size(); ++i) {
        if (i > 0 && kFileTypes[i - 1].extension >= kFileTypes[i].extension) return false;
        if (kFileTypes[i].extension.size() > kExtensionMax) return false;
    }
    return true;
}
static_assert(file_types_are_sorted());

std::size_t token_end(std::string_view text, std::size_t at) {
    while (at < text.size() && is_tchar(octet(text[at]))) ++at;
    return at;
}

bool ends_with_ignoring_case(std::string_view text, std::string_view lower) {
    return text.size() >= lower.size() &&
           equals_ignoring_case(text.substr(text.size() - lower.size()), lower);
}

// What a value means, a byte at a time.
class ValueReader {
  public:
    explicit ValueReader(const Parameter& parameter)
        : rest_(parameter.value), is_quoted_(parameter.is_quoted) {}
    // -1 at the end.
    int next() {
        if (rest_.empty()) return -1;
        if (is_quoted_ && rest_[0] == '\\' && rest_.size() > 1) rest_.remove_prefix(1);
        const unsigned char c = octet(rest_[0]);
        rest_.remove_prefix(1);
        return c;
    }

  private:
    std::string_view rest_;
    bool is_quoted_;
};

bool same_value(const Parameter& a, const Parameter& b) {
    const bool folds = equals_ignoring_case(a.name, "charset");
    ValueReader left(a);
    ValueReader right(b);
    while (true) {
        const int one = left.next();
        const int other = right.next();
        const auto fold = [&](int c) {
            return folds && c >= 0 ? octet(to_lower(static_cast<char>(c))) : c;
        };
        if (fold(one) != fold(other)) return false;
        if (one < 0) return true;
    }
}

// Each parameter of `a` stands in `b`, too.
bool has_parameters_of(const MediaType& b, const MediaType& a, std::size_t& count) {
    ParameterReader reader(a.parameters);
    Parameter parameter;
    count = 0;
    while (reader.next(parameter)) {
        ++count;
        ParameterReader others(b.parameters);
        Parameter other;
        bool is_found = false;
        while (!is_found && others.next(other)) {
            is_found =
                same_ignoring_case(parameter.name, other.name) && same_value(parameter, other);
        }
        if (!is_found) return false;
    }
    return true;
}

// Whether the parameters are well-formed, few, and each there once.
Reason judge_parameters(std::string_view text, std::size_t& offset) {
    std::array<std::string_view, kMediaTypeParametersMax> names;
    std::size_t count = 0;
    ParameterReader reader(text);
    Parameter parameter;
    while (reader.next(parameter)) {
        offset = parameter.offset;
        const auto seen = names.begin() + static_cast<std::ptrdiff_t>(count);
        const auto is_same = [&](std::string_view name) {
            return same_ignoring_case(name, parameter.name);
        };
        if (std::any_of(names.begin(), seen, is_same)) return Reason::kParameterRepeated;
        if (count == names.size()) return Reason::kParametersTooMany;
        names[count++] = parameter.name;
    }
    offset = reader.offset();
    return reader.is_wrong() ? Reason::kParameterSyntax : Reason::kNone;
}

}  // namespace

bool ParameterReader::fail(std::size_t at) {
    at_ = at;
    is_wrong_ = true;
    return false;
}

// From after the opening quote to after the closing one.
bool ParameterReader::take_quoted(Parameter& parameter) {
    const std::size_t begin = at_;
    for (std::size_t at = begin; at < text_.size(); ++at) {
        const unsigned char c = octet(text_[at]);
        if (c == '"') {
            parameter.value = text_.substr(begin, at - begin);
            at_ = at + 1;
            return true;
        }
        if (c == '\\') {
            parameter.is_escaped = true;
            ++at;
            if (at == text_.size() || !is_quoted_pair_char(octet(text_[at]))) return fail(at);
        } else if (!is_qdtext(c)) {
            return fail(at);
        }
    }
    return fail(text_.size());
}

bool ParameterReader::next(Parameter& parameter) {
    const auto skip_ows = [&] {
        while (at_ < text_.size() && is_ows(octet(text_[at_]))) ++at_;
    };
    if (is_wrong_) return false;
    skip_ows();
    while (at_ < text_.size()) {
        if (text_[at_] != ';') return fail(at_);
        ++at_;
        skip_ows();
        if (at_ == text_.size() || text_[at_] == ';') continue;  // an empty one
        parameter = {};
        parameter.offset = at_;
        const std::size_t end = token_end(text_, at_);
        if (end == at_ || end == text_.size() || text_[end] != '=') return fail(end);
        parameter.name = text_.substr(at_, end - at_);
        at_ = end + 1;
        if (at_ < text_.size() && text_[at_] == '"') {
            ++at_;
            parameter.is_quoted = true;
            return take_quoted(parameter);
        }
        const std::size_t value_end = token_end(text_, at_);
        if (value_end == at_) return fail(at_);
        parameter.value = text_.substr(at_, value_end - at_);
        at_ = value_end;
        return true;
    }
    return false;
}

std::string_view unquote(std::string_view text, char* out, QuotedPairs pairs) {
    char* const begin = out;
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] == '\\' && i + 1 < text.size()) {
            const char next = text[i + 1];
            if (pairs == QuotedPairs::kAll || next == '"' || next == '\\') ++i;
        }
        *out++ = text[i];
    }
    return {begin, static_cast<std::size_t>(out - begin)};
}

MediaTypeResult parse_media_type(std::string_view text) {
    MediaTypeResult result;
    std::size_t at = 0;
    while (at < text.size() && is_ows(octet(text[at]))) ++at;
    const auto wrong = [&](std::size_t offset) {
        return MediaTypeResult{{}, Reason::kMediaTypeSyntax, offset};
    };
    const std::size_t slash = token_end(text, at);
    if (slash == at || slash == text.size() || text[slash] != '/') return wrong(slash);
    result.media_type.type = text.substr(at, slash - at);
    const std::size_t end = token_end(text, slash + 1);
    if (end == slash + 1) return wrong(end);
    result.media_type.subtype = text.substr(slash + 1, end - slash - 1);
    result.media_type.parameters = text.substr(end);
    result.fault = judge_parameters(result.media_type.parameters, result.offset);
    if (result.fault == Reason::kNone) {
        result.offset = 0;
    } else {
        result.offset += end;
        result.media_type = {};
    }
    return result;
}

bool is_media_type(const MediaType& media_type, std::string_view lower) {
    const std::size_t slash = lower.find('/');
    if (slash == std::string_view::npos || media_type.type.empty()) return false;
    const std::string_view type = lower.substr(0, slash);
    const std::string_view subtype = lower.substr(slash + 1);
    if (subtype == "*" && type == "*") return true;
    return equals_ignoring_case(media_type.type, type) &&
           (subtype == "*" || equals_ignoring_case(media_type.subtype, subtype));
}

bool same_media_type(const MediaType& a, const MediaType& b) {
    if (!same_ignoring_case(a.type, b.type) || !same_ignoring_case(a.subtype, b.subtype)) {
        return false;
    }
    std::size_t count = 0;
    std::size_t other_count = 0;
    return has_parameters_of(b, a, count) && has_parameters_of(a, b, other_count) &&
           count == other_count;
}

std::optional<Parameter> parameter_of(const MediaType& media_type, std::string_view lower) {
    ParameterReader reader(media_type.parameters);
    Parameter parameter;
    while (reader.next(parameter)) {
        if (equals_ignoring_case(parameter.name, lower)) return parameter;
    }
    return std::nullopt;
}

bool is_compressible(const MediaType& media_type) {
    constexpr auto kTypes = std::to_array<std::string_view>({
        "application/javascript",
        "application/json",
        "application/rtf",
        "application/vnd.ms-fontobject",
        "application/wasm",
        "application/x-ndjson",
        "application/x-tar",
        "application/xml",
        "font/otf",
        "font/ttf",
        "image/bmp",
        "image/vnd.microsoft.icon",
        "text/*",
    });
    // Each event is to be read as soon as it is sent, and not when a block of them is full.
    if (is_media_type(media_type, "text/event-stream")) return false;
    const auto matches = [&](std::string_view one) { return is_media_type(media_type, one); };
    return std::ranges::any_of(kTypes, matches) ||
           ends_with_ignoring_case(media_type.subtype, "+json") ||
           ends_with_ignoring_case(media_type.subtype, "+xml");
}

std::string_view media_type_of_file(std::string_view path) {
    constexpr std::string_view kUnknown = "application/octet-stream";
    const std::string_view name = path.substr(path.rfind('/') + 1);  // npos + 1 is 0
    const std::size_t dot = name.rfind('.');
    if (dot == std::string_view::npos || name.size() - dot - 1 > kExtensionMax) return kUnknown;
    std::array<char, kExtensionMax> room{};
    const std::string_view extension = name.substr(dot + 1);
    std::ranges::transform(extension, room.begin(), to_lower);
    const std::string_view lower(room.data(), extension.size());
    const auto* const found = std::ranges::lower_bound(kFileTypes, lower, {}, &FileType::extension);
    return found != kFileTypes.end() && found->extension == lower ? found->media_type : kUnknown;
}

}  // namespace httpmark
