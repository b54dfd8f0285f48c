#pragma once

#include <cstdint>

namespace muster {

/// Where a text that has too many tokens is cut: at its end, or at its beginning.
enum class TruncationSide : std::uint8_t { Right, Left };

}  // namespace muster
