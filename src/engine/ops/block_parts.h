#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "engine/ops/panel_product.h"
#include "engine/ops/panel_product_kernel.h"
#include "engine/ops/panel_weight.h"

namespace muster::engine {

// What products with weights in blocks of inputs have in common; `Ops` as in
// block_product_kernel.h.

/// How far ahead of its products a weight is fetched, in bytes. What a core fetches by itself is
/// not enough where products take time too: one stream of SmolLM2-135M in Q4_1 on two cores of a
/// Sapphire Rapids Xeon makes 135 tokens a second without, 160, 170, 187 and 196 with 1, 2, 4 and
/// 8 KiB, and on one core 80, 82, 97, 105 and 93. One stream in bf16, whose products take less,
/// gains nothing.
inline constexpr std::size_t kFetchAhead = 4096;

/// Fetches kBytes that are multiplied kFetchAhead bytes later than `here`: behind `end`, where the
/// item's panels end, those from `next` on, but for part of its first kBytes.
template <std::size_t kBytes>
[[gnu::always_inline]] inline void fetch_along(const std::byte* here, const std::byte* end,
                                               const std::byte* next) {
  const auto left = static_cast<std::size_t>(end - here);
  if (left > kFetchAhead) {
    fetch<kBytes>(here, kFetchAhead);
  } else if (next != nullptr) {
    fetch<kBytes>(next, kFetchAhead - left);
  }
}

/// Where a block's parts stand in a panel. Source: panel_weight.h.
template <WeightFormat kFormat>
struct BlockLayout {
  static constexpr bool kHasMinimum = kFormat == WeightFormat::Q4_1;
  static constexpr bool kIsBytes = kFormat == WeightFormat::Q8_0;
  static constexpr std::size_t kHead = (kHasMinimum ? 2 : 1) * kPanelOutputs * sizeof(Float16);
  static constexpr std::size_t kQuants = kPanelOutputs * kBlockInputs;  // bytes when unpacked
  static constexpr std::size_t kBytes = kHead + (kIsBytes ? kQuants : kQuants / 2);
};

/// What a format's quants are multiplied with too much; of_bytes: of Q8_0, as it is multiplied.
template <WeightFormat kFormat>
constexpr int middle_of_quants(int of_bytes) {
  return kFormat == WeightFormat::Q8_0 ? of_bytes : kFormat == WeightFormat::Q4_0 ? 8 : 0;
}

/// Four inputs of each output of a panel's block: part `g` of its eight.
template <typename Ops, WeightFormat kFormat>
[[gnu::always_inline]] inline typename Ops::Bytes load_quants(const std::byte* block,
                                                              std::size_t g) {
  using Layout = BlockLayout<kFormat>;
  if constexpr (Layout::kIsBytes) return Ops::load_bytes(block + Layout::kHead + g * 64);
  const auto both = Ops::load_bytes(block + Layout::kHead + g % 4 * 64);
  return g < 4 ? Ops::low_halves(both) : Ops::high_halves(both);
}

/// What a block's integer sums begin with, so that they are of q less its middle.
template <typename Ops, WeightFormat kFormat>
[[gnu::always_inline]] inline typename Ops::Ints first_ints(const ActivationBlock& x) {
  constexpr int kMiddle = middle_of_quants<kFormat>(Ops::kMiddleOfBytes);
  if constexpr (kMiddle == 0) {
    return Ops::ints(0);
  } else if constexpr (kMiddle == 128) {
    return Ops::ints(x.minus_128_sum);
  } else {
    return Ops::ints(-kMiddle * x.sum);
  }
}

template <typename Ops, WeightFormat kFormat>
[[gnu::always_inline]] inline typename Ops::Ints add_products(const typename Ops::Bytes& quants,
                                                              std::int32_t four,
                                                              const typename Ops::Ints& sum) {
  if constexpr (kFormat == WeightFormat::Q8_0) {
    return Ops::add_products_of_bytes(quants, four, sum);
  } else {
    return Ops::add_products_of_halves(quants, four, sum);
  }
}

/// What the sums of a panel's outputs begin with.
template <typename Ops>
[[gnu::always_inline]] inline typename Ops::Floats first_sums(const PanelWeight& weight,
                                                              std::size_t panel) {
  return weight.bias() == nullptr ? Ops::floats(0)
                                  : Ops::load_floats(weight.bias() + panel * kPanelOutputs);
}

/// Puts a row's sums of a panel's outputs, as many as the weight has.
template <typename Ops>
[[gnu::always_inline]] inline void put_panel(const typename Ops::Floats& sums,
                                             const PanelWeight& weight, std::size_t panel,
                                             std::size_t row, const ProductOut& out) {
  const std::size_t column = panel * kPanelOutputs;
  const std::size_t column_count = std::min(kPanelOutputs, weight.out_size() - column);
  Ops::put(sums, column_count, out.adds, out.at(row, column));
}

/// Puts sums of whole panels to what is there, or over it.
template <typename Ops, bool kAdds, std::size_t kRows, std::size_t kPanels>
[[gnu::always_inline]] inline void put_whole_panels(
    const typename Ops::Floats (&sums)[kRows][kPanels], float* to, std::size_t stride) {
#pragma GCC unroll 8
  for (std::size_t i = 0; i < kRows; ++i, to += stride) {
#pragma GCC unroll 2
    for (std::size_t p = 0; p < kPanels; ++p) {
      Ops::put(sums[i][p], kPanelOutputs, kAdds, to + p * kPanelOutputs);
    }
  }
}

/// What a strip has summed, as many outputs as the weight has. Whole panels, which are nearly all,
/// are put without a mask and without asking for each: that is up to 4 % of a product. By
/// `put_group`, which does the same, prompts of 512 tokens are 3 % slower (GCC 12, Zen 5).
template <typename Ops, std::size_t kRows, std::size_t kPanels>
[[gnu::always_inline]] inline void put_panels(const typename Ops::Floats (&sums)[kRows][kPanels],
                                              const PanelWeight& weight, std::size_t panel,
                                              std::size_t row, const ProductOut& out) {
  if ((panel + kPanels) * kPanelOutputs <= weight.out_size()) {
    float* to = out.at(row, panel * kPanelOutputs);
    if (out.adds) return put_whole_panels<Ops, true>(sums, to, out.stride);
    return put_whole_panels<Ops, false>(sums, to, out.stride);
  }
#pragma GCC unroll 8
  for (std::size_t i = 0; i < kRows; ++i) {
#pragma GCC unroll 2
    for (std::size_t p = 0; p < kPanels; ++p) {
      put_panel<Ops>(sums[i][p], weight, panel + p, row + i, out);
    }
  }
}

}  // namespace muster::engine
