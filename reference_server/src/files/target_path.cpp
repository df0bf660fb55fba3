#include "files/target_path.hpp"

#include <algorithm>

#include "check.hpp"
#include "http/syntax.hpp"
#include "http/uri.hpp"

namespace httpmark {

namespace {

constexpr std::size_t kEncodedDotSize = 3;

bool starts_with_encoded_dot(std::string_view text) {
    return text.starts_with("%2e") || text.starts_with("%2E");
}

// 1 for ".", 2 for "..", in any encoding; 0 for every other segment.
unsigned dots_of(std::string_view segment) {
    unsigned dots = 0;
    while (!segment.empty() && dots < 3) {
        if (segment.front() == '.') {
            segment.remove_prefix(1);
        } else if (starts_with_encoded_dot(segment)) {
            segment.remove_prefix(kEncodedDotSize);
        } else {
            return 0;
        }
        ++dots;
    }
    return dots < 3 ? dots : 0;
}

PathFault fault_of_encoded(unsigned char c) {
    if (c == '\0') return PathFault::kNul;
    return c == '/' || c == '\\' ? PathFault::kSeparator : PathFault::kNone;
}

}  // namespace

TargetPath::TargetPath(std::string_view path, const Options& options) {
    CHECK(!options.index.empty() && options.index.find('/') == options.index.npos);
    fault_ = take(path, options);
    if (fault_ == PathFault::kNone && dot_segments_) fault_ = PathFault::kDotSegment;
    if (fault_ != PathFault::kNone) size_ = 0;
    name_[size_] = '\0';
}

PathFault TargetPath::take(std::string_view path, const Options& options) {
    if (path.empty()) return PathFault::kNone;
    if (path.front() != '/') return PathFault::kNoSlash;
    path.remove_prefix(1);
    while (true) {
        const std::size_t slash = path.find('/');
        const std::string_view segment = path.substr(0, slash);
        if (segment.empty()) {
            return slash == path.npos ? append(options.index) : PathFault::kEmptySegment;
        }
        if (const PathFault fault = take_segment(segment, options); fault != PathFault::kNone) {
            return fault;
        }
        if (slash == path.npos) return PathFault::kNone;
        path.remove_prefix(slash + 1);
    }
}

PathFault TargetPath::take_segment(std::string_view segment, const Options& options) {
    if (const unsigned dots = dots_of(segment); dots != 0) {
        dot_segments_ = true;
        if (dots == 2 && depth_-- == 0) return PathFault::kAboveRoot;
        return PathFault::kNone;
    }
    if (!options.hidden_too && (segment.front() == '.' || starts_with_encoded_dot(segment))) {
        return PathFault::kHidden;
    }
    ++depth_;
    if (const PathFault fault = append({}); fault != PathFault::kNone) return fault;
    for (std::size_t i = 0; i < segment.size(); ++i) {
        unsigned char c = octet(segment[i]);
        if (c == '%') {
            if (segment.size() - i < 3 || !is_hexdig(octet(segment[i + 1])) ||
                !is_hexdig(octet(segment[i + 2]))) {
                return PathFault::kPercent;
            }
            c = static_cast<unsigned char>(hex_value(octet(segment[i + 1])) << 4 |
                                           hex_value(octet(segment[i + 2])));
            if (const PathFault fault = fault_of_encoded(c); fault != PathFault::kNone) {
                return fault;
            }
            i += 2;
        } else if (!is_pchar(c)) {
            return PathFault::kOctet;
        }
        if (size_ == kNameMax) return PathFault::kTooLong;
        name_[size_++] = static_cast<char>(c);
    }
    return PathFault::kNone;
}

// A segment that needs no decoding, after the slash that stands between two.
PathFault TargetPath::append(std::string_view decoded) {
    const std::size_t slash = size_ != 0 ? 1 : 0;
    if (kNameMax - size_ < slash + decoded.size()) return PathFault::kTooLong;
    if (slash != 0) name_[size_++] = '/';
    std::copy(decoded.begin(), decoded.end(), name_.data() + size_);
    size_ += decoded.size();
    return PathFault::kNone;
}

std::string without_dot_segments(std::string_view path) {
    std::string text;
    text.reserve(path.size());
    while (!path.empty()) {
        const std::size_t end = std::min(path.find('/', 1), path.size());
        const std::string_view segment = path.substr(1, end - 1);
        text += '/';
        const unsigned dots = dots_of(segment);
        text += dots != 0 ? std::string_view("..").substr(0, dots) : segment;
        path.remove_prefix(end);
    }
    text.resize(remove_dot_segments(text, text.data()).size());
    return text;
}

}  // namespace httpmark
