#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "engine/ops/amx_tiles.h"
#include "engine/ops/panel_product.h"
#include "engine/ops/panel_product_kernel.h"

namespace muster::engine {

// What products of bytes by tiles have in common. Sums of a strip stand as [panels][32 rows][16].

/// Integer sums of up to 32 rows and up to two panels by tiles 0 to 3; rows in 4 and 5, quants in 6
/// and 7. quants: of each panel, as a tile reads them; rows: the first row's, the next one `stride`
/// bytes behind.
template <int kRowTiles, int kPanels>
[[gnu::always_inline]] inline void sum_byte_tiles(const std::byte* const (&quants)[kPanels],
                                                  const std::int8_t* rows, std::size_t stride,
                                                  std::int32_t (&sums)[kPanels][512]) {
  tile_zero<0>();
  tile_load<6>(quants[0], kTileRowBytes);
  tile_load<4>(rows, stride);
  tile_add_signed_unsigned<0, 4, 6>();
  tile_store<0>(sums[0], kTileRowBytes);
  if constexpr (kPanels == 2) {
    tile_zero<1>();
    tile_load<7>(quants[1], kTileRowBytes);
    tile_add_signed_unsigned<1, 4, 7>();
    tile_store<1>(sums[1], kTileRowBytes);
  }
  if constexpr (kRowTiles == 2) {
    tile_zero<2>();
    tile_load<5>(rows + kTileRows * stride, stride);
    tile_add_signed_unsigned<2, 5, 6>();
    tile_store<2>(sums[0] + 256, kTileRowBytes);
    if constexpr (kPanels == 2) {
      tile_zero<3>();
      tile_add_signed_unsigned<3, 5, 7>();
      tile_store<3>(sums[1] + 256, kTileRowBytes);
    }
  }
}

/// What the sums of panels from `panel` on begin with.
template <typename Simd, int kPanels>
[[gnu::always_inline]] inline void begin_tile_sums(const PanelWeight& weight, std::size_t panel,
                                                   std::size_t row_count,
                                                   float (&totals)[kPanels][512]) {
  for (std::size_t p = 0; p < kPanels; ++p) {
    const auto first = weight.bias() == nullptr
                           ? Simd::broadcast(0)
                           : Simd::load(weight.bias() + (panel + p) * kPanelOutputs);
    for (std::size_t i = 0; i < row_count; ++i) {
      Simd::store(totals[p] + i * kPanelOutputs, first);
    }
  }
}

/// Puts them, as many outputs as the weight has.
template <typename Simd, int kPanels>
[[gnu::always_inline]] inline void put_tile_sums(const float (&totals)[kPanels][512],
                                                 const PanelWeight& weight, std::size_t panel,
                                                 std::size_t row, std::size_t row_count,
                                                 const ProductOut& out) {
  for (std::size_t p = 0; p < kPanels; ++p) {
    const std::size_t column = (panel + p) * kPanelOutputs;
    const std::size_t column_count = std::min(kPanelOutputs, weight.out_size() - column);
    for (std::size_t i = 0; i < row_count; ++i) {
      put_sums<Simd>(Simd::load(totals[p] + i * kPanelOutputs), column_count, out.adds,
                     out.at(row + i, column));
    }
  }
}

}  // namespace muster::engine
