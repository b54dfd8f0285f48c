#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "engine/ops/amx_tiles.h"
#include "engine/ops/block_parts.h"
#include "engine/ops/panel_product.h"
#include "engine/ops/panel_product_kernel.h"
#include "engine/ops/tile_strips.h"
#include "engine/ops/tile_sums.h"

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
    begin_tile_sums<Simd>(weight, panel, row_count, sums.totals);
    for (std::size_t begin = 0; begin < block_count; begin += kScaledBlocks) {
      const std::size_t behind = std::min(begin + kScaledBlocks, block_count);
      for (std::size_t b = begin; b < behind; ++b) {
        const std::byte* blocks[kPanels];
        for (std::size_t p = 0; p < kPanels; ++p) {
          blocks[p] = weight.panel(panel + p) + Int8Panel::block(b);
          fetch<Int8Panel::bytes(1)>(blocks[p] - Int8Panel::kScaleBytes, kFetchAhead);
        }
        sum_byte_tiles<kRowTiles>(blocks, of_rows[b].quants, block_count * sizeof(TransformedBlock),
                                  sums.of_block);
        scale_block(of_rows + b, block_count, row_count, b == begin, sums);
      }
      add_scaled(panel, begin, row_count, sums);
    }
    put_tile_sums<Simd>(sums.totals, weight, panel, row, row_count, out);
  }

 private:
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
};

}  // namespace muster::engine
