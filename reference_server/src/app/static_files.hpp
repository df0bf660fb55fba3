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
        FileRoot::Options root = {};
        TargetPath::Options path = {};
    };

    StaticFiles(const StaticFiles&) = delete;
    StaticFiles& operator=(const StaticFiles&) = delete;

    // nullptr, with `error` set, where there is no such directory, or the index is no name of a
    // file. It is opened once: what it is renamed to does not matter.
    static std::shared_ptr<const StaticFiles> open(const char* directory, const Options& options,
                                                   std::string& error);

    // Serves the files beneath `mount`, a path or a pattern; "" and "/" are the root. They are kept
    // for as long as the routes are.
    static void add(Router::Builder& routes, std::string_view mount,
                    std::shared_ptr<const StaticFiles> files);

  private:
    StaticFiles(FileRoot root, const Options& options)
        : root_(std::move(root)),
          index_(options.path.index),
          path_options_{options.path.hidden_too, index_} {}

    Reason answer(const Request& request, ResponseWriter& writer, std::size_t mount_size) const;
    static Reason write_file(const FileAnswer& answer, OpenedFile file, ResponseWriter& writer);

    FileRoot root_;
    std::string index_;
    TargetPath::Options path_options_;  // with a view of it
};

}  // namespace httpmark
