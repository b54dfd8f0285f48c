#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "engine/ops/panel_product.h"
#include "engine/ops/strips.h"

namespace muster::engine {

// `PanelProduct` for float32 and bf16 weights, written once over `Ops`: an instruction set, and how
// it multiplies one step of a panel (one input, or a pair of them) by a row's value. A strip of
// rows meets a group of panels, and its sums stay in registers from the first input to the last.

/// Has bytes of a weight fetched that are multiplied soon, `ahead` bytes from here; those behind
/// the weight's end are passed over.
template <std::size_t kBytes>
[[gnu::always_inline]] inline void fetch(const std::byte* here, std::size_t ahead) {
  const auto from = reinterpret_cast<std::uintptr_t>(here) + ahead;  // may be no object's
  for (std::size_t at = 0; at < kBytes; at += 64) {
    __builtin_prefetch(
        reinterpret_cast<const void*>(from + at));  // NOLINT(performance-no-int-to-ptr)
  }
}

/// Which steps of a strip's products are its own to fetch.
struct FetchTurns {
  std::size_t next;
  std::size_t step;

  [[gnu::always_inline]] bool is_at(std::size_t at) {
    if (at != next) return false;
    next += step;
    return true;
  }
};

/// The panels that come next, of which each strip of rows fetches a share: what the first strip
/// alone would fetch it would wait for. Source: SmolLM2-135M on two cores of a Zen 5, 32 streams:
/// bf16 makes 1,840 tokens a second without and 2,220 with it, 8 bits 2,000 and 2,200.
struct NextPanels {
  const std::byte* begin = nullptr;  // null: nothing is known to come next
  std::size_t strip = 0;             // fetches each step whose number is `strip` modulo `strips`
  std::size_t strips = 1;

  /// Of a product of so many steps: none where nothing is known to come next.
  [[gnu::always_inline]] FetchTurns turns(std::size_t step_count) const {
    return {.next = begin == nullptr ? step_count : strip, .step = strips};
  }

  /// Behind `panel` of the panels up to `panel_end`, for x.count rows in strips of up to rows_max.
  [[gnu::always_inline]] static NextPanels behind(const PanelWeight& weight, std::size_t panel,
                                                  std::size_t panel_end, const ProductRows& x,
                                                  std::size_t rows_max) {
    const std::size_t strips = (x.count + rows_max - 1) / rows_max;
    if (strips < 2) return {};
    return {.begin = panel < panel_end ? weight.panel(panel) : x.next_panels, .strips = strips};
  }
};

/// One input a step. Rows are float32.
template <typename SimdSet>
struct Fp32Steps {
  using Simd = SimdSet;
  using Vector = typename Simd::Vector;
  using Weight = float;
  struct Step {
    Vector weights;
  };
  using Value = Vector;

  static std::size_t step_count(std::size_t in_size) { return in_size; }
  static Step load(const float* from) { return {Simd::load(from)}; }
  static constexpr std::size_t kWeights = 1;  // of an output in a step

  static const float* row(const ProductRows& x, std::size_t index, std::size_t in_size) {
    return x.fp32 + index * in_size;
  }
  static Value value(const float* row, std::size_t step) { return Simd::broadcast(row[step]); }
  static Vector add(const Step& step, const Value& value, Vector sum) {
    return Simd::multiply_add(value, step.weights, sum);
  }
};

/// A pair of inputs a step, widened to float32: two products and two additions.
template <typename SimdSet>
struct Bf16Steps {
  using Simd = SimdSet;
  using Vector = typename Simd::Vector;
  using Weight = Bfloat16;
  struct Step {
    Vector even, odd;
  };
  struct Value {
    Vector even, odd;
  };

  static std::size_t step_count(std::size_t in_size) { return (in_size + 1) / 2; }
  static Step load(const Bfloat16* from) {
    Step step;
    Simd::load_pairs(from, step.even, step.odd);
    return step;
  }
  static constexpr std::size_t kWeights = 2;

  static const Bfloat16* row(const ProductRows& x, std::size_t index, std::size_t in_size) {
    return x.bf16 + index * ((in_size + 1) / 2 * 2);
  }
  static Value value(const Bfloat16* row, std::size_t step) {
    return {Simd::broadcast(to_float(row[2 * step])), Simd::broadcast(to_float(row[2 * step + 1]))};
  }
  static Vector add(const Step& step, const Value& value, Vector sum) {
    return Simd::multiply_add(value.odd, step.odd, Simd::multiply_add(value.even, step.even, sum));
  }
};

template <typename Simd>
void put_sums(const typename Simd::Vector& sums, std::size_t column_count, bool adds, float* to) {
  const bool is_whole = column_count >= Simd::kWidth;
  auto value = sums;
  if (adds) {
    value = Simd::add(value, is_whole ? Simd::load(to) : Simd::load_first(to, column_count));
  }
  if (is_whole) {
    Simd::store(to, value);
  } else {
    Simd::store_first(to, value, column_count);
  }
}

/// Puts whole vectors to what is there, or over it.
template <typename Simd, bool kAdds, std::size_t kRows, std::size_t kVectors>
[[gnu::always_inline]] inline void put_whole_group(
    const typename Simd::Vector (&sums)[kRows][kVectors], float* to, std::size_t stride) {
#pragma GCC unroll 8
  for (std::size_t i = 0; i < kRows; ++i, to += stride) {
#pragma GCC unroll 8
    for (std::size_t v = 0; v < kVectors; ++v) {
      auto value = sums[i][v];
      if constexpr (kAdds) value = Simd::add(value, Simd::load(to + v * Simd::kWidth));
      Simd::store(to + v * Simd::kWidth, value);
    }
  }
}

/// What a strip has summed, up to `column_count` columns.
template <typename Simd, std::size_t kRows, std::size_t kVectors>
[[gnu::always_inline]] inline void put_group(const typename Simd::Vector (&sums)[kRows][kVectors],
                                             std::size_t column_count, bool adds, float* to,
                                             std::size_t stride) {
  if (column_count >= kVectors * Simd::kWidth) {
    if (adds) return put_whole_group<Simd, true>(sums, to, stride);
    return put_whole_group<Simd, false>(sums, to, stride);
  }
#pragma GCC unroll 8
  for (std::size_t i = 0; i < kRows; ++i, to += stride) {
#pragma GCC unroll 8
    for (std::size_t v = 0; v < kVectors; ++v) {
      const std::size_t column = v * Simd::kWidth;
      if (column >= column_count) break;
      put_sums<Simd>(sums[i][v], column_count - column, adds, to + column);
    }
  }
}

/// Fetches kBytes of each of kPanels panels, `ahead` bytes from where the first one begins; each
/// begins `distance` bytes behind the one before.
template <std::size_t kBytes, std::size_t kPanels>
[[gnu::always_inline]] inline void fetch_step(const std::byte* panels, std::size_t distance,
                                              std::size_t ahead) {
#pragma GCC unroll 8
  for (std::size_t p = 0; p < kPanels; ++p) fetch<kBytes>(panels, p * distance + ahead);
}

/// How the panels of a group stand: one behind the other, interleaved all four, or some of four (or
/// any single one).
enum class PanelOrder { Apart, Whole, Part };

/// kRows rows from `row` on and kPanels panels from `panel` on.
template <typename Ops, std::size_t kRows, std::size_t kPanels, PanelOrder kOrder>
[[gnu::always_inline]] inline void multiply_group(const PanelWeight& weight, std::size_t panel,
                                                  const ProductRows& x, std::size_t row,
                                                  const ProductOut& out, const NextPanels& next) {
  using Simd = typename Ops::Simd;
  using Vector = typename Simd::Vector;
  using Weight = typename Ops::Weight;
  constexpr std::size_t kWidth = Simd::kWidth;
  constexpr std::size_t kPerPanel = kPanelOutputs / kWidth;
  constexpr std::size_t kVectors = kPanels * kPerPanel;
  constexpr std::size_t kStep = kPanelOutputs * Ops::kWeights;
  const std::size_t in_size = weight.in_size();
  const auto* weights = reinterpret_cast<const Weight*>(weight.panel(panel));
  // From a step of a panel to its next one, and to that of the next panel. Constants where they can
  // be: 3 % of a prompt's products.
  const std::size_t stride = kOrder == PanelOrder::Apart ? kStep
                             : kOrder == PanelOrder::Whole
                                 ? kPanels * kStep
                                 : weight.step_stride(panel) / sizeof(Weight);
  const std::size_t distance =
      kOrder == PanelOrder::Whole ? kStep : weight.panel_distance(panel) / sizeof(Weight);

  Vector sums[kRows][kVectors];
#pragma GCC unroll 8
  for (std::size_t v = 0; v < kVectors; ++v) {
    const auto first = weight.bias() == nullptr
                           ? Simd::broadcast(0)
                           : Simd::load(weight.bias() + panel * kPanelOutputs + v * kWidth);
#pragma GCC unroll 8
    for (std::size_t i = 0; i < kRows; ++i) sums[i][v] = first;
  }
  const auto* first_row = Ops::row(x, row, in_size);
  const std::size_t row_size = Ops::step_count(in_size) * Ops::kWeights;
  const std::size_t step_count = Ops::step_count(in_size);
  const TwoFetchedRuns runs(x.runs);
  auto turns = next.turns(step_count);
  for (std::size_t k = 0; k < step_count; ++k, weights += stride) {
    runs.fetch(k);
    if (turns.is_at(k)) {
      fetch_step<kStep * sizeof(Weight), kPanels>(next.begin, distance * sizeof(Weight),
                                                  k * stride * sizeof(Weight));
    }
    typename Ops::Step steps[kVectors];
#pragma GCC unroll 8
    for (std::size_t v = 0; v < kVectors; ++v) {
      steps[v] =
          Ops::load(weights + v / kPerPanel * distance + v % kPerPanel * kWidth * Ops::kWeights);
    }
#pragma GCC unroll 8
    for (std::size_t i = 0; i < kRows; ++i) {
      const auto value = Ops::value(first_row + i * row_size, k);
#pragma GCC unroll 8
      for (std::size_t v = 0; v < kVectors; ++v) {
        sums[i][v] = Ops::add(steps[v], value, sums[i][v]);
      }
    }
  }
  put_group<Simd>(sums, weight.out_size() - panel * kPanelOutputs, out.adds,
                  out.at(row, panel * kPanelOutputs), out.stride);
}

/// How many panels fill the registers beside kRowsMax rows.
template <typename Simd>
constexpr std::size_t panels_at_once() {
  constexpr std::size_t kPanels = Simd::kVectorsMax * Simd::kWidth / kPanelOutputs;
  return kPanels == 0 ? 1 : kPanels;
}

/// All rows and the panels [panel, panel + kPanels) of those up to `panel_end`.
template <typename Ops, std::size_t kPanels, PanelOrder kOrder>
[[gnu::always_inline]] inline void multiply_rows(const PanelWeight& weight, std::size_t panel,
                                                 std::size_t panel_end, const ProductRows& x,
                                                 const ProductOut& out) {
  using Simd = typename Ops::Simd;
  auto next = NextPanels::behind(weight, panel + kPanels, panel_end, x, Simd::kRowsMax);
  for_each_strip<Simd::kRowsMax>(x.count, [&]<std::size_t kRows>(std::size_t row) {
    multiply_group<Ops, kRows, kPanels, kOrder>(weight, panel, x, row, out, next);
    ++next.strip;
  });
}

/// Panels in groups that stand side by side in memory, four of them where they are interleaved.
///
/// Source: two cores of a Zen 5 that share no third-level cache read the bf16 weights of products
/// with 576 inputs at 65 GB/s as four streams, at 78 interleaved; where they share one, at 50
/// either way. One stream of SmolLM2-135M in bf16 makes 205 tokens a second without, 235 with it.
template <typename Ops>
void multiply_panels(const PanelWeight& weight, std::size_t panel_begin, std::size_t panel_end,
                     const ProductRows& x, const ProductOut& out) {
  constexpr std::size_t kPanelsMax = panels_at_once<typename Ops::Simd>();
  if (!weight.is_interleaved()) {
    const auto multiply = [&]<std::size_t kPanels>(std::size_t panel) {
      multiply_rows<Ops, kPanels, PanelOrder::Apart>(weight, panel_begin + panel, panel_end, x,
                                                     out);
    };
    return for_each_strip<kPanelsMax>(panel_end - panel_begin, multiply);
  }
  static_assert(kPanelsMax == 1 || kPanelsMax == PanelWeight::kInterleaved);
  const auto multiply = [&]<std::size_t kPanels>(std::size_t panel) {
    multiply_rows<Ops, kPanels, PanelOrder::Part>(weight, panel, panel_end, x, out);
  };
  for (std::size_t panel = panel_begin; panel < panel_end;) {
    const std::size_t count = std::min(kPanelsMax - panel % kPanelsMax, panel_end - panel);
    if (count == PanelWeight::kInterleaved) {
      multiply_rows<Ops, kPanelsMax, PanelOrder::Whole>(weight, panel, panel_end, x, out);
    } else {
      visit_with_size<kPanelsMax>(count, panel, multiply);
    }
    panel += count;
  }
}

}  // namespace muster::engine
