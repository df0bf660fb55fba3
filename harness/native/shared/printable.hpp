// What a server sent, made safe for a terminal and a log.
#ifndef HTTPMARK_NATIVE_SHARED_PRINTABLE_HPP_
#define HTTPMARK_NATIVE_SHARED_PRINTABLE_HPP_

#include <string>
#include <string_view>

namespace httpmark {

// Bytes as printable ASCII: \r and \n, and every other byte and the backslash as \xNN.
std::string printable(std::string_view octets);

}  // namespace httpmark

#endif  // HTTPMARK_NATIVE_SHARED_PRINTABLE_HPP_
