#include "files/file_content.hpp"

#include <string>

#include "files/tree.hpp"
#include "laws.hpp"

namespace httpmark {
namespace {

OpenedFile opened(const Tree& tree, const char* name) {
    std::string error;
    const auto root = FileRoot::open(tree.at(".").c_str(), {}, error);
    CHECK(root.has_value());
    return root->open_file(name);
}

TEST(FileContent, any_part_in_any_steps) {
    const std::size_t before = open_descriptors();
    for (const std::size_t size : {1U, 100U, 65536U, 200000U}) {
        Tree tree;
        const std::string text = text_of(size);
        tree.file("file", text);
        for (const std::size_t first : {std::size_t{0}, size / 2, size - 1}) {
            for (const std::size_t step :
                 {std::size_t{7}, std::size_t{4096}, std::size_t{1} << 20}) {
                if (size / step > 1000) continue;
                FileContent* const content = new FileContent(opened(tree, "file"), first);
                LAW(content->file().descriptor >= 0 && content->file().offset == first);
                std::string got;
                while (got.size() < size - first) {
                    const std::string_view piece = content->read(got.size(), step);
                    LAW(!piece.empty() && piece.size() <= step && piece.size() <= kFileReadMax);
                    if (piece.empty()) break;
                    got += piece;
                }
                LAW(got == text.substr(first));
                LAW(content->read(size - first, step).empty());
                content->release();
            }
        }
    }
    LAW(open_descriptors() == before);
}

TEST(FileContent, a_file_that_became_shorter_is_told_by_fewer_bytes) {
    Tree tree;
    tree.file("file", text_of(1000));
    const OpenedFile file = opened(tree, "file");
    LAW(read_file(file, 0, 1000) == text_of(1000));
    LAW(read_file(file, 990, 1000).size() == 10 && read_file(file, 1000, 1).empty());
    CHECK(truncate(tree.at("file").c_str(), 400) == 0);
    LAW(read_file(file, 0, 1000) == text_of(400) && read_file(file, 400, 600).empty());
    // What cannot be read is no more than that.
    LAW(read_file(OpenedFile(FileFault::kMissing), 0, 10).empty());
}

}  // namespace
}  // namespace httpmark
