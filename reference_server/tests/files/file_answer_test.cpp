#include "files/file_answer.hpp"

#include <sys/stat.h>

#include <map>
#include <string>
#include <vector>

#include "counted_allocations.hpp"
#include "files/file_root.hpp"
#include "files/tree.hpp"
#include "http/error.hpp"
#include "laws.hpp"

namespace httpmark {
namespace {

constexpr std::int64_t kNow = 1795312800;
constexpr std::string_view kText = "the text of the file";
const FileFacts kFacts{kText.size(), 7, {784111777, 5}, {kNow - 1000, 9}};

struct Answered {
    unsigned status = 0;
    std::map<std::string, std::string> fields;
    std::string content;
    std::uint64_t part_size = 0;
    bool sends_part = false;
    std::string allow;
};

// What can be said of any answer, whatever was asked.
Answered checked(const FileAnswer& answer, const FileRequest& request) {
    Answered out;
    out.status = answer.status();
    LAW(status_phrase(out.status) != "Unknown", << out.status);
    for (const Field& field : answer.fields()) {
        LAW(field_is_safe(field) && !field.value.empty(), << visible(field.value));
        LAW(out.fields.emplace(field.name, field.value).second, << field.name);
    }
    out.part_size = answer.part_size();
    out.sends_part = answer.sends_part();
    out.allow = answer.allow();
    LAW(answer.has_part() == (out.status == 200 || out.status == 206));
    LAW(out.sends_part == (answer.has_part() && request.method == Method::kGet));
    LAW(answer.has_part() || (answer.part_first() == 0 && out.part_size == 0));
    LAW((out.status == 405) == (out.allow == "GET, HEAD"));
    LAW((out.status == 405) == (request.method != Method::kGet && request.method != Method::kHead));
    // RFC 9110 15.3.7, 15.5.17, 15.4.2
    LAW((out.status == 206 || out.status == 416) == out.fields.contains("Content-Range"));
    LAW((out.status == 301) == out.fields.contains("Location"));
    LAW(!out.fields.contains("Location") || !out.fields["Location"].starts_with("//"));
    const bool has_tag = out.status == 200 || out.status == 206 || out.status == 304;
    LAW(has_tag == out.fields.contains("ETag"), << out.status);
    return out;
}

Answered answered(const FileRequest& request, const FileFacts& facts = kFacts) {
    const FileAnswer answer(request, PathFault::kNone, FileFault::kNone, facts);
    return checked(answer, request);
}

FileRequest get(std::string_view fields = "\r\n") {
    FileRequest request;
    request.method = Method::kGet;
    request.path = "/static/ok.html";
    request.mount_size = 7;
    request.fields = fields;
    request.media_type = "text/html";
    request.now = kNow;
    return request;
}
FileRequest head(std::string_view fields = "\r\n") {
    FileRequest request = get(fields);
    request.method = Method::kHead;
    return request;
}

TEST(FileAnswer, a_whole_file) {
    const Answered whole = answered(get());
    LAW(whole.status == 200 && whole.part_size == kText.size() && whole.sends_part);
    LAW(whole.fields.at("Content-Type") == "text/html");
    LAW(whole.fields.at("Last-Modified") == "Sun, 06 Nov 1994 08:49:37 GMT");
    LAW(whole.fields.at("Accept-Ranges") == "bytes" && whole.fields.size() == 4);
    FileRequest untyped = get();
    untyped.media_type = "";
    LAW(!answered(untyped).fields.contains("Content-Type"));
}

TEST(FileAnswer, head_has_the_fields_and_the_length_of_get) {
    for (const char* fields : {"\r\n", "If-None-Match: *\r\n\r\n", "If-Match: \"x\"\r\n\r\n",
                               "If-Modified-Since: Sun, 06 Nov 1994 08:49:37 GMT\r\n\r\n"}) {
        const Answered a = answered(get(fields));
        const Answered b = answered(head(fields));
        LAW(a.status == b.status && a.fields == b.fields && a.part_size == b.part_size, << fields);
        LAW(!b.sends_part);
    }
    // RFC 9110 14.2: Range is of GET.
    const Answered whole = answered(head("Range: bytes=0-1\r\n\r\n"));
    LAW(whole.status == 200 && whole.part_size == kText.size());
    LAW(answered(head("Range: bytes=99-\r\n\r\n")).status == 200);
}

TEST(FileAnswer, a_part_of_a_file) {
    const Answered part = answered(get("Range: bytes=4-7\r\n\r\n"));
    LAW(part.status == 206 && part.part_size == 4);
    LAW(part.fields.at("Content-Range") == "bytes 4-7/20");
    // What a 200 would have said, all of it but that ranges are taken.
    Answered whole = answered(get());
    whole.fields.erase("Accept-Ranges");
    whole.fields["Content-Range"] = "bytes 4-7/20";
    LAW(part.fields == whole.fields);
    const Answered beyond = answered(get("Range: bytes=20-\r\n\r\n"));
    LAW(beyond.status == 416 && beyond.fields.at("Content-Range") == "bytes */20");
    LAW(beyond.fields.size() == 1);
}

TEST(FileAnswer, with_if_range_a_part_says_only_what_it_must) {
    const std::string tag = answered(get()).fields.at("ETag");
    const Answered part = answered(get("Range: bytes=4-7\r\nIf-Range: " + tag + "\r\n\r\n"));
    LAW(part.status == 206 && part.fields.size() == 2 && part.fields.at("ETag") == tag);
    const Answered whole = answered(get("Range: bytes=4-7\r\nIf-Range: \"x\"\r\n\r\n"));
    LAW(whole.status == 200 && whole.fields.size() == 4);
    // A range that the file has not, and a condition that is false: the whole, not 416.
    LAW(answered(get("Range: bytes=99-\r\nIf-Range: \"x\"\r\n\r\n")).status == 200);
    LAW(answered(get("Range: bytes=99-\r\nIf-Range: " + tag + "\r\n\r\n")).status == 416);
}

TEST(FileAnswer, conditions_come_before_ranges) {
    const std::string range = "Range: bytes=99-\r\n";
    LAW(answered(get(range + "If-None-Match: *\r\n\r\n")).status == 304);
    LAW(answered(get(range + "If-Match: \"x\"\r\n\r\n")).status == 412);
    LAW(answered(get(range + "If-Match: *\r\n\r\n")).status == 416);
}

TEST(FileAnswer, a_304_says_the_tag_and_no_more) {
    const Answered whole = answered(get());
    const Answered same = answered(get("If-None-Match: *\r\n\r\n"));
    LAW(same.status == 304 && same.fields.size() == 1);
    LAW(same.fields.at("ETag") == whole.fields.at("ETag"));
    const Answered failed = answered(get("If-Match: \"x\"\r\n\r\n"));
    LAW(failed.status == 412 && failed.fields.empty());
}

TEST(FileAnswer, an_empty_file) {
    FileFacts empty = kFacts;
    empty.size = 0;
    const Answered whole = answered(get(), empty);
    LAW(whole.status == 200 && whole.part_size == 0);
    LAW(answered(get("Range: bytes=0-0\r\n\r\n"), empty).status == 416);
    LAW(answered(get("Range: bytes=-1\r\n\r\n"), empty).status == 200);
}

// Every method, every fault of the path, every fault of the file.
TEST(FileAnswer, each_fault_has_its_status) {
    const std::map<PathFault, unsigned> of_path = {
        {PathFault::kNone, 0},           {PathFault::kOctet, 400},
        {PathFault::kPercent, 400},      {PathFault::kNul, 400},
        {PathFault::kSeparator, 404},    {PathFault::kNoSlash, 404},
        {PathFault::kAboveRoot, 404},    {PathFault::kHidden, 404},
        {PathFault::kEmptySegment, 404}, {PathFault::kDotSegment, 301},
        {PathFault::kTooLong, 404}};
    const std::map<FileFault, unsigned> of_file = {
        {FileFault::kNone, 200},       {FileFault::kMissing, 404}, {FileFault::kDirectory, 301},
        {FileFault::kNotRegular, 404}, {FileFault::kLink, 404},    {FileFault::kOutside, 404},
        {FileFault::kForbidden, 403},  {FileFault::kBusy, 503},    {FileFault::kFailed, 500}};
    for (const auto& [path_fault, path_status] : of_path) {
        for (const auto& [file_fault, file_status] : of_file) {
            for (int i = 0; i <= static_cast<int>(Method::kConnect); ++i) {
                FileRequest request = get();
                request.method = static_cast<Method>(i);
                const bool reads =
                    request.method == Method::kGet || request.method == Method::kHead;
                const FileAnswer answer(request, path_fault, file_fault, kFacts);
                const unsigned due = path_status != 0 ? path_status : file_status;
                LAW(checked(answer, request).status == (reads ? due : 405), << due);
            }
        }
    }
}

TEST(FileAnswer, redirects_keep_mount_and_query_and_name_no_other_host) {
    struct Row {
        std::string_view path;
        std::size_t mount_size;
        PathFault fault;
        std::string_view query;
        std::string_view location;  // empty: 404
    };
    for (const Row& row :
         {Row{"/static/sub", 7, PathFault::kNone, "", "/static/sub/"},
          {"/static/sub", 7, PathFault::kNone, "?a=/../b", "/static/sub/?a=/../b"},
          {"/static", 7, PathFault::kNone, "", "/static/"},
          {"/sub", 0, PathFault::kNone, "?", "/sub/?"},
          {"/static/s%75b", 7, PathFault::kNone, "", "/static/s%75b/"},
          {"/static/sub/", 7, PathFault::kNone, "", ""},
          {"/static/a/../ok.html", 7, PathFault::kDotSegment, "?x", "/static/ok.html?x"},
          {"/static/%2e/ok.html", 7, PathFault::kDotSegment, "", "/static/ok.html"},
          {"/a/..", 0, PathFault::kDotSegment, "", "/"},
          {"//host/sub", 0, PathFault::kNone, "", ""},
          {"//host/./sub", 6, PathFault::kDotSegment, "", ""}}) {
        FileRequest request = get();
        request.path = row.path;
        request.mount_size = row.mount_size;
        request.query = row.query;
        const FileAnswer answer(request, row.fault, FileFault::kDirectory, {});
        const Answered got = checked(answer, request);
        LAW(got.status == (row.location.empty() ? 404 : 301), << row.path);
        if (got.status == 301) LAW(got.fields.at("Location") == row.location, << row.path);
    }
}

// From here on with real files, asked for below /static as the catalogue asks.
class Site : public Tree {
  public:
    Site() {
        file("secret.txt", "the secret");
        for (const char* name : {"ok.html", ".hidden", "future.html", "sub/index.html"}) {
            file(std::string("static/") + name, kText);
            set_modified(std::string("static/") + name, 784111777);
        }
        set_modified("static/future.html", kNow + 2 * 86400);
        link("static/link-out", "../secret.txt");
        std::string error;
        root_ = FileRoot::open(at("static").c_str(), {}, error);
        CHECK(root_.has_value());
    }
    void set_modified(const std::string& name, std::int64_t seconds) {
        const timespec times[2] = {{seconds, 0}, {seconds, 0}};
        CHECK(utimensat(AT_FDCWD, at(name).c_str(), times, 0) == 0);
    }
    Answered ask(std::string_view target, std::string_view fields = "\r\n",
                 Method method = Method::kGet) const {
        const FileRequest request = request_for(target, fields, method);
        const TargetPath path(request.path.substr(request.mount_size));
        const OpenedFile file = path.fault() == PathFault::kNone ? root_->open_file(path.name())
                                                                 : OpenedFile(FileFault::kMissing);
        const FileAnswer answer(request, path.fault(), file.fault(), file.facts());
        Answered out = checked(answer, request);
        if (answer.sends_part()) {
            out.content = read_all(file.descriptor())
                              .substr(static_cast<std::size_t>(answer.part_first()),
                                      static_cast<std::size_t>(answer.part_size()));
        }
        return out;
    }

    // The status, with nothing looked at that a server would not look at.
    unsigned status_of(const FileRequest& request) const {
        const TargetPath path(request.path.substr(request.mount_size));
        const OpenedFile file = path.fault() == PathFault::kNone ? root_->open_file(path.name())
                                                                 : OpenedFile(FileFault::kMissing);
        return FileAnswer(request, path.fault(), file.fault(), file.facts()).status();
    }
    static FileRequest request_for(std::string_view target, std::string_view fields,
                                   Method method) {
        FileRequest request = get(fields);
        request.method = method;
        request.path = target.substr(0, target.find('?'));
        request.query = target.substr(request.path.size());
        request.now = static_cast<std::int64_t>(time(nullptr)) + 60;
        return request;
    }

  private:
    std::optional<FileRoot> root_;
};

TEST(FileAnswer, nothing_is_allocated_but_for_a_redirect) {
    struct Row {
        const char* target;
        const char* fields;
        unsigned status;
    };
    const Site site;
    for (const Row& row : {Row{"/static/ok.html", "Accept: */*\r\n\r\n", 200},
                           {"/static/ok.html", "Range: bytes=1-2, 3-5\r\n\r\n", 206},
                           {"/static/ok.html", "Range: bytes=99-\r\n\r\n", 416},
                           {"/static/ok.html", "If-None-Match: \"x\", *\r\n\r\n", 200},
                           {"/static/ok.html", "If-None-Match: *\r\n\r\n", 304},
                           {"/static/ok.html", "If-Match: \"x\"\r\n\r\n", 412},
                           {"/static/sub/", "\r\n", 200},
                           {"/static/nothing", "\r\n", 404},
                           {"/static/sub?with=more+than+a+short+string+holds", "\r\n", 301}}) {
        const FileRequest request = Site::request_for(row.target, row.fields, Method::kGet);
        const std::uint64_t before = allocations.load();
        const unsigned status = site.status_of(request);
        const std::uint64_t after = allocations.load();
        LAW(status == row.status, << row.target << " " << row.fields << status);
        LAW((after == before) == (row.status != 301), << row.target << " " << row.fields);
    }
}

TEST(FileAnswer, no_path_of_the_catalogue_leaves_the_folder) {
    const Site site;
    for (const std::string path : {"/../secret.txt",
                                   "/a/../../secret.txt",
                                   "/%2e%2e/secret.txt",
                                   "/%2E%2e%2fsecret.txt",
                                   "/..%2fsecret.txt",
                                   "/..\\secret.txt",
                                   "/..%5csecret.txt",
                                   "/%252e%252e/secret.txt",
                                   "/%c0%ae%c0%ae/secret.txt",
                                   "/%uff0e%uff0e/secret.txt",
                                   "/....//secret.txt",
                                   "/.%2e/secret.txt",
                                   "/;/../secret.txt",
                                   "//../secret.txt",
                                   "/%2fetc/passwd",
                                   "//etc/passwd",
                                   "/..;/secret.txt",
                                   "/ok.html%00.jpg",
                                   "/ok.html%00",
                                   "/link-out",
                                   "/.hidden",
                                   "/sub/%2e%2e/%2e%2e/secret.txt",
                                   "/sub/../../secret.txt",
                                   "../secret.txt"}) {
        Answered got = site.ask("/static" + path);
        LAW(got.content.empty(), << path);
        LAW(got.status == 400 || got.status == 404 || got.status == 301, << path << got.status);
        for (unsigned hops = 0; got.status == 301; ++hops) {
            const std::string to = got.fields.at("Location");
            LAW(hops < 2 && to.starts_with("/static/"), << path << " to " << to);
            got = site.ask(to);
            LAW(got.content.empty(), << path);
        }
    }
}

TEST(FileAnswer, equivalent_paths_of_the_catalogue) {
    const Site site;
    LAW(site.ask("/static/ok.html").content == kText);
    LAW(site.ask("/static/%6f%6b.html").content == kText);
    LAW(site.ask("/static/ok.html?/../../secret.txt").content == kText);
    LAW(site.ask("/static/OK.HTML").status == 404);
    LAW(site.ask("/static/ok.html/").status == 404);
    LAW(site.ask("/static/sub/").content == kText);
    for (const char* path : {"/static/sub/../ok.html", "/static/./ok.html"}) {
        const Answered got = site.ask(path);
        LAW(got.status == 301 && got.fields.at("Location") == "/static/ok.html", << path);
    }
    LAW(site.ask("/static/sub").fields.at("Location") == "/static/sub/");
}

TEST(FileAnswer, conditions_and_ranges_of_the_catalogue) {
    const Site site;
    const auto status = [&](const std::string& fields, Method method = Method::kGet) {
        return site.ask("/static/ok.html", fields + "\r\n\r\n", method).status;
    };
    const std::string tag = site.ask("/static/ok.html").fields.at("ETag");
    LAW(tag.starts_with('"'));
    LAW(status("If-None-Match: " + tag) == 304);
    LAW(status("If-None-Match: " + tag, Method::kHead) == 304);
    LAW(status("If-None-Match: *") == 304);
    LAW(status("If-Match: \"nope\"") == 412);
    LAW(status("If-Modified-Since: Sun, 06 Nov 1994 08:49:37 GMT") == 304);
    LAW(status("If-Modified-Since: Sunday, 06-Nov-94 08:49:37 GMT") == 304);
    LAW(status("If-Modified-Since: Sun Nov  6 08:49:37 1994") == 304);
    LAW(status("If-Modified-Since: nonsense") == 200);
    LAW(status("If-Modified-Since: Sun, 06 Nov 1994 08:49:37 GMT, Sun, 06 Nov 1994 08:49:37 GMT") ==
        200);
    LAW(status("If-None-Match: \"nope\"\r\nIf-Modified-Since: Sun, 06 Nov 1994 08:49:37 GMT") ==
        200);
    LAW(status("If-Unmodified-Since: Mon, 01 Jan 1990 00:00:00 GMT") == 412);
    LAW(status("Range: nosuch=0-1") == 200 && status("Range: x") == 200);
    LAW(status("Range: bytes=18446744073709551616-") == 416);
    LAW(status("Range: bytes=0-0", Method::kPost) == 405);
    std::string many = "Range: bytes=0-";
    for (unsigned i = 0; i < 999; ++i) many += ",0-";
    LAW(status(many) == 200);
    const Answered one = site.ask("/static/ok.html", "Range: bytes=0-0\r\n\r\n");
    LAW(one.status == 206 && one.content == "t");
    LAW(one.fields.at("Content-Range") == "bytes 0-0/" + std::to_string(kText.size()));
    LAW(site.ask("/static/ok.html", "Range: bytes=-4\r\n\r\n").content == "file");
}

TEST(FileAnswer, a_file_from_the_future_is_modified_now) {
    const Site site;
    const Answered got = site.ask("/static/future.html");
    const auto date = parse_http_date(got.fields.at("Last-Modified"), kNow);
    LAW(got.status == 200 && date && *date <= time(nullptr) + 61);
}

// Written again in the same size, with its modification time set back: only the system's own time
// tells, and the tag does.
TEST(FileAnswer, a_file_that_is_changed_in_secret_has_another_tag) {
    Site site;
    const std::string before = site.ask("/static/ok.html").fields.at("ETag");
    const std::string other(kText.size(), 'x');
    struct stat first {};
    CHECK(stat(site.at("static/ok.html").c_str(), &first) == 0);
    struct stat now = first;
    while (now.st_ctim.tv_sec == first.st_ctim.tv_sec &&
           now.st_ctim.tv_nsec == first.st_ctim.tv_nsec) {
        site.file("static/ok.html", other);
        site.set_modified("static/ok.html", 784111777);
        CHECK(stat(site.at("static/ok.html").c_str(), &now) == 0);
    }
    const Answered after = site.ask("/static/ok.html", "If-None-Match: " + before + "\r\n\r\n");
    LAW(after.status == 200 && after.content == other && after.fields.at("ETag") != before);
}

}  // namespace
}  // namespace httpmark
