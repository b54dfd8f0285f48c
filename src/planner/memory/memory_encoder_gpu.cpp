// Memory of an encoder on a GPU: everything in one precision, unlike on a CPU. A pass has one of a
// few row counts; the rows are live in three sets, of which the largest counts: attention, the
// feed-forward products, and pooling in float32. Each lane computes a pass of its own. Source:
// src/engine/models/packed_encoder.cpp.

#include <algorithm>
#include <iterator>

#include "planner/memory/memory_arithmetic.h"
#include "planner/memory/memory_encoder.h"
#include "spec/row_blocks.h"

namespace muster {
namespace {

// What a batch may have unless the user says otherwise. Source: src/config/schema_work.cpp.
constexpr std::uint64_t kBatchTokens = 4096;

constexpr std::uint64_t kFloat = 4;

// A bias's rows begin at multiples of it. Source: src/engine/ops/varlen_attention.cpp.
constexpr std::uint64_t kBiasAlignment = 8;

bool has_relative_bias(const ModelShape& shape) { return shape.family == "mpnet"; }

// One table of query and key for each head, in storage that reaches as far as the largest pass.
std::uint64_t bias_elements(const ModelShape& shape) {
  const auto size = (shape.length_max + kBiasAlignment - 1) / kBiasAlignment * kBiasAlignment;
  const auto rows = std::max<std::uint64_t>(kGpuRowCounts[0], shape.length_max);
  const std::uint64_t heads = shape.layers.front().head_count;
  const auto tables = multiply_bytes(heads, size, size);
  return std::max(
      tables, add_bytes(multiply_bytes(heads - 1, size, size), multiply_bytes(rows, size), rows));
}

}  // namespace

std::uint64_t gpu_encoder_table_bytes(const ModelShape& shape, std::uint32_t element_bytes) {
  // Words, the padding's place and the others, and the normalisation's two rows.
  const auto rows = add_bytes(shape.vocab_size, shape.length_max, 3);
  auto elements = multiply_bytes(rows, shape.hidden_size);
  if (has_relative_bias(shape)) elements = add_bytes(elements, bias_elements(shape));
  return multiply_bytes(elements, element_bytes);
}

std::uint64_t gpu_encoder_layer_bytes(const ModelShape& shape, const LayerShape& layer,
                                      std::uint32_t element_bytes) {
  const std::uint64_t hidden = shape.hidden_size;
  const std::uint64_t wide = layer.intermediate_size;
  const auto matrices =
      add_bytes(multiply_bytes(4, hidden, hidden), multiply_bytes(2, hidden, wide));
  const auto vectors = 9 * hidden + wide;  // biases, and both normalisations
  return multiply_bytes(add_bytes(matrices, vectors), element_bytes);
}

std::uint64_t gpu_encoder_pass_bytes(const ModelShape& shape, std::uint64_t tokens,
                                     std::uint32_t element_bytes) {
  const std::uint64_t hidden = shape.hidden_size;
  const auto& layer = shape.layers.front();
  const auto rows = gpu_rows_computed(std::max(tokens, kBatchTokens));
  // The state; query, key and value; the attended rows.
  const auto attend = multiply_bytes(5, hidden, element_bytes);
  // The state, the wide rows and their product.
  const auto feed = multiply_bytes(add_bytes(2 * hidden, layer.intermediate_size), element_bytes);
  // The state, and what is pooled.
  const auto pool = multiply_bytes(hidden, element_bytes + (element_bytes == kFloat ? 0 : kFloat));
  return multiply_bytes(kGpuLanes, rows, std::max({attend, feed, pool}));
}

}  // namespace muster
