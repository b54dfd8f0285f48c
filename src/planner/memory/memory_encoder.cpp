// Memory of an encoder on a CPU, by the same steps that the worker takes: it is held to 1 % of what
// its counting allocator sees, so roundings of packed matrices, oneDNN's scratch and the rows of
// the self-test all count. Row blocks and the tokens of a pass come from the header that the engine
// itself reads and cannot drift; packing and scratch of oneDNN were measured and may change with
// its version. Lanes share weights, and each has its own pass.

#include "planner/memory/memory_encoder.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include "planner/memory/memory_arithmetic.h"
#include "spec/row_blocks.h"

namespace muster {
namespace {

constexpr std::uint64_t kFloat = 4;

std::uint64_t round_up(std::uint64_t value, std::uint64_t multiple) {
  return multiply_bytes(divide_up(value, multiple), multiple);
}

bool has_relative_bias(const ModelShape& shape) { return shape.family == "mpnet"; }

// Families that give the padding id a position of its own have two rows before the first.
std::uint64_t position_rows(const ModelShape& shape) {
  const bool skips_padding = shape.family != "bert" && shape.family != "distilbert";
  return std::uint64_t{shape.length_max} + (skips_padding ? 2 : 0);
}

// Below this many inputs oneDNN multiplies float32 without packing.
constexpr std::uint32_t kUnpackedInputsMost = 128;

bool is_fp32_packed(std::uint64_t inputs) { return inputs > kUnpackedInputsMost; }

bool is_own_product(const EncoderRun& run) {
  if (run.is_int8) return true;
  return run.kernels == (run.element_bytes == kFloat ? CpuKernels::Avx2 : CpuKernels::Avx512Bf16);
}

// The groups of inputs of the 8-bit product. Source: src/engine/ops/int8_product.h.
std::uint64_t int8_inputs(std::uint64_t inputs) { return round_up(inputs, 4); }

// What the outputs of a packed matrix are rounded up to. Source: src/engine/ops/*_product.h.
std::uint64_t packed_outputs(const EncoderRun& run) {
  return is_own_product(run) && run.element_bytes == kFloat ? 16 : 64;
}

// What the inputs of a packed matrix are rounded up to; 0: it is not packed.
std::uint64_t packed_inputs(std::uint64_t inputs, const EncoderRun& run) {
  if (is_own_product(run)) return run.element_bytes == kFloat ? 1 : 2;
  return run.element_bytes == kFloat && is_fp32_packed(inputs) ? 16 : 0;
}

// A matrix and its bias.
std::uint64_t packed_bytes(std::uint64_t inputs, std::uint64_t outputs, const EncoderRun& run) {
  // A byte for each quant; a bias, a scale and a sum for each output.
  if (run.is_int8) {
    return multiply_bytes(round_up(outputs, 32), add_bytes(int8_inputs(inputs), 3 * kFloat));
  }
  const auto multiple = packed_inputs(inputs, run);
  const auto values = multiple == 0 ? multiply_bytes(inputs, outputs)
                                    : multiply_bytes(round_up(outputs, packed_outputs(run)),
                                                     round_up(inputs, multiple));
  const auto bias = is_own_product(run)
                        ? multiply_bytes(round_up(outputs, packed_outputs(run)), kFloat)
                        : multiply_bytes(outputs, run.element_bytes);
  return add_bytes(multiply_bytes(values, run.element_bytes), bias);
}

// What oneDNN holds while it multiplies `rows` rows: a list of 28 blocks of 32 bytes; for bf16
// without bf16 products a list of 4 and all sums in float32. Ours holds nothing but, in int8, its
// rows in 8 bits and their scales.
// Source: measured with torch 2.11 (oneDNN 3.10), as the packing.
std::uint64_t product_scratch(std::uint64_t inputs, std::uint64_t outputs, std::uint64_t rows,
                              const EncoderRun& run) {
  if (run.is_int8) return multiply_bytes(rows, add_bytes(int8_inputs(inputs), kFloat));
  if (is_own_product(run)) return 0;
  if (run.element_bytes == kFloat) return is_fp32_packed(inputs) ? 896 : 0;
  return add_bytes(128, multiply_bytes(rows, outputs, kFloat));
}

// The tables of one head and one strip of queries. Source: src/engine/ops/attention_kernel.h.
std::uint64_t attention_scratch(const LayerShape& layer, std::uint64_t length,
                                const EncoderRun& run) {
  const std::uint64_t width = run.kernels == CpuKernels::Avx2 ? 8 : 16;
  constexpr std::uint64_t kRowsMost = 6;
  const auto length_wide = round_up(length, width);
  const auto size_wide = round_up(layer.head_size, width);
  const auto tables = multiply_bytes(2, size_wide, length_wide);
  return multiply_bytes(add_bytes(tables, kRowsMost * (size_wide + length_wide)), kFloat);
}

struct PassSizes {
  std::uint64_t hidden = 0;
  std::uint64_t wide = 0;
  std::uint64_t element = 4;
};

// The blocks of rows that cover a pass which `lanes` lanes share: whole ones of the largest count,
// then the tail's.
struct Cover {
  std::uint64_t block_rows = 0;
  std::uint64_t whole_count = 0;
  std::vector<RowBlock> tail;

  Cover(std::uint32_t tokens, std::uint32_t lanes, const EncoderRun& run) {
    const auto counts = shared_row_counts(tokens, kRowCounts, lanes);
    const auto most = is_own_product(run) ? shared_block_rows(tokens, lanes) : counts.front();
    block_rows = most;
    whole_count = tokens / most;
    tail = is_own_product(run) ? cut_rows(tokens % most, most) : cover_rows(tokens % most, counts);
  }

  std::uint64_t row_count() const { return whole_count * block_rows + covered_row_count(tail); }
  std::vector<std::uint64_t> distinct_counts() const {
    std::vector<std::uint64_t> counts;
    if (whole_count > 0) counts.push_back(block_rows);
    for (const auto& block : tail) counts.push_back(block.count);
    return counts;
  }
};

// The joined projection keeps the rows of all blocks; attention adds a pointer a token.
std::uint64_t attend_peak(const PassSizes& sizes, const Cover& cover, std::uint64_t tokens,
                          const EncoderRun& run) {
  const std::uint64_t columns = 3 * sizes.hidden;
  const auto scratch = [&](std::uint64_t rows) {
    return product_scratch(sizes.hidden, columns, rows, run);
  };
  auto kept = multiply_bytes(cover.whole_count, cover.block_rows, columns, sizes.element);
  auto peak = cover.whole_count > 0 ? add_bytes(kept, scratch(cover.block_rows)) : 0;
  for (const auto& block : cover.tail) {
    kept = add_bytes(kept, multiply_bytes(block.count, columns, sizes.element));
    peak = std::max(peak, add_bytes(kept, scratch(block.count)));
  }
  return std::max(peak, add_bytes(kept, multiply_bytes(tokens, sizeof(void*))));
}

// Output product, then both feed-forward products, block by block.
std::uint64_t feed_peak(const PassSizes& sizes, const Cover& cover, const EncoderRun& run) {
  std::uint64_t peak = 0;
  for (const auto rows : cover.distinct_counts()) {
    const auto scratch = [&](std::uint64_t in, std::uint64_t out) {
      return product_scratch(in, out, rows, run);
    };
    const auto narrow = multiply_bytes(rows, sizes.hidden, sizes.element);
    const auto wide = multiply_bytes(rows, sizes.wide, sizes.element);
    peak = std::max({peak, add_bytes(narrow, scratch(sizes.hidden, sizes.hidden)),
                     add_bytes(wide, scratch(sizes.hidden, sizes.wide)),
                     add_bytes(wide, narrow, scratch(sizes.wide, sizes.hidden))});
  }
  return peak;
}

// The lanes that share a pass when it is cut may leave at once, and then this lane computes all of
// it.
std::uint64_t pass_peak(const ModelShape& shape, std::span<const std::uint32_t> lengths,
                        const EncoderRun& run) {
  const auto& layer = shape.layers.front();  // all layers of these families are alike
  const PassSizes sizes{shape.hidden_size, layer.intermediate_size, run.element_bytes};
  std::uint32_t tokens = 0;
  std::uint32_t longest = 0;
  for (const auto length : lengths) {
    tokens += length;
    longest = std::max(longest, length);
  }
  // hidden in float32, its copy in bf16, and the attended rows.
  const std::uint64_t bytes_a_value = kFloat + (run.element_bytes == kFloat ? kFloat : 2 * 2);
  std::uint64_t peak = 0;
  for (std::uint32_t lanes = 1; lanes <= run.lanes; ++lanes) {
    const Cover cover(tokens, lanes, run);
    const auto buffers = multiply_bytes(cover.row_count(), sizes.hidden, bytes_a_value);
    const auto most =
        std::max(attend_peak(sizes, cover, tokens, run), feed_peak(sizes, cover, run));
    peak = std::max(peak, add_bytes(buffers, most));
  }
  return add_bytes(peak, attention_scratch(layer, longest, run));
}

// Before layer i is packed, layers i and later are there as read and the earlier ones packed, so
// the most is at the first or at the last layer.
std::uint64_t packing_bytes(const ModelShape& shape, const LayerShape& layer, const EncoderRun& run,
                            bool is_float32_file) {
  const std::uint64_t hidden = shape.hidden_size;
  const std::uint64_t wide = layer.intermediate_size;
  const auto joined = multiply_bytes(3, add_bytes(multiply_bytes(hidden, hidden), hidden));
  const auto others =
      add_bytes(multiply_bytes(hidden, hidden), multiply_bytes(2, hidden, wide), 2 * hidden + wide);
  const auto as_read = multiply_bytes(is_float32_file ? joined : add_bytes(joined, others), kFloat);
  const auto norms = multiply_bytes(4, hidden, kFloat);
  const auto packed = encoder_layer_bytes(shape, layer, run) - norms;
  const auto copy = is_own_product(run) ? 0 : multiply_bytes(hidden, wide, run.element_bytes);
  const std::uint64_t more = as_read > packed ? as_read - packed : 0;
  return add_bytes(as_read, copy, multiply_bytes(shape.layers.size() - 1, more));
}

// Of each product: the rows and the rolled rows; expected, rolled and new results.
std::uint64_t self_test_bytes(const ModelShape& shape, const LayerShape& layer,
                              const EncoderRun& run) {
  if (is_own_product(run)) return 0;
  const std::uint64_t rows = kRowCounts[0];
  const auto of = [&](std::uint64_t inputs, std::uint64_t outputs) {
    const auto columns = add_bytes(multiply_bytes(2, inputs), multiply_bytes(3, outputs));
    return add_bytes(multiply_bytes(rows, columns, run.element_bytes),
                     product_scratch(inputs, outputs, rows, run));
  };
  const std::uint64_t hidden = shape.hidden_size;
  const std::uint64_t wide = layer.intermediate_size;
  return std::max({of(hidden, 3 * hidden), of(hidden, hidden), of(hidden, wide), of(wide, hidden)});
}

}  // namespace

bool is_engine_encoder(const ModelShape& shape) {
  static constexpr std::array<std::string_view, 6> kFamilies{
      "bert", "roberta", "xlm-roberta", "camembert", "distilbert", "mpnet"};
  return shape.kind == ModelKind::Encoder && !shape.layers.empty() &&
         std::find(kFamilies.begin(), kFamilies.end(), shape.family) != kFamilies.end();
}

std::uint64_t encoder_table_bytes(const ModelShape& shape) {
  const auto rows = add_bytes(shape.vocab_size, position_rows(shape), 2);  // 2: normalisation
  auto floats = multiply_bytes(rows, shape.hidden_size);
  if (has_relative_bias(shape)) {
    const auto offsets = 2 * std::uint64_t{shape.length_max} - 1;
    floats = add_bytes(floats, multiply_bytes(offsets, shape.layers.front().head_count));
  }
  return multiply_bytes(floats, kFloat);
}

std::uint64_t encoder_layer_bytes(const ModelShape& shape, const LayerShape& layer,
                                  const EncoderRun& run) {
  const std::uint64_t hidden = shape.hidden_size;
  const std::uint64_t wide = layer.intermediate_size;
  const auto matrices =
      add_bytes(packed_bytes(hidden, 3 * hidden, run), packed_bytes(hidden, hidden, run),
                packed_bytes(hidden, wide, run), packed_bytes(wide, hidden, run));
  return add_bytes(matrices, multiply_bytes(4, hidden, kFloat));
}

std::uint64_t encoder_load_bytes(const ModelShape& shape, const EncoderRun& run,
                                 bool is_float32_file) {
  const auto& layer = shape.layers.front();
  return std::max(packing_bytes(shape, layer, run, is_float32_file),
                  self_test_bytes(shape, layer, run));
}

std::uint64_t encoder_lane_bytes(const ModelShape& shape, std::span<const std::uint32_t> lengths,
                                 const EncoderRun& run) {
  std::uint64_t peak = 0;
  while (!lengths.empty()) {
    std::size_t text_count = 0;
    std::uint64_t tokens = 0;
    do {
      tokens += lengths[text_count++];
    } while (text_count < lengths.size() && tokens + lengths[text_count] <= kTokensPerPass);
    peak = std::max(peak, pass_peak(shape, lengths.first(text_count), run));
    lengths = lengths.subspan(text_count);
  }
  return peak;
}

std::uint64_t encoder_lane_bytes(const ModelShape& shape, std::uint64_t sequences,
                                 std::uint64_t tokens, const EncoderRun& run) {
  // Every pass but the last, which is smaller, has the same texts.
  const auto length = static_cast<std::uint32_t>(std::min<std::uint64_t>(tokens, shape.length_max));
  const auto in_pass = std::max<std::uint64_t>(1, kTokensPerPass / std::max(1U, length));
  const std::vector<std::uint32_t> lengths(std::min(sequences, in_pass), length);
  return encoder_lane_bytes(shape, lengths, run);
}

}  // namespace muster
