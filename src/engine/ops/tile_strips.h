#pragma once

#include <algorithm>
#include <cstddef>

#include "engine/ops/amx_tiles.h"
#include "engine/ops/strips.h"

namespace muster::engine {

/// How a `PanelProduct` by tiles divides its work: rows in strips of two tiles, what is left in one
/// strip of one or two. Panels are taken in groups, and all strips that one configuration of tiles
/// is for meet a group while it is in the cache.
///
/// `Product` has `shapes<kRowTiles>(last_rows)`, and `multiply<kRowTiles, kPanels>(panel, row,
/// row_count)` for a group of panels and a strip, whose last tile may end early. `kPanelsMost<
/// kRowTiles>` panels are a group. It is a type of the including file's own.
template <typename Product, int kRowTiles>
void multiply_tile_strips(const Product& product, std::size_t panel_begin, std::size_t panel_end,
                          std::size_t row, std::size_t row_count) {
  constexpr std::size_t kStrip = kRowTiles * kTileRows;
  for_each_strip<Product::template kPanelsMost<kRowTiles>>(
      panel_end - panel_begin, [&]<std::size_t kPanels>(std::size_t panel) {
        for (std::size_t at = 0; at < row_count; at += kStrip) {
          product.template multiply<kRowTiles, int{kPanels}>(panel_begin + panel, row + at,
                                                             std::min(kStrip, row_count - at));
        }
      });
}

template <typename Product>
void multiply_by_tiles(const Product& product, std::size_t panel_begin, std::size_t panel_end,
                       std::size_t row_count) {
  if (row_count == 0) return;  // no tile has that shape
  const std::size_t whole = row_count / (2 * kTileRows) * (2 * kTileRows);
  const std::size_t rest = row_count - whole;
  const TileUse use(whole > 0 || rest > kTileRows ? product.template shapes<2>(kTileRows)
                                                  : product.template shapes<1>(rest));
  if (whole > 0) multiply_tile_strips<Product, 2>(product, panel_begin, panel_end, 0, whole);
  if (rest > kTileRows) {
    TileUse::set(product.template shapes<2>(rest - kTileRows));
    multiply_tile_strips<Product, 2>(product, panel_begin, panel_end, whole, rest);
  } else if (rest > 0) {
    if (whole > 0) TileUse::set(product.template shapes<1>(rest));
    multiply_tile_strips<Product, 1>(product, panel_begin, panel_end, whole, rest);
  }
}

}  // namespace muster::engine
