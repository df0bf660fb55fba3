// Hello world, with the flags of the command: ./hello --port 8080
#include <httpmark/httpmark.hpp>

int main(int argc, char** argv) {
    return httpmark::run(argc, argv, [](httpmark::Router::Builder& routes) {
        routes.add(httpmark::Method::kGet, "/",
                   httpmark::Answer(200, {{"Content-Type", "text/plain"}}, "Hello, world!\n"));
    });
}
