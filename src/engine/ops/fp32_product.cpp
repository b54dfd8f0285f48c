// Packing for the float32 product, and which one this CPU can run.

#include "engine/ops/fp32_product.h"

#include <algorithm>

#include "engine/ops/kernels_by_cpu.h"

namespace muster::engine {

Fp32Matrix Fp32Matrix::panel_range(std::size_t begin, std::size_t end) const {
  const std::size_t column = begin * kColumns;
  return {.panels = panels + column * in_size,
          .bias = bias + column,
          .in_size = in_size,
          .out_size = std::min(end * kColumns, out_size) - column,
          .out_stride = out_stride == 0 ? out_size : out_stride};
}

void pack_fp32_panels(const float* weight, std::size_t out_size, std::size_t in_size,
                      float* panels) {
  constexpr auto kColumns = Fp32Matrix::kColumns;
  auto* to = panels;
  for (std::size_t begin = 0; begin < out_size; begin += kColumns) {
    for (std::size_t k = 0; k < in_size; ++k) {
      for (std::size_t column = begin; column < begin + kColumns; ++column) {
        *to++ = column < out_size ? weight[column * in_size + k] : 0.0F;
      }
    }
  }
}

Fp32Product best_fp32_product() {
  if (&best_kernels() == &kAvx512Kernels) return nullptr;
  return &best_kernels() == &kAvx2Kernels ? multiply_fp32_avx2 : multiply_fp32_portable;
}

}  // namespace muster::engine
