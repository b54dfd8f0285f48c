#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "engine/ops/amx_tiles.h"
#include "engine/ops/panel_product.h"
#include "engine/ops/panel_product_kernel.h"
#include "engine/ops/tile_strips.h"

namespace muster::engine {

// `PanelProduct` for bf16 weights by tiles of 16 rows, 16 outputs and 32 inputs. Two tiles of rows
// meet two panels, or one tile of rows four panels: four tiles of sums, each of which waits for its
// own last product only. `Simd` is a type of the including file's own.

inline constexpr std::size_t kTileInputs = 32;  // of bf16
inline constexpr std::size_t kTileBytes = kTileRows * kTileRowBytes;

/// How far ahead of its products a panel is fetched, in bytes: a tile. SmolLM2-135M in bf16 on two
/// cores of a Sapphire Rapids Xeon: a prefill of 512 tokens makes 2,240 tokens a second without,
/// 2,350 with half a tile, 2,580, 2,520, 2,520 and 2,360 with 1, 2, 4 and 8; 32 streams 1,160, then
/// 1,310, 1,410, 1,390, 1,220 and 1,380.
inline constexpr std::size_t kTileFetchAhead = kTileBytes;

/// A strip of rows and a group of panels in one step of 32 inputs.
struct TileStep {
  const std::byte* x = nullptr;  // of the strip's first row
  std::size_t x_stride = 0;      // bytes
  const std::byte* panels = nullptr;
  std::size_t panel_stride = 0;
};

/// Tiles 0 to 3: sums, 4 and 5: rows, 6 and 7: panels.
template <int kRowTiles, int kPanels>
[[gnu::always_inline]] inline void add_tile_step(const TileStep& step) {
  tile_load<4>(step.x, step.x_stride);
  if constexpr (kRowTiles == 2) {
    static_assert(kPanels <= 2);
    tile_load<6>(step.panels, kTileRowBytes);
    tile_add_bf16<0, 4, 6>();
    if constexpr (kPanels == 2) {
      tile_load<7>(step.panels + step.panel_stride, kTileRowBytes);
      tile_add_bf16<1, 4, 7>();
    }
    tile_load<5>(step.x + kTileRows * step.x_stride, step.x_stride);
    tile_add_bf16<2, 5, 6>();
    if constexpr (kPanels == 2) tile_add_bf16<3, 5, 7>();
  } else {
    tile_load<6>(step.panels, kTileRowBytes);
    tile_add_bf16<0, 4, 6>();
    if constexpr (kPanels > 1) {
      tile_load<7>(step.panels + step.panel_stride, kTileRowBytes);
      tile_add_bf16<1, 4, 7>();
    }
    if constexpr (kPanels > 2) {
      tile_load<5>(step.panels + 2 * step.panel_stride, kTileRowBytes);
      tile_add_bf16<2, 4, 5>();
    }
    if constexpr (kPanels > 3) {
      tile_load<6>(step.panels + 3 * step.panel_stride, kTileRowBytes);
      tile_add_bf16<3, 4, 6>();
    }
  }
}

/// The last inputs, fewer than a tile has, with zeros behind them: nothing is read past a row's or
/// a panel's end.
template <int kRowTiles, int kPanels>
void add_last_tile_step(const TileStep& step, std::size_t row_count, std::size_t pair_count) {
  alignas(64) std::byte x[kRowTiles * kTileBytes] = {};
  alignas(64) std::byte panels[kPanels * kTileBytes] = {};
  constexpr std::size_t kPairBytes = 4;
  for (std::size_t i = 0; i < row_count; ++i) {
    std::memcpy(x + i * kTileRowBytes, step.x + i * step.x_stride, pair_count * kPairBytes);
  }
  for (std::size_t p = 0; p < kPanels; ++p) {
    std::memcpy(panels + p * kTileBytes, step.panels + p * step.panel_stride,
                pair_count * kTileRowBytes);
  }
  add_tile_step<kRowTiles, kPanels>({x, kTileRowBytes, panels, kTileBytes});
}

/// Finished sums of up to 32 rows and one panel to where they belong. Without a bias nothing is
/// added, not even zero, which would change the sign of a sum that is -0: sums that are stored as
/// they are keep it.
template <typename Simd>
void put_tile_sums(const PanelWeight& weight, std::size_t panel, std::size_t row,
                   std::size_t row_count, const float* sums, const ProductOut& out) {
  const std::size_t column = panel * kPanelOutputs;
  const std::size_t column_count = std::min(kPanelOutputs, weight.out_size() - column);
  const float* bias = weight.bias() == nullptr ? nullptr : weight.bias() + column;
  for (std::size_t i = 0; i < row_count; ++i) {
    auto value = Simd::load(sums + i * kPanelOutputs);
    if (bias != nullptr) value = Simd::add(value, Simd::load(bias));
    put_sums<Simd>(value, column_count, out.adds, out.at(row + i, column));
  }
}

/// Tiles 0 to 3 to memory: from one panel's sums to the next `panel_stride` floats, from one row to
/// the next `row_stride`.
template <int kRowTiles, int kPanels>
[[gnu::always_inline]] inline void store_tile_sums(float* to, std::size_t panel_stride,
                                                   std::size_t row_stride) {
  const std::size_t stride = row_stride * sizeof(float);
  tile_store<0>(to, stride);
  if constexpr (kPanels > 1) tile_store<1>(to + panel_stride, stride);
  if constexpr (kRowTiles == 2) {
    to += kTileRows * row_stride;
    tile_store<2>(to, stride);
    if constexpr (kPanels > 1) tile_store<3>(to + panel_stride, stride);
  } else {
    if constexpr (kPanels > 2) tile_store<2>(to + 2 * panel_stride, stride);
    if constexpr (kPanels > 3) tile_store<3>(to + 3 * panel_stride, stride);
  }
}

/// A strip of row_count rows from `row` on, which fill kRowTiles tiles but for the last one's end,
/// and the panels [panel, panel + kPanels).
template <typename Simd, int kRowTiles, int kPanels>
void multiply_tile_group(const PanelWeight& weight, std::size_t panel, const ProductRows& x,
                         std::size_t row, std::size_t row_count, const ProductOut& out) {
  const std::size_t pairs = (weight.in_size() + 1) / 2;
  const std::size_t stride = pairs * 2 * sizeof(Bfloat16);
  TileStep step{reinterpret_cast<const std::byte*>(x.bf16) + row * stride, stride,
                weight.panel(panel), weight.panel_bytes()};
  tile_zero<0>();
  tile_zero<1>();
  tile_zero<2>();
  tile_zero<3>();
  std::size_t left = pairs;
  for (; left >= kTileInputs / 2; left -= kTileInputs / 2) {
    for (std::size_t p = 0; p < kPanels; ++p) {
      fetch<kTileBytes>(step.panels + p * step.panel_stride, kTileFetchAhead);
    }
    add_tile_step<kRowTiles, kPanels>(step);
    step.x += kTileRowBytes;
    step.panels += kTileBytes;
  }
  if (left > 0) add_last_tile_step<kRowTiles, kPanels>(step, row_count, left);
  const bool is_plain = weight.bias() == nullptr && !out.adds &&
                        (panel + kPanels) * kPanelOutputs <= weight.out_size();
  if (is_plain) {
    store_tile_sums<kRowTiles, kPanels>(out.at(row, panel * kPanelOutputs), kPanelOutputs,
                                        out.stride);
    return;
  }
  constexpr std::size_t kPanelSums = kRowTiles * kTileRows * kPanelOutputs;
  alignas(64) float sums[kPanels * kPanelSums];
  store_tile_sums<kRowTiles, kPanels>(sums, kPanelSums, kPanelOutputs);
  for (std::size_t p = 0; p < kPanels; ++p) {
    put_tile_sums<Simd>(weight, panel + p, row, row_count, sums + p * kPanelSums, out);
  }
}

/// `Product` of tile_strips.h.
template <typename Simd>
struct PanelTiles {
  template <int kRowTiles>
  static constexpr std::size_t kPanelsMost = 4 / kRowTiles;

  const PanelWeight& weight;
  const ProductRows& x;
  const ProductOut& out;

  template <int kRowTiles>
  [[gnu::always_inline]] TileShapes shapes(std::size_t last_rows) const {
    return tile_shapes<kRowTiles>(last_rows);
  }
  template <int kRowTiles, int kPanels>
  [[gnu::always_inline]] void multiply(std::size_t panel, std::size_t row,
                                       std::size_t row_count) const {
    multiply_tile_group<Simd, kRowTiles, kPanels>(weight, panel, x, row, row_count, out);
  }
};

}  // namespace muster::engine
