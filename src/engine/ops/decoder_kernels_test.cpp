#include "engine/ops/decoder_kernels.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace muster::engine {
namespace {

std::vector<float> random_row(std::size_t size, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> row(size);
  for (auto& value : row) value = normal(random);
  return row;
}

TEST(Float16Test, EveryValueComesBackAndRoundingIsToNearestEven) {
  for (std::uint32_t bits = 0; bits < 0x10000U; ++bits) {
    const Float16 half{static_cast<std::uint16_t>(bits)};
    const float value = to_float(half);
    if (!std::isfinite(value)) continue;
    ASSERT_EQ(to_float16(value).bits, half.bits) << bits;
  }
  EXPECT_EQ(to_float(Float16{0x3c00}), 1.0F);
  EXPECT_EQ(to_float(Float16{0x0001}), 0x1p-24F);
  EXPECT_EQ(to_float(Float16{0x7bff}), kFloat16Max);
  EXPECT_EQ(to_float16(1.0F + 0x1p-11F).bits, 0x3c00);  // a tie: to the even one below
  EXPECT_EQ(to_float16(1.0F + 0x3p-11F).bits, 0x3c02);  // a tie: to the even one above
  EXPECT_EQ(to_float16(1e6F).bits, 0x7bff);             // stays finite
  EXPECT_EQ(to_float16(-65520.0F).bits, 0xfbff);
  EXPECT_TRUE(std::isnan(to_float(to_float16(std::numeric_limits<float>::quiet_NaN()))));
}

TEST(DecoderKernelsTest, NormsAreTheirFormulas) {
  for (const auto& kernels : decoder_kernels_available()) {
    for (const std::size_t size : {5U, 64U, 83U}) {
      const auto x = random_row(size, 1);
      const auto weight = random_row(size, 2);
      const auto bias = random_row(size, 3);
      const LayerNormShape shape{weight.data(), bias.data(), size, 1e-5F};
      std::vector<float> rms(size), layer(size);
      kernels.rms_norm(shape, x.data(), rms.data());
      kernels.layer_norm(shape, x.data(), layer.data());
      double squares = 0, sum = 0, variance = 0;
      for (const double value : x) squares += value * value;
      for (const double value : x) sum += value;
      const double mean = sum / static_cast<double>(size);
      for (const double value : x) variance += (value - mean) * (value - mean);
      for (std::size_t i = 0; i < size; ++i) {
        const auto n = static_cast<double>(size);
        ASSERT_NEAR(rms[i], x[i] / std::sqrt(squares / n + 1e-5) * weight[i], 1e-5) << kernels.name;
        ASSERT_NEAR(layer[i], (x[i] - mean) / std::sqrt(variance / n + 1e-5) * weight[i] + bias[i],
                    1e-5)
            << kernels.name;
      }
    }
  }
}

// By hand: bfloat16 has 7 bits of a fraction, so 2^-8 is half a unit at 1. Of what is not a number
// the upper half stays, with the bit that makes it quiet: 0x7fffffff is all ones, as erased memory
// is, and a rounding would carry it into the sign; 0x7f800001 has nothing in its upper half.
TEST(DecoderKernelsTest, NarrowingRoundsToEvenAndKeepsWhatIsNoNumber) {
  const std::pair<std::uint32_t, std::uint16_t> cases[] = {
      {0x3f800000, 0x3f80}, {0x3f808000, 0x3f80}, {0x3f808001, 0x3f81}, {0x3f818000, 0x3f82},
      {0xbf808000, 0xbf80}, {0x7f7fffff, 0x7f80}, {0x7f800000, 0x7f80}, {0xff800000, 0xff80},
      {0x7fc00000, 0x7fc0}, {0x7fffffff, 0x7fff}, {0xffffffff, 0xffff}, {0x7f800001, 0x7fc0}};
  for (const auto& kernels : decoder_kernels_available()) {
    for (const auto& [bits, expected] : cases) {
      // Whole vectors and a part of one.
      const std::vector<float> x(37, std::bit_cast<float>(bits));
      std::vector<Bfloat16> narrow(x.size());
      kernels.narrow(x.size(), x.data(), narrow.data());
      for (const auto value : narrow) {
        ASSERT_EQ(value.bits, expected) << kernels.name << " " << std::hex << bits;
      }
    }
  }
}

/// The activations as their papers write them; the tanh approximation is Hendrycks and Gimpel's.
double activation_by_formula(DecoderActivation activation, double x) {
  switch (activation) {
    case DecoderActivation::Silu:
      return x / (1 + std::exp(-x));
    case DecoderActivation::Gelu:
      return x / 2 * (1 + std::erf(x / std::sqrt(2.0)));
    case DecoderActivation::GeluTanh:
      return x / 2 * (1 + std::tanh(std::sqrt(2 / std::acos(-1.0)) * (x + 0.044715 * x * x * x)));
    case DecoderActivation::Relu:
      return std::max(0.0, x);
  }
  return 0;
}

// With what they gate and without, as the families that are not gated have them.
TEST(DecoderKernelsTest, GatesAreTheirFormulasFromOneEndToTheOther) {
  const std::vector<float> x{-100, -20, -5, -2.5F, -1, -0.1F, 0, 0.1F, 1, 2.5F, 5, 20, 100};
  const std::vector<float> up(x.size(), 2.0F);
  for (const auto& kernels : decoder_kernels_available()) {
    for (const auto activation : {DecoderActivation::Silu, DecoderActivation::Gelu,
                                  DecoderActivation::GeluTanh, DecoderActivation::Relu}) {
      auto gated = x;
      kernels.gate(activation, x.size(), gated.data(), up.data());
      auto plain = x;
      kernels.gate(activation, x.size(), plain.data(), nullptr);
      for (std::size_t i = 0; i < x.size(); ++i) {
        const double expected = activation_by_formula(activation, x[i]);
        const double limit = 1e-5 * (1 + std::abs(x[i]));
        ASSERT_NEAR(plain[i], expected, limit)
            << kernels.name << " " << static_cast<int>(activation) << " " << x[i];
        ASSERT_NEAR(gated[i], 2 * expected, limit)
            << kernels.name << " " << static_cast<int>(activation) << " " << x[i];
      }
    }
  }
}

TEST(DecoderKernelsTest, QuantsAreWithinHalfAStep) {
  for (const auto& kernels : decoder_kernels_available()) {
    auto x = random_row(96, 4);
    std::fill(x.begin() + 32, x.begin() + 64, 0.0F);
    std::vector<ActivationBlock> blocks(3);
    kernels.quantize(96, x.data(), blocks.data());
    for (std::size_t b = 0; b < 3; ++b) {
      float largest = 0;
      std::int32_t sum = 0;
      for (std::size_t i = b * 32; i < b * 32 + 32; ++i) {
        largest = std::max(largest, std::abs(x[i]));
        const int quant = blocks[b].quants[i % 32];
        sum += quant;
        ASSERT_NEAR(blocks[b].scale * static_cast<float>(quant), x[i], blocks[b].scale * 0.501F)
            << kernels.name;
      }
      EXPECT_EQ(blocks[b].scale, largest / 127.0F);
      EXPECT_EQ(blocks[b].sum, sum);
      EXPECT_EQ(blocks[b].minus_128_sum, -128 * sum);
      EXPECT_EQ(blocks[b].scaled_sum, blocks[b].scale * static_cast<float>(sum));
    }
  }
}

// Some take several blocks at once. Every number of blocks; from three on one is zero, one too
// small for a scale, and the last has a scale that is denormal and a reciprocal.
TEST(DecoderKernelsTest, BlocksAreTheSameInEveryInstructionSet) {
  const auto all = decoder_kernels_available();
  for (std::size_t count = 1; count <= 9; ++count) {
    auto x = random_row(32 * count, static_cast<unsigned>(count));
    std::fill_n(x.begin() + static_cast<std::ptrdiff_t>(count / 2 * 32), 32, 0.0F);
    std::fill_n(x.begin() + static_cast<std::ptrdiff_t>(count / 3 * 32), 32, 1e-38F);
    std::fill_n(x.end() - 16, 16, 4e-37F);
    std::fill_n(x.end() - 32, 16, -1e-37F);
    std::vector<ActivationBlock> expected(count);
    all.front().quantize(x.size(), x.data(), expected.data());
    for (const auto& kernels : all) {
      std::vector<ActivationBlock> blocks(count + 1);
      std::memset(&blocks.back(), 7, sizeof(ActivationBlock));
      const ActivationBlock behind = blocks.back();
      kernels.quantize(x.size(), x.data(), blocks.data());
      EXPECT_EQ(std::memcmp(blocks.data(), expected.data(), count * sizeof(ActivationBlock)), 0)
          << kernels.name << ", " << count << " blocks";
      EXPECT_EQ(std::memcmp(&blocks.back(), &behind, sizeof behind), 0) << kernels.name;
    }
  }
}

// By the definition of the transform.
TEST(DecoderKernelsTest, TransformedQuantsAreWithinHalfAStep) {
  for (const auto& kernels : decoder_kernels_available()) {
    auto x = random_row(192, 4);
    std::fill(x.begin() + 64, x.begin() + 128, 0.0F);
    x[130] = 80;  // far larger than the others
    std::vector<TransformedBlock> blocks(3);
    kernels.quantize_transformed(x.size(), x.data(), blocks.data());
    for (std::size_t b = 0; b < 3; ++b) {
      double largest = 0;
      std::int32_t sum = 0;
      for (std::size_t k = 0; k < 64; ++k) {
        double value = 0;
        for (std::size_t j = 0; j < 64; ++j) {
          value += (std::popcount(j & k) % 2 == 0 ? 1 : -1) * double{x[b * 64 + j]} / 8;
        }
        largest = std::max(largest, std::abs(value));
        const int quant = blocks[b].quants[k];
        sum += quant;
        ASSERT_NEAR(double{blocks[b].scale} * quant, value, blocks[b].scale * 0.501)
            << kernels.name << " block " << b << " place " << k;
      }
      EXPECT_NEAR(blocks[b].scale, largest / 127, 1e-6 * largest) << kernels.name;
      EXPECT_EQ(blocks[b].minus_128_sum, -128 * sum) << kernels.name;
    }
  }
}

// As above of blocks of 32: every number of them, one zero, one too small for a scale, and one
// whose scale is denormal and has a reciprocal.
TEST(DecoderKernelsTest, TransformedBlocksAreTheSameInEveryInstructionSet) {
  const auto all = decoder_kernels_available();
  for (std::size_t count = 1; count <= 9; ++count) {
    auto x = random_row(64 * count, static_cast<unsigned>(count));
    std::fill_n(x.begin() + static_cast<std::ptrdiff_t>(count / 2 * 64), 64, 0.0F);
    std::fill_n(x.begin() + static_cast<std::ptrdiff_t>(count / 3 * 64), 64, 1e-40F);
    std::fill_n(x.end() - 64, 64, 0.0F);
    x[x.size() - 3] = 4e-37F;
    x[x.size() - 7] = -1e-37F;
    std::vector<TransformedBlock> expected(count);
    all.front().quantize_transformed(x.size(), x.data(), expected.data());
    for (const auto& kernels : all) {
      std::vector<TransformedBlock> blocks(count + 1);
      std::memset(&blocks.back(), 7, sizeof(TransformedBlock));
      const TransformedBlock behind = blocks.back();
      kernels.quantize_transformed(x.size(), x.data(), blocks.data());
      EXPECT_EQ(std::memcmp(blocks.data(), expected.data(), count * sizeof(TransformedBlock)), 0)
          << kernels.name << ", " << count << " blocks";
      EXPECT_EQ(std::memcmp(&blocks.back(), &behind, sizeof behind), 0) << kernels.name;
    }
  }
}

TEST(DecoderKernelsTest, ATransformedBlockWithAValueThatIsNotFiniteHasNoScale) {
  for (const auto& kernels : decoder_kernels_available()) {
    for (const float value :
         {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(),
          -std::numeric_limits<float>::infinity()}) {
      for (std::size_t bad = 0; bad < 7; ++bad) {
        for (const std::size_t place : {0U, 17U, 63U}) {
          auto x = random_row(7 * 64, 4);
          x[64 * bad + place] = value;
          std::vector<TransformedBlock> blocks(7, TransformedBlock{.minus_128_sum = 7});
          kernels.quantize_transformed(x.size(), x.data(), blocks.data());
          for (std::size_t b = 0; b < 7; ++b) {
            ASSERT_EQ(std::isnan(blocks[b].scale), b == bad) << kernels.name << ": " << value;
          }
          ASSERT_EQ(blocks[bad].minus_128_sum, 0) << kernels.name;
        }
      }
    }
  }
}

// Every number of blocks that are taken at once; one of zeros and one that is not finite.
TEST(DecoderKernelsTest, GatedTransformedBlocksAreThoseOfTwoSteps) {
  for (const auto& kernels : decoder_kernels_available()) {
    for (const auto activation : {DecoderActivation::Silu, DecoderActivation::GeluTanh,
                                  DecoderActivation::Gelu, DecoderActivation::Relu}) {
      for (std::size_t size = 64; size <= 448; size += 64) {
        auto gate = random_row(size, 1);
        auto up = random_row(size, 2);
        std::fill_n(up.begin(), 64, 0.0F);
        if (size > 64) gate[size - 1] = std::numeric_limits<float>::infinity();
        auto values = gate;
        kernels.gate(activation, size, values.data(), up.data());
        std::vector<TransformedBlock> expected(size / 64), blocks(size / 64);
        kernels.quantize_transformed(size, values.data(), expected.data());
        kernels.gate_transformed(activation, size, gate.data(), up.data(), blocks.data());
        EXPECT_EQ(std::memcmp(blocks.data(), expected.data(), size / 64 * sizeof blocks[0]), 0)
            << kernels.name << " " << static_cast<int>(activation) << " " << size;
      }
    }
  }
}

// Four blocks at a time, two that are left, two alone; with a block of zeros and one that is not
// finite.
TEST(DecoderKernelsTest, GatedBlocksAreThoseOfTwoSteps) {
  for (const auto& kernels : decoder_kernels_available()) {
    for (const auto activation : {DecoderActivation::Silu, DecoderActivation::GeluTanh,
                                  DecoderActivation::Gelu, DecoderActivation::Relu}) {
      for (const std::size_t size : {64U, 128U, 192U, 320U}) {
        auto gate = random_row(size, 1);
        auto up = random_row(size, 2);
        std::fill_n(up.begin() + 32, 32, 0.0F);
        if (size > 64) gate[size - 1] = std::numeric_limits<float>::infinity();
        auto values = gate;
        kernels.gate(activation, size, values.data(), up.data());
        std::vector<ActivationBlock> expected(size / 32), blocks(size / 32);
        kernels.quantize(size, values.data(), expected.data());
        kernels.gate_blocks(activation, size, gate.data(), up.data(), blocks.data());
        EXPECT_EQ(std::memcmp(blocks.data(), expected.data(), size / 32 * sizeof blocks[0]), 0)
            << kernels.name << " " << static_cast<int>(activation) << " " << size;
      }
    }
  }
}

// 1e-38 / 127 is 7.9e-41, and its reciprocal is beyond float32.
TEST(DecoderKernelsTest, ABlockTooSmallForAScaleIsNothing) {
  for (const auto& kernels : decoder_kernels_available()) {
    std::vector<float> x(32, 0.0F);
    x[3] = 1e-38F;
    ActivationBlock block{.quants = {1}, .scaled_sum = 1, .sum = 1, .minus_128_sum = 1};
    kernels.quantize(32, x.data(), &block);
    for (const int quant : block.quants) EXPECT_EQ(quant, 0) << kernels.name;
    EXPECT_EQ(block.sum, 0) << kernels.name;
    EXPECT_EQ(block.minus_128_sum, 0) << kernels.name;
    EXPECT_EQ(block.scaled_sum, 0.0F) << kernels.name;
  }
}

// Of no vector of a block is it lost; a quant could not hold it, so the scale does.
TEST(DecoderKernelsTest, ABlockWithAValueThatIsNotFiniteHasNoScale) {
  for (const auto& kernels : decoder_kernels_available()) {
    for (const float value :
         {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(),
          -std::numeric_limits<float>::infinity()}) {
      for (std::size_t bad = 0; bad < 7; ++bad) {
        for (const std::size_t place : {0U, 8U, 16U, 31U}) {
          auto x = random_row(7 * 32, 4);
          x[32 * bad + place] = value;
          std::vector<ActivationBlock> blocks(7, ActivationBlock{.sum = 7, .minus_128_sum = 7});
          kernels.quantize(x.size(), x.data(), blocks.data());
          for (std::size_t b = 0; b < 7; ++b) {
            ASSERT_EQ(std::isnan(blocks[b].scale), b == bad) << kernels.name << ": " << value;
            ASSERT_EQ(std::isnan(blocks[b].scaled_sum), b == bad) << kernels.name << ": " << value;
          }
          ASSERT_EQ(blocks[bad].sum, 0) << kernels.name;
          ASSERT_EQ(blocks[bad].minus_128_sum, 0) << kernels.name;
        }
      }
    }
  }
}

TEST(DecoderKernelsTest, TheLargestIsTheFirstOfSeveral) {
  for (const auto& kernels : decoder_kernels_available()) {
    std::vector<float> values(75, -3.0F);
    values[41] = values[74] = 2.0F;
    EXPECT_EQ(kernels.largest(values.size(), values.data()), 41U) << kernels.name;
    values[74] = 2.5F;
    EXPECT_EQ(kernels.largest(values.size(), values.data()), 74U) << kernels.name;
    // Of several blocks, whole ones and a last one that is not.
    std::vector<float> many(5001, -3.0F);
    for (const std::size_t at : {5000U, 4095U, 3000U, 1024U, 1023U, 0U}) {
      many[at] = 2.0F;
      EXPECT_EQ(kernels.largest(many.size(), many.data()), at) << kernels.name;
    }
    many[4999] = -std::numeric_limits<float>::infinity();
    EXPECT_EQ(kernels.largest(many.size(), many.data()), 4999U) << kernels.name;
    many[2000] = std::numeric_limits<float>::quiet_NaN();
    EXPECT_EQ(kernels.largest(many.size(), many.data()), 2000U) << kernels.name;
  }
}

TEST(DecoderKernelsTest, WeightsAreExponentialsOfWhatIsBelowTheLargest) {
  for (const auto& kernels : decoder_kernels_available()) {
    std::vector<float> x;
    for (int i = 0; i < 75; ++i) x.push_back(5.0F - static_cast<float>(i));
    auto weights = x;
    const float sum = kernels.weigh(x.size(), 5.0F, 1.5F, weights.data());
    double expected_sum = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double expected = 1.5 * double(i) > 87 ? 0 : std::exp(-1.5 * double(i));
      expected_sum += expected;
      EXPECT_NEAR(weights[i], expected, 3e-7 * expected) << kernels.name << " " << i;
    }
    EXPECT_NEAR(sum, expected_sum, 1e-6) << kernels.name;
  }
}

/// A head of keys and values in blocks that do not follow each other.
template <typename T>
struct TestHead {
  static constexpr std::size_t kLength = 104, kSize = 20;
  std::vector<T> pool = std::vector<T>(8 * 2 * kSize * kKvBlockTokens + 16);
  std::vector<std::uint32_t> blocks{3, 0, 4, 6, 1, 7, 2};
  std::vector<float> keys = random_row(kLength * kSize, 5);
  std::vector<float> values = random_row(kLength * kSize, 6);

  explicit TestHead(T (*narrow)(float)) {
    for (std::size_t p = 0; p < kLength; ++p) {
      auto* block = pool.data() + blocks[p / kKvBlockTokens] * 2 * kSize * kKvBlockTokens;
      for (std::size_t c = 0; c < kSize; ++c) {
        block[c * kKvBlockTokens + p % kKvBlockTokens] = narrow(keys[p * kSize + c]);
        block[(kSize + p % 16) * kKvBlockTokens] = T{};
      }
    }
    for (std::size_t p = 0; p < kLength; ++p) {
      auto* block = pool.data() + blocks[p / kKvBlockTokens] * 2 * kSize * kKvBlockTokens;
      for (std::size_t c = 0; c < kSize; ++c) {
        block[kSize * kKvBlockTokens + p % kKvBlockTokens * kSize + c] =
            narrow(values[p * kSize + c]);
      }
    }
  }

  PagedHead<T> head() const { return {pool.data(), blocks, 2 * kSize * kKvBlockTokens, 0, kSize}; }
};

float same(float value) { return value; }
/// As `halve_head` with AMX's tiles.
Float16 to_short_float16(float value) { return to_float16(to_float(to_bfloat16(value))); }

std::vector<double> attention_by_formula(const TestHead<float>& head, const AttentionRow& row,
                                         double cap) {
  constexpr auto kSize = TestHead<float>::kSize;
  std::vector<double> out(kSize);
  double total = 0;
  for (std::size_t p = row.begin; p < row.end; ++p) {
    double score = 0;
    for (std::size_t c = 0; c < kSize; ++c)
      score += double{row.query[c]} * head.keys[p * kSize + c];
    if (cap > 0) score = cap * std::tanh(score / cap);
    total += std::exp(score);
    for (std::size_t c = 0; c < kSize; ++c) out[c] += std::exp(score) * head.values[p * kSize + c];
  }
  for (auto& value : out) value /= total;
  return out;
}

TEST(DecoderKernelsTest, AttentionIsItsFormulaAndARowIsTheSameInAnyCompany) {
  const TestHead<float> head(same);
  const auto queries = random_row(9 * TestHead<float>::kSize, 7);
  for (const auto& kernels : decoder_kernels_available()) {
    // Tiles round queries, keys, values and weights to 8 bits.
    const bool is_short = kernels.name.ends_with("+amx");
    const TestHead<Float16> narrow(is_short ? to_short_float16 : to_float16);
    const double near = is_short ? 4e-2 : 5e-3;
    for (const float cap : {0.0F, 2.0F}) {
      std::vector<float> out(queries.size()), alone(queries.size()), half(queries.size());
      std::vector<float> scratch(kernels.attention_rows * 112);
      std::vector<AttentionRow> rows;
      for (std::uint32_t i = 0; i < 9; ++i) {
        rows.push_back({.query = queries.data() + i * TestHead<float>::kSize,
                        .out = out.data() + i * TestHead<float>::kSize,
                        .begin = i % 3 == 0 ? i : 0,
                        .end = 12 + 11 * i});
      }
      kernels.attend_fp32(head.head(), rows, {cap}, scratch.data());
      for (std::size_t i = 0; i < rows.size(); ++i) {
        const auto expected = attention_by_formula(head, rows[i], cap);
        for (std::size_t c = 0; c < expected.size(); ++c) {
          ASSERT_NEAR(rows[i].out[c], expected[c], 1e-5) << kernels.name << " row " << i;
        }
        rows[i].out = alone.data() + i * expected.size();
        kernels.attend_fp32(head.head(), std::span(rows).subspan(i, 1), {cap}, scratch.data());
        rows[i].out = half.data() + i * expected.size();
        kernels.attend_fp16(narrow.head(), std::span(rows).subspan(i, 1), {cap}, scratch.data());
      }
      EXPECT_EQ(out, alone) << kernels.name;
      for (std::size_t i = 0; i < half.size(); ++i) ASSERT_NEAR(half[i], out[i], near);
    }
  }
}

/// What two rows of one strip get: one sees all positions, the other all but `place` and, where
/// that is not the first, those behind it.
struct TwoRows {
  std::vector<float> sees, does_not;
};

template <typename T, typename Attend>
TwoRows attend_two(const TestHead<T>& head, std::uint32_t place, std::size_t attention_rows,
                   Attend attend) {
  constexpr std::size_t kSize = TestHead<T>::kSize;
  const auto query = random_row(kSize, 7);
  std::vector<float> scratch(attention_rows * 112);
  TwoRows out{std::vector<float>(kSize), std::vector<float>(kSize)};
  constexpr std::uint32_t kLength = TestHead<T>::kLength;
  const AttentionRow rows[] = {
      {.query = query.data(), .out = out.sees.data(), .begin = 0, .end = kLength},
      {.query = query.data(),
       .out = out.does_not.data(),
       .begin = place == 0 ? 1U : 0U,
       .end = place == 0 ? kLength : place}};
  attend(head.head(), std::span<const AttentionRow>(rows), scratch.data());
  return out;
}

// attend(head, rows, scratch) where a key of one position holds what is not a number: a row that
// sees the position is none; another is, in the same strip, what it is without.
template <typename T, typename Attend>
void expect_lost_by_key(const TestHead<T>& whole, T none, std::size_t attention_rows,
                        Attend attend) {
  constexpr std::size_t kSize = TestHead<T>::kSize;
  for (const std::uint32_t place : {0U, 20U, 103U}) {
    auto broken = whole;
    broken.pool[(broken.blocks[place / kKvBlockTokens] * 2 * kSize + 3) * kKvBlockTokens +
                place % kKvBlockTokens] = none;
    const auto [sees, does_not] = attend_two(broken, place, attention_rows, attend);
    EXPECT_EQ(does_not, attend_two(whole, place, attention_rows, attend).does_not)
        << "a key at " << place;
    for (const float value : sees) EXPECT_TRUE(std::isnan(value)) << "a key at " << place;
  }
}

// The same of a value, which is one column's.
template <typename T, typename Attend>
void expect_lost_by_value(const TestHead<T>& whole, T none, std::size_t attention_rows,
                          Attend attend) {
  constexpr std::size_t kSize = TestHead<T>::kSize;
  constexpr std::size_t kColumn = 3;
  for (const std::uint32_t place : {0U, 20U, 103U}) {
    auto broken = whole;
    const std::size_t block = broken.blocks[place / kKvBlockTokens];
    const std::size_t values = (2 * block + 1) * kSize * kKvBlockTokens;
    broken.pool[values + place % kKvBlockTokens * kSize + kColumn] = none;
    const auto [sees, does_not] = attend_two(broken, place, attention_rows, attend);
    EXPECT_EQ(does_not, attend_two(whole, place, attention_rows, attend).does_not)
        << "a value at " << place;
    EXPECT_TRUE(std::isnan(sees[kColumn])) << "a value at " << place;
  }
}

TEST(DecoderKernelsTest, AKeyOrAValueThatIsNoNumberIsNotLostAndSpoilsNoRowThatDoesNotSeeIt) {
  const TestHead<float> wide(same);
  const TestHead<Float16> narrow(to_float16);
  const float none = std::numeric_limits<float>::quiet_NaN();
  for (const auto& kernels : decoder_kernels_available()) {
    SCOPED_TRACE(std::string(kernels.name));
    for (const float cap : {0.0F, 2.0F}) {
      const auto attend_wide = [&](const auto& head, auto rows, float* scratch) {
        kernels.attend_fp32(head, rows, {cap}, scratch);
      };
      const auto attend_narrow = [&](const auto& head, auto rows, float* scratch) {
        kernels.attend_fp16(head, rows, {cap}, scratch);
      };
      expect_lost_by_key(wide, none, kernels.attention_rows, attend_wide);
      expect_lost_by_key(narrow, to_float16(none), kernels.attention_rows, attend_narrow);
      expect_lost_by_value(wide, none, kernels.attention_rows, attend_wide);
      expect_lost_by_value(narrow, to_float16(none), kernels.attention_rows, attend_narrow);
    }
  }
}

TEST(DecoderKernelsTest, RotationTurnsPairsOfHalvesAndLeavesTheRest) {
  for (const auto& kernels : decoder_kernels_available()) {
    std::vector<float> row{1, 2, 3, 4, 5, 6, 7, 8, 9, 10};  // two heads of 5, two pairs each
    const std::vector<float> cosines{0, 0.5F}, sines{1, 0.25F};
    kernels.rotate({2, 5, 2, cosines.data(), sines.data()}, row.data());
    EXPECT_EQ(row, (std::vector<float>{-3, 2 * 0.5F - 4 * 0.25F, 1, 4 * 0.5F + 2 * 0.25F, 5, -8,
                                       7 * 0.5F - 9 * 0.25F, 6, 9 * 0.5F + 7 * 0.25F, 10}))
        << kernels.name;
  }
}

}  // namespace
}  // namespace muster::engine
