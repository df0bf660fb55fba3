// What can be wrong with the content of a request: reasons, as anything else that can be wrong.
#pragma once

#include "http/error.hpp"

namespace httpmark {

using ContentFault = Reason;
inline const ErrorRow& content_fault_row(Reason fault) {
    return error_row(fault);
}

}  // namespace httpmark
