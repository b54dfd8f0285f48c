#pragma once

#include <cstddef>

#include "engine/ops/amx_tiles.h"

namespace muster::engine {

/// Rows in tiles of one height, so that one set of shapes is for all of them; the last tile begins
/// early enough to be whole. As what a tile gives a row depends on that row alone, the rows that
/// two tiles have get the same bits twice. For functions of a file compiled for AMX.
struct RowTiles {
  std::size_t row_count = 0;  // at least one
  std::size_t count = 0;
  std::size_t height = 0;

  /// height_most: at most kTileRows.
  [[gnu::always_inline]] RowTiles(std::size_t rows, std::size_t height_most)
      : row_count(rows),
        count((rows + height_most - 1) / height_most),
        height((rows + count - 1) / count) {}

  [[gnu::always_inline]] std::size_t begin(std::size_t tile) const {
    const std::size_t last = row_count - height;
    return tile * height < last ? tile * height : last;
  }

  /// Tiles 0 to `low_count` - 1 are of this height, the others of whole rows.
  [[gnu::always_inline]] TileShapes shapes(std::size_t low_count) const {
    TileShapes shapes{};
    for (std::size_t tile = 0; tile < 8; ++tile) {
      shapes.set(tile, tile < low_count ? height : kTileRows, kTileRowBytes);
    }
    return shapes;
  }
};

}  // namespace muster::engine
