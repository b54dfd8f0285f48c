#pragma once

#include <cstddef>
#include <optional>

#include "spec/encoder_spec.h"

namespace muster::engine {

/// A float32 weight [out, in] and its bias, packed for `Fp32Product`: panels of kColumns outputs,
/// each [in, kColumns], so that one step reads a panel from front to back. The last panel's missing
/// outputs are zero.
struct Fp32Matrix {
  static constexpr std::size_t kColumns = 16;

  const float* panels = nullptr;  // [up(out) / 16, in, 16]
  const float* bias = nullptr;    // [up(out)]
  std::size_t in_size = 0;
  std::size_t out_size = 0;
  std::size_t out_stride = 0;  // from one row of the result to the next; 0: `out_size`

  std::size_t panel_count() const { return (out_size + kColumns - 1) / kColumns; }

  /// The panels [begin, end) alone. Their outputs have the bits that they have in the whole
  /// product, where they begin at column `begin` x kColumns.
  Fp32Matrix panel_range(std::size_t begin, std::size_t end) const;

  /// How many values `bias` has; `panels` has `in_size` times as many.
  static constexpr std::size_t padded_outputs(std::size_t out_size) {
    return (out_size + kColumns - 1) / kColumns * kColumns;
  }
};

/// Packs weight [out, in]. Shapes: panels as above.
void pack_fp32_panels(const float* weight, std::size_t out_size, std::size_t in_size,
                      float* panels);

/// out = activation(x W^T + b) in float32. Each element is one sum in the order of the inputs,
/// whatever the number of rows and wherever its row stands: any number of rows gives the same bits.
///
/// Shapes: x [row_count, in], dense; out [row_count, out], its rows `out_stride` apart.
/// Threads: a stateless function.
using Fp32Product = void (*)(const Fp32Matrix& matrix, std::size_t row_count, const float* x,
                             std::optional<Activation> activation, float* out);

/// The product for a CPU without AVX-512, where oneDNN's gives a row other bits at another place
/// (torch 2.11, AMD Zen 3); nullptr with AVX-512, where oneDNN's does not.
Fp32Product best_fp32_product();

/// One per instruction set; only for a CPU with it.
void multiply_fp32_portable(const Fp32Matrix& matrix, std::size_t row_count, const float* x,
                            std::optional<Activation> activation, float* out);
void multiply_fp32_avx2(const Fp32Matrix& matrix, std::size_t row_count, const float* x,
                        std::optional<Activation> activation, float* out);

}  // namespace muster::engine
