// What waits for the sockets of a worker.
#pragma once

#include <cstdint>

namespace httpmark {

// kUringDirect: as kUring, and connections use no file descriptors of the process.
enum class Engine : std::uint8_t { kEpoll, kUring, kUringDirect };
bool engine_is_built(Engine engine);

}  // namespace httpmark
