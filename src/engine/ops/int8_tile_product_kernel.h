#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "engine/ops/amx_tiles.h"
#include "engine/ops/block_parts.h"
#include "engine/ops/panel_product.h"
#include "engine/ops/panel_product_kernel.h"
#include "engine/ops/tile_strips.h"

namespace muster::engine {

// `PanelProduct` for Int8 weights by tiles of bytes: a block of a panel is a tile, and what it
// gives are the exact integer sums of int8_panel_product_kernel.h. They are scaled and added as
// there, so the bits are the same.

/// From so many rows on tiles are taken, as for Q8_0 (block_tile_product_kernel.h); not measured.
inline constexpr std::size_t kInt8TileRowsLeast = 8;

/// What a strip of up to 32 rows and up to two panels has, [panels][32 rows][16].
template <int kPanels>
struct Int8TileSums {
  alignas(64) std::int32_t of_block[kPanels][512];
  alignas(64) float scaled[kPanels][512];  // of the blocks that share a scale
  alignas(64) float totals[kPanels][512];
};

/// Integer sums of one block by tiles 0 to 3; rows in 4 and 5, quants in 6 and 7. rows: the first
/// row's block, the next one `stride` bytes behind.
template <int kRowTiles, int kPanels>
[[gnu::always_inline]] inline void sum_int8_tiles(const std::byte* const (&blocks)[kPanels],
                                                  const std::int8_t* rows, std::size_t stride,
                                                  std::int32_t (&sums)[kPanels][512]) {
  tile_zero<0>();
  tile_load<6>(blocks[0], kTileRowBytes);
  tile_load<4>(rows, stride);
  tile_add_signed_unsigned<0, 4, 6>();
  tile_store<0>(sums[0], kTileRowBytes);
  if constexpr (kPanels == 2) {
    tile_zero<1>();
    tile_load<7>(blocks[1], kTileRowBytes);
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

/// `Product` of tile_strips.h.
template <typename Simd>
struct Int8Tiles {
  template <int kRowTiles>
  static constexpr std::size_t kPanelsMost = 2;

  const PanelWeight& weight;
  const ProductRows& x;
  const ProductOut& out;

  template <int kRowTiles>
  [[gnu::always_inline]] TileShapes shapes(std::size_t last_rows) const {
    return tile_shapes<kRowTiles>(last_rows);
  }

  template <int kRowTiles, int kPanels>
  void multiply(std::size_t panel, std::size_t row, std::size_t row_count) const {
    const std::size_t block_count = weight.in_size() / kTransformedInputs;
    const TransformedBlock* of_rows = x.transformed + row * block_count;
    Int8TileSums<kPanels> sums;
    begin_totals(panel, row_count, sums);
    for (std::size_t begin = 0; begin < block_count; begin += kScaledBlocks) {
      const std::size_t behind = std::min(begin + kScaledBlocks, block_count);
      for (std::size_t b = begin; b < behind; ++b) {
        const std::byte* blocks[kPanels];
        for (std::size_t p = 0; p < kPanels; ++p) {
          blocks[p] = weight.panel(panel + p) + Int8Panel::block(b);
          fetch<Int8Panel::bytes(1)>(blocks[p] - Int8Panel::kScaleBytes, kFetchAhead);
        }
        sum_int8_tiles<kRowTiles>(blocks, of_rows[b].quants, block_count * sizeof(TransformedBlock),
                                  sums.of_block);
        scale_block(of_rows + b, block_count, row_count, b == begin, sums);
      }
      add_scaled(panel, begin, row_count, sums);
    }
    put(panel, row, row_count, sums);
  }

 private:
  template <int kPanels>
  [[gnu::always_inline]] void begin_totals(std::size_t panel, std::size_t row_count,
                                           Int8TileSums<kPanels>& sums) const {
    for (std::size_t p = 0; p < kPanels; ++p) {
      const auto first = weight.bias() == nullptr
                             ? Simd::broadcast(0)
                             : Simd::load(weight.bias() + (panel + p) * kPanelOutputs);
      for (std::size_t i = 0; i < row_count; ++i) {
        Simd::store(sums.totals[p] + i * kPanelOutputs, first);
      }
    }
  }

  /// scaled += the block's sums less what their quants' middle is too much, times each row's scale.
  template <int kPanels>
  [[gnu::always_inline]] void scale_block(const TransformedBlock* of_row, std::size_t row_blocks,
                                          std::size_t row_count, bool is_first,
                                          Int8TileSums<kPanels>& sums) const {
    for (std::size_t i = 0; i < row_count; ++i, of_row += row_blocks) {
      const auto scale = Simd::broadcast(of_row->scale);
      const __m512i middle = _mm512_set1_epi32(of_row->minus_128_sum);
#pragma GCC unroll 2
      for (std::size_t p = 0; p < kPanels; ++p) {
        const __m512i whole =
            _mm512_add_epi32(_mm512_load_si512(sums.of_block[p] + i * kPanelOutputs), middle);
        float* to = sums.scaled[p] + i * kPanelOutputs;
        const auto before = is_first ? Simd::broadcast(0) : Simd::load(to);
        Simd::store(to, Simd::multiply_add(_mm512_cvtepi32_ps(whole), scale, before));
      }
    }
  }

  /// totals += what the blocks from `block` on, with one scale, have come to.
  template <int kPanels>
  [[gnu::always_inline]] void add_scaled(std::size_t panel, std::size_t block,
                                         std::size_t row_count, Int8TileSums<kPanels>& sums) const {
    for (std::size_t p = 0; p < kPanels; ++p) {
      const auto scales = Simd::load(
          reinterpret_cast<const float*>(weight.panel(panel + p) + Int8Panel::scales(block)));
      for (std::size_t i = 0; i < row_count; ++i) {
        float* total = sums.totals[p] + i * kPanelOutputs;
        const auto scaled = Simd::load(sums.scaled[p] + i * kPanelOutputs);
        Simd::store(total, Simd::multiply_add(scaled, scales, Simd::load(total)));
      }
    }
  }

  template <int kPanels>
  [[gnu::always_inline]] void put(std::size_t panel, std::size_t row, std::size_t row_count,
                                  const Int8TileSums<kPanels>& sums) const {
    for (std::size_t p = 0; p < kPanels; ++p) {
      const std::size_t column = (panel + p) * kPanelOutputs;
      const std::size_t column_count = std::min(kPanelOutputs, weight.out_size() - column);
      for (std::size_t i = 0; i < row_count; ++i) {
        put_sums<Simd>(Simd::load(sums.totals[p] + i * kPanelOutputs), column_count, out.adds,
                       out.at(row + i, column));
      }
    }
  }
};

}  // namespace muster::engine
