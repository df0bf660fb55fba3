// Media types, RFC 9110 8.3.1: Content-Type read and compared, and the type of a file by its name.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

#include "http/error.hpp"

namespace httpmark {

// One parameter of a field, RFC 9110 5.6.6. Of a quoted-string `value` is what stands between the
// quotes, as it came; unquote() gives what is meant.
struct Parameter {
    std::string_view name;
    std::string_view value;
    bool is_quoted = false;
    bool is_escaped = false;  // holds quoted-pairs
    std::size_t offset = 0;   // of the name
};

// Reads *( OWS ";" OWS [ parameter ] ).
class ParameterReader {
  public:
    explicit ParameterReader(std::string_view text) : text_(text) {}
    // False at the end, and where the text breaks the grammar: then is_wrong().
    bool next(Parameter& parameter);
    bool is_wrong() const { return is_wrong_; }
    // Of the byte that breaks the grammar; before that, how much has been read.
    std::size_t offset() const { return at_; }

  private:
    bool fail(std::size_t at);
    bool take_quoted(Parameter& parameter);

    std::string_view text_;
    std::size_t at_ = 0;
    bool is_wrong_ = false;
};

// Which backslashes of a quoted-string go. kAll is RFC 9110 5.6.4; kOnlyNeeded leaves one that
// stands before neither '"' nor '\' as it is, for names of files that browsers send unescaped.
enum class QuotedPairs : unsigned char { kAll, kOnlyNeeded };

// What the inside of a quoted-string means, into `out`, which has room for text.size(). `out` may
// be where `text` begins.
std::string_view unquote(std::string_view text, char* out, QuotedPairs pairs = QuotedPairs::kAll);

// Views into what was parsed. Type and subtype are as they came: compare with is_media_type().
struct MediaType {
    std::string_view type;
    std::string_view subtype;
    std::string_view parameters;  // with the first ';', for a ParameterReader
};

struct MediaTypeResult {
    MediaType media_type;
    Reason fault = Reason::kNone;
    std::size_t offset = 0;  // of the fault in what was given
};

// The whole value of a Content-Type field. Parameters are looked at, too: each name stands once.
MediaTypeResult parse_media_type(std::string_view text);

// `lower` is "type/subtype" in lower case; "type/*" and "*/*" match as in RFC 9110 12.5.1.
// Parameters do not count.
bool is_media_type(const MediaType& media_type, std::string_view lower);

// The same type with the same parameters in any order; the value of charset ignores case.
bool same_media_type(const MediaType& a, const MediaType& b);

// The parameter of that name in lower case.
std::optional<Parameter> parameter_of(const MediaType& media_type, std::string_view lower);

// Text of a kind that a content coding makes smaller. Images, films and archives are none.
bool is_compressible(const MediaType& media_type);

// By what follows the last dot of the last segment; application/octet-stream where that is
// unknown. No type names a charset: nobody has looked into the file.
std::string_view media_type_of_file(std::string_view path);

}  // namespace httpmark
