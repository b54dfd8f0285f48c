#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/ops/bfloat16.h"
#include "engine/ops/float16.h"
#include "engine/ops/kernels.h"
#include "engine/ops/panel_product.h"
#include "spec/decoder_spec.h"
#include "spec/generation.h"

namespace muster::engine {

/// Rotary positions of one row: pair i of a head, (x_i, x_(i + pairs)), is turned by an angle whose
/// cosine and sine stand here; the head's rest stays.
/// Source: Su et al. 2021, "RoFormer", equation 34, with the pairs of GPT-NeoX.
struct Rotation {
  std::size_t head_count = 0;
  std::size_t head_size = 0;
  std::size_t pair_count = 0;
  const float* cosines = nullptr;  // [pair_count]
  const float* sines = nullptr;    // [pair_count]
};

/// One token's view of the keys and values of its sequence, for one of its heads.
struct AttentionRow {
  const float* query = nullptr;  // [head_size], already scaled
  float* out = nullptr;          // [head_size]
  std::uint32_t begin = 0;       // the first position it sees (sliding windows), else 0
  std::uint32_t end = 0;         // behind the last: its own position + 1
};

inline constexpr std::size_t kKvBlockTokens = 16;

/// The keys and values of one sequence, one layer and one head of keys, in blocks of 16 positions:
/// `offset` elements behind the start of block `blocks[p / 16]` stand the keys of position p,
/// transposed, [head_size][16], and behind them the values, [16][head_size]. Behind the pool's end
/// 16 more elements may be read.
///
/// Of 8 bits (std::int8_t) a key or a value is its elements times a scale. The scales lie beside
/// the pool in the same order, one for each vector of head_size: of the keys of a block, [16], and
/// behind them of its values, [16].
template <typename T>
struct PagedHead {
  const T* pool = nullptr;
  std::span<const std::uint32_t> blocks;
  std::size_t block_size = 0;  // elements of a whole block in the pool
  std::size_t offset = 0;
  std::size_t head_size = 0;
  const float* scales = nullptr;  // of 8 bits

  // Always inline: a function of one name must not be compiled for several instruction sets.
  [[gnu::always_inline]] std::size_t start(std::size_t block) const {
    return blocks[block] * block_size + offset;
  }
  [[gnu::always_inline]] const T* keys(std::size_t block) const { return pool + start(block); }
  [[gnu::always_inline]] const T* values(std::size_t block) const {
    return keys(block) + head_size * kKvBlockTokens;
  }
  [[gnu::always_inline]] const float* key_scales(std::size_t block) const {
    return scales + start(block) / head_size;
  }
  [[gnu::always_inline]] const float* value_scales(std::size_t block) const {
    return key_scales(block) + kKvBlockTokens;
  }
};

/// Further properties of attention that some families have.
struct AttentionExtras {
  float soft_cap = 0;  // Gemma 2: cap tanh(score / cap); 0: none
};

/// The loops of a decoder for one instruction set; all arithmetic is float32 but for the products
/// of bf16, 8-bit and 16-bit numbers. What a row becomes depends on nothing but the row (and, of
/// attention, its sequence).
///
/// Threads: stateless functions.
struct DecoderKernels {
  std::string_view name;  // part of the equality class: "avx512", "avx2", "portable"

  PanelProduct multiply_fp32;
  PanelProduct multiply_bf16;
  PanelProduct multiply_q4_0;
  PanelProduct multiply_q4_1;
  PanelProduct multiply_q8_0;
  PanelProduct multiply_int8;
  bool interleaves_panels;  // weights of fp32 and bf16 are to have their panels interleaved

  /// out = x / sqrt(mean(x^2) + epsilon) weight. Source: Zhang and Sennrich 2019, "Root Mean Square
  /// Layer Normalization", equation 4.
  void (*rms_norm)(const LayerNormShape& shape, const float* x, float* out);
  /// out = (x - mean) / sqrt(variance + epsilon) weight + bias.
  void (*layer_norm)(const LayerNormShape& shape, const float* x, float* out);
  /// gate = activation(gate) up; without `up` activation(gate).
  void (*gate)(DecoderActivation activation, std::size_t size, float* gate, const float* up);
  /// `gate` with an `up`, and what `quantize` makes of its result, bit for bit; `gate` may be
  /// written over. size: a multiple of 64.
  void (*gate_blocks)(DecoderActivation activation, std::size_t size, float* gate, const float* up,
                      ActivationBlock* blocks);
  /// The same with what `quantize_transformed` makes of it.
  void (*gate_transformed)(DecoderActivation activation, std::size_t size, float* gate,
                           const float* up, TransformedBlock* blocks);
  void (*rotate)(const Rotation& rotation, float* row);
  void (*add)(std::size_t size, const float* x, float* to);

  void (*narrow)(std::size_t size, const float* x, Bfloat16* out);
  /// Blocks of 32: d = max |x| / 127, q = x / d to the nearest; of a block with a value that is not
  /// finite d is NaN. Shape: blocks [size / 32].
  void (*quantize)(std::size_t size, const float* x, ActivationBlock* blocks);
  /// Blocks of 64 through the Hadamard transform of hadamard.h, then as `quantize`; of finite
  /// values the same bits in every instruction set. Shape: blocks [size / 64].
  void (*quantize_transformed)(std::size_t size, const float* x, TransformedBlock* blocks);
  /// One head's vector of keys or values in 8 bits: d = max |x| / 127, q = x (1 / d) to the
  /// nearest, ties to even, the same in every instruction set. Returns d, NaN where a value is not
  /// finite.
  float (*quantize_head)(std::size_t size, const float* x, std::int8_t* quants);
  /// Puts one position's key and value of one head into a block of the cache as `attend_fp16` reads
  /// them, at `place` of its 16; the block's other positions stay. As float16 in the order of
  /// `PagedHead`, to the nearest, ties to even; beyond the largest finite value they stay there.
  /// With AMX's tiles, which take heads of up to 256, the numbers are those of bfloat16, with 8
  /// significant bits, which float16 holds up to 65,280; and what is denormal in float32 is zero.
  /// In pairs (pair_attention_kernel.h; heads of a multiple of 16 up to 256) neither the numbers
  /// nor their order are those.
  void (*keep_fp16)(std::size_t head_size, std::size_t place, const float* key, const float* value,
                    Float16* block);

  /// out = softmax(query keys^T) values for rows of one sequence that share a head of keys; all NaN
  /// for a row that sees a score that is none. What `attend_fp16` reads comes from `keep_fp16`; by
  /// tiles, queries and weights are rounded to bfloat16, in pairs queries to 12 bits of their
  /// largest element and weights to bfloat16.
  /// scratch: [attention_rows x (longest end rounded up to 16)] floats.
  void (*attend_fp32)(const PagedHead<float>& head, std::span<const AttentionRow> rows,
                      const AttentionExtras& extras, float* scratch);
  void (*attend_fp16)(const PagedHead<Float16>& head, std::span<const AttentionRow> rows,
                      const AttentionExtras& extras, float* scratch);
  void (*attend_int8)(const PagedHead<std::int8_t>& head, std::span<const AttentionRow> rows,
                      const AttentionExtras& extras, float* scratch);
  std::size_t attention_rows;  // how many rows share a pass over keys and values

  /// The index of the largest value, the first of several; of the first that is not finite, where
  /// there is one.
  std::size_t (*largest)(std::size_t size, const float* values);
  /// x = e^((x - largest) scale), of finite values up to `largest`, and 0 where that is below
  /// e^-87; returns the sum. scale: above 0, finite.
  float (*weigh)(std::size_t size, float largest, float scale, float* x);

  PanelProduct product(WeightFormat format) const;
};

/// The portable kernels first, then each set of instructions that this CPU has, the best last.
std::vector<DecoderKernels> decoder_kernels_available();

/// The best that this CPU can run.
const DecoderKernels& best_decoder_kernels();

/// What a decoder of this precision computes with: the best, but attention over a cache of 16 bits
/// by tiles in bf16 only where products are in bf16 too, and in pairs nowhere in fp32, where keys
/// and values keep float16's 11 bits.
const DecoderKernels& decoder_kernels_of(DecoderPrecision precision);

}  // namespace muster::engine
