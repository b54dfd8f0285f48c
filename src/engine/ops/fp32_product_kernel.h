#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>

#include "engine/ops/activation_kernel.h"
#include "engine/ops/fp32_product.h"
#include "engine/ops/strips.h"

namespace muster::engine {

/// Rows and outputs of one panel. Inlined and unrolled by order, so that the sums stay in
/// registers.
template <typename Simd, std::size_t kRows>
[[gnu::always_inline]] inline void multiply_fp32_strip(
    const float* x, std::size_t in_size, const float* panel, const float* bias,
    typename Simd::Vector (&sums)[kRows][Fp32Matrix::kColumns / Simd::kWidth]) {
  constexpr std::size_t kColumns = Fp32Matrix::kColumns;
  constexpr std::size_t kVectors = kColumns / Simd::kWidth;
#pragma GCC unroll 8
  for (std::size_t i = 0; i < kRows; ++i) {
#pragma GCC unroll 8
    for (std::size_t v = 0; v < kVectors; ++v) sums[i][v] = Simd::load(bias + v * Simd::kWidth);
  }
  for (std::size_t k = 0; k < in_size; ++k, panel += kColumns) {
    typename Simd::Vector weights[kVectors];
#pragma GCC unroll 8
    for (std::size_t v = 0; v < kVectors; ++v) weights[v] = Simd::load(panel + v * Simd::kWidth);
#pragma GCC unroll 8
    for (std::size_t i = 0; i < kRows; ++i) {
      const auto value = Simd::broadcast(x[i * in_size + k]);
#pragma GCC unroll 8
      for (std::size_t v = 0; v < kVectors; ++v) {
        sums[i][v] = Simd::multiply_add(value, weights[v], sums[i][v]);
      }
    }
  }
}

template <typename Simd>
typename Simd::Vector activate(std::optional<Activation> activation, typename Simd::Vector sum) {
  if (!activation) return sum;
  switch (*activation) {
    case Activation::Gelu:
      return gelu<Simd>(sum);
    case Activation::GeluTanh:
      return gelu_tanh<Simd>(sum);
    case Activation::Relu:
      return relu<Simd>(sum);
  }
  return sum;
}

/// `Fp32Product` with the instructions of `Simd`. Panel by panel: a panel and the strip of rows it
/// meets stay in the first two levels of the cache.
template <typename Simd>
void multiply_fp32(const Fp32Matrix& matrix, std::size_t row_count, const float* x,
                   std::optional<Activation> activation, float* out) {
  constexpr std::size_t kColumns = Fp32Matrix::kColumns;
  constexpr std::size_t kWidth = Simd::kWidth;
  constexpr std::size_t kVectors = kColumns / kWidth;
  const std::size_t in_size = matrix.in_size;
  const std::size_t out_stride = matrix.out_stride == 0 ? matrix.out_size : matrix.out_stride;
  for (std::size_t column = 0; column < matrix.out_size; column += kColumns) {
    const float* panel = matrix.panels + column * in_size;
    const auto column_count = std::min(kColumns, matrix.out_size - column);
    for_each_strip<Simd::kRowsMax>(row_count, [&]<std::size_t kRows>(std::size_t begin) {
      typename Simd::Vector sums[kRows][kVectors];
      multiply_fp32_strip<Simd, kRows>(x + begin * in_size, in_size, panel, matrix.bias + column,
                                       sums);
      for (std::size_t i = 0; i < kRows; ++i) {
        float* to = out + (begin + i) * out_stride + column;
        for (std::size_t v = 0; v * kWidth < column_count; ++v) {
          const auto value = activate<Simd>(activation, sums[i][v]);
          Simd::store_first(to + v * kWidth, value, std::min(kWidth, column_count - v * kWidth));
        }
      }
    });
  }
}

}  // namespace muster::engine
