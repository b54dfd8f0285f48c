#pragma once

#include <cstddef>
#include <string_view>

namespace muster {

/// Where the extended grapheme cluster that begins at `begin` ends. `begin` is below the size, and
/// the beginning of a cluster.
///
/// Regional indicators are not joined in pairs. The only caller replaces clusters of less than six
/// bytes, and two of them have eight.
/// Source: Unicode Standard Annex 29, rules GB3 to GB11, with the classes of unicode_classes.h.
std::size_t grapheme_end(std::string_view text, std::size_t begin);

}  // namespace muster
