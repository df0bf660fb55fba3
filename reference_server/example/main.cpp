// httpmark-server: the command, around the example application.
#include "application.hpp"
#include "command/run.hpp"

int main(int argc, char** argv) {
    return httpmark::run(argc, argv, httpmark::example::add_routes);
}
