#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "engine/ops/block_parts.h"
#include "engine/ops/panel_product.h"
#include "engine/ops/panel_product_kernel.h"

namespace muster::engine {

// Many rows with two panels at once: four inputs of a row, once loaded, meet both. Bit by bit what
// block_product_kernel.h sums for one panel.

inline constexpr std::size_t kPairPanels = 2;

/// From so many rows on. Source: prefill of SmolLM2-135M on two cores of a Zen 5, in items of 96
/// rows, is 7 % faster in Q8_0 and 6 % in Q4_1; a step of 32 streams, whose weights come from
/// memory, is 1 % to 6 % slower.
inline constexpr std::size_t kPairRowsLeast = 48;

/// Integer sums of one block of two panels for kRows rows, as `sum_block` has them. blocks: of the
/// panels; quants, row_sums: of the rows, of which one is `row_blocks` blocks behind the one
/// before.
template <typename Ops, WeightFormat kFormat, std::size_t kRows>
[[gnu::always_inline]] inline void sum_blocks(const std::byte* const (&blocks)[kPairPanels],
                                              const std::int8_t* quants,
                                              const std::int32_t* row_sums, std::size_t row_blocks,
                                              typename Ops::Ints (&totals)[kRows][kPairPanels]) {
  constexpr int kMiddle = middle_of_quants<kFormat>(Ops::kMiddleOfBytes);
#pragma GCC unroll 8
  for (std::size_t i = 0; i < kRows; ++i) {
    const auto begin = Ops::ints(kMiddle == 0 ? 0 : -kMiddle * row_sums[i * row_blocks]);
#pragma GCC unroll 2
    for (std::size_t p = 0; p < kPairPanels; ++p) totals[i][p] = begin;
  }
#pragma GCC unroll 8
  for (std::size_t g = 0; g < 8; ++g) {
    typename Ops::Bytes weights[kPairPanels];
#pragma GCC unroll 2
    for (std::size_t p = 0; p < kPairPanels; ++p) {
      weights[p] = load_quants<Ops, kFormat>(blocks[p], g);
    }
#pragma GCC unroll 8
    for (std::size_t i = 0; i < kRows; ++i) {
      std::int32_t four = 0;
      std::memcpy(&four, quants + i * row_blocks * kBlockInputs + 4 * g, sizeof four);
#pragma GCC unroll 2
      for (std::size_t p = 0; p < kPairPanels; ++p) {
        totals[i][p] = add_products<Ops, kFormat>(weights[p], four, totals[i][p]);
      }
    }
  }
}

/// kRows rows from `row` on, the panel and the one behind it.
template <typename Ops, WeightFormat kFormat, std::size_t kRows>
[[gnu::always_inline]] inline void multiply_block_pair(const PanelWeight& weight, std::size_t panel,
                                                       const ProductRows& x, std::size_t row,
                                                       const ProductOut& out) {
  using Layout = BlockLayout<kFormat>;
  const std::size_t block_count = weight.in_size() / kBlockInputs;
  typename Ops::Floats sums[kRows][kPairPanels];
#pragma GCC unroll 8
  for (std::size_t i = 0; i < kRows; ++i) {
#pragma GCC unroll 2
    for (std::size_t p = 0; p < kPairPanels; ++p) {
      sums[i][p] = first_sums<Ops>(weight, panel + p);
    }
  }
  for (std::size_t b = 0; b < block_count; ++b) {
    const std::byte* blocks[kPairPanels];
    typename Ops::Floats scales[kPairPanels];
    typename Ops::Floats minima[kPairPanels];
#pragma GCC unroll 2
    for (std::size_t p = 0; p < kPairPanels; ++p) {
      blocks[p] = weight.panel(panel + p) + b * Layout::kBytes;
      if (row == 0) fetch<Layout::kBytes>(blocks[p], kFetchAhead);
    }
    const std::size_t at = row * block_count + b;
    typename Ops::Ints totals[kRows][kPairPanels];
    sum_blocks<Ops, kFormat>(blocks, x.quants + at * kBlockInputs, x.sums + at, block_count,
                             totals);
#pragma GCC unroll 2
    for (std::size_t p = 0; p < kPairPanels; ++p) {
      const auto* halves = reinterpret_cast<const Float16*>(blocks[p]);
      scales[p] = Ops::load_halves(halves);
      if constexpr (Layout::kHasMinimum) minima[p] = Ops::load_halves(halves + kPanelOutputs);
    }
#pragma GCC unroll 8
    for (std::size_t i = 0; i < kRows; ++i) {
      const auto row_scale = Ops::floats(x.scales[at + i * block_count]);
#pragma GCC unroll 2
      for (std::size_t p = 0; p < kPairPanels; ++p) {
        sums[i][p] = Ops::multiply_add(Ops::to_floats(totals[i][p]),
                                       Ops::multiply(scales[p], row_scale), sums[i][p]);
        if constexpr (Layout::kHasMinimum) {
          sums[i][p] = Ops::multiply_add(
              minima[p], Ops::floats(x.scaled_sums[at + i * block_count]), sums[i][p]);
        }
      }
    }
  }
#pragma GCC unroll 8
  for (std::size_t i = 0; i < kRows; ++i) {
#pragma GCC unroll 2
    for (std::size_t p = 0; p < kPairPanels; ++p) {
      put_panel<Ops>(sums[i][p], weight, panel + p, row + i, out);
    }
  }
}

}  // namespace muster::engine
