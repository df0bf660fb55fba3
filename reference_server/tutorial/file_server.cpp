// A file server: ./file_server DIRECTORY [PORT]
#include <cstdio>
#include <cstdlib>
#include <httpmark/httpmark.hpp>
#include <string>

using namespace httpmark;

int main(int argc, char** argv) {
    if (argc < 2) {
        std::fprintf(stderr, "usage: %s DIRECTORY [PORT]\n", argv[0]);
        return 2;
    }
    std::string error;
    const auto files = StaticFiles::open(argv[1], {}, error);
    if (files == nullptr) {
        std::fprintf(stderr, "%s\n", error.c_str());
        return 2;
    }
    Router::Builder routes;
    StaticFiles::add(routes, "", files);
    return run(routes, {.port = argc > 2 ? std::atoi(argv[2]) : 8080});
}
