// oneDNN may choose another kernel for another number of rows, and another kernel may add in
// another order. So at load each candidate count is tried on test rows, and only those that give
// every row the same bits as the largest count are kept. It costs a few products for each shape and
// replaces a promise that no library makes. A product that depends on a row's place is refused
// altogether.

#include "engine/ops/row_counts.h"

#include <ATen/ops/_to_copy.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <c10/util/Exception.h>

#include <algorithm>

namespace muster::engine {
namespace {

// How far the rows are shifted to show that their place does not matter: odd, so that every place
// in a register block meets every other.
constexpr std::int64_t kShift = 5;
// How many rows of each smaller count are tried: several blocks of it, so that its rows meet more
// than one place, for a quarter of the time that all 512 would take.
constexpr std::int64_t kRowsTried = 128;
// So many differ, then they begin again: making values takes longer than multiplying them.
constexpr std::int64_t kDistinctRows = 512;

// Values in -2..2 from a multiplicative generator: a fixed sequence, the same on every machine.
// Source: Park and Miller 1988, "minimal standard" with multiplier 48271.
at::Tensor test_rows(std::int64_t row_count, std::int64_t size, at::ScalarType type,
                     at::Device device) {
  const auto distinct = std::min(row_count, kDistinctRows);
  auto rows = at::empty({distinct, size}, at::TensorOptions().dtype(at::kFloat));
  auto* values = rows.mutable_data_ptr<float>();
  std::uint64_t state = 20'231;
  for (std::int64_t i = 0; i < distinct * size; ++i) {
    state = state * 48'271 % 2'147'483'647;
    values[i] = static_cast<float>(state) / 536'870'911.75F - 2.0F;
  }
  rows = at::_to_copy(rows, at::TensorOptions().dtype(type).device(device));
  if (distinct == row_count) return rows;
  return rows.repeat({(row_count + distinct - 1) / distinct, 1}).narrow(0, 0, row_count);
}

// As what is computed later: the rows of a pass on a GPU begin where an allocation does, those of a
// block on a CPU anywhere. cuBLAS chooses a kernel by the alignment of addresses too.
// Source: torch 2.11, CUDABlas.cpp, _getAlignment; cuBLAS 13.0,
// CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES.
at::Tensor block_of(const at::Tensor& rows, std::int64_t begin, std::int64_t count) {
  const auto block = rows.narrow(0, begin, count);
  return block.is_cpu() ? block : block.clone();
}

// Blocks of `count` rows, each row at another place than among all; as many as make kRowsTried,
// at least one.
bool agrees(const RowProduct& product, const at::Tensor& rows, const at::Tensor& expected,
            std::int64_t count) {
  auto begin = std::min(kShift, rows.size(0) - count);
  const auto end = std::min(rows.size(0), begin + std::max(count, kRowsTried));
  for (; begin + count <= end; begin += count) {
    const auto block = product.apply(block_of(rows, begin, count));
    if (!at::equal(block, expected.narrow(0, begin, count))) return false;
  }
  return true;
}

// Rolls the rows down by kShift, the last ones to the front.
at::Tensor rolled(const at::Tensor& rows) {
  const auto size = rows.size(0);
  return at::cat({rows.narrow(0, size - kShift, kShift), rows.narrow(0, 0, size - kShift)});
}

}  // namespace

std::vector<std::uint32_t> agreeing_row_counts(std::span<const RowProduct> products,
                                               std::span<const std::uint32_t> candidates,
                                               at::ScalarType type, at::Device device) {
  const auto largest = static_cast<std::int64_t>(candidates.front());
  std::vector<std::uint32_t> allowed(candidates.begin(), candidates.end());
  for (const auto& product : products) {
    const auto rows = test_rows(largest, product.in_size, type, device);
    const auto expected = product.apply(rows);
    TORCH_CHECK(at::equal(product.apply(rolled(rows)), rolled(expected)),
                "a product gives a row other bits when it moves: no vector would be reproducible");
    std::erase_if(allowed, [&](std::uint32_t count) {
      return count != candidates.front() && !agrees(product, rows, expected, count);
    });
  }
  return allowed;
}

}  // namespace muster::engine
