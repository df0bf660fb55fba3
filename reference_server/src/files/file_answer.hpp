// What is answered to a request for a file: status, fields, and which part of the file. Pure: the
// file has been opened, or has not; the connection sends what is decided here.
//
//   const TargetPath path(request.path.substr(request.mount_size));
//   const OpenedFile file = path.fault() == PathFault::kNone ? root.open_file(path.name())
//                                                            : OpenedFile(FileFault::kMissing);
//   const FileAnswer answer(request, path.fault(), file.fault(), file.facts());
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "files/file_facts.hpp"
#include "files/ranges.hpp"
#include "files/target_path.hpp"
#include "files/validators.hpp"
#include "http/error.hpp"
#include "http/parser.hpp"
#include "http/response.hpp"

namespace httpmark {

struct FileRequest {
    Method method = Method::kUnknown;
    std::string_view path;        // of the target, as it came
    std::size_t mount_size = 0;   // bytes of it before what follows the root's place
    std::string_view query;       // with its question mark, as it came; may be empty
    std::string_view fields;      // the field section
    std::string_view media_type;  // of the file; empty: not said
    std::int64_t now = 0;         // what the answer's Date says
};

class FileAnswer {
  public:
    FileAnswer(const FileRequest& request, PathFault path_fault, FileFault file_fault,
               const FileFacts& facts);
    // What fields() gives stands in here.
    FileAnswer(const FileAnswer&) = delete;
    FileAnswer& operator=(const FileAnswer&) = delete;

    // 200, 206, 301, 304, 400, 403, 404, 405, 412, 416, 500 or 503.
    unsigned status() const { return status_; }
    // Why the answer has neither a part of the file nor fields of its own; else kNone.
    Reason refusal() const { return refusal_; }
    // Without those of framing, Date and Allow.
    std::span<const Field> fields() const { return {fields_.data(), count_}; }
    // With a 405, else empty.
    std::string_view allow() const;

    // The content is part of the file (200 and 206); with every other status it is the caller's.
    bool has_part() const { return status_ == 200 || status_ == 206; }
    // Where the part begins, and how long it is, as Content-Length says. In an answer to HEAD it is
    // said and not sent.
    std::uint64_t part_first() const { return part_first_; }
    std::uint64_t part_size() const { return part_size_; }
    bool sends_part() const { return has_part() && sends_content_; }

  private:
    void refuse(Reason reason);
    void add(std::string_view name, std::string_view value);
    void redirect(const FileRequest& request, std::string_view path);
    void answer_file(const FileRequest& request, const FileFacts& facts);
    void answer_part(const RangeChoice& choice, const FileFacts& facts, bool has_if_range,
                     std::string_view media_type);

    static constexpr std::size_t kFieldsMax = 5;

    unsigned status_ = 0;
    Reason refusal_ = Reason::kNone;
    bool sends_content_;
    std::uint64_t part_first_ = 0;
    std::uint64_t part_size_ = 0;
    std::array<Field, kFieldsMax> fields_;
    std::size_t count_ = 0;
    std::optional<Validators> validators_;
    std::optional<ContentRange> content_range_;
    std::string location_;
};

}  // namespace httpmark
