#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "engine/ops/block_pair_product_kernel.h"
#include "engine/ops/block_parts.h"
#include "engine/ops/panel_product.h"
#include "engine/ops/panel_product_kernel.h"
#include "engine/ops/strips.h"

namespace muster::engine {

// `PanelProduct` for weights in blocks of 32 inputs, written once over `Ops`, which holds 16
// outputs side by side: `Ints` of 32 bits, `Bytes` of 4 inputs of each output, `Floats`. The 4
// inputs of a row are one broadcast of 32 bits. `kPairRowsMax`: rows of a strip that meets two
// panels at once, 0 where registers do not hold their sums.
//
// With w = d q + m and x = e p: sum of w x = d e (sum of q p) + m e (sum of p), the sums of
// integers exact: at most 32 x 255 x 128.

/// The scales and the quants of a panel's block, unpacked once for all rows of a strip.
template <typename Ops, WeightFormat kFormat>
struct PanelBlock : BlockLayout<kFormat> {
  using Layout = BlockLayout<kFormat>;

  typename Ops::Floats scales, minima;
  typename Ops::Bytes quants[8];

  [[gnu::always_inline]] explicit PanelBlock(const std::byte* from) {
    const auto* halves = reinterpret_cast<const Float16*>(from);
    scales = Ops::load_halves(halves);
    if constexpr (Layout::kHasMinimum) minima = Ops::load_halves(halves + kPanelOutputs);
#pragma GCC unroll 8
    for (std::size_t g = 0; g < 8; ++g) quants[g] = load_quants<Ops, kFormat>(from, g);
  }
};

/// Integer sums of one block for one row; those of Q4_0 and Q8_0 are of q less its middle.
template <typename Ops, WeightFormat kFormat>
[[gnu::always_inline]] inline typename Ops::Ints sum_block(const PanelBlock<Ops, kFormat>& block,
                                                           const ActivationBlock& x) {
  auto total = first_ints<Ops, kFormat>(x);
#pragma GCC unroll 8
  for (std::size_t g = 0; g < 8; ++g) {
    std::int32_t four = 0;
    std::memcpy(&four, x.quants + 4 * g, sizeof four);
    total = add_products<Ops, kFormat>(block.quants[g], four, total);
  }
  return total;
}

/// kIsAlone: no other strip of rows meets the panel, and nobody has fetched it.
template <typename Ops, WeightFormat kFormat, std::size_t kRows, bool kIsAlone>
[[gnu::always_inline]] inline void multiply_block_panel(const PanelWeight& weight,
                                                        std::size_t panel, std::size_t panel_end,
                                                        const ProductRows& x, std::size_t row,
                                                        const ProductOut& out,
                                                        const NextPanels& next) {
  using Block = PanelBlock<Ops, kFormat>;
  const std::size_t in_size = weight.in_size();
  const std::size_t block_count = in_size / kBlockInputs;
  typename Ops::Floats sums[kRows];
#pragma GCC unroll 8
  for (std::size_t i = 0; i < kRows; ++i) {
    sums[i] = first_sums<Ops>(weight, panel);
  }
  const std::byte* from = weight.panel(panel);
  auto turns = next.turns(block_count);
  const ActivationBlock* of_rows = x.blocks + row * block_count;
  for (std::size_t b = 0; b < block_count; ++b, from += Block::kBytes, ++of_rows) {
    if (kIsAlone) {
      fetch_along<Block::kBytes>(from, weight.panel(panel_end), x.next_panels);
    } else if (turns.is_at(b)) {
      fetch<Block::kBytes>(next.begin, b * Block::kBytes);
    }
    const Block block(from);
#pragma GCC unroll 8
    for (std::size_t i = 0; i < kRows; ++i) {
      const ActivationBlock& of_row = of_rows[i * block_count];
      const auto total = Ops::to_floats(sum_block(block, of_row));
      sums[i] =
          Ops::multiply_add(total, Ops::multiply(block.scales, Ops::floats(of_row.scale)), sums[i]);
      if constexpr (Block::kHasMinimum) {
        sums[i] = Ops::multiply_add(block.minima, Ops::floats(of_row.scaled_sum), sums[i]);
      }
    }
  }
#pragma GCC unroll 8
  for (std::size_t i = 0; i < kRows; ++i) put_panel<Ops>(sums[i], weight, panel, row + i, out);
}

template <typename Ops, WeightFormat kFormat>
void multiply_block_panels(const PanelWeight& weight, std::size_t panel_begin,
                           std::size_t panel_end, const ProductRows& x, const ProductOut& out) {
  if constexpr (Ops::kPairRowsMax > 0) {
    if (x.count >= kPairRowsLeast) {
      for (; panel_begin + kPairPanels <= panel_end; panel_begin += kPairPanels) {
        auto next =
            NextPanels::behind(weight, panel_begin + kPairPanels, panel_end, x, Ops::kPairRowsMax);
        for_each_strip<Ops::kPairRowsMax>(x.count, [&]<std::size_t kRows>(std::size_t row) {
          multiply_block_pair<Ops, kFormat, kRows>(weight, panel_begin, x, row, out, next);
          ++next.strip;
        });
      }
    }
  }
  for (std::size_t panel = panel_begin; panel < panel_end; ++panel) {
    auto next = NextPanels::behind(weight, panel + 1, panel_end, x, Ops::kRowsMax);
    const auto multiply = [&]<std::size_t kRows>(std::size_t row) {
      multiply_block_panel<Ops, kFormat, kRows, false>(weight, panel, panel_end, x, row, out, next);
      ++next.strip;
    };
    const auto multiply_alone = [&]<std::size_t kRows>(std::size_t row) {
      multiply_block_panel<Ops, kFormat, kRows, true>(weight, panel, panel_end, x, row, out, next);
    };
    if (next.strips == 1) {
      for_each_strip<Ops::kRowsMax>(x.count, multiply_alone);
    } else {
      for_each_strip<Ops::kRowsMax>(x.count, multiply);
    }
  }
}

}  // namespace muster::engine
