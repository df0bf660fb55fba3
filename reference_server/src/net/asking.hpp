// What an application's code throws ends its request, and not the process.
#pragma once

#include <new>

#include "http/error.hpp"
#include "http/response.hpp"

namespace httpmark {

// What `ask` gives, or why it has not come to that.
template <class Ask>
[[gnu::always_inline]] inline Reason reason_of(const Ask& ask) {
    try {
        return ask();
    } catch (const std::bad_alloc&) {
        return Reason::kNoMemory;
    } catch (...) {
        return Reason::kHandlerFailed;
    }
}

// The same of somebody who writes.
template <class Ask>
[[gnu::always_inline]] inline Reason reason_of(ResponseWriter& writer, const Ask& ask) {
    try {
        return ask();
    } catch (const std::bad_alloc&) {
        writer.abandon();
        return Reason::kNoMemory;
    } catch (...) {
        writer.abandon();
        return Reason::kHandlerFailed;
    }
}

// Whether there was memory for what `grow` does to a container, which is as before if not.
template <class Grow>
bool room_for(const Grow& grow) {
    try {
        grow();
        return true;
    } catch (const std::bad_alloc&) {
        return false;
    }
}

}  // namespace httpmark
