// One answer, taken apart; and content that is coded.
#pragma once

#include <algorithm>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "check.hpp"
#include "content/content_coding.hpp"
#include "http/parser.hpp"
#include "http/syntax.hpp"

namespace httpmark {

struct Answered {
    int status = -1;
    std::string head;
    std::string content;

    // All lines of that name, in order, joined by commas; empty without one.
    std::string field(std::string_view lower) const {
        std::string joined;
        FieldReader reader(std::string_view(head).substr(head.find("\r\n") + 2));
        std::string_view name;
        std::string_view value;
        while (reader.next(name, value)) {
            if (!equals_ignoring_case(name, lower)) continue;
            if (!joined.empty()) joined += ", ";
            joined += value;
        }
        return joined;
    }
};

// Of what was sent for one request.
inline Answered answered(std::string_view sent) {
    Answered answer;
    const std::size_t end = sent.find("\r\n\r\n");
    if (!sent.starts_with("HTTP/1.1 ") || end == std::string_view::npos) return answer;
    answer.status = std::stoi(std::string(sent.substr(9, 3)));
    answer.head = sent.substr(0, end + 4);
    answer.content = sent.substr(end + 4);
    return answer;
}

// The content, and what follows the last chunk.
inline std::pair<std::string, std::string> unchunked(std::string_view octets) {
    std::string content;
    while (true) {
        const std::size_t end = octets.find("\r\n");
        if (end == std::string_view::npos) return {"broken", ""};
        const std::size_t size = std::stoul(std::string(octets.substr(0, end)), nullptr, 16);
        octets.remove_prefix(end + 2);
        if (size == 0) return {content, std::string(octets)};
        if (octets.size() < size + 2) return {"broken", ""};
        content += octets.substr(0, size);
        octets.remove_prefix(size + 2);
    }
}

inline std::string coded(ContentCoding coding, std::string_view content) {
    ContentEncoder encoder(coding);
    std::vector<char> out(content.size() + content.size() / 100 + 100);
    std::span<char> room(out);
    CHECK(encoder.encode(content, room, ContentEncoder::Then::kEnd) ==
          ContentEncoder::Status::kDone);
    return {out.data(), out.size() - room.size()};
}

inline std::string decoded(ContentCoding coding, std::string_view content) {
    if (coding == ContentCoding::kIdentity) return std::string(content);
    ContentDecoder decoder(coding, 1U << 30);
    std::string out;
    std::vector<char> piece(10000);
    auto status = ContentDecoder::Status::kOutputFull;
    while (status == ContentDecoder::Status::kOutputFull) {
        std::span<char> room(piece);
        status = decoder.decode(content, room);
        out.append(piece.data(), piece.size() - room.size());
    }
    return decoder.finish() == ContentDecoder::Status::kDone ? out : "broken";
}

}  // namespace httpmark
