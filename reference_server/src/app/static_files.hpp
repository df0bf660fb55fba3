// The files beneath a directory as a route: GET and HEAD, conditional requests, ranges. What is
// answered to what, files/file_answer.hpp decides.
//
//   std::string error;
//   const auto files = StaticFiles::open("/srv/www", {}, error);
//   if (files == nullptr) ...
//   StaticFiles::add(routes, "/static", files);
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "app/router.hpp"
#include "files/file_answer.hpp"
#include "files/file_root.hpp"
#include "files/target_path.hpp"

namespace httpmark {

class StaticFiles {
  public:
    struct Options {
        FileRoot::Options root;
        TargetPath::Options path;
    };

    // nullptr, with `error` set, where there is no such directory. It is opened once: what it is
    // renamed to does not matter.
    static std::shared_ptr<const StaticFiles> open(const char* directory, const Options& options,
                                                   std::string& error);

    // Serves the files beneath `mount`, which is empty or a path without a slash at its end. They
    // are kept for as long as the routes are.
    static void add(Router::Builder& routes, std::string_view mount,
                    std::shared_ptr<const StaticFiles> files);

  private:
    StaticFiles(FileRoot root, const Options& options)
        : root_(std::move(root)), path_options_(options.path) {}

    Reason answer(const Request& request, ResponseWriter& writer, std::size_t mount_size) const;
    static Reason write_file(const FileAnswer& answer, OpenedFile file, ResponseWriter& writer);

    FileRoot root_;
    TargetPath::Options path_options_;
};

}  // namespace httpmark
