#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "spec/row_blocks.h"

namespace muster::engine {

/// One product of a layer: rows [rows, in_size] -> rows [rows, out].
struct RowProduct {
  std::int64_t in_size = 0;
  std::function<at::Tensor(const at::Tensor&)> apply;
};

/// Which of `candidates` (largest first) give every row the same bits as the largest, in every
/// product and wherever the row stands; the largest is always one of them. Descending.
///
/// Shapes: the test rows are fixed pseudo-random values of `type` on the device of `like`.
/// Errors: throws what torch throws; Internal (c10::Error) when the largest disagrees with itself
/// on rows that moved, since then no count is safe. Cost: the candidates' sum of rows, and twice
/// the largest, through every product.
std::vector<std::uint32_t> agreeing_row_counts(std::span<const RowProduct> products,
                                               std::span<const std::uint32_t> candidates,
                                               at::ScalarType type, at::Device device);

}  // namespace muster::engine
