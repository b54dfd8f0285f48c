#pragma once

#include <span>
#include <string>

namespace muster {

/// What the keys and the columns of `muster top` mean; at most 80 columns and 21 lines.
std::span<const std::string> help_lines();

}  // namespace muster
