// The bf16 product with AMX's tiles. Rows are copied into tiles, one behind the other, which load
// faster than rows of x; as many as fit a buffer meet a panel before the next one. Two tiles of
// rows by two of outputs are four sums, so that every tile that is loaded is used twice; a tile of
// rows that is left, or alone, meets all four of a panel. While sums are made, the ones before them
// are finished: an activation would take about as long as its product.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <span>
#include <utility>

#include "engine/ops/amx_row_tiles.h"
#include "engine/ops/amx_tiles.h"
#include "engine/ops/bf16_product.h"
#include "engine/ops/kernels.h"

// As in kernels_avx512.cpp: everything of the standard library is included above.
#include <immintrin.h>
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,avx2,fma")
#include "engine/ops/bf16_finish_kernel.h"
#include "engine/ops/simd_avx512.h"

namespace muster::engine {
namespace {

struct Bf16OpsAmx : SimdAvx512 {
  static constexpr bool kBiasIsLast = true;

  static void round_first(Bfloat16* to, Vector value, std::size_t count) {
    const auto narrow = reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(value));
    _mm256_mask_storeu_epi16(to, mask(count), narrow);
  }
};

constexpr std::size_t kColumns = PackedMatrix::kColumns;
constexpr std::size_t kTileInputs = kTileRowBytes / sizeof(Bfloat16);    // 32
constexpr std::size_t kTileColumns = kTileRowBytes / sizeof(float);      // 16
constexpr std::size_t kPanelRowBytes = kColumns * 2 * sizeof(Bfloat16);  // of a pair of inputs
constexpr std::size_t kPanelStepBytes = kTileRows * kPanelRowBytes;      // of kTileInputs
// An eighth of the second-level cache of the CPUs that have AMX: 341 rows of 384 inputs, or one of
// as many inputs as there may be.
constexpr std::size_t kCopyBytes = std::size_t{256} << 10U;
static_assert(kCopyBytes == PackedMatrix::kInputsMost * sizeof(Bfloat16));

/// A panel in steps of kTileInputs.
struct Panel {
  const std::byte* steps = nullptr;
  const std::byte* last_step = nullptr;  // filled up with zeros

  const std::byte* step(std::size_t index, std::size_t step_count) const {
    return index + 1 < step_count ? steps + index * kPanelStepBytes : last_step;
  }
};

/// Sums of one tile of rows and kColumns outputs, or of two and half as many; and whose they are.
struct Sums {
  alignas(64) float values[4 * kTileRows * kTileColumns];  // [rows, columns]
  std::size_t columns = 0;
  std::size_t height = 0;
  Bfloat16* out[2] = {};  // of each tile of rows; the second one may be missing
  Bf16Finish finish;
  std::size_t left = 0;  // rows that are not finished, from the end on
};

struct Target {
  std::optional<Activation> activation;
  Bfloat16* out = nullptr;
  std::size_t stride = 0;
};

/// Finishes some of the rows that are left.
void finish_rows(const Target& target, std::size_t row_count, Sums& sums) {
  for (; row_count > 0 && sums.left > 0; --row_count) {
    const std::size_t row = --sums.left;
    Bfloat16* const out = row < sums.height ? sums.out[0] + row * target.stride
                                            : sums.out[1] + (row - sums.height) * target.stride;
    finish_bf16_row<Bf16OpsAmx>(target.activation, sums.finish, sums.values + row * sums.columns,
                                out);
  }
}

/// What is done between the steps of the next product, so that all is finished when it ends.
struct Meanwhile {
  const Target& target;
  Sums& sums;
  std::size_t rows_a_step;

  void operator()() const { finish_rows(target, rows_a_step, sums); }
};

/// The tiles' names. One configuration is for both functions below.
constexpr int kA0 = 4;
constexpr int kA1 = 5;
constexpr int kB0 = 6;
constexpr int kB1 = 7;

/// Rows in tiles: [tiles, steps, height, kTileInputs].
struct CopiedRows {
  const std::byte* tiles = nullptr;
  std::size_t step_count = 0;
  std::size_t step_bytes = 0;

  const std::byte* tile(std::size_t index) const { return tiles + index * step_count * step_bytes; }
};

/// Two tiles of rows by two of outputs.
void multiply_two_by_two(const CopiedRows& rows, std::size_t tile, const Panel& panel,
                         std::size_t column, Sums& sums, const Meanwhile& meanwhile) {
  const std::byte* a0 = rows.tile(tile);
  const std::byte* a1 = rows.tile(tile + 1);
  tile_zero<0>();
  tile_zero<1>();
  tile_zero<2>();
  tile_zero<3>();
  for (std::size_t step = 0; step < rows.step_count; ++step) {
    const std::byte* b = panel.step(step, rows.step_count) + column * 2 * sizeof(Bfloat16);
    tile_load<kB0>(b, kPanelRowBytes);
    tile_load<kA0>(a0, kTileRowBytes);
    tile_add_bf16<0, kA0, kB0>();
    tile_load<kB1>(b + kTileRowBytes, kPanelRowBytes);
    tile_add_bf16<1, kA0, kB1>();
    tile_load<kA1>(a1, kTileRowBytes);
    tile_add_bf16<2, kA1, kB0>();
    tile_add_bf16<3, kA1, kB1>();
    a0 += rows.step_bytes;
    a1 += rows.step_bytes;
    meanwhile();
  }
  float* const second = sums.values + sums.height * sums.columns;
  const std::size_t stride = sums.columns * sizeof(float);
  tile_store<0>(sums.values, stride);
  tile_store<1>(sums.values + kTileColumns, stride);
  tile_store<2>(second, stride);
  tile_store<3>(second + kTileColumns, stride);
}

/// One tile of rows by all outputs of a panel.
void multiply_one_by_four(const CopiedRows& rows, std::size_t tile, const Panel& panel, Sums& sums,
                          const Meanwhile& meanwhile) {
  const std::byte* a = rows.tile(tile);
  tile_zero<0>();
  tile_zero<1>();
  tile_zero<2>();
  tile_zero<3>();
  for (std::size_t step = 0; step < rows.step_count; ++step) {
    const std::byte* b = panel.step(step, rows.step_count);
    tile_load<kA0>(a, kTileRowBytes);
    tile_load<kB0>(b, kPanelRowBytes);
    tile_add_bf16<0, kA0, kB0>();
    tile_load<kB1>(b + kTileRowBytes, kPanelRowBytes);
    tile_add_bf16<1, kA0, kB1>();
    tile_load<kB0>(b + 2 * kTileRowBytes, kPanelRowBytes);
    tile_add_bf16<2, kA0, kB0>();
    tile_load<kB1>(b + 3 * kTileRowBytes, kPanelRowBytes);
    tile_add_bf16<3, kA0, kB1>();
    a += rows.step_bytes;
    meanwhile();
  }
  const std::size_t stride = sums.columns * sizeof(float);
  tile_store<0>(sums.values, stride);
  tile_store<1>(sums.values + kTileColumns, stride);
  tile_store<2>(sums.values + 2 * kTileColumns, stride);
  tile_store<3>(sums.values + 3 * kTileColumns, stride);
}

void copy_tile(const Bfloat16* x, std::size_t in_size, std::size_t height, std::byte* to) {
  for (std::size_t k = 0; k < in_size; k += kTileInputs) {
    const auto mask = static_cast<__mmask32>(
        in_size - k < kTileInputs ? (std::uint32_t{1} << (in_size - k)) - 1 : ~std::uint32_t{0});
    for (std::size_t row = 0; row < height; ++row, to += kTileRowBytes) {
      _mm512_store_si512(to, _mm512_maskz_loadu_epi16(mask, x + row * in_size + k));
    }
  }
}

/// What computes one product: some tiles of rows after others.
class Pass {
 public:
  Pass(const PackedMatrix& matrix, const RowTiles& row_tiles, const Target& target)
      : matrix_(matrix),
        row_tiles_(row_tiles),
        target_(target),
        step_count_((matrix.in_size + kTileInputs - 1) / kTileInputs) {}

  /// The tiles of rows [begin, end), which `rows` has.
  void multiply(const CopiedRows& rows, std::size_t begin, std::size_t end) {
    for (std::size_t column = 0; column < matrix_.out_size; column += kColumns) {
      const Panel panel = panel_at(column);
      std::size_t tile = begin;
      for (; tile + 2 <= end; tile += 2) {
        for (std::size_t c = column; c < std::min(column + kColumns, matrix_.out_size);
             c += kColumns / 2) {
          Sums& sums = next(tile, 2, c);
          multiply_two_by_two(rows, tile - begin, panel, c - column, sums, meanwhile());
        }
      }
      if (tile < end) {
        Sums& sums = next(tile, 1, column);
        multiply_one_by_four(rows, tile - begin, panel, sums, meanwhile());
      }
    }
  }
  void finish() { finish_rows(target_, sums_[turn_].left, sums_[turn_]); }

 private:
  Panel panel_at(std::size_t column) {
    const std::size_t in_even = (matrix_.in_size + 1) / 2 * 2;
    const auto* steps = reinterpret_cast<const std::byte*>(matrix_.panels + column * in_even);
    const std::size_t before = (step_count_ - 1) * kPanelStepBytes;
    const std::size_t rest = in_even * kColumns * sizeof(Bfloat16) - before;
    if (rest == kPanelStepBytes) return {steps, steps + before};
    std::memcpy(last_step_, steps + before, rest);
    std::memset(last_step_ + rest, 0, kPanelStepBytes - rest);
    return {steps, last_step_};
  }

  /// Those that come next, when the ones before the last are finished.
  Sums& next(std::size_t tile, std::size_t tile_count, std::size_t column) {
    turn_ = 1 - turn_;
    Sums& sums = sums_[turn_];
    sums.columns = kColumns / tile_count;
    sums.height = row_tiles_.height;
    sums.left = tile_count * row_tiles_.height;
    sums.finish = {matrix_.bias + column, std::min(sums.columns, matrix_.out_size - column)};
    for (std::size_t i = 0; i < tile_count; ++i) {
      sums.out[i] = target_.out + row_tiles_.begin(tile + i) * target_.stride + column;
    }
    return sums;
  }

  Meanwhile meanwhile() {
    Sums& before = sums_[1 - turn_];
    return {target_, before, (before.left + step_count_ - 1) / step_count_};
  }

  PackedMatrix matrix_;
  RowTiles row_tiles_;
  Target target_;
  std::size_t step_count_;
  Sums sums_[2];
  std::size_t turn_ = 0;
  alignas(64) std::byte last_step_[kPanelStepBytes];
};

}  // namespace

void multiply_amx_bf16(const PackedMatrix& matrix, std::size_t row_count, const Bfloat16* x,
                       std::optional<Activation> activation, Bfloat16* out) {
  if (row_count == 0) return;
  const std::size_t in_size = matrix.in_size;
  const std::size_t step_count = (in_size + kTileInputs - 1) / kTileInputs;
  const std::size_t rows_most = kCopyBytes / (step_count * kTileRowBytes);
  const RowTiles tiles(row_count, std::min(kTileRows, rows_most));
  const std::size_t step_bytes = tiles.height * kTileRowBytes;
  const std::size_t whole = rows_most / tiles.height;
  const std::size_t block = whole < 2 ? 1 : whole / 2 * 2;  // tiles that are copied at once
  alignas(64) std::byte copies[kCopyBytes];
  const TileUse use(tiles.shapes(kB0));  // sums and rows are below it
  Pass pass(matrix, tiles,
            {activation, out, matrix.out_stride == 0 ? matrix.out_size : matrix.out_stride});
  for (std::size_t begin = 0; begin < tiles.count; begin += block) {
    const std::size_t end = std::min(begin + block, tiles.count);
    for (std::size_t tile = begin; tile < end; ++tile) {
      copy_tile(x + tiles.begin(tile) * in_size, in_size, tiles.height,
                copies + (tile - begin) * step_count * step_bytes);
    }
    pass.multiply({copies, step_count, step_bytes}, begin, end);
  }
  pass.finish();
}

}  // namespace muster::engine
