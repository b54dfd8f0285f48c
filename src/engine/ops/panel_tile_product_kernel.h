#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "engine/ops/amx_tiles.h"
#include "engine/ops/panel_product.h"
#include "engine/ops/strips.h"

namespace muster::engine {

// `PanelProduct` for bf16 weights by tiles of 16 rows, 16 outputs and 32 inputs. Two tiles of rows
// meet two panels, or one tile of rows four panels: four tiles of sums, each of which waits for its
// own last product only. `Simd` is a type of the including file's own.

inline constexpr std::size_t kTileInputs = 32;  // of bf16
inline constexpr std::size_t kTileBytes = kTileRows * kTileRowBytes;

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
    float* to = out.at(row + i, column);
    auto value = Simd::load(sums + i * kPanelOutputs);
    if (bias != nullptr) value = Simd::add(value, Simd::load(bias));
    if (out.adds) value = Simd::add(value, Simd::load_first(to, column_count));
    Simd::store_first(to, value, column_count);
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

/// Shapes for strips whose last tile of rows has so many.
template <int kRowTiles>
TileShapes tile_shapes(std::size_t last_rows) {
  TileShapes shapes;
  for (std::size_t tile = 0; tile < 8; ++tile) shapes.set(tile, kTileRows, kTileRowBytes);
  if constexpr (kRowTiles == 2) {
    for (const std::size_t tile : {2U, 3U, 5U}) shapes.set(tile, last_rows, kTileRowBytes);
  } else {
    for (const std::size_t tile : {0U, 1U, 2U, 3U, 4U}) shapes.set(tile, last_rows, kTileRowBytes);
  }
  return shapes;
}

/// Rows [row, row + row_count) in strips of kRowTiles tiles; of the last one only `row_count` says
/// how far it goes. Panel by panel, so that a group of panels stays in the cache for all strips.
template <typename Simd, int kRowTiles, int kPanelsMax>
void multiply_tile_strips(const PanelWeight& weight, std::size_t panel_begin, std::size_t panel_end,
                          const ProductRows& x, std::size_t row, std::size_t row_count,
                          const ProductOut& out) {
  constexpr std::size_t kStrip = kRowTiles * kTileRows;
  for_each_strip<kPanelsMax>(panel_end - panel_begin, [&]<std::size_t kPanels>(std::size_t panel) {
    for (std::size_t at = 0; at < row_count; at += kStrip) {
      multiply_tile_group<Simd, kRowTiles, int{kPanels}>(weight, panel_begin + panel, x, row + at,
                                                         std::min(kStrip, row_count - at), out);
    }
  });
}

template <typename Simd>
void multiply_panels_by_tiles(const PanelWeight& weight, std::size_t panel_begin,
                              std::size_t panel_end, const ProductRows& x, const ProductOut& out) {
  if (x.count == 0) return;  // no tile has that shape
  const std::size_t whole = x.count / (2 * kTileRows) * (2 * kTileRows);
  const std::size_t rest = x.count - whole;
  const TileUse use(rest > kTileRows || whole > 0 ? tile_shapes<2>(kTileRows)
                                                  : tile_shapes<1>(rest));
  if (whole > 0) {
    multiply_tile_strips<Simd, 2, 2>(weight, panel_begin, panel_end, x, 0, whole, out);
  }
  if (rest > kTileRows) {
    TileUse::set(tile_shapes<2>(rest - kTileRows));
    multiply_tile_strips<Simd, 2, 2>(weight, panel_begin, panel_end, x, whole, rest, out);
  } else if (rest > 0) {
    if (whole > 0) TileUse::set(tile_shapes<1>(rest));
    multiply_tile_strips<Simd, 1, 4>(weight, panel_begin, panel_end, x, whole, rest, out);
  }
}

}  // namespace muster::engine
