#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "spec/encoder_spec.h"

namespace muster::engine {

/// A weight [out, in] in 8 bits and its bias, packed for `Int8Kernels`: panels of kColumns outputs,
/// each [groups of 4 inputs, kColumns, 4], so that one step reads a panel from front to back. What
/// a last panel or a last group is short of is zero.
///
/// Each output has a scale of its own: w = scale q, q of -127..127 to the nearest, halves to even.
struct Int8Matrix {
  static constexpr std::size_t kColumns = 32;
  static constexpr std::size_t kGroup = 4;
  /// Of so many inputs any sum of products fits 32 bits: 2^17 x 128 x 127 < 2^31. As wide as a
  /// configuration may be (modelfile/model_config.cpp).
  static constexpr std::size_t kInputsMost = std::size_t{1} << 17U;

  const std::int8_t* panels = nullptr;  // [up(out) / 32, up(in) / 4, 32, 4]
  const float* scales = nullptr;        // [up(out)]
  const std::int32_t* sums = nullptr;   // [up(out)]: of an output's q
  const float* bias = nullptr;          // [up(out)]
  std::size_t in_size = 0;
  std::size_t out_size = 0;

  static constexpr std::size_t panel_count(std::size_t out_size) {
    return (out_size + kColumns - 1) / kColumns;
  }
  /// How many values `scales`, `sums` and `bias` have.
  static constexpr std::size_t padded_outputs(std::size_t out_size) {
    return panel_count(out_size) * kColumns;
  }
  /// Bytes of a row of quants; `panels` has as many for each of its outputs.
  static constexpr std::size_t padded_inputs(std::size_t in_size) {
    return (in_size + kGroup - 1) / kGroup * kGroup;
  }
};

/// Where packing writes; as in `Int8Matrix`.
struct Int8Panels {
  std::int8_t* panels = nullptr;
  float* scales = nullptr;
  std::int32_t* sums = nullptr;
};

/// Packs weight [out, in]; in: at most `Int8Matrix::kInputsMost`. An output whose weights are not
/// all finite has a scale that is no number, so that what it gives is none.
void pack_int8_panels(const float* weight, std::size_t out_size, std::size_t in_size,
                      const Int8Panels& to);

/// How values of at most `largest` become quants of -127..127, and back.
struct Int8Scale {
  float scale = 0;    // x = scale q; 0 where all are too near to zero, no number where one is none
  float inverse = 0;  // q = inverse x, to the nearest; 0: every quant is zero
};
Int8Scale int8_scale(float largest);

/// Rows as `Int8Kernels::multiply` reads them, written by `quantize` of the same table and in an
/// order of its own, in which a row that is alone has its inputs one after the other. What a step
/// of a product reads stands together, however wide a row is: vectors read strips as
/// `for_each_strip` cuts them, each [groups of 4 inputs, rows of the strip, 4]; AMX's tiles
/// [64 inputs or what is left, all rows].
struct Int8Rows {
  std::size_t count = 0;
  const std::uint8_t* quants = nullptr;  // [count x up(in)]
  const float* scales = nullptr;         // [count]
};

/// y = activation(x W^T + b) in 8 bits: what becomes of the rows x, and the product. One table for
/// each instruction set.
///
/// Every row has a scale, by its own largest value alone. The sums are integers and exact, so they
/// do not depend on their order, on the number of rows, on where a row stands or on the instruction
/// set; what is computed of a sum is one fused multiplication and addition in float32. So y has the
/// same bits in every table, but for an activation, which each instruction set rounds in its own
/// way.
///
/// Cost: with AVX512-VNNI an instruction multiplies and adds 64 pairs, twice as many as one of
/// AVX512-BF16: 128 operations times the instructions a core begins in a second is the limit that
/// products of many rows are made for. An instruction of AMX has 16,384 pairs and takes 16 cycles.
/// AVX2 takes four instructions for 32 pairs. What is reached of either is to be measured
/// (benchmarks/engine/linear_bench).
///
/// Threads: stateless functions; `multiply` for different panels of the same rows at once.
struct Int8Kernels {
  std::string_view name;  // "avx512+amx", "avx512+vnni", "avx2", "portable"

  /// What stands in a byte of `Int8Rows::quants` besides the quant: 128 for an instruction that
  /// multiplies bytes without a sign, whose sums `multiply` corrects by `Int8Matrix::sums`; else 0.
  std::int32_t row_offset = 0;

  /// Shapes: x [row_count, in], dense; quants [row_count x up(in)], scales [row_count].
  void (*quantize)(std::size_t row_count, std::size_t in_size, const float* x, std::uint8_t* quants,
                   float* scales);

  /// The outputs of the panels [panel_begin, panel_end).
  ///
  /// Shapes: out [rows.count, out], dense; other outputs of it are left alone.
  void (*multiply)(const Int8Matrix& matrix, std::size_t panel_begin, std::size_t panel_end,
                   const Int8Rows& rows, std::optional<Activation> activation, float* out);
};

// One per instruction set; only for a CPU with it.
extern const Int8Kernels kInt8Portable;
extern const Int8Kernels kInt8Avx2;
extern const Int8Kernels kInt8Avx512Vnni;
extern const Int8Kernels kInt8Amx;

/// The portable one first, then each that this CPU has, the best last.
std::vector<const Int8Kernels*> int8_kernels_available();

/// The best that this CPU can run.
const Int8Kernels& best_int8_kernels();

}  // namespace muster::engine
