#include "files/file_answer.hpp"

#include "check.hpp"
#include "files/preconditions.hpp"

namespace httpmark {

namespace {

// What does not exist and what nobody is to know of look the same.
Reason reason_of(PathFault fault) {
    switch (fault) {
        case PathFault::kOctet:
        case PathFault::kPercent:
        case PathFault::kNul:
            return Reason::kPathInvalid;
        default:
            return Reason::kNotFound;
    }
}

Reason reason_of(FileFault fault) {
    switch (fault) {
        case FileFault::kForbidden:
            return Reason::kForbidden;
        case FileFault::kBusy:
            return Reason::kFileBusy;
        case FileFault::kFailed:
            return Reason::kFileFailed;
        default:
            return Reason::kNotFound;
    }
}

}  // namespace

FileAnswer::FileAnswer(const FileRequest& request, PathFault path_fault, FileFault file_fault,
                       const FileFacts& facts)
    : sends_content_(request.method == Method::kGet) {
    CHECK(request.mount_size <= request.path.size());
    if (request.method != Method::kGet && request.method != Method::kHead) {
        refuse(Reason::kMethodNotAllowed);
    } else if (path_fault == PathFault::kDotSegment) {
        redirect(request, without_dot_segments(request.path.substr(request.mount_size)));
    } else if (path_fault != PathFault::kNone) {
        refuse(reason_of(path_fault));
    } else if (file_fault == FileFault::kDirectory && !request.path.ends_with('/')) {
        redirect(request, std::string(request.path.substr(request.mount_size)) + '/');
    } else if (file_fault != FileFault::kNone) {
        refuse(reason_of(file_fault));
    } else {
        answer_file(request, facts);
    }
}

std::string_view FileAnswer::allow() const {
    return status_ == 405 ? "GET, HEAD" : "";
}

void FileAnswer::refuse(Reason reason) {
    refusal_ = reason;
    status_ = error_row(reason).status;
}

void FileAnswer::add(std::string_view name, std::string_view value) {
    if (value.empty()) return;
    CHECK(count_ < kFieldsMax);
    fields_[count_++] = {name, value};
}

// To the same place beneath the mount. A Location that begins with two slashes would name another
// host.
void FileAnswer::redirect(const FileRequest& request, std::string_view path) {
    location_ = request.path.substr(0, request.mount_size);
    location_ += path;
    location_ += request.query;
    if (location_.starts_with("//")) {
        refuse(Reason::kNotFound);
        return;
    }
    status_ = 301;
    add("Location", location_);
}

void FileAnswer::answer_file(const FileRequest& request, const FileFacts& facts) {
    validators_.emplace(facts, request.now);
    const Preconditions preconditions(request.fields, *validators_, request.now);
    switch (preconditions.outcome(request.method)) {
        case Preconditions::Outcome::kFailed:
            refuse(Reason::kPreconditionFailed);
            return;
        case Preconditions::Outcome::kNotModified:
            // RFC 9110 15.4.5: no more of what the client has anyway.
            status_ = 304;
            add("ETag", validators_->entity_tag());
            return;
        case Preconditions::Outcome::kMet:
            break;
    }
    // RFC 9110 14.2: ranges are defined for GET.
    const auto range =
        request.method == Method::kGet ? preconditions.range() : std::optional<std::string_view>();
    answer_part(range ? choose_range(*range, facts.size) : RangeChoice(), facts,
                preconditions.has_if_range(), request.media_type);
}

void FileAnswer::answer_part(const RangeChoice& choice, const FileFacts& facts, bool has_if_range,
                             std::string_view media_type) {
    if (choice.verdict != RangeChoice::Verdict::kWhole) content_range_.emplace(choice, facts.size);
    switch (choice.verdict) {
        case RangeChoice::Verdict::kUnsatisfiable:
            status_ = 416;
            add("Content-Range", content_range_->text());
            return;
        case RangeChoice::Verdict::kPart:
            status_ = 206;
            part_first_ = choice.first;
            part_size_ = choice.size;
            add("Content-Range", content_range_->text());
            break;
        case RangeChoice::Verdict::kWhole:
            status_ = 200;
            part_size_ = facts.size;
            add("Accept-Ranges", "bytes");
            break;
    }
    add("ETag", validators_->entity_tag());
    // RFC 9110 15.3.7: who asks with If-Range has the other fields.
    if (status_ == 206 && has_if_range) return;
    add("Last-Modified", validators_->last_modified());
    add("Content-Type", media_type);
}

}  // namespace httpmark
