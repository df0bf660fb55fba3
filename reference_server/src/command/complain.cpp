#include "command/complain.hpp"

#include <cstdarg>
#include <cstdio>

namespace httpmark {

bool complain(const char* format, ...) {
    va_list arguments;
    va_start(arguments, format);
    std::fputs("httpmark-server: ", stderr);
    std::vfprintf(stderr, format, arguments);
    std::fputc('\n', stderr);
    va_end(arguments);
    return false;
}

}  // namespace httpmark
