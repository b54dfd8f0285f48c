#pragma once

#include <cstddef>
#include <span>

namespace muster {

/// Cosines of rows to those of the same texts in float32.
struct RowCloseness {
  double mean = 0;
  double min = 1;
};

/// In double, since the differences that matter are near the last bits of a float. A row that has
/// no cosine, as one with a value that is not finite (fp16 ends at 65,504), is as far as it can be:
/// it counts as 0.
///
/// Shapes: both [rows, dim], one row at least. Threads: pure.
RowCloseness row_closeness(std::span<const float> rows, std::span<const float> reference,
                           std::size_t dim);

}  // namespace muster
