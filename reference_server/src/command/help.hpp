// What the command prints about itself.
#pragma once

#include <string>

#include "limits.hpp"

namespace httpmark {

std::string version_text();
// What --engine may name in this build.
std::string engines_text();
std::string help_text();
std::string limits_text(const Limits& limits);

}  // namespace httpmark
