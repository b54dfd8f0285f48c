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

/// From so many rows on. Source: SmolLM2-135M on two cores of a Zen 5, in Q8_0 and in Q4_1: prefill
/// is 7 % and 6 % faster with it, a step of 16 streams 5 % and 4 %, of 32 streams 9 % and 8 %; with
/// 8 rows it is 5 % slower.
inline constexpr std::size_t kPairRowsLeast = 13;

/// Integer sums of one block of two panels for kRows rows, as `sum_block` has them. blocks: of the
/// panels; of_rows: of the first row, the next one `row_blocks` behind.
template <typename Ops, WeightFormat kFormat, std::size_t kRows>
[[gnu::always_inline]] inline void sum_blocks(const std::byte* const (&blocks)[kPairPanels],
                                              const ActivationBlock* of_rows,
                                              std::size_t row_blocks,
                                              typename Ops::Ints (&totals)[kRows][kPairPanels]) {
#pragma GCC unroll 8
  for (std::size_t i = 0; i < kRows; ++i) {
    const auto begin = first_ints<Ops, kFormat>(of_rows[i * row_blocks]);
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
      std::memcpy(&four, of_rows[i * row_blocks].quants + 4 * g, sizeof four);
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
                                                       const ProductOut& out,
                                                       const NextPanels& next) {
  using Layout = BlockLayout<kFormat>;
  const std::size_t block_count = weight.in_size() / kBlockInputs;
  typename Ops::Floats sums[kRows][kPairPanels];
#pragma GCC unroll 2
  for (std::size_t p = 0; p < kPairPanels; ++p) {
    const auto first = first_sums<Ops>(weight, panel + p);
#pragma GCC unroll 8
    for (std::size_t i = 0; i < kRows; ++i) sums[i][p] = first;
  }
  const ActivationBlock* of_rows = x.blocks + row * block_count;
  const FetchedRun<4> run(x.runs);
  auto turns = next.turns(block_count);
  for (std::size_t b = 0; b < block_count; ++b, ++of_rows) {
    run.fetch(b);
    if (turns.is_at(b)) {
      fetch_step<Layout::kBytes, kPairPanels>(next.begin, weight.panel_bytes(), b * Layout::kBytes);
    }
    const std::byte* blocks[kPairPanels];
    typename Ops::Floats scales[kPairPanels];
    typename Ops::Floats minima[kPairPanels];
#pragma GCC unroll 2
    for (std::size_t p = 0; p < kPairPanels; ++p) {
      blocks[p] = weight.panel(panel + p) + b * Layout::kBytes;
    }
    typename Ops::Ints totals[kRows][kPairPanels];
    sum_blocks<Ops, kFormat>(blocks, of_rows, block_count, totals);
#pragma GCC unroll 2
    for (std::size_t p = 0; p < kPairPanels; ++p) {
      const auto* halves = reinterpret_cast<const Float16*>(blocks[p]);
      scales[p] = Ops::load_halves(halves);
      if constexpr (Layout::kHasMinimum) minima[p] = Ops::load_halves(halves + kPanelOutputs);
    }
#pragma GCC unroll 8
    for (std::size_t i = 0; i < kRows; ++i) {
      const auto row_scale = Ops::floats(of_rows[i * block_count].scale);
#pragma GCC unroll 2
      for (std::size_t p = 0; p < kPairPanels; ++p) {
        sums[i][p] = Ops::multiply_add(Ops::to_floats(totals[i][p]),
                                       Ops::multiply(scales[p], row_scale), sums[i][p]);
        if constexpr (Layout::kHasMinimum) {
          sums[i][p] = Ops::multiply_add(
              minima[p], Ops::floats(of_rows[i * block_count].scaled_sum), sums[i][p]);
        }
      }
    }
  }
  put_panels<Ops>(sums, weight, panel, row, out);
}

}  // namespace muster::engine
