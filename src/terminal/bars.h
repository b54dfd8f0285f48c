#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "terminal/style.h"

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

/// The same as an area of `height` rows, from the top: a column a value (0 to 1), filled from below
/// by eighths of a row, in ASCII by halves ("#", ":"). What is not known is empty, 0 the lowest
/// mark.
std::vector<std::string> plot_rows(std::span<const std::optional<double>> values,
                                   std::size_t height, CharacterSet characters);

}  // namespace muster
