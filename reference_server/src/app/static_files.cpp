#include "app/static_files.hpp"

#include <algorithm>
#include <new>
#include <utility>

#include "content/media_type.hpp"
#include "files/file_content.hpp"

namespace httpmark {

namespace {

// What is not longer is read at once and goes out with the head: that takes less time than to have
// the system send it from the file.
constexpr std::size_t kReadAtOnceMax = 8192;

Reason reason_of(const ResponseWriter& writer, bool written) {
    return written ? Reason::kNone : writer.fault();
}

// As it came, with its question mark.
std::string_view query_of(const Target& target) {
    if (!target.has_query) return {};
    return {target.query.data() - 1, target.query.size() + 1};
}

// Bytes of the mount in a path that fits it: as many segments, for some may be {name}.
std::size_t mount_size_in(std::string_view path, std::size_t segments) {
    std::size_t size = 0;
    for (std::size_t i = 0; i < segments; ++i) size += 1 + segment_size(path.substr(size + 1));
    return size;
}

bool is_index(std::string_view name) {
    return !name.empty() && name != "." && name != ".." &&
           name.find_first_of(std::string_view("/\0", 2)) == name.npos;
}

// Of an answer that says how long its content is and has none, because it is to HEAD.
class NoContent final : public ContentSource {
  public:
    std::string_view read(std::uint64_t, std::size_t) override { return {}; }
};

}  // namespace

std::shared_ptr<const StaticFiles> StaticFiles::open(const char* directory, const Options& options,
                                                     std::string& error) {
    if (!is_index(options.path.index)) {
        error = "the index of a directory is the name of a file in it";
        return nullptr;
    }
    auto root = FileRoot::open(directory, options.root, error);
    if (!root) return nullptr;
    return std::shared_ptr<const StaticFiles>(new StaticFiles(*std::move(root), options));
}

void StaticFiles::add(Router::Builder& routes, std::string_view mount,
                      std::shared_ptr<const StaticFiles> files) {
    if (mount.ends_with('/')) mount.remove_suffix(1);
    const auto segments = static_cast<std::size_t>(std::count(mount.begin(), mount.end(), '/'));
    routes.add(
        Method::kGet, std::string(mount) + "/...",
        [files = std::move(files), segments](const Request& request, ResponseWriter& writer) {
            const std::string_view path = request.target.path;
            return files->answer(request, writer, mount_size_in(path, segments));
        });
}

Reason StaticFiles::answer(const Request& request, ResponseWriter& writer,
                           std::size_t mount_size) const {
    const std::string_view whole = request.target.path;
    const TargetPath path(whole.substr(mount_size), path_options_);
    OpenedFile file = path.fault() == PathFault::kNone ? root_.open_file(path.name())
                                                       : OpenedFile(FileFault::kMissing);
    FileRequest asked;
    asked.method = request.head.method;
    asked.path = whole;
    asked.mount_size = mount_size;
    asked.query = query_of(request.target);
    asked.fields = request.fields();
    asked.media_type = media_type_of_file(path.name_view());
    asked.now = writer.unix_seconds();
    const FileAnswer answer(asked, path.fault(), file.fault(), file.facts());
    if (answer.has_part()) return write_file(answer, std::move(file), writer);
    if (answer.refusal() != Reason::kNone) return answer.refusal();
    return reason_of(writer, writer.write(answer.status(), answer.fields(), {}));
}

Reason StaticFiles::write_file(const FileAnswer& answer, OpenedFile file, ResponseWriter& writer) {
    const std::uint64_t size = answer.part_size();
    if (!answer.sends_part()) {
        static NoContent none;
        return reason_of(writer, writer.write_source(answer.status(), answer.fields(), size, none));
    }
    if (size <= kReadAtOnceMax) {
        const std::string_view text =
            read_file(file, answer.part_first(), static_cast<std::size_t>(size));
        if (text.size() != size) return Reason::kFileFailed;  // it became shorter meanwhile
        return reason_of(writer, writer.write(answer.status(), answer.fields(), text));
    }
    FileContent* const content =
        new (std::nothrow) FileContent(std::move(file), answer.part_first());
    if (content == nullptr) return Reason::kNoMemory;
    if (writer.write_source(answer.status(), answer.fields(), size, *content)) {
        return Reason::kNone;
    }
    content->release();
    return writer.fault();
}

}  // namespace httpmark
