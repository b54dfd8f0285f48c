// The 8-bit product with AMX's tiles. A step takes 64 inputs: 16 rows of bytes with a sign by the
// fours of 16 outputs, as panels have them; two tiles of rows by the two of a panel are four sums
// of whole numbers. `quantize` writes rows step by step, so that any rows that follow each other
// are a tile. While sums are made, the ones before them are finished.

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/ops/amx_row_tiles.h"
#include "engine/ops/amx_tiles.h"
#include "engine/ops/int8_product.h"
#include "engine/ops/kernels.h"

// As in kernels_avx512.cpp: everything of the standard library is included above.
#include <immintrin.h>
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")
#include "engine/ops/int8_product_kernel.h"
#include "engine/ops/simd_avx512.h"

namespace muster::engine {
namespace {

struct Int8OpsAmx : SimdAvx512 {
  static Vector scaled(const std::int32_t* sums, Vector scale, Vector bias) {
    return _mm512_fmadd_ps(_mm512_cvtepi32_ps(_mm512_loadu_si512(sums)), scale, bias);
  }
};

constexpr std::size_t kColumns = Int8Matrix::kColumns;
constexpr std::size_t kGroup = Int8Matrix::kGroup;
constexpr std::size_t kStepInputs = kTileRowBytes;
constexpr std::size_t kTileColumns = kColumns / 2;
constexpr std::size_t kPanelRowBytes = kColumns * kGroup;
constexpr std::size_t kPanelStepBytes = kTileRows * kPanelRowBytes;

/// `Int8Rows::quants`: [steps of kStepInputs, rows, inputs of the step]; only the last step may
/// have fewer inputs.
struct StepRows {
  std::size_t row_count = 0;
  std::size_t row_size = 0;  // of all steps

  std::size_t step_count() const { return (row_size + kStepInputs - 1) / kStepInputs; }
  std::size_t width(std::size_t step) const {
    return std::min(kStepInputs, row_size - step * kStepInputs);
  }
  std::size_t place(std::size_t step, std::size_t row) const {
    return step * kStepInputs * row_count + row * width(step);
  }
};

void quantize_row(const float* x, std::size_t in_size, const Int8Scale& scale, std::size_t row,
                  const StepRows& to, std::uint8_t* quants) {
  const __m512 inverse = _mm512_set1_ps(scale.inverse);
  for (std::size_t step = 0; step < to.step_count(); ++step) {
    std::uint8_t* place = quants + to.place(step, row);
    const std::size_t width = to.width(step);
    for (std::size_t i = 0; i < width; i += Int8OpsAmx::kWidth) {
      const std::size_t k = step * kStepInputs + i;
      const std::size_t inputs = std::min(Int8OpsAmx::kWidth, in_size - k);
      const auto value = _mm512_mul_ps(Int8OpsAmx::load_first(x + k, inputs), inverse);
      // Where a value is no number the scale is none either, and quants are zero.
      const __m128i bytes = scale.inverse == 0 ? _mm_setzero_si128()
                                               : _mm512_cvtsepi32_epi8(_mm512_cvtps_epi32(value));
      _mm_mask_storeu_epi8(place + i, Int8OpsAmx::mask(std::min(Int8OpsAmx::kWidth, width - i)),
                           bytes);
    }
  }
}

void quantize_amx(std::size_t row_count, std::size_t in_size, const float* x, std::uint8_t* quants,
                  float* scales) {
  const StepRows to{row_count, Int8Matrix::padded_inputs(in_size)};
  for (std::size_t row = 0; row < row_count; ++row) {
    const auto scale = int8_row_scale<Int8OpsAmx>(x + row * in_size, in_size);
    scales[row] = scale.scale;
    quantize_row(x + row * in_size, in_size, scale, row, to, quants);
  }
}

/// What tiles load in the last step, filled up with zeros.
struct LastStep {
  alignas(64) std::uint8_t rows[2][kTileRows * kTileRowBytes];
  alignas(64) std::int8_t panel[kPanelStepBytes];
};

/// Sums of one or two tiles of rows and of a panel, and whose they are.
struct Sums {
  alignas(64) std::int32_t values[2 * kTileRows * kColumns];
  std::size_t tile = 0;
  std::size_t column = 0;
  std::size_t left = 0;  // rows that are not finished, from the end on
};

/// The tiles' names.
constexpr int kA0 = 4;
constexpr int kA1 = 5;
constexpr int kB0 = 6;
constexpr int kB1 = 7;

class Pass {
 public:
  Pass(const Int8Matrix& matrix, const Int8Rows& rows, const RowTiles& tiles,
       std::optional<Activation> activation, float* out)
      : matrix_(matrix),
        rows_(rows),
        tiles_(tiles),
        steps_{rows.count, Int8Matrix::padded_inputs(matrix.in_size)},
        activation_(activation),
        out_(out) {}

  void multiply(std::size_t panel_begin, std::size_t panel_end) {
    for (std::size_t column = panel_begin * kColumns; column < panel_end * kColumns;
         column += kColumns) {
      fill_last_panel_step(column);
      std::size_t tile = 0;
      for (; tile + 2 <= tiles_.count; tile += 2) multiply_tiles<true>(tile, column);
      if (tile < tiles_.count) multiply_tiles<false>(tile, column);
    }
    finish_rows(sums_[turn_].left, sums_[turn_]);
  }

 private:
  /// While they are made, those before them are finished.
  template <bool kArePairs>
  void multiply_tiles(std::size_t tile, std::size_t column) {
    Sums& before = sums_[turn_];
    turn_ = 1 - turn_;
    Sums& sums = sums_[turn_];
    const std::size_t step_count = steps_.step_count();
    const std::size_t whole_count = steps_.row_size / kStepInputs;
    const std::size_t rows_a_step = (before.left + step_count - 1) / step_count;
    const std::size_t stride = steps_.row_count * kStepInputs;
    const std::uint8_t* a0 = rows_.quants + tiles_.begin(tile) * kStepInputs;
    const std::uint8_t* a1 = rows_.quants + tiles_.begin(tile + 1) * kStepInputs;
    const std::int8_t* b = matrix_.panels + column * steps_.row_size;
    tile_zero<0>();
    tile_zero<1>();
    tile_zero<2>();
    tile_zero<3>();
    for (std::size_t step = 0; step < whole_count; ++step) {
      add_step<kArePairs>(a0, a1, b);
      a0 += stride;
      a1 += stride;
      b += kPanelStepBytes;
      finish_rows(rows_a_step, before);
    }
    if (whole_count < step_count) {
      fill_last_rows(tile, 0);
      if (kArePairs) fill_last_rows(tile + 1, 1);
      add_step<kArePairs>(last_step_.rows[0], last_step_.rows[1], last_step_.panel);
      finish_rows(rows_a_step, before);
    }
    store<kArePairs>(sums);
    sums.tile = tile;
    sums.column = column;
    sums.left = (kArePairs ? 2 : 1) * tiles_.height;
  }

  template <bool kArePairs>
  [[gnu::always_inline]] static void add_step(const std::uint8_t* a0, const std::uint8_t* a1,
                                              const std::int8_t* b) {
    tile_load<kB0>(b, kPanelRowBytes);
    tile_load<kA0>(a0, kTileRowBytes);
    tile_add_signed<0, kA0, kB0>();
    tile_load<kB1>(b + kTileRowBytes, kPanelRowBytes);
    tile_add_signed<1, kA0, kB1>();
    if constexpr (kArePairs) {
      tile_load<kA1>(a1, kTileRowBytes);
      tile_add_signed<2, kA1, kB0>();
      tile_add_signed<3, kA1, kB1>();
    }
  }

  template <bool kArePairs>
  void store(Sums& sums) const {
    constexpr std::size_t kStride = kColumns * sizeof(std::int32_t);
    tile_store<0>(sums.values, kStride);
    tile_store<1>(sums.values + kTileColumns, kStride);
    if constexpr (kArePairs) {
      std::int32_t* const second = sums.values + tiles_.height * kColumns;
      tile_store<2>(second, kStride);
      tile_store<3>(second + kTileColumns, kStride);
    }
  }

  void fill_last_rows(std::size_t tile, std::size_t place) {
    const std::size_t last = steps_.step_count() - 1;
    const std::size_t width = steps_.width(last);
    const std::uint8_t* from = rows_.quants + steps_.place(last, tiles_.begin(tile));
    const auto mask = (std::uint64_t{1} << width) - 1;
    for (std::size_t row = 0; row < tiles_.height; ++row) {
      _mm512_store_si512(last_step_.rows[place] + row * kTileRowBytes,
                         _mm512_maskz_loadu_epi8(mask, from + row * width));
    }
  }

  void fill_last_panel_step(std::size_t column) {
    const std::size_t last = steps_.step_count() - 1;
    const std::size_t bytes = steps_.width(last) * kColumns;
    if (bytes == kPanelStepBytes) return;
    std::memcpy(last_step_.panel,
                matrix_.panels + column * steps_.row_size + last * kPanelStepBytes, bytes);
    std::memset(last_step_.panel + bytes, 0, kPanelStepBytes - bytes);
  }

  void finish_rows(std::size_t row_count, Sums& sums) {
    const float* scales = matrix_.scales + sums.column;
    const float* bias = matrix_.bias + sums.column;
    const std::size_t column_count = std::min(kColumns, matrix_.out_size - sums.column);
    for (; row_count > 0 && sums.left > 0; --row_count) {
      const std::size_t i = --sums.left;
      const std::size_t row = i < tiles_.height ? tiles_.begin(sums.tile) + i
                                                : tiles_.begin(sums.tile + 1) + i - tiles_.height;
      finish_int8_row<Int8OpsAmx>(activation_, {scales, bias, rows_.scales[row], column_count},
                                  sums.values + i * kColumns,
                                  out_ + row * matrix_.out_size + sums.column);
    }
  }

  Int8Matrix matrix_;
  Int8Rows rows_;
  RowTiles tiles_;
  StepRows steps_;
  std::optional<Activation> activation_;
  float* out_;
  LastStep last_step_;
  Sums sums_[2];
  std::size_t turn_ = 0;
};

void multiply_amx(const Int8Matrix& matrix, std::size_t panel_begin, std::size_t panel_end,
                  const Int8Rows& rows, std::optional<Activation> activation, float* out) {
  if (rows.count == 0) return;
  const RowTiles tiles(rows.count, kTileRows);
  const TileUse use(tiles.shapes(kB0));  // sums and rows are below it
  Pass(matrix, rows, tiles, activation, out).multiply(panel_begin, panel_end);
}

}  // namespace

const Int8Kernels kInt8Amx{"avx512+amx", 0, quantize_amx, multiply_amx};

}  // namespace muster::engine
