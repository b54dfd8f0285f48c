#include "engine/decoder/gated_product.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <cstring>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "modelfile/gguf.h"

namespace muster::engine {
namespace {

constexpr std::size_t kHidden = 64;
constexpr DecoderPrecision kPrecisions[] = {DecoderPrecision::Fp32, DecoderPrecision::Bf16,
                                            DecoderPrecision::Int8};

std::vector<float> random_values(std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(count);
  for (auto& value : values) value = normal(random);
  return values;
}

SourceMatrix source_of(const std::vector<float>& values, std::size_t rows) {
  constexpr std::uint32_t kF32 = 0;  // ggml.h, GGML_TYPE_F32
  return {find_ggml_type(kF32), rows, values.size() / rows, std::as_bytes(std::span(values))};
}

/// A gate and an up matrix, as two tensors or as one.
struct Weights {
  Weights(std::size_t size, bool is_one_tensor, DecoderPrecision precision, ThreadTeam& team)
      : values(random_values(2 * size * kHidden, 3)), half(values) {
    if (is_one_tensor) {
      EXPECT_TRUE(matrix.add({.matrix = source_of(values, 2 * size)}, precision, team));
      return;
    }
    other.assign(values.begin() + static_cast<std::ptrdiff_t>(size * kHidden), values.end());
    half.resize(size * kHidden);
    EXPECT_TRUE(matrix.add({.matrix = source_of(half, size)}, precision, team));
    EXPECT_TRUE(matrix.add({.matrix = source_of(other, size)}, precision, team));
  }

  std::vector<float> values, half, other;
  PanelMatrix matrix;
};

RowBuffer inputs(std::size_t row_count, const DecoderKernels& kernels) {
  RowBuffer x(row_count, kHidden, {true, true, true, true});
  const auto values = random_values(row_count * kHidden, 5);
  for (std::size_t row = 0; row < row_count; ++row) {
    x.put(kernels, {.row = row, .count = kHidden}, values.data() + row * kHidden);
  }
  return x;
}

bool has_equal_rows(const RowBuffer& a, const RowBuffer& b, std::size_t count) {
  const auto x = a.rows(0, count);
  const auto y = b.rows(0, count);
  const std::size_t size = a.size();
  const std::size_t blocks = count * ((size + kBlockInputs - 1) / kBlockInputs);
  const std::size_t transformed = count * ((size + kTransformedInputs - 1) / kTransformedInputs);
  const auto are_equal = [](const auto* left, const auto* right, std::size_t n) {
    if (left == nullptr || right == nullptr) return left == right;
    return std::memcmp(left, right, n * sizeof *left) == 0;
  };
  return are_equal(x.fp32, y.fp32, count * size) &&
         are_equal(x.bf16, y.bf16, count * ((size + 1) / 2 * 2)) &&
         are_equal(x.blocks, y.blocks, blocks) &&
         are_equal(x.transformed, y.transformed, transformed);
}

// Pieces, a last one that is short, columns that share a panel with the other half; of 300 rows two
// threads have 144 and 156, more than a piece takes: the same bits as the whole product, gated row
// by row, of a thread alone.
TEST(GatedProductTest, IsTheWholeProductGatedRowByRow) {
  const auto& kernels = best_decoder_kernels();
  ThreadTeam alone(1);
  ThreadTeam team(2);
  for (const std::size_t size : {40U, 64U, 72U, 203U, 320U}) {
    for (const bool is_one_tensor : {false, true}) {
      for (const auto precision : kPrecisions) {
        for (const std::size_t rows : {1U, 131U, 300U}) {
          SCOPED_TRACE(std::to_string(size) + (is_one_tensor ? " in one" : " in two"));
          const DecoderSpec spec{.intermediate_size = static_cast<std::uint32_t>(size),
                                 .activation = DecoderActivation::Silu,
                                 .is_gated = true};
          const Weights weights(size, is_one_tensor, precision, team);
          const Weights whole(size, is_one_tensor, precision, alone);
          const auto x = inputs(rows, kernels);

          std::vector<float> wide(rows * 2 * size);
          whole.matrix.multiply(kernels, alone, x, rows, {wide.data(), 2 * size, false});
          for (std::size_t row = 0; row < rows; ++row) {
            float* gate = wide.data() + row * 2 * size;
            kernels.gate(spec.activation, size, gate, gate + size);
          }
          for (const RowForms forms : {RowForms{true, true, true, true}, RowForms{.blocks = true},
                                       RowForms{.transformed = true}}) {
            RowBuffer expected(rows, size, forms);
            for (std::size_t row = 0; row < rows; ++row) {
              expected.put(kernels, {.row = row, .count = size}, wide.data() + row * 2 * size);
            }
            RowBuffer gated(rows, size, forms);
            GatedProduct(spec, team, rows).run(weights.matrix, x, rows, gated);
            EXPECT_TRUE(has_equal_rows(gated, expected, rows)) << forms.fp32 << forms.blocks;
          }
        }
      }
    }
  }
}

// Of 300 rows three threads have 96, 96 and 108, and the first two no second block of rows.
TEST(PanelMatrixTest, AProductOfManyThreadsIsThatOfOne) {
  const auto& kernels = best_decoder_kernels();
  ThreadTeam alone(1);
  ThreadTeam team(3);
  for (const auto precision : kPrecisions) {
    const std::size_t size = 203;
    const Weights whole(size, true, precision, alone);
    const Weights weights(size, true, precision, team);
    for (const std::size_t rows : {5U, 143U, 144U, 300U}) {
      const auto x = inputs(rows, kernels);
      std::vector<float> expected(rows * 2 * size), out(expected.size());
      whole.matrix.multiply(kernels, alone, x, rows, {expected.data(), 2 * size, false});
      weights.matrix.multiply(kernels, team, x, rows, {out.data(), 2 * size, false});
      EXPECT_EQ(std::memcmp(out.data(), expected.data(), out.size() * sizeof(float)), 0)
          << rows << " rows";
    }
  }
}

// Rows of 96 and 352 inputs end in half a block of int8, and the second one has two scales an
// output; what is left of 8 bits is within two hundredths of the product.
TEST(PanelMatrixTest, RowsInEightBitsNeedBeNoWholeBlocks) {
  const auto& kernels = best_decoder_kernels();
  ThreadTeam team(2);
  const std::size_t out = 37, rows = 17;
  for (const std::size_t in : {96U, 352U}) {
    const auto values = random_values(out * in, 3);
    const auto bias = random_values(out, 4);
    PanelMatrix matrix;
    ASSERT_TRUE(
        matrix.add({.matrix = source_of(values, out), .bias = bias}, DecoderPrecision::Int8, team));
    RowBuffer x(rows, in, {.fp32 = true, .transformed = true});
    const auto inputs_of_rows = random_values(rows * in, 5);
    for (std::size_t row = 0; row < rows; ++row) {
      x.put(kernels, {.row = row, .count = in}, inputs_of_rows.data() + row * in);
    }
    std::vector<float> y(rows * out);
    matrix.multiply(kernels, team, x, rows, {y.data(), out, false});
    double error = 0, whole = 0;
    for (std::size_t i = 0; i < y.size(); ++i) {
      double sum = bias[i % out];
      for (std::size_t k = 0; k < in; ++k) {
        sum += double{inputs_of_rows[i / out * in + k]} * values[i % out * in + k];
      }
      error += (y[i] - sum) * (y[i] - sum);
      whole += sum * sum;
    }
    EXPECT_LT(std::sqrt(error / whole), 0.02) << in << " inputs";
  }
}

TEST(GatedProductTest, WithoutAGateItIsTheActivationAlone) {
  const auto& kernels = best_decoder_kernels();
  ThreadTeam team(1);
  const std::size_t size = 100, rows = 3;
  const DecoderSpec spec{
      .intermediate_size = size, .activation = DecoderActivation::GeluTanh, .is_gated = false};
  const auto values = random_values(size * kHidden, 3);
  PanelMatrix up;
  ASSERT_TRUE(up.add({.matrix = source_of(values, size), .bias = random_values(size, 4)},
                     DecoderPrecision::Fp32, team));
  const auto x = inputs(rows, kernels);
  std::vector<float> wide(rows * size);
  up.multiply(kernels, team, x, rows, {wide.data(), size, false});
  RowBuffer gated(rows, size, {.fp32 = true});
  GatedProduct(spec, team, rows).run(up, x, rows, gated);
  for (std::size_t row = 0; row < rows; ++row) {
    kernels.gate(spec.activation, size, wide.data() + row * size, nullptr);
  }
  EXPECT_EQ(std::memcmp(gated.rows(0, rows).fp32, wide.data(), wide.size() * sizeof(float)), 0);
}

}  // namespace
}  // namespace muster::engine
