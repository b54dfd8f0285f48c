#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/ops/bfloat16.h"
#include "engine/ops/fetch_runs.h"
#include "engine/ops/panel_weight.h"

namespace muster::engine {

/// 32 inputs of a row as a weight in blocks meets them: x = d q, and what the sums need of it. In
/// one place, so that one address a row is enough for a product.
struct ActivationBlock {
  std::int8_t quants[kBlockInputs];  // q
  float scale;                       // d
  float scaled_sum;                  // d times the sum of q
  std::int32_t sum;                  // of q
  std::int32_t minus_128_sum;        // -128 times it: what a sum of q (w + 128) lacks
};
static_assert(sizeof(ActivationBlock) == 48);

/// 64 inputs of a row, transformed, as an Int8 weight meets them: x = d q.
struct TransformedBlock {
  std::int8_t quants[kTransformedInputs];  // q
  float scale;                             // d
  std::int32_t minus_128_sum;              // -128 times the sum of q
};
static_assert(sizeof(TransformedBlock) == 72);

/// Rows as a product with a PanelWeight reads them, dense: float32 for Fp32 weights, bf16 for Bf16
/// ones, and for weights in blocks of inputs blocks of their own.
struct ProductRows {
  std::size_t count = 0;
  const float* fp32 = nullptr;                    // [count, in]
  const Bfloat16* bf16 = nullptr;                 // [count, in rounded up to 2]
  const ActivationBlock* blocks = nullptr;        // [count, in / 32], in: a multiple of 32
  const TransformedBlock* transformed = nullptr;  // [count, in / 64], in: a multiple of 64
  // Panels that are probably multiplied next, as many as now: may be fetched meanwhile.
  const std::byte* next_panels = nullptr;
  FetchRuns* runs = nullptr;  // what comes after the products: may be fetched meanwhile
};

/// Where sums go: out[row * stride + output - first_output].
struct ProductOut {
  float* out = nullptr;
  std::size_t stride = 0;
  bool adds = false;             // to what is there, else over it
  std::size_t first_output = 0;  // whose sums stand at `out`

  // Always inline: a function of one name must not be compiled for several instruction sets.
  [[gnu::always_inline]] float* at(std::size_t row, std::size_t output) const {
    return out + row * stride + output - first_output;
  }
};

/// out = x W^T + b (or out += that) for the panels [panel_begin, panel_end) of the weight. Each
/// element is one sum in the order of the inputs, whatever the number of rows, the place of its row
/// and the panels asked for: any division of the work gives the same bits.
///
/// Blocks of inputs are summed exactly in integers, then scaled and added in float32.
///
/// Threads: a stateless function; for different panels at once.
using PanelProduct = void (*)(const PanelWeight& weight, std::size_t panel_begin,
                              std::size_t panel_end, const ProductRows& x, const ProductOut& out);

}  // namespace muster::engine
