// Packing for the bf16 product, ranges of its panels, and which CPUs it is for.

#include "engine/ops/bf16_product.h"

#include <algorithm>

#include "base/check.h"
#include "engine/ops/amx_tiles.h"
#include "engine/ops/kernels_by_cpu.h"

namespace muster::engine {

PackedMatrix PackedMatrix::panel_range(std::size_t begin, std::size_t end) const {
  const std::size_t column = begin * kColumns;
  return {.panels = panels + begin * panels_size(kColumns, in_size),
          .bias = bias + column,
          .in_size = in_size,
          .out_size = std::min(end * kColumns, out_size) - column,
          .out_stride = out_stride == 0 ? out_size : out_stride};
}

void pack_panels(const float* weight, std::size_t out_size, std::size_t in_size, Bfloat16* panels) {
  MUSTER_CHECK(in_size <= PackedMatrix::kInputsMost);
  constexpr auto kColumns = PackedMatrix::kColumns;
  auto* to = panels;
  for (std::size_t begin = 0; begin < out_size; begin += kColumns) {
    for (std::size_t k = 0; k < in_size; k += 2) {
      for (std::size_t column = begin; column < begin + kColumns; ++column) {
        for (std::size_t i = k; i < k + 2; ++i) {
          const bool is_there = column < out_size && i < in_size;
          *to++ = is_there ? to_bfloat16(weight[column * in_size + i]) : Bfloat16{};
        }
      }
    }
  }
}

bool has_avx512_bf16() {
  return &best_kernels() == &kAvx512Kernels && __builtin_cpu_supports("avx512bf16");
}

Bf16Product best_bf16_product() {
  if (has_amx_tiles()) return multiply_amx_bf16;
  return has_avx512_bf16() ? multiply_avx512_bf16 : nullptr;
}

}  // namespace muster::engine
