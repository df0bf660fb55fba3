// Files as a route, from the bytes of a request to those of its answer.
#include "app/static_files.hpp"

#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <string>
#include <vector>

#include "files/tree.hpp"
#include "net/requests.hpp"

namespace httpmark {
namespace {

// Files, and settings that serve them.
class Site : public Tree {
  public:
    explicit Site(const std::string& mount = "/static") {
        file("secret.txt", "the secret");
        file("www/page.html", "the text of the page");
        file("www/sub/index.html", "the index");
        file("www/empty.txt", "");
        std::string error;
        const auto files = StaticFiles::open(at("www").c_str(), {}, error);
        CHECK(files != nullptr);
        Router::Builder routes;
        StaticFiles::add(routes, mount, files);
        router_ = built(routes);
        settings.router = router_.get();
    }
    ServerSettings settings;

  private:
    std::shared_ptr<const Router> router_;
};

std::string get(const std::string& path, const std::string& fields = "") {
    return request("GET " + path + " HTTP/1.1", fields);
}
std::string field_of(std::string_view sent, const std::string& name) {
    const std::size_t at = sent.find("\r\n" + name + ": ");
    if (at == sent.npos) return {};
    const std::size_t begin = at + name.size() + 4;
    return std::string(sent.substr(begin, sent.find("\r\n", begin) - begin));
}
std::string_view content_of(std::string_view sent) {
    return sent.substr(std::min(sent.find("\r\n\r\n"), sent.size() - 4) + 4);
}

TEST(StaticFiles, what_is_asked_at_every_split) {
    const Site site;
    const Talk talk = talk_every_way(
        get("/static/page.html") + get("/static/page.html", "Range: bytes=4-7\r\n") +
            request("HEAD /static/page.html HTTP/1.1") + get("/static/nothing") +
            request("POST /static/page.html HTTP/1.1", "Content-Length: 3\r\n", "abc") +
            get("/static/sub?a=b") + get("/static/page.html", "If-Match: \"x\"\r\n") +
            get("/static/page.html", "If-None-Match: *\r\n") +
            get("/static/page.html", "Range: bytes=99-\r\n") + get("/static/a%00") +
            get("/static/sub/") + get("/static") + get("/staticpage.html"),
        site.settings);
    LAW(statuses(talk.sent).size() >= 3, << visible(talk.sent));
    LAW(!talk.closed);
    const std::string& sent = talk.sent;
    for (const char* part :
         {"HTTP/1.1 200 OK\r\n", "\r\nContent-Length: 20\r\n\r\nthe text of the pageHTTP/1.1 206",
          "\r\nContent-Range: bytes 4-7/20\r\n", "\r\nContent-Length: 4\r\n\r\ntextHTTP/1.1 200",
          "\r\nContent-Length: 20\r\n\r\nHTTP/1.1 404", "not-found\nHTTP/1.1 405",
          "\r\nAllow: GET, HEAD, OPTIONS\r\n", "method-not-allowed\nHTTP/1.1 301",
          "\r\nLocation: /static/sub/?a=b\r\n", "\r\n\r\nHTTP/1.1 412",
          "precondition-failed\nHTTP/1.1 304", "\r\n\r\nHTTP/1.1 416",
          "\r\nContent-Range: bytes */20\r\n", "\r\n\r\nHTTP/1.1 400", "path-invalid\nHTTP/1.1 200",
          "the indexHTTP/1.1 301", "\r\nLocation: /static/\r\n", "\r\n\r\nHTTP/1.1 404"}) {
        LAW(sent.find(part) != std::string::npos, << part << visible(sent));
    }
    LAW(sent.ends_with("not-found\n"));
}

TEST(StaticFiles, a_directory_may_be_mounted_anywhere) {
    struct Row {
        const char* mount;
        const char* path;
        const char* directory;
    };
    for (const Row& row : {Row{"", "/page.html", "/sub"},
                           {"/a", "/a/page.html", "/a/sub"},
                           {"/a/b%20c", "/a/b%20c/page.html", "/a/b%20c/sub"}}) {
        const Site site(row.mount);
        const Talk talk = once(get(row.path) + get(row.directory), site.settings);
        LAW(statuses(talk.sent) == (Statuses{200, 301}), << visible(talk.sent));
        LAW(field_of(talk.sent.substr(talk.sent.find(" 301 ")), "Location") ==
            std::string(row.directory) + "/");
    }
    // Also where a pattern fits, and as most people would write the root.
    const Site of_names("/{user}/b/{thing}");
    for (const char* path : {"/a/b/c", "/ann/b/a-long-thing", "/a/b/%63"}) {
        const std::string place = path;
        const Talk talk =
            once(get(place + "/page.html") + get(place) + get(place + "/sub"), of_names.settings);
        LAW(statuses(talk.sent) == (Statuses{200, 301, 301}), << path << visible(talk.sent));
        LAW(field_of(talk.sent.substr(talk.sent.rfind(" 301 ")), "Location") == place + "/sub/");
    }
    for (const char* mount : {"/", "/a/"}) {
        const Site site(mount);
        LAW(statuses(once(get(mount + std::string("page.html")), site.settings).sent) ==
            Statuses{200});
    }
    Router::Builder routes;
    std::string error;
    LAW(StaticFiles::open("/nowhere/at/all", {}, error) == nullptr);
    LAW(error.find("/nowhere/at/all") != std::string::npos);
    Tree tree;
    tree.file("file", "x");
    LAW(StaticFiles::open(tree.at("file").c_str(), {}, error) == nullptr);
}

// The application's text need not live on.
TEST(StaticFiles, a_directory_is_answered_with_the_file_that_the_options_name) {
    Tree tree;
    tree.file("sub/the-beginning-of-this-directory.htm", "begins");
    std::string error;
    auto index = std::make_unique<std::string>("the-beginning-of-this-directory.htm");
    const auto files = StaticFiles::open(tree.at("").c_str(), {.path = {.index = *index}}, error);
    index->assign(index->size(), '.');
    index = nullptr;
    Router::Builder routes;
    StaticFiles::add(routes, "", files);
    const auto router = built(routes);
    ServerSettings settings;
    settings.router = router.get();
    LAW(content_of(once(get("/sub/"), settings).sent) == "begins");
    for (const std::string_view wrong : {"", ".", "..", "a/b", "/"}) {
        error.clear();
        LAW(StaticFiles::open(tree.at("").c_str(), {.path = {.index = wrong}}, error) == nullptr &&
                error.find("index") != error.npos,
            << wrong);
    }
}

TEST(StaticFiles, what_an_answer_says_of_a_file) {
    Site site;
    const std::string plain = once(get("/static/page.html"), site.settings).sent;
    LAW(field_of(plain, "Content-Type") == "text/html");
    LAW(field_of(plain, "Accept-Ranges") == "bytes");
    // Of a file that was changed after what Date says.
    LAW(field_of(plain, "Last-Modified") == "Sun, 06 Nov 1994 08:49:37 GMT");
    const std::string tag = field_of(plain, "ETag");
    LAW(tag.starts_with("W/\"") && tag.ends_with('"'), << tag);
    for (const std::string& field :
         {"If-None-Match: " + tag + "\r\n", "If-None-Match: \"x\", " + tag + "\r\n",
          std::string("If-Modified-Since: Sun, 06 Nov 1994 08:49:37 GMT\r\n")}) {
        const Talk talk =
            once(get("/static/page.html", field) + get("/static/page.html"), site.settings);
        LAW(statuses(talk.sent) == (Statuses{304, 200}), << field);
        LAW(field_of(talk.sent, "ETag") == tag);
    }
    const std::string head = once(request("HEAD /static/page.html HTTP/1.1"), site.settings).sent;
    LAW(plain.starts_with(head) && head.ends_with("\r\n\r\n"), << head);
    LAW(content_of(once(get("/static/empty.txt"), site.settings).sent).empty());
}

// Small and large, read and sent by the system, with any room on the wire: the same bytes, nothing
// kept of them, no descriptor left.
TEST(StaticFiles, files_of_any_size_come_whole_whatever_the_room) {
    Site site;
    const std::size_t before = open_descriptors();
    for (const std::size_t size : {1U, 8192U, 8193U, 65536U, 300000U}) {
        const std::string text = text_of(size);
        site.file("www/file", text);
        for (const bool by_system : {false, true}) {
            for (const std::size_t room :
                 {std::size_t{10000000}, std::size_t{1460}, std::size_t{40001}}) {
                Wire wire(site.settings);
                if (by_system) wire.send_files();
                const std::uint32_t id = wire.connect();
                wire.give_room(id, room);
                const std::string part = "Range: bytes=" + std::to_string(size / 2) + "-\r\n";
                wire.feed(id, get("/static/file") + request("HEAD /static/file HTTP/1.1") +
                                  get("/static/file", part) + get("/static/nothing"));
                LAW(wire.connections().arena().bytes_in_use() < 100000);
                for (unsigned i = 0; i < 1000; ++i) wire.give_room(id, room);
                std::string_view sent = wire.sent(id);
                for (const std::string_view wanted : {std::string_view(text), std::string_view(),
                                                      std::string_view(text).substr(size / 2)}) {
                    LAW(content_of(sent).substr(0, wanted.size()) == wanted,
                        << size << " " << room);
                    sent = content_of(sent);
                    sent.remove_prefix(std::min(wanted.size(), sent.size()));
                }
                LAW(statuses(sent) == Statuses{404}, << visible(sent));
                LAW((wire.file_sends() != 0) == (by_system && size > 8192));
                LAW(wire.connections().arena().bytes_in_use() == 0);
                LAW(open_descriptors() == before);
            }
        }
    }
}

TEST(StaticFiles, persistence_is_decided_as_for_any_answer) {
    Site site;
    site.file("www/file", text_of(100000));
    struct Row {
        std::string octets;
        bool closes;
    };
    for (const Row& row : {Row{get("/static/file"), false},
                           {"GET /static/file HTTP/1.0\r\n\r\n", true},
                           {"GET /static/file HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", false},
                           {get("/static/file", "Connection: close\r\n"), true},
                           {"HEAD /static/file HTTP/1.0\r\n\r\n", true},
                           {"GET http://h/static/file HTTP/1.1\r\nHost: h\r\n\r\n", false}}) {
        for (const bool by_system : {false, true}) {
            Wire wire(site.settings);
            if (by_system) wire.send_files();
            const std::uint32_t id = wire.connect();
            wire.give_room(id, 30000);
            wire.feed(id, row.octets);
            LAW(row.octets.starts_with("HEAD") || !wire.shut(id));
            for (unsigned i = 0; i < 10; ++i) wire.give_room(id, 30000);
            LAW(wire.sent(id).starts_with("HTTP/1.1 200 OK\r\n") && wire.shut(id) == row.closes);
            const bool is_head = row.octets.starts_with("HEAD");
            LAW(content_of(wire.sent(id)) == (is_head ? "" : text_of(100000)));
        }
    }
}

TEST(StaticFiles, a_client_that_goes_leaves_no_descriptor) {
    Site site;
    site.file("www/file", text_of(100000));
    const std::size_t before = open_descriptors();
    for (const bool by_system : {false, true}) {
        for (const int how : {0, 1, 2, 3}) {
            Wire wire(site.settings);
            if (by_system) wire.send_files();
            const std::uint32_t id = wire.connect();
            wire.give_room(id, 30000);
            wire.feed(id, get("/static/file") + get("/static/file"));
            LAW(open_descriptors() == before + 1 && !wire.shut(id));
            if (how == 0) wire.connections().on_broken(id);
            if (how == 1) wire.pass(40000);  // it reads nothing, until the write timeout
            if (how == 2) wire.connections().close_all();
            if (how == 3) {
                wire.break_peer(id);
                wire.give_room(id, 10);
            }
            LAW(!wire.alive(id) && open_descriptors() == before, << how);
        }
    }
}

TEST(StaticFiles, a_file_that_becomes_shorter_ends_the_connection) {
    Site site;
    const std::size_t before = open_descriptors();
    for (const bool by_system : {false, true}) {
        site.file("www/file", text_of(100000));
        Wire wire(site.settings);
        if (by_system) wire.send_files();
        const std::uint32_t id = wire.connect();
        wire.give_room(id, 30000);
        wire.feed(id, get("/static/file") + get("/static/page.html"));
        CHECK(truncate(site.at("www/file").c_str(), 50000) == 0);
        for (unsigned i = 0; i < 10 && wire.alive(id); ++i) wire.give_room(id, 30000);
        LAW(!wire.alive(id) && open_descriptors() == before);
        LAW(content_of(wire.sent(id)) == text_of(50000));
    }
    // One that grows gives what was announced.
    site.file("www/file", text_of(100000));
    Wire wire(site.settings);
    const std::uint32_t id = wire.connect();
    wire.give_room(id, 30000);
    wire.feed(id, get("/static/file"));
    site.file("www/file", text_of(200000));
    wire.give_room(id, 1000000);
    LAW(content_of(wire.sent(id)) == text_of(100000) && wire.alive(id));
}

// Files of the system say that they are longer than they are.
TEST(StaticFiles, a_small_file_that_is_shorter_than_it_says_is_a_500) {
    std::string error;
    const auto files = StaticFiles::open("/sys/devices/system/cpu", {}, error);
    if (files == nullptr || access("/sys/devices/system/cpu/online", R_OK) != 0) GTEST_SKIP();
    Router::Builder routes;
    StaticFiles::add(routes, "/cpu", files);
    const auto router = built(routes);
    ServerSettings settings;
    settings.router = router.get();
    const Talk talk = once(get("/cpu/online") + get("/cpu/nothing"), settings);
    LAW(statuses(talk.sent) == (Statuses{500, 404}) && !talk.closed, << visible(talk.sent));
    LAW(talk.sent.find("\r\n\r\nfile-failed\n") != std::string::npos);
}

TEST(StaticFiles, without_descriptors_the_answer_is_503_and_the_next_is_a_file) {
    const Site site;
    Wire wire(site.settings);
    const std::uint32_t id = wire.connect();
    rlimit limit{};
    CHECK(getrlimit(RLIMIT_NOFILE, &limit) == 0);
    const int next = dup(0);
    close(next);
    const rlimit none{static_cast<rlim_t>(next), limit.rlim_max};
    CHECK(setrlimit(RLIMIT_NOFILE, &none) == 0);
    wire.feed(id, get("/static/page.html") + get("/static/nothing%00"));
    CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
    wire.feed(id, get("/static/page.html"));
    LAW(statuses(wire.sent(id)) == (Statuses{503, 400, 200}), << visible(wire.sent(id)));
}

// What one connection sends in one turn is limited, so that the others have theirs.
TEST(StaticFiles, one_that_reads_fast_does_not_keep_the_others_waiting) {
    Site site;
    const std::string text = text_of(5 * kSentInTurnMax / 2);
    site.file("www/file", text);
    for (const bool by_system : {false, true}) {
        Wire wire(site.settings);
        if (by_system) wire.send_files();
        const std::uint32_t id = wire.connect();
        wire.feed(id, get("/static/file"));
        LAW(wire.sent(id).size() < kSentInTurnMax + 100000 && wire.alive(id));
        for (unsigned i = 0; i < 3; ++i) wire.give_room(id, std::size_t{1} << 40);
        LAW(content_of(wire.sent(id)) == text);
    }
}

// Everything that has been tried to get out of a folder, three at a time.
TEST(StaticFiles, no_path_leaves_the_folder) {
    Site site;
    site.link("www/link-out", "../secret.txt");
    site.link("www/folder-out", "..");
    site.link("www/sub/up", "../..");
    site.link("www/absolute", site.at("secret.txt").string());
    site.link("www/proc", "/proc/self/root");
    const std::string pieces[] = {"..",
                                  ".",
                                  "",
                                  "%2e%2e",
                                  "%2E.",
                                  ".%2e",
                                  "%252e%252e",
                                  "..%2f",
                                  "..%5c",
                                  "..%00",
                                  "%00..",
                                  "%c0%ae%c0%ae",
                                  "..%c0%af",
                                  "%e0%80%ae%e0%80%ae",
                                  "....",
                                  "..;",
                                  ";",
                                  "sub",
                                  "folder-out",
                                  "up",
                                  "%uff0e%uff0e",
                                  "..%252f",
                                  "%2e%2e%2f",
                                  "..%2f..%2f",
                                  "sub%2f..",
                                  "link-out",
                                  "absolute",
                                  "proc"};
    Wire wire(site.settings);
    for (const std::string& a : pieces) {
        for (const std::string& b : pieces) {
            for (const std::string& c : pieces) {
                const std::string path = "/static/" + a + '/' + b + '/' + c + "/secret.txt";
                const std::uint32_t id = wire.connect();
                wire.feed(id, get(path));
                const Statuses got = statuses(wire.sent(id));
                LAW(got.size() == 1 && (got[0] == 301 || got[0] == 400 || got[0] == 404),
                    << path << visible(wire.sent(id)));
                LAW(wire.sent(id).find("the secret") == std::string::npos, << path);
                if (got == Statuses{301}) {
                    const std::string to = field_of(wire.sent(id), "Location");
                    LAW(to.starts_with("/static/"), << path << " to " << to);
                    LAW(statuses(once(get(to), site.settings).sent) == Statuses{404}, << to);
                }
                if (wire.alive(id)) wire.connections().on_broken(id);
            }
        }
    }
}

TEST(StaticFiles, what_is_no_file_is_not_found_and_never_waited_for) {
    Site site;
    CHECK(mkfifo(site.at("www/pipe").c_str(), 0644) == 0);
    const int listener = socket(AF_UNIX, SOCK_STREAM, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const std::string place = site.at("www/socket").string();
    CHECK(place.size() < sizeof address.sun_path);
    place.copy(address.sun_path, place.size());
    CHECK(bind(listener, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
    site.link("www/null", "/dev/null");
    site.link("www/loop", "loop");
    site.link("www/nowhere", "missing");
    for (const char* name :
         {"pipe", "socket", "null", "loop", "nowhere", "page.html/", "page.html/x", "PAGE.HTML",
          ".hidden", "page.html%2f", "page.html%20"}) {
        const Talk talk = once(get(std::string("/static/") + name), site.settings);
        LAW(statuses(talk.sent) == Statuses{404} && !talk.closed, << name << visible(talk.sent));
    }
    close(listener);
}

// Where a folder of the system is served, links that only the system can follow are not.
TEST(StaticFiles, no_link_of_proc_is_followed) {
    std::string error;
    for (const char* folder : {"/proc/self", "/proc", "/dev"}) {
        const auto files = StaticFiles::open(folder, {}, error);
        if (files == nullptr) GTEST_SKIP() << error;
        Router::Builder routes;
        StaticFiles::add(routes, "", files);
        const auto router = built(routes);
        ServerSettings settings;
        settings.router = router.get();
        for (const std::string& path :
             std::vector<std::string>{std::string("/root") + "/etc/passwd", "/cwd/", "/exe",
                                      "/fd/0", std::string("/self/root") + "/etc/passwd",
                                      "/self/exe", "/null", "/zero", "/stdin", "/fd/1"}) {
            const Talk talk = once(get(path), settings);
            LAW(statuses(talk.sent) == Statuses{404}, << folder << path << visible(talk.sent));
        }
    }
}

}  // namespace
}  // namespace httpmark
