// A bf16 product with float32 sums for CPUs that multiply pairs of bf16 in one instruction. Six
// rows by four vectors of outputs are summed at once: 24 of 32 registers hold sums, the rest the
// panel and a pair of inputs, so nothing is spilled. The sums of a row never depend on the rows
// beside it, so a vector is the same in any batch. Bias is where the sums begin; the activation is
// applied before the one rounding.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <span>
#include <utility>

#include "engine/ops/bf16_product.h"
#include "engine/ops/kernels.h"

// As in kernels_avx512.cpp: everything of the standard library is included above.
#include <immintrin.h>
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,avx2,fma")
#include "engine/ops/bf16_finish_kernel.h"
#include "engine/ops/simd_avx512.h"
#include "engine/ops/strips.h"

namespace muster::engine {
namespace {

struct Bf16OpsAvx512 : SimdAvx512 {
  static constexpr bool kBiasIsLast = false;

  static void round_first(Bfloat16* to, Vector value, std::size_t count) {
    const auto narrow = reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(value));
    _mm256_mask_storeu_epi16(to, mask(count), narrow);
  }
};

constexpr std::size_t kColumns = PackedMatrix::kColumns;
constexpr std::size_t kWidth = SimdAvx512::kWidth;
constexpr std::size_t kVectors = kColumns / kWidth;
constexpr std::size_t kRowsMax = SimdAvx512::kRowsMax;  // 6 x 4 sums of 32 registers

/// What meets one panel: some rows, dense, and where their sums go.
struct Rows {
  const Bfloat16* x = nullptr;  // [rows, in]
  std::size_t in_size = 0;
  float* sums = nullptr;  // [rows, kColumns]
};

/// Adds x[i][k] w[k][column] + x[i][k + 1] w[k + 1][column] for one pair of inputs. Inlined and
/// unrolled by order, so that the sums stay in registers.
template <std::size_t kRows, typename Pair>
[[gnu::always_inline]] inline void add_pair(const Bfloat16* panel, Pair&& pair,
                                            __m512 (&sums)[kRows][kVectors]) {
  __m512i weights[kVectors];
#pragma GCC unroll 8
  for (std::size_t v = 0; v < kVectors; ++v) {
    weights[v] = _mm512_loadu_si512(panel + v * 2 * kWidth);
  }
#pragma GCC unroll 8
  for (std::size_t i = 0; i < kRows; ++i) {
    const auto value = reinterpret_cast<__m512bh>(_mm512_set1_epi32(pair(i)));
#pragma GCC unroll 8
    for (std::size_t v = 0; v < kVectors; ++v) {
      sums[i][v] = _mm512_dpbf16_ps(sums[i][v], value, reinterpret_cast<__m512bh>(weights[v]));
    }
  }
}

template <std::size_t kRows>
void multiply_strip(const Rows& rows, const Bfloat16* panel, const float* bias) {
  __m512 sums[kRows][kVectors];
#pragma GCC unroll 8
  for (std::size_t i = 0; i < kRows; ++i) {
#pragma GCC unroll 8
    for (std::size_t v = 0; v < kVectors; ++v) sums[i][v] = _mm512_loadu_ps(bias + v * kWidth);
  }
  const std::size_t in_size = rows.in_size;
  const Bfloat16* x = rows.x;
  std::size_t k = 0;
  for (; k + 2 <= in_size; k += 2, panel += 2 * kColumns) {
    add_pair<kRows>(
        panel,
        [&](std::size_t i) {
          std::int32_t pair = 0;
          std::memcpy(&pair, x + i * in_size + k, sizeof(pair));
          return pair;
        },
        sums);
  }
  if (k < in_size) {
    add_pair<kRows>(
        panel, [&](std::size_t i) { return std::int32_t{x[i * in_size + k].bits}; }, sums);
  }
#pragma GCC unroll 8
  for (std::size_t i = 0; i < kRows; ++i) {
#pragma GCC unroll 8
    for (std::size_t v = 0; v < kVectors; ++v) {
      _mm512_storeu_ps(rows.sums + i * kColumns + v * kWidth, sums[i][v]);
    }
  }
}

}  // namespace

// Panel by panel: a panel and the strip of rows it meets stay in the second-level cache.
void multiply_avx512_bf16(const PackedMatrix& matrix, std::size_t row_count, const Bfloat16* x,
                          std::optional<Activation> activation, Bfloat16* out) {
  const std::size_t in_size = matrix.in_size;
  const std::size_t out_stride = matrix.out_stride == 0 ? matrix.out_size : matrix.out_stride;
  const std::size_t panel_size = panels_size(kColumns, in_size);
  alignas(64) float sums[kRowsMax * kColumns];
  for (std::size_t column = 0; column < matrix.out_size; column += kColumns) {
    const auto* panel = matrix.panels + column / kColumns * panel_size;
    const Bf16Finish finish{.column_count = std::min(kColumns, matrix.out_size - column)};
    for_each_strip<kRowsMax>(row_count, [&]<std::size_t kRows>(std::size_t begin) {
      multiply_strip<kRows>({x + begin * in_size, in_size, sums}, panel, matrix.bias + column);
      for (std::size_t i = 0; i < kRows; ++i) {
        finish_bf16_row<Bf16OpsAvx512>(activation, finish, sums + i * kColumns,
                                       out + (begin + i) * out_stride + column);
      }
    });
  }
}

}  // namespace muster::engine
