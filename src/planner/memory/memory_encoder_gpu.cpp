// Memory of an encoder on a GPU. The engine pads there: a pass always has the same number of rows,
// so a batch has no influence on memory and only the mask depends on the length, rounded up to a
// power of two. Everything is in one precision, unlike on a CPU. The live sets are counted at the
// two widest moments, attention and feed-forward. Source: src/engine/models/padded_encoder.cpp.

#include <algorithm>
#include <bit>

#include "planner/memory/memory_arithmetic.h"
#include "planner/memory/memory_encoder.h"

namespace muster {
namespace {

// Source: src/engine/models/padded_encoder.cpp, kRowsPerPass and kLengthMin.
constexpr std::uint64_t kRowsPerPass = 4096;
constexpr std::uint64_t kLengthLeast = 16;

bool has_relative_bias(const ModelShape& shape) { return shape.family == "mpnet"; }

}  // namespace

std::uint64_t gpu_encoder_table_bytes(const ModelShape& shape, std::uint32_t element_bytes) {
  // Words, the padding's place and the others, and the normalisation's two rows.
  const auto rows = add_bytes(shape.vocab_size, shape.length_max, 3);
  auto elements = multiply_bytes(rows, shape.hidden_size);
  if (has_relative_bias(shape)) {
    const auto offsets = 2 * std::uint64_t{shape.length_max} - 1;
    elements = add_bytes(elements, multiply_bytes(offsets, shape.layers.front().head_count));
  }
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
  const auto& layer = shape.layers.front();
  const auto rows = std::max(kRowsPerPass, std::bit_ceil(std::uint64_t{shape.length_max}));
  const auto length = std::bit_ceil(std::max(tokens, kLengthLeast));
  const auto row_bytes = [&](std::uint64_t columns) {
    return multiply_bytes(rows, columns, element_bytes);
  };
  // The state; query, key and value; attended, joined and projected rows; the sum and its norm.
  const auto attend = row_bytes(std::uint64_t{9} * shape.hidden_size);
  // The state; before and after the activation, or after it with product, sum and norm.
  const auto feed = row_bytes(add_bytes(
      shape.hidden_size, layer.intermediate_size,
      std::max<std::uint64_t>(layer.intermediate_size, std::uint64_t{3} * shape.hidden_size)));
  const auto masks = has_relative_bias(shape) ? multiply_bytes(layer.head_count, length) : 1;
  return add_bytes(std::max(attend, feed), row_bytes(masks));
}

}  // namespace muster
