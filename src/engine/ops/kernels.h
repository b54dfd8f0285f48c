#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "engine/ops/bfloat16.h"

namespace muster::engine {

/// Self-attention of one sequence.
///
/// Shapes: q_i, k_i, v_i are the thirds of row i of the fused product, each [heads x head_size].
struct AttentionShape {
  std::uint32_t head_count = 0;
  std::uint32_t head_size = 0;
  /// Added to the scaled scores: head h, query i, key j get
  /// `relative_bias[h * relative_bias_stride + relative_bias_stride / 2 + j - i]`; nullptr:
  /// nothing. The stride is 2 x (longest sequence) - 1.
  const float* relative_bias = nullptr;
  std::size_t relative_bias_stride = 0;
};

/// Part of a sequence's attention: some heads, and with them all queries or some. However it is cut
/// into parts, every row has the same bits.
struct AttentionPart {
  std::uint32_t head_begin = 0;
  std::uint32_t head_end = 0;
  std::size_t query_part = 0;  // of `query_part_count`, each of them some strips of query rows
  std::size_t query_part_count = 1;
  /// The scratch holds the keys and values of `head_begin` of this sequence, since that was the
  /// last head of the call before: they need not be copied again.
  bool is_packed = false;
};

/// All of it.
inline AttentionPart whole_attention(const AttentionShape& shape) {
  return {.head_begin = 0, .head_end = shape.head_count};
}

/// Layer normalisation: weight and bias are [size].
struct LayerNormShape {
  const float* weight = nullptr;
  const float* bias = nullptr;
  std::size_t size = 0;
  float epsilon = 0;
};

/// The loops that are ours and not torch's, for one instruction set. All arithmetic is float32; a
/// row of the result is a function of its own sequence (attention) or row (the rest) alone.
///
/// Threads: stateless functions.
struct Kernels {
  std::string_view name;  // "avx512", "avx2", "portable": part of the equality class

  /// How many floats of scratch `attend` needs for a sequence; for speed on a 64-byte boundary.
  std::size_t (*attention_scratch_size)(const AttentionShape& shape, std::size_t length);

  /// out[i] = softmax(q_i k^T / sqrt(head_size) + bias) v, for the rows and columns of the part;
  /// the others stay as they are.
  ///
  /// Shapes: rows [length] pointers to [3 x hidden]; out [length, hidden].
  /// Source: Vaswani et al. 2017, "Attention Is All You Need", section 3.2.1.
  void (*attend_fp32)(const AttentionShape& shape, const AttentionPart& part,
                      std::span<const float* const> rows, float* out, float* scratch);
  void (*attend_bf16)(const AttentionShape& shape, const AttentionPart& part,
                      std::span<const Bfloat16* const> rows, Bfloat16* out, float* scratch);

  /// hidden = layer_norm(hidden + update), row by row, in place; `narrow`, where it is not nullptr,
  /// gets the same rounded to bf16.
  ///
  /// Shapes: hidden, update, narrow [row_count, size].
  /// Source: Ba et al. 2016, "Layer Normalization", equation 4.
  void (*add_layer_norm_fp32)(const LayerNormShape& shape, std::size_t row_count, float* hidden,
                              const float* update, Bfloat16* narrow);
  void (*add_layer_norm_bf16)(const LayerNormShape& shape, std::size_t row_count, float* hidden,
                              const Bfloat16* update, Bfloat16* narrow);
};

/// The portable kernels first, then each instruction set this CPU has, the best last.
std::vector<const Kernels*> kernels_available();

/// The best kernels that this CPU can run.
const Kernels& best_kernels();

}  // namespace muster::engine
