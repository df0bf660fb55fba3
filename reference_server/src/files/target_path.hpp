// From the path of a request to the name of a file beneath a root: decoded exactly once, and
// refused where it could name anything else than what its segments say.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace httpmark {

// Why a path names no file. The first fault in the path counts; kDotSegment only where nothing else
// is wrong.
enum class PathFault : std::uint8_t {
    kNone,
    kOctet,         // a byte that no path holds as it is (RFC 3986 3.3)
    kPercent,       // '%' without two hexadecimal digits
    kNul,           // "%00", with which names end in the system
    kSeparator,     // a slash or a backslash, encoded
    kNoSlash,       // does not begin with a slash
    kEmptySegment,  // "//"
    kAboveRoot,     // ".." segments lead out
    kHidden,        // a segment begins with a dot
    kTooLong,       // for a name
    kDotSegment,    // "." or ".." that stay beneath the root; see without_dot_segments()
};

class TargetPath {
  public:
    static constexpr std::size_t kNameMax = 4095;  // PATH_MAX of Linux, without the last NUL

    struct Options {
        bool hidden_too = false;  // names that begin with a dot
        // The file that a path which ends with a slash stands for.
        std::string_view index = "index.html";
    };

    // `path` is what follows the place where the root is mounted, as it came, without the query: ""
    // or "/" and segments. Any byte of a name may be percent-encoded but NUL, slash and backslash;
    // what is no UTF-8 is taken byte by byte. A dot segment is one in any encoding.
    explicit TargetPath(std::string_view path) : TargetPath(path, Options()) {}
    TargetPath(std::string_view path, const Options& options);

    PathFault fault() const { return fault_; }
    // Segments with single slashes between them, none of them empty, "." or ".."; empty for "",
    // which is the root itself. Only where there is no fault.
    const char* name() const { return name_.data(); }
    std::string_view name_view() const { return {name_.data(), size_}; }

  private:
    PathFault take(std::string_view path, const Options& options);
    PathFault take_segment(std::string_view segment, const Options& options);
    PathFault append(std::string_view decoded);

    std::array<char, kNameMax + 1> name_;
    std::size_t size_ = 0;
    std::size_t depth_ = 0;  // segments so far, ".." taken into account
    PathFault fault_;
    bool dot_segments_ = false;
};

// Of a path that TargetPath refuses with kDotSegment: the same without its dot segments (RFC 3986
// 6.2.2.3), where a client is sent. Every other segment is as it came.
std::string without_dot_segments(std::string_view path);

}  // namespace httpmark
