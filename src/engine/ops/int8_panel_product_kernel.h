#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "engine/ops/block_pair_product_kernel.h"
#include "engine/ops/block_parts.h"
#include "engine/ops/panel_product.h"
#include "engine/ops/panel_product_kernel.h"
#include "engine/ops/strips.h"

namespace muster::engine {

// `PanelProduct` for Int8 weights, written once over `Ops`, which is that of
// block_product_kernel.h.
//
// With w = d q, d of up to four blocks, and x = e p, e of each block: sum of w x = d (sum over the
// blocks of e (sum of q p)), the sums of integers exact: at most 64 x 255 x 128.

/// A block is summed in two steps, in which half of a block that comes next is fetched: 17 lines of
/// memory at once would be waited for (32 streams of SmolLM2-135M on a Zen 5: 9 % slower).
inline constexpr std::size_t kInt8Steps = 2;
inline constexpr std::size_t kInt8StepParts = kTransformedInputs / 4 / kInt8Steps;
inline constexpr std::size_t kInt8StepBytes = Int8Panel::kBlockBytes / kInt8Steps;

/// Integer sums of one block of kPanels panels for kRows rows, each row `row_blocks` behind the one
/// before, of q less its middle. fetch: called for each step.
template <typename Ops, std::size_t kRows, std::size_t kPanels, typename Fetch>
[[gnu::always_inline]] inline void sum_int8_block(const std::byte* const (&blocks)[kPanels],
                                                  const TransformedBlock* of_rows,
                                                  std::size_t row_blocks, const Fetch& fetch,
                                                  typename Ops::Ints (&totals)[kRows][kPanels]) {
#pragma GCC unroll 8
  for (std::size_t i = 0; i < kRows; ++i) {
    const auto begin =
        Ops::ints(Ops::kMiddleOfBytes == 0 ? 0 : of_rows[i * row_blocks].minus_128_sum);
#pragma GCC unroll 2
    for (std::size_t p = 0; p < kPanels; ++p) totals[i][p] = begin;
  }
#pragma GCC unroll 16
  for (std::size_t g = 0; g < kTransformedInputs / 4; ++g) {
    if (g % kInt8StepParts == 0) fetch(g / kInt8StepParts);
    typename Ops::Bytes weights[kPanels];
#pragma GCC unroll 2
    for (std::size_t p = 0; p < kPanels; ++p) weights[p] = Ops::load_bytes(blocks[p] + g * 64);
#pragma GCC unroll 8
    for (std::size_t i = 0; i < kRows; ++i) {
      std::int32_t four = 0;
      std::memcpy(&four, of_rows[i * row_blocks].quants + 4 * g, sizeof four);
#pragma GCC unroll 2
      for (std::size_t p = 0; p < kPanels; ++p) {
        totals[i][p] = Ops::add_products_of_bytes(weights[p], four, totals[i][p]);
      }
    }
  }
}

/// scaled += the sums of one block, each row's times its scale.
template <typename Ops, std::size_t kRows, std::size_t kPanels, typename Fetch>
[[gnu::always_inline]] inline void add_int8_block(const std::byte* const (&blocks)[kPanels],
                                                  const TransformedBlock* of_rows,
                                                  std::size_t row_blocks, const Fetch& fetch,
                                                  typename Ops::Floats (&scaled)[kRows][kPanels]) {
  typename Ops::Ints totals[kRows][kPanels];
  sum_int8_block<Ops>(blocks, of_rows, row_blocks, fetch, totals);
#pragma GCC unroll 8
  for (std::size_t i = 0; i < kRows; ++i) {
    const auto scale = Ops::floats(of_rows[i * row_blocks].scale);
#pragma GCC unroll 2
    for (std::size_t p = 0; p < kPanels; ++p) {
      scaled[i][p] = Ops::multiply_add(Ops::to_floats(totals[i][p]), scale, scaled[i][p]);
    }
  }
}

/// What strips of rows and panels have of a product.
struct Int8Strip {
  const PanelWeight* weight;
  std::size_t panel;
  std::size_t panel_end;  // of all panels that are multiplied
  const ProductRows* x;
  std::size_t row = 0;
};

/// What a strip fetches while it multiplies. kIsAlone: no other strip of rows meets its panels, and
/// nobody has fetched them.
template <std::size_t kPanels, bool kIsAlone>
struct Int8Fetches {
  const Int8Strip& strip;
  const NextPanels& next;
  const std::byte* panel = strip.weight->panel(strip.panel);
  const std::byte* end = strip.weight->panel(strip.panel_end);
  const FetchedRun<4> run{kPanels > 1 ? strip.x->runs : nullptr};
  FetchTurns turns = next.turns(strip.weight->in_size() / kTransformedInputs * kInt8Steps);

  [[gnu::always_inline]] void fetch(std::size_t block, std::size_t of_block) {
    const std::size_t step = block * kInt8Steps + of_block;
    run.fetch(step);
    // The first block of those that share scales has them in front.
    const bool has_scales = of_block == 0 && block % kScaledBlocks == 0;
    const std::size_t here = Int8Panel::block(block) + of_block * kInt8StepBytes;
    if constexpr (kIsAlone) {
      fetch_along<kInt8StepBytes>(panel + here, end, strip.x->next_panels);
      if (has_scales) {
        fetch_along<Int8Panel::kScaleBytes>(panel + Int8Panel::scales(block), end,
                                            strip.x->next_panels);
      }
    } else if (turns.is_at(step)) {
      const std::size_t distance = strip.weight->panel_bytes();
      fetch_step<kInt8StepBytes, kPanels>(next.begin, distance, here);
      if (has_scales) {
        fetch_step<Int8Panel::kScaleBytes, kPanels>(next.begin, distance, Int8Panel::scales(block));
      }
    }
  }
};

/// kRows rows and kPanels panels.
template <typename Ops, std::size_t kRows, std::size_t kPanels, bool kIsAlone>
[[gnu::always_inline]] inline void multiply_int8_strip(const Int8Strip& strip,
                                                       const ProductOut& out,
                                                       const NextPanels& next) {
  const PanelWeight& weight = *strip.weight;
  const std::size_t block_count = weight.in_size() / kTransformedInputs;
  typename Ops::Floats sums[kRows][kPanels];
  const std::byte* panels[kPanels];
#pragma GCC unroll 2
  for (std::size_t p = 0; p < kPanels; ++p) {
    panels[p] = weight.panel(strip.panel + p);
    const auto first = first_sums<Ops>(weight, strip.panel + p);
#pragma GCC unroll 8
    for (std::size_t i = 0; i < kRows; ++i) sums[i][p] = first;
  }
  const TransformedBlock* of_rows = strip.x->transformed + strip.row * block_count;
  Int8Fetches<kPanels, kIsAlone> fetches{strip, next};
  for (std::size_t begin = 0; begin < block_count; begin += kScaledBlocks) {
    typename Ops::Floats scaled[kRows][kPanels];
#pragma GCC unroll 8
    for (std::size_t i = 0; i < kRows; ++i) {
#pragma GCC unroll 2
      for (std::size_t p = 0; p < kPanels; ++p) scaled[i][p] = Ops::floats(0);
    }
    const std::size_t behind = std::min(begin + kScaledBlocks, block_count);
    for (std::size_t b = begin; b < behind; ++b, ++of_rows) {
      const std::byte* blocks[kPanels];
#pragma GCC unroll 2
      for (std::size_t p = 0; p < kPanels; ++p) blocks[p] = panels[p] + Int8Panel::block(b);
      const auto fetch = [&](std::size_t of_block) __attribute__((always_inline)) {
        fetches.fetch(b, of_block);
      };
      add_int8_block<Ops>(blocks, of_rows, block_count, fetch, scaled);
    }
#pragma GCC unroll 2
    for (std::size_t p = 0; p < kPanels; ++p) {
      const auto scales =
          Ops::load_floats(reinterpret_cast<const float*>(panels[p] + Int8Panel::scales(begin)));
#pragma GCC unroll 8
      for (std::size_t i = 0; i < kRows; ++i) {
        sums[i][p] = Ops::multiply_add(scaled[i][p], scales, sums[i][p]);
      }
    }
  }
  put_panels<Ops>(sums, weight, strip.panel, strip.row, out);
}

/// All rows and kPanels panels, in strips of up to kRowsMost.
template <typename Ops, std::size_t kRowsMost, std::size_t kPanels>
[[gnu::always_inline]] inline void multiply_int8_rows(Int8Strip strip, const ProductOut& out) {
  auto next = NextPanels::behind(*strip.weight, strip.panel + kPanels, strip.panel_end, *strip.x,
                                 kRowsMost);
  const bool is_alone = kPanels == 1 && next.strips == 1;
  for_each_strip<kRowsMost>(strip.x->count, [&]<std::size_t kRows>(std::size_t row) {
    strip.row = row;
    if (is_alone) {
      multiply_int8_strip<Ops, kRows, kPanels, true>(strip, out, next);
    } else {
      multiply_int8_strip<Ops, kRows, kPanels, false>(strip, out, next);
    }
    ++next.strip;
  });
}

template <typename Ops>
void multiply_int8_panels(const PanelWeight& weight, std::size_t panel_begin, std::size_t panel_end,
                          const ProductRows& x, const ProductOut& out) {
  Int8Strip strip{.weight = &weight, .panel = panel_begin, .panel_end = panel_end, .x = &x};
  if constexpr (Ops::kPairRowsMax > 0) {
    if (x.count >= kPairRowsLeast) {
      for (; strip.panel + kPairPanels <= panel_end; strip.panel += kPairPanels) {
        multiply_int8_rows<Ops, Ops::kPairRowsMax, kPairPanels>(strip, out);
      }
    }
  }
  for (; strip.panel < panel_end; ++strip.panel) {
    multiply_int8_rows<Ops, Ops::kRowsMax, 1>(strip, out);
  }
}

}  // namespace muster::engine
