// The bf16 products of every instruction set that this CPU has, against sums in double, and AMX's
// against its own order of additions.

#include "engine/ops/bf16_product.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "engine/ops/activation_fixture.h"
#include "engine/ops/amx_tiles.h"

namespace muster::engine {
namespace {

struct Tested {
  std::string name;
  bool (*is_there)();
  Bf16Product multiply;
};

class Bf16ProductTest : public testing::TestWithParam<Tested> {
 protected:
  void SetUp() override {
    if (!GetParam().is_there()) GTEST_SKIP() << "this CPU has no " << GetParam().name;
  }
};

class AmxBf16ProductTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!has_amx_tiles()) GTEST_SKIP() << "this process may not use AMX's tiles";
  }
};

std::vector<float> random_values(std::size_t count, unsigned seed) {
  std::mt19937 generator(seed);
  std::uniform_real_distribution<float> distribution(-2, 2);
  std::vector<float> values(count);
  for (auto& value : values) value = distribution(generator);
  return values;
}

std::vector<Bfloat16> rounded(const std::vector<float>& values) {
  std::vector<Bfloat16> narrow;
  for (const float value : values) narrow.push_back(to_bfloat16(value));
  return narrow;
}

// A weight [out, in] with its bias, packed.
struct Packed {
  std::vector<float> weight, bias;
  std::vector<Bfloat16> panels;
  PackedMatrix matrix;

  Packed(std::size_t out_size, std::size_t in_size, std::vector<float> values)
      : weight(std::move(values)),
        bias(random_values(padded_outputs(out_size), 3)),
        panels(panels_size(out_size, in_size)) {
    pack_panels(weight.data(), out_size, in_size, panels.data());
    matrix = {panels.data(), bias.data(), in_size, out_size};
  }

  std::vector<Bfloat16> times(Bf16Product multiply, const std::vector<Bfloat16>& x,
                              std::optional<Activation> activation = std::nullopt) const {
    const auto row_count = x.size() / matrix.in_size;
    std::vector<Bfloat16> out(row_count * matrix.out_size);
    multiply(matrix, row_count, x.data(), activation, out.data());
    return out;
  }
};

TEST(PackPanels, PairsOfInputsStandSideBySideAndWhatIsMissingIsZero) {
  // Two outputs of three inputs: 1 2 3 and 4 5 6.
  const std::vector<float> weight{1, 2, 3, 4, 5, 6};
  std::vector<Bfloat16> panels(panels_size(2, 3), Bfloat16{0xffff});
  ASSERT_EQ(panels.size(), 64U * 4);
  pack_panels(weight.data(), 2, 3, panels.data());
  const auto pair = [&](std::size_t step, std::size_t column) {
    const auto* at = &panels[(step * 64 + column) * 2];
    return std::vector<float>{to_float(at[0]), to_float(at[1])};
  };
  EXPECT_EQ(pair(0, 0), (std::vector<float>{1, 2}));
  EXPECT_EQ(pair(0, 1), (std::vector<float>{4, 5}));
  EXPECT_EQ(pair(0, 2), (std::vector<float>{0, 0}));
  EXPECT_EQ(pair(1, 0), (std::vector<float>{3, 0}));
  EXPECT_EQ(pair(1, 1), (std::vector<float>{6, 0}));
  EXPECT_EQ(pair(1, 63), (std::vector<float>{0, 0}));
}

TEST_P(Bf16ProductTest, IsTheFormulaForAnyShape) {
  for (const std::size_t in_size : {1U, 2U, 21U, 64U, 385U}) {
    for (const std::size_t out_size : {1U, 16U, 63U, 64U, 65U, 200U}) {
      const Packed packed(out_size, in_size, random_values(out_size * in_size, 1));
      const auto weight = rounded(packed.weight);
      for (const std::size_t row_count : {1U, 5U, 6U, 7U, 18U}) {
        SCOPED_TRACE(testing::Message() << row_count << " x " << in_size << " x " << out_size);
        const auto x = rounded(random_values(row_count * in_size, 2));
        const auto out = packed.times(GetParam().multiply, x);
        for (std::size_t i = 0; i < out.size(); ++i) {
          const auto row = i / out_size;
          const auto column = i % out_size;
          double expected = packed.bias[column];
          for (std::size_t k = 0; k < in_size; ++k) {
            expected += static_cast<double>(to_float(x[row * in_size + k])) *
                        to_float(weight[column * in_size + k]);
          }
          // Half a unit of bf16, and float32 sums of up to 385 terms of 4.
          ASSERT_NEAR(to_float(out[i]), expected, std::abs(expected) / 256 + 2e-4) << i;
        }
      }
    }
  }
}

TEST_P(Bf16ProductTest, AnyNumberOfRowsGivesARowTheSameBits) {
  constexpr std::size_t kRows = 40;
  constexpr std::size_t kIn = 129;
  constexpr std::size_t kOut = 100;
  const Packed packed(kOut, kIn, random_values(kOut * kIn, 5));
  const auto x = rounded(random_values(kRows * kIn, 6));
  const auto all = packed.times(GetParam().multiply, x, Activation::Gelu);
  for (std::size_t begin = 0; begin < kRows; ++begin) {
    for (std::size_t count = 1; begin + count <= kRows; ++count) {
      const auto at = [](std::size_t row, std::size_t size) {
        return static_cast<std::ptrdiff_t>(row * size);
      };
      const auto part = packed.times(
          GetParam().multiply, {x.begin() + at(begin, kIn), x.begin() + at(begin + count, kIn)},
          Activation::Gelu);
      for (std::size_t i = 0; i < part.size(); ++i) {
        ASSERT_EQ(part[i].bits, all[begin * kOut + i].bits) << count << " rows from " << begin;
      }
    }
  }
}

TEST_P(Bf16ProductTest, PanelsApartGiveAnOutputTheSameBits) {
  constexpr std::size_t kRows = 19;
  constexpr std::size_t kIn = 129;
  constexpr std::size_t kOut = 200;
  const Packed packed(kOut, kIn, random_values(kOut * kIn, 5));
  const auto x = rounded(random_values(kRows * kIn, 6));
  const auto all = packed.times(GetParam().multiply, x, Activation::Gelu);
  const auto panel_count = packed.matrix.panel_count();
  ASSERT_EQ(panel_count, 4U);
  for (std::size_t begin = 0; begin < panel_count; ++begin) {
    for (std::size_t end = begin + 1; end <= panel_count; ++end) {
      const std::size_t first = begin * PackedMatrix::kColumns;
      const std::size_t behind = std::min(end * PackedMatrix::kColumns, kOut);
      std::vector<Bfloat16> part(kRows * kOut, Bfloat16{77});
      GetParam().multiply(packed.matrix.panel_range(begin, end), kRows, x.data(), Activation::Gelu,
                          part.data() + first);
      for (std::size_t i = 0; i < part.size(); ++i) {
        const auto column = i % kOut;
        const bool is_of_part = column >= first && column < behind;
        ASSERT_EQ(part[i].bits, is_of_part ? all[i].bits : 77)
            << "panels " << begin << " to " << end;
      }
    }
  }
}

TEST_P(Bf16ProductTest, ActivationsAreTheirFormulas) {
  // One input times one, no bias: the sum is the value itself.
  Packed packed(1, 1, {1.0F});
  packed.bias.assign(packed.bias.size(), 0);
  std::vector<Bfloat16> x;
  for (float value = -12; value <= 12; value += 0.01F) x.push_back(to_bfloat16(value));
  for (const float value : {-1e30F, -1e4F, -0.0F, 1e-30F, 1e4F, 1e30F}) {
    x.push_back(to_bfloat16(value));
  }
  for (const auto activation : {Activation::Gelu, Activation::GeluTanh, Activation::Relu}) {
    SCOPED_TRACE(static_cast<int>(activation));
    const auto out = packed.times(GetParam().multiply, x, activation);
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double expected = formula(activation, to_float(x[i]));
      // Half a unit of bf16; 4e-7 of erf times x / 2.
      ASSERT_NEAR(to_float(out[i]), expected, std::abs(expected) / 256 + 2e-6) << to_float(x[i]);
    }
  }
}

TEST_P(Bf16ProductTest, WhatIsNoNumberStaysNone) {
  Packed packed(1, 1, {1.0F});
  const std::vector<Bfloat16> x{to_bfloat16(std::numeric_limits<float>::quiet_NaN())};
  const auto is_none = [&](std::optional<Activation> activation) {
    return std::isnan(to_float(packed.times(GetParam().multiply, x, activation)[0]));
  };
  EXPECT_TRUE(is_none(std::nullopt));
  EXPECT_TRUE(is_none(Activation::Gelu));
  EXPECT_TRUE(is_none(Activation::GeluTanh));
  EXPECT_TRUE(is_none(Activation::Relu));
}

TEST_P(Bf16ProductTest, WhatIsNoNumberStaysInItsRow) {
  constexpr std::size_t kRows = 35;
  constexpr std::size_t kIn = 33;
  constexpr std::size_t kOut = 65;
  const Packed packed(kOut, kIn, random_values(kOut * kIn, 5));
  const auto sound = rounded(random_values(kRows * kIn, 6));
  const auto expected = packed.times(GetParam().multiply, sound);
  for (const std::size_t row : {0U, 15U, 16U, 34U}) {
    for (const float none :
         {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
      for (const std::size_t input : {0U, 31U, 32U}) {
        auto x = sound;
        x[row * kIn + input] = to_bfloat16(none);
        const auto out = packed.times(GetParam().multiply, x);
        for (std::size_t i = 0; i < out.size(); ++i) {
          if (i / kOut == row) {
            ASSERT_FALSE(std::isfinite(to_float(out[i]))) << row << ", " << input;
          } else {
            ASSERT_EQ(out[i].bits, expected[i].bits) << row << ", " << input;
          }
        }
      }
    }
  }
}

TEST_P(Bf16ProductTest, NoRowsAreNoWork) {
  const Packed packed(3, 5, random_values(15, 1));
  EXPECT_TRUE(packed.times(GetParam().multiply, {}).empty());
}

// A sum in AMX's order, denormal numbers being zero: for each 32 inputs the even and the odd ones
// by themselves, from zero and fused, then both added, then their sum to what was there.
float flushed(float value) {
  return std::abs(value) < std::numeric_limits<float>::min() ? std::copysign(0.0F, value) : value;
}

float amx_sum(const Bfloat16* x, const Bfloat16* weight, std::size_t in_size) {
  float sum = 0;
  for (std::size_t begin = 0; begin < in_size; begin += 32) {
    float halves[2] = {0, 0};
    for (std::size_t k = begin; k < std::min(begin + 32, in_size); ++k) {
      halves[k % 2] =
          flushed(std::fma(flushed(to_float(x[k])), flushed(to_float(weight[k])), halves[k % 2]));
    }
    sum = flushed(sum + flushed(halves[0] + halves[1]));
  }
  return sum;
}

// Rounding to bf16 hides most of a sum; where the bias takes a row's sum away, all of it shows.
void expect_amx_sums(Packed packed, const std::vector<Bfloat16>& x) {
  const auto in_size = packed.matrix.in_size;
  const auto out_size = packed.matrix.out_size;
  const auto weight = rounded(packed.weight);
  std::vector<float> sums;
  for (std::size_t i = 0; i < x.size() / in_size * out_size; ++i) {
    sums.push_back(amx_sum(&x[i / out_size * in_size], &weight[i % out_size * in_size], in_size));
  }
  for (std::size_t row = 0; row < sums.size() / out_size; row += 7) {
    for (std::size_t column = 0; column < out_size; ++column) {
      packed.bias[column] = -sums[row * out_size + column];
    }
    packed.matrix.bias = packed.bias.data();
    const auto out = packed.times(multiply_amx_bf16, x);
    for (std::size_t i = 0; i < out.size(); ++i) {
      const float expected = i / out_size == row ? 0.0F : sums[i] + packed.bias[i % out_size];
      ASSERT_EQ(out[i].bits, to_bfloat16(expected).bits) << row << ", " << i;
    }
  }
}

TEST_F(AmxBf16ProductTest, SumsAreInItsOrderForAnyShape) {
  for (const std::size_t in_size : {1U, 31U, 32U, 33U, 64U, 100U}) {
    for (const std::size_t out_size : {1U, 32U, 33U, 63U, 64U, 65U}) {
      const Packed packed(out_size, in_size, random_values(out_size * in_size, 1));
      for (const std::size_t row_count : {1U, 15U, 16U, 17U, 31U, 32U, 33U, 49U}) {
        SCOPED_TRACE(testing::Message() << row_count << " x " << in_size << " x " << out_size);
        expect_amx_sums(packed, rounded(random_values(row_count * in_size, 2)));
      }
    }
  }
}

// Rows are copied 256 KiB at a time: of 5,000 inputs two tiles of 13 rows, of 20,000 one of 5.
TEST_F(AmxBf16ProductTest, RowsThatAreCopiedInPartsAreTheSame) {
  for (const auto& [row_count, in_size] :
       {std::pair<std::size_t, std::size_t>{37, 5000}, {13, 20'000}, {2, std::size_t{1} << 17U}}) {
    SCOPED_TRACE(in_size);
    const Packed packed(3, in_size, random_values(3 * in_size, 1));
    expect_amx_sums(packed, rounded(random_values(row_count * in_size, 2)));
  }
}

TEST_F(AmxBf16ProductTest, DenormalNumbersAreZero) {
  const float least = std::numeric_limits<float>::min();
  const std::vector<float> values{least / 2, -least / 4, least, 0x1p-70F, 0.0F};
  Packed packed(2, values.size(), {1, 1, 1, 0x1p-60F, 1, 0x1p+20F, 1, 0.5F, 0, 1});
  std::fill(packed.bias.begin(), packed.bias.end(), 0.0F);
  const auto out = packed.times(multiply_amx_bf16, rounded(values));
  EXPECT_EQ(to_float(out[0]), least);
  EXPECT_EQ(to_float(out[1]), 0.0F);
}

INSTANTIATE_TEST_SUITE_P(InstructionSets, Bf16ProductTest,
                         testing::Values(Tested{"avx512_bf16", has_avx512_bf16,
                                                multiply_avx512_bf16},
                                         Tested{"amx_bf16", has_amx_tiles, multiply_amx_bf16}),
                         [](const auto& tested) { return tested.param.name; });

}  // namespace
}  // namespace muster::engine
