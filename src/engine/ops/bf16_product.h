#pragma once

#include <cstddef>
#include <optional>

#include "engine/ops/bfloat16.h"
#include "spec/encoder_spec.h"

namespace muster::engine {

/// A weight [out, in] and its bias, packed for `Bf16Product`: panels of kColumns outputs, each
/// [pairs of inputs, kColumns, 2], so that one step reads a panel from front to back. The last
/// panel's missing outputs and an odd last input's partner are zero.
struct PackedMatrix {
  static constexpr std::size_t kColumns = 64;
  /// As wide as a configuration may be (modelfile/model_config.cpp).
  static constexpr std::size_t kInputsMost = std::size_t{1} << 17U;

  const Bfloat16* panels = nullptr;  // [up(out) / 64, up(in) / 2, 64, 2]
  const float* bias = nullptr;       // [up(out)]
  std::size_t in_size = 0;
  std::size_t out_size = 0;
  std::size_t out_stride = 0;  // from one row of the result to the next; 0: `out_size`

  std::size_t panel_count() const { return (out_size + kColumns - 1) / kColumns; }

  /// The panels [begin, end) alone. Their outputs have the bits that they have in the whole
  /// product, where they begin at column `begin` x kColumns.
  PackedMatrix panel_range(std::size_t begin, std::size_t end) const;
};

/// How many values `panels` and `bias` have.
constexpr std::size_t padded_outputs(std::size_t out_size) {
  return (out_size + PackedMatrix::kColumns - 1) / PackedMatrix::kColumns * PackedMatrix::kColumns;
}
constexpr std::size_t panels_size(std::size_t out_size, std::size_t in_size) {
  return padded_outputs(out_size) * ((in_size + 1) / 2 * 2);
}

/// Packs weight [out, in], rounding to bf16. Shapes: panels as above.
void pack_panels(const float* weight, std::size_t out_size, std::size_t in_size, Bfloat16* panels);

/// out = activation(x W^T + b): bf16 products, float32 sums, which the activation gets before any
/// rounding. Each element is one sum in an order of the instruction set's own, whatever the number
/// of rows and wherever its row stands: any number of rows gives the same bits.
///
/// Shapes: x [row_count, in], dense; out [row_count, out], its rows `out_stride` apart.
/// Threads: a stateless function.
using Bf16Product = void (*)(const PackedMatrix& matrix, std::size_t row_count, const Bfloat16* x,
                             std::optional<Activation> activation, Bfloat16* out);

/// The best product that this CPU has instructions for: AMX's tiles, where the process may use
/// them, then AVX512-BF16; nullptr without either.
Bf16Product best_bf16_product();

/// The product of AVX512-BF16; only for a CPU with it. A sum begins with the bias, and pairs of
/// inputs are added to it.
///
/// Measured, 216 rows, the four products of all-MiniLM-L6-v2 on a core whose peak is 231 GFLOP/s:
/// 214 to 222.
void multiply_avx512_bf16(const PackedMatrix& matrix, std::size_t row_count, const Bfloat16* x,
                          std::optional<Activation> activation, Bfloat16* out);
bool has_avx512_bf16();

/// The product of AMX's tiles; only where `has_amx_tiles` says so. A sum begins with zero, 32
/// inputs at a time are added to it (amx_tiles.h), and the bias comes last.
void multiply_amx_bf16(const PackedMatrix& matrix, std::size_t row_count, const Bfloat16* x,
                       std::optional<Activation> activation, Bfloat16* out);

}  // namespace muster::engine
