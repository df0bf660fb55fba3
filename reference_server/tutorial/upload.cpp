// An upload: ./upload DIRECTORY [PORT] stores files as they come in.
//
//     curl -F file=@photo.jpg -F file=@notes.txt localhost:8080/
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <httpmark/httpmark.hpp>
#include <memory>
#include <string>
#include <vector>

using namespace httpmark;

namespace {

constexpr std::string_view kPage = R"(<!DOCTYPE html>
<title>Upload</title>
<form method="post" enctype="multipart/form-data">
<input type="file" name="file" multiple> <button>Send</button>
</form>
)";

constexpr MultipartLimits kLimits{.parts_max = 10, .part_max = 8 << 20};
constexpr std::uint64_t kFormMax = 20 << 20;

// What is left of the name that a client says: no path, nothing hidden, and not too long.
std::string safe_name(std::string_view said) {
    constexpr std::string_view kSafe =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.";
    std::string name(said.substr(said.find_last_of("/\\") + 1, 100));
    for (char& c : name) {
        if (kSafe.find(c) == std::string_view::npos) c = '_';
    }
    if (name.empty() || name[0] == '.') name.insert(0, "file");
    return name;
}

// A file in the working directory. Unless it is kept, it is gone with this object.
class File {
  public:
    explicit File(std::string_view said) : name_(safe_name(said)) {
        descriptor_ = mkostemp(part_.data(), O_CLOEXEC);
    }
    File(const File&) = delete;
    File& operator=(const File&) = delete;
    ~File() {
        close();
        unlink(part_.c_str());
    }
    bool write(std::string_view piece) {
        while (!piece.empty()) {
            const ssize_t written = ::write(descriptor_, piece.data(), piece.size());
            if (written < 0) return false;
            piece.remove_prefix(static_cast<std::size_t>(written));
            size_ += static_cast<std::uint64_t>(written);
        }
        return descriptor_ >= 0;
    }
    void close() {
        if (descriptor_ >= 0) ::close(descriptor_);
        descriptor_ = -1;
    }
    // Under its name, or one like it: no file is ever replaced.
    bool keep() {
        const std::string wanted = name_;
        for (unsigned i = 2; link(part_.c_str(), name_.c_str()) != 0; ++i) {
            if (errno != EEXIST || i > 1000) return false;
            name_ = std::to_string(i) + '-' + wanted;
        }
        return true;
    }
    const std::string& name() const { return name_; }
    std::uint64_t size() const { return size_; }

  private:
    std::string name_;
    std::string part_ = ".part-XXXXXX";
    int descriptor_;
    std::uint64_t size_ = 0;
};

Reason answer_not_stored(ResponseWriter& writer) {
    return writer.answer(500, {}, "cannot store it\n");
}

// The files of one form. They are kept when all of it has come.
class Upload final : public PartReader {
  public:
    Flow on_part(const MultipartPart& part, ResponseWriter& writer) override {
        // Other fields of the form are not asked for. A browser in which no file was chosen sends
        // one without a name.
        in_file_ = !part.filename.empty();
        if (in_file_) files_.push_back(std::make_unique<File>(part.filename));
        return on_piece({}, writer);
    }
    Flow on_piece(std::string_view piece, ResponseWriter& writer) override {
        if (in_file_ && !files_.back()->write(piece)) answer_not_stored(writer);
        return Flow::kMore;
    }
    Flow on_part_end(ResponseWriter&) override {
        if (in_file_) files_.back()->close();
        return Flow::kMore;
    }
    Reason on_end(const Request&, ResponseWriter& writer) override {
        for (const auto& file : files_) {
            if (!file->keep()) return answer_not_stored(writer);
        }
        return answer_json(writer, 201, [&](JsonWriter& json) {
            json.begin_array();
            for (const auto& file : files_) {
                json.begin_object().key("name").string(file->name());
                json.key("size").number(file->size()).end_object();
            }
            json.end_array();
        });
    }

  private:
    std::vector<std::unique_ptr<File>> files_;
    bool in_file_ = false;
};

Reason take_upload(const Request& request, ResponseWriter& writer) {
    return read_parts(request, writer, std::make_unique<Upload>(), kLimits);
}

}  // namespace

int main(int argc, char** argv) {
    if (argc < 2 || chdir(argv[1]) != 0) {
        std::fprintf(stderr, "usage: %s DIRECTORY [PORT]\n", argv[0]);
        return 2;
    }
    Router::Builder routes;
    routes.add(Method::kGet, "/", Answer(200, {{"Content-Type", "text/html"}}, kPage));
    routes.add(Method::kPost, "/", take_upload, {.streams = true, .body_max = kFormMax});
    return run(routes, {.port = argc > 2 ? std::atoi(argv[2]) : 8080});
}
