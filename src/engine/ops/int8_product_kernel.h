#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>

#include "engine/ops/activation_kernel.h"
#include "engine/ops/int8_product.h"
#include "engine/ops/strips.h"

namespace muster::engine {

/// `Ops` is one of the instruction sets for floats (simd_avx512.h) with these for integers:
///
///   kRowOffset, kStripRowsMax   `Int8Kernels::row_offset`; the rows of a strip
///   kTileVectors                vectors of kWidth outputs that a strip sums at once
///   Ints, Weights, Inputs       kWidth sums; 4 quants of kWidth outputs; 4 of a row
///   first_sums                  what corrects kRowOffset, from `Int8Matrix::sums`
///   load_weights, load_inputs, add_products, store_sums
///   scaled                      bias + scale sum, fused, of kWidth sums
///   store_bytes                 kWidth floats to the nearest, each with kRowOffset
///
/// It is a type of its own in each source, so that nothing here is compiled for two instruction
/// sets under one name.

/// The scale of values, by the largest of them. 0 x adds nothing but what is no number, or
/// infinite: so none of those hides among larger values.
template <typename Ops>
Int8Scale int8_row_scale(const float* x, std::size_t in_size) {
  constexpr std::size_t kWidth = Ops::kWidth;
  const auto zero = Ops::broadcast(0);
  auto largest = zero;
  auto faults = zero;
  for (std::size_t k = 0; k < in_size; k += kWidth) {
    const auto value =
        k + kWidth <= in_size ? Ops::load(x + k) : Ops::load_first(x + k, in_size - k);
    largest = Ops::max(largest, Ops::max(value, Ops::subtract(zero, value)));
    faults = Ops::multiply_add(value, zero, faults);
  }
  const float fault = Ops::sum(faults);
  return int8_scale(fault == 0 ? Ops::largest(largest) : fault);
}

/// The quants of a row of a strip; its first four go to `quants`. Returns the row's scale.
template <typename Ops>
float quantize_int8_row(const float* x, std::size_t in_size, std::size_t strip_rows,
                        std::uint8_t* quants) {
  constexpr std::size_t kWidth = Ops::kWidth;
  constexpr std::size_t kGroup = Int8Matrix::kGroup;
  const auto scale = int8_row_scale<Ops>(x, in_size);
  const std::size_t row_size = Int8Matrix::padded_inputs(in_size);
  const auto inverse = Ops::broadcast(scale.inverse);
  std::uint8_t bytes[kWidth];
  std::memset(bytes, Ops::kRowOffset, sizeof bytes);
  for (std::size_t k = 0; k < row_size; k += kWidth) {
    if (scale.inverse != 0) {
      const auto value =
          k + kWidth <= in_size ? Ops::load(x + k) : Ops::load_first(x + k, in_size - k);
      Ops::store_bytes(bytes, Ops::multiply(value, inverse));
    }
    const std::size_t byte_count = std::min(kWidth, row_size - k);
    for (std::size_t j = 0; j < byte_count; j += kGroup) {
      std::memcpy(quants + (k + j) * strip_rows, bytes + j, kGroup);
    }
  }
  return scale.scale;
}

/// `Int8Kernels::quantize`.
template <typename Ops>
void quantize_int8(std::size_t row_count, std::size_t in_size, const float* x, std::uint8_t* quants,
                   float* scales) {
  const std::size_t row_size = Int8Matrix::padded_inputs(in_size);
  for_each_strip<Ops::kStripRowsMax>(row_count, [&]<std::size_t kRows>(std::size_t begin) {
    for (std::size_t i = 0; i < kRows; ++i) {
      scales[begin + i] =
          quantize_int8_row<Ops>(x + (begin + i) * in_size, in_size, kRows,
                                 quants + begin * row_size + i * Int8Matrix::kGroup);
    }
  });
}

/// The sums of a strip of rows and of kTileVectors vectors of outputs. Inlined and unrolled by
/// order, so that the sums stay in registers.
///
/// Shapes: x [row_size / 4, kRows, 4]; sums: row i at `sums + i * kColumns`.
template <typename Ops, std::size_t kRows>
[[gnu::always_inline]] inline void multiply_int8_tile(const std::uint8_t* x, std::size_t row_size,
                                                      const std::int8_t* panel,
                                                      const std::int32_t* column_sums,
                                                      std::int32_t* sums) {
  constexpr std::size_t kVectors = Ops::kTileVectors;
  typename Ops::Ints totals[kRows][kVectors];
#pragma GCC unroll 16
  for (std::size_t i = 0; i < kRows; ++i) {
#pragma GCC unroll 16
    for (std::size_t v = 0; v < kVectors; ++v) {
      totals[i][v] = Ops::first_sums(column_sums + v * Ops::kWidth);
    }
  }
  for (std::size_t k = 0; k < row_size; k += Int8Matrix::kGroup) {
    typename Ops::Weights weights[kVectors];
#pragma GCC unroll 16
    for (std::size_t v = 0; v < kVectors; ++v) {
      weights[v] = Ops::load_weights(panel + v * Ops::kWidth * Int8Matrix::kGroup);
    }
#pragma GCC unroll 16
    for (std::size_t i = 0; i < kRows; ++i) {
      const auto inputs = Ops::load_inputs(x + i * Int8Matrix::kGroup);
#pragma GCC unroll 16
      for (std::size_t v = 0; v < kVectors; ++v) {
        totals[i][v] = Ops::add_products(inputs, weights[v], totals[i][v]);
      }
    }
    panel += Int8Matrix::kColumns * Int8Matrix::kGroup;
    x += kRows * Int8Matrix::kGroup;
  }
#pragma GCC unroll 16
  for (std::size_t i = 0; i < kRows; ++i) {
#pragma GCC unroll 16
    for (std::size_t v = 0; v < kVectors; ++v) {
      Ops::store_sums(sums + i * Int8Matrix::kColumns + v * Ops::kWidth, totals[i][v]);
    }
  }
}

/// What a row's finished sums of one panel become.
struct Int8Finish {
  const float* scales = nullptr;  // of the panel's outputs, as `bias`
  const float* bias = nullptr;
  float row_scale = 0;
  std::size_t column_count = 0;  // at most kColumns
};

/// `apply` changes a vector where it stands: one that returned it would be called by another ABI.
template <typename Ops, typename Apply>
[[gnu::always_inline]] inline void finish_int8_by(const Int8Finish& finish,
                                                  const std::int32_t* sums, float* out,
                                                  Apply&& apply) {
  constexpr std::size_t kWidth = Ops::kWidth;
  const auto row_scale = Ops::broadcast(finish.row_scale);
  for (std::size_t c = 0; c < finish.column_count; c += kWidth) {
    const auto scale = Ops::multiply(row_scale, Ops::load(finish.scales + c));
    auto value = Ops::scaled(sums + c, scale, Ops::load(finish.bias + c));
    apply(value);
    Ops::store_first(out + c, value, std::min(kWidth, finish.column_count - c));
  }
}

template <typename Ops>
void finish_int8_row(std::optional<Activation> activation, const Int8Finish& finish,
                     const std::int32_t* sums, float* out) {
  using Vector = typename Ops::Vector;
  if (!activation) return finish_int8_by<Ops>(finish, sums, out, [](Vector&) {});
  switch (*activation) {
    case Activation::Gelu:
      return finish_int8_by<Ops>(finish, sums, out, [](Vector& x) { x = gelu<Ops>(x); });
    case Activation::GeluTanh:
      return finish_int8_by<Ops>(finish, sums, out, [](Vector& x) { x = gelu_tanh<Ops>(x); });
    case Activation::Relu:
      return finish_int8_by<Ops>(finish, sums, out, [](Vector& x) { x = relu<Ops>(x); });
  }
}

/// `Int8Kernels::multiply`. Panel by panel: a panel and the strip of rows it meets stay in the
/// first two levels of the cache.
template <typename Ops>
void multiply_int8(const Int8Matrix& matrix, std::size_t panel_begin, std::size_t panel_end,
                   const Int8Rows& rows, std::optional<Activation> activation, float* out) {
  constexpr std::size_t kColumns = Int8Matrix::kColumns;
  constexpr std::size_t kTile = Ops::kTileVectors * Ops::kWidth;
  static_assert(kColumns % kTile == 0);
  const std::size_t row_size = Int8Matrix::padded_inputs(matrix.in_size);
  alignas(64) std::int32_t sums[Ops::kStripRowsMax * kColumns];
  for (std::size_t column = panel_begin * kColumns; column < panel_end * kColumns;
       column += kColumns) {
    const std::int8_t* panel = matrix.panels + column * row_size;
    const auto column_count = std::min(kColumns, matrix.out_size - column);
    for_each_strip<Ops::kStripRowsMax>(rows.count, [&]<std::size_t kRows>(std::size_t begin) {
      const std::uint8_t* x = rows.quants + begin * row_size;
      for (std::size_t c = 0; c < kColumns; c += kTile) {
        multiply_int8_tile<Ops, kRows>(x, row_size, panel + c * Int8Matrix::kGroup,
                                       matrix.sums + column + c, sums + c);
      }
      for (std::size_t i = 0; i < kRows; ++i) {
        const Int8Finish finish{matrix.scales + column, matrix.bias + column,
                                rows.scales[begin + i], column_count};
        finish_int8_row<Ops>(activation, finish, sums + i * kColumns,
                             out + (begin + i) * matrix.out_size + column);
      }
    });
  }
}

}  // namespace muster::engine
