#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "engine/ops/amx_tiles.h"
#include "engine/ops/block_parts.h"
#include "engine/ops/panel_product.h"
#include "engine/ops/panel_product_kernel.h"
#include "engine/ops/tile_strips.h"
#include "engine/ops/tile_sums.h"

namespace muster::engine {

// `PanelProduct` for weights in blocks of 32 inputs by tiles of bytes: a block of a panel is half a
// tile, and what the tile gives for it are the exact integer sums that block_product_kernel.h has.
// They are scaled and added as there, so the bits are the same.

/// From so many rows on tiles are faster than VNNI; quants of 4 bits are unpacked for them first.
/// Source: measured on a Sapphire Rapids, inputs 576 to 2,048: with 8 rows 1.2x for Q8_0 and 0.7 to
/// 1.0x for Q4_1, with 12 rows 1.0x to 1.4x for Q4_1.
constexpr std::size_t block_tile_rows_least(WeightFormat format) {
  return format == WeightFormat::Q8_0 ? 8 : 12;
}

/// The quants of a block as a tile reads them: 8 rows of 4 inputs of each output.
template <WeightFormat kFormat>
[[gnu::always_inline]] inline const std::byte* block_quants(const std::byte* block,
                                                            std::byte* room) {
  using Layout = BlockLayout<kFormat>;
  if constexpr (Layout::kIsBytes) {
    return block + Layout::kHead;
  } else {
    const __m512i low = _mm512_set1_epi8(0x0f);
#pragma GCC unroll 4
    for (std::size_t g = 0; g < 4; ++g) {
      const __m512i both = _mm512_loadu_si512(block + Layout::kHead + g * kTileRowBytes);
      _mm512_store_si512(room + g * kTileRowBytes, _mm512_and_si512(both, low));
      _mm512_store_si512(room + (g + 4) * kTileRowBytes,
                         _mm512_and_si512(_mm512_srli_epi16(both, 4), low));
    }
    return room;
  }
}

/// A strip of up to 32 rows and up to two panels.
struct BlockStrip {
  const ProductRows* x = nullptr;
  std::size_t row = 0;
  std::size_t row_count = 0;
  std::size_t block_count = 0;  // of a row
};

/// Integer sums of one block.
template <WeightFormat kFormat, int kRowTiles, int kPanels>
[[gnu::always_inline]] inline void sum_tile_block(const BlockStrip& strip,
                                                  const std::byte* const (&panels)[kPanels],
                                                  std::size_t block,
                                                  std::int32_t (&sums)[kPanels][512]) {
  using Layout = BlockLayout<kFormat>;
  alignas(64) std::byte room[kPanels][Layout::kIsBytes ? 1 : Layout::kQuants];
  const std::byte* quants[kPanels];
  for (std::size_t p = 0; p < kPanels; ++p) {
    quants[p] = block_quants<kFormat>(panels[p], room[p]);
  }
  sum_byte_tiles<kRowTiles>(quants, strip.x->blocks[strip.row * strip.block_count + block].quants,
                            strip.block_count * sizeof(ActivationBlock), sums);
}

/// totals += the block's sums, scaled.
template <typename Simd, WeightFormat kFormat, int kPanels>
[[gnu::always_inline]] inline void scale_tile_block(const BlockStrip& strip,
                                                    const std::byte* const (&panels)[kPanels],
                                                    std::size_t block,
                                                    const std::int32_t (&sums)[kPanels][512],
                                                    float (&totals)[kPanels][512]) {
  using Layout = BlockLayout<kFormat>;
  constexpr int kMiddle = middle_of_quants<kFormat>(128);
  typename Simd::Vector scales[kPanels], minima[kPanels];
  for (std::size_t p = 0; p < kPanels; ++p) {
    const auto* halves = reinterpret_cast<const Float16*>(panels[p]);
    scales[p] = Simd::load(halves);
    if constexpr (Layout::kHasMinimum) minima[p] = Simd::load(halves + kPanelOutputs);
  }
  const ActivationBlock* of_row = strip.x->blocks + strip.row * strip.block_count + block;
  for (std::size_t i = 0; i < strip.row_count; ++i, of_row += strip.block_count) {
    const auto scale = Simd::broadcast(of_row->scale);
    const __m512i middle = _mm512_set1_epi32(kMiddle * of_row->sum);
#pragma GCC unroll 2
    for (std::size_t p = 0; p < kPanels; ++p) {
      __m512i whole = _mm512_load_si512(sums[p] + i * kPanelOutputs);
      if constexpr (kMiddle != 0) whole = _mm512_sub_epi32(whole, middle);
      float* total = totals[p] + i * kPanelOutputs;
      auto value = Simd::multiply_add(_mm512_cvtepi32_ps(whole), Simd::multiply(scales[p], scale),
                                      Simd::load(total));
      if constexpr (Layout::kHasMinimum) {
        value = Simd::multiply_add(minima[p], Simd::broadcast(of_row->scaled_sum), value);
      }
      Simd::store(total, value);
    }
  }
}

template <typename Simd, WeightFormat kFormat, int kRowTiles, int kPanels>
void multiply_block_tiles(const PanelWeight& weight, std::size_t panel, const BlockStrip& strip,
                          const ProductOut& out) {
  using Layout = BlockLayout<kFormat>;
  alignas(64) std::int32_t sums[kPanels][512];
  alignas(64) float totals[kPanels][512];
  const std::byte* panels[kPanels];
  for (std::size_t p = 0; p < kPanels; ++p) panels[p] = weight.panel(panel + p);
  begin_tile_sums<Simd>(weight, panel, strip.row_count, totals);
  for (std::size_t block = 0; block < strip.block_count; ++block) {
    for (const auto* from : panels) fetch<Layout::kBytes>(from, kFetchAhead);
    sum_tile_block<kFormat, kRowTiles, kPanels>(strip, panels, block, sums);
    scale_tile_block<Simd, kFormat, kPanels>(strip, panels, block, sums, totals);
    for (auto& from : panels) from += Layout::kBytes;
  }
  put_tile_sums<Simd>(totals, weight, panel, strip.row, strip.row_count, out);
}

/// `Product` of tile_strips.h.
template <typename Simd, WeightFormat kFormat>
struct BlockTiles {
  template <int kRowTiles>
  static constexpr std::size_t kPanelsMost = 2;

  const PanelWeight& weight;
  const ProductRows& x;
  const ProductOut& out;

  /// A block is half a tile: 8 rows of quants, and half a row of x.
  template <int kRowTiles>
  [[gnu::always_inline]] TileShapes shapes(std::size_t last_rows) const {
    auto shapes = tile_shapes<kRowTiles>(last_rows);
    for (const std::size_t tile : {4U, 5U}) shapes.row_bytes[tile] = kBlockInputs;
    for (const std::size_t tile : {6U, 7U}) shapes.rows[tile] = kBlockInputs / 4;
    return shapes;
  }
  template <int kRowTiles, int kPanels>
  [[gnu::always_inline]] void multiply(std::size_t panel, std::size_t row,
                                       std::size_t row_count) const {
    multiply_block_tiles<Simd, kFormat, kRowTiles, kPanels>(
        weight, panel, {&x, row, row_count, weight.in_size() / kBlockInputs}, out);
  }
};

}  // namespace muster::engine
