#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace muster::engine {

/// The row counts that products may be computed in, largest first. 512 rows of the widest layer of
/// a small encoder fit the second-level cache; 16 is the smallest that keeps half of the speed.
inline constexpr std::uint32_t kRowCounts[] = {512, 256, 128, 64, 32, 16};

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
/// on rows that moved, since then no count is safe. Cost: (candidates + 1) x largest rows through
/// every product.
std::vector<std::uint32_t> agreeing_row_counts(std::span<const RowProduct> products,
                                               std::span<const std::uint32_t> candidates,
                                               at::ScalarType type, at::Device device);

/// A run of rows that one product call computes: `count` is an allowed row count, of which the last
/// block may use fewer (`used`); the rest is padding.
struct RowBlock {
  std::uint32_t begin = 0;
  std::uint32_t count = 0;
  std::uint32_t used = 0;
};

/// Covers `row_count` rows with allowed counts (descending): whole blocks of the largest, then the
/// tail with the fewest computed rows, where a call is charged like `kCallRows` rows.
std::vector<RowBlock> cover_rows(std::uint32_t row_count, std::span<const std::uint32_t> allowed);

/// Rows of the last block's end: what buffers must hold.
std::uint32_t covered_row_count(std::span<const RowBlock> blocks);

}  // namespace muster::engine
