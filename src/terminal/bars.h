#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>

#include "terminal/canvas.h"

namespace muster {

/// A bar of `width` columns that is full to `share` (0 to 1, else brought there): eighths of a
/// block in UTF-8, "#" in ASCII, the rest spaces. A share above 0 shows at least the least mark.
///
/// Source: Unicode Standard, block elements U+2588 to U+258F.
std::string bar_text(double share, std::size_t width, CharacterSet characters);

/// A character a value (0 to 1): eighths of its height in UTF-8, "_.:-=+*#" in ASCII. What is not
/// known is a space, 0 the lowest mark.
///
/// Source: Unicode Standard, block elements U+2581 to U+2588.
std::string sparkline_text(std::span<const std::optional<double>> values, CharacterSet characters);

}  // namespace muster
