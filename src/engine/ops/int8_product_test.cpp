// The 8-bit products of every instruction set that this CPU has, against sums of whole numbers.

#include "engine/ops/int8_product.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "engine/ops/activation_fixture.h"

namespace muster::engine {
namespace {

constexpr float kNone = std::numeric_limits<float>::quiet_NaN();

std::vector<float> random_values(std::size_t count, unsigned seed) {
  std::mt19937 generator(seed);
  std::uniform_real_distribution<float> distribution(-2, 2);
  std::vector<float> values(count);
  for (auto& value : values) value = distribution(generator);
  return values;
}

// Values and their quants by the definition: the largest becomes 127, halves go to even.
struct Quantised {
  std::vector<int> quants;
  float scale = 0;

  explicit Quantised(const std::vector<float>& values) {
    float largest = 0;
    for (const float value : values) largest = std::max(largest, std::abs(value));
    scale = largest / 127.0F;
    const float inverse = 127.0F / largest;
    for (const float value : values) {
      quants.push_back(static_cast<int>(std::nearbyint(value * inverse)));
    }
  }
};

std::vector<float> part_of(const std::vector<float>& values, std::size_t begin, std::size_t count) {
  const auto first = values.begin() + static_cast<std::ptrdiff_t>(begin);
  return {first, first + static_cast<std::ptrdiff_t>(count)};
}

// A weight [out, in] with its bias, packed.
struct Packed {
  std::vector<float> weight, bias, scales;
  std::vector<std::int8_t> panels;
  std::vector<std::int32_t> sums;
  Int8Matrix matrix;

  Packed(std::size_t out_size, std::size_t in_size, std::vector<float> values)
      : weight(std::move(values)),
        bias(random_values(Int8Matrix::padded_outputs(out_size), 3)),
        scales(bias.size(), kNone),
        panels(bias.size() * Int8Matrix::padded_inputs(in_size), std::int8_t{-1}),
        sums(bias.size(), -1) {
    pack_int8_panels(weight.data(), out_size, in_size, {panels.data(), scales.data(), sums.data()});
    matrix = {panels.data(), scales.data(), sums.data(), bias.data(), in_size, out_size};
  }
};

// Rows in the form of one table.
struct Rows {
  std::vector<std::uint8_t> quants;
  std::vector<float> scales;

  Rows(const Int8Kernels& kernels, std::size_t in_size, const std::vector<float>& x)
      : quants(x.size() / in_size * Int8Matrix::padded_inputs(in_size), 99),
        scales(x.size() / in_size, kNone) {
    kernels.quantize(scales.size(), in_size, x.data(), quants.data(), scales.data());
  }

  Int8Rows view() const { return {scales.size(), quants.data(), scales.data()}; }

  // Of a row that stands alone.
  std::vector<int> signed_quants(const Int8Kernels& kernels) const {
    std::vector<int> result;
    for (const auto byte : quants) {
      const auto quant = static_cast<std::uint8_t>(byte - kernels.row_offset);
      result.push_back(static_cast<std::int8_t>(quant));
    }
    return result;
  }
};

TEST(PackInt8Panels, FoursOfInputsStandSideBySideAndWhatIsMissingIsZero) {
  // Two outputs of five inputs. The largest of the first one is 127, so that its scale is 1.
  const Packed packed(2, 5, {127, 0.5F, 1.5F, -2.5F, -1, 0, 0, 0, 0, 0});
  ASSERT_EQ(packed.panels.size(), 32U * 8);
  const auto four = [&](std::size_t group, std::size_t column) {
    const auto* at = &packed.panels[(group * 32 + column) * 4];
    return std::vector<int>{at[0], at[1], at[2], at[3]};
  };
  EXPECT_EQ(four(0, 0), (std::vector<int>{127, 0, 2, -2}));
  EXPECT_EQ(four(1, 0), (std::vector<int>{-1, 0, 0, 0}));
  for (const std::size_t column : {1U, 2U, 31U}) {
    EXPECT_EQ(four(0, column), (std::vector<int>{0, 0, 0, 0}));
    EXPECT_EQ(four(1, column), (std::vector<int>{0, 0, 0, 0}));
    EXPECT_EQ(packed.scales[column], 0.0F);
    EXPECT_EQ(packed.sums[column], 0);
  }
  EXPECT_EQ(packed.scales[0], 1.0F);
  EXPECT_EQ(packed.sums[0], 127 + 2 - 2 - 1);
}

TEST(Int8Scale, TheLargestBecomes127) {
  EXPECT_EQ(int8_scale(254.0F).scale, 2.0F);
  EXPECT_EQ(int8_scale(254.0F).inverse, 0.5F);
  EXPECT_EQ(int8_scale(0.0F).scale, 0.0F);
  EXPECT_EQ(int8_scale(0.0F).inverse, 0.0F);
  EXPECT_EQ(int8_scale(1e-38F).inverse, 0.0F);  // 127 times more is beyond float32
  EXPECT_TRUE(std::isfinite(int8_scale(1e-30F).inverse));
  for (const float none : {kNone, std::numeric_limits<float>::infinity()}) {
    EXPECT_TRUE(std::isnan(int8_scale(none).scale));
    EXPECT_EQ(int8_scale(none).inverse, 0.0F);
  }
}

class Int8ProductTest : public testing::TestWithParam<const Int8Kernels*> {
 protected:
  static std::vector<float> product(const Packed& packed, const std::vector<float>& x,
                                    std::optional<Activation> activation = std::nullopt) {
    const auto& matrix = packed.matrix;
    const Rows rows(*GetParam(), matrix.in_size, x);
    std::vector<float> out(rows.scales.size() * matrix.out_size, kNone);
    GetParam()->multiply(matrix, 0, Int8Matrix::panel_count(matrix.out_size), rows.view(),
                         activation, out.data());
    return out;
  }
};

bool are_same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

TEST_P(Int8ProductTest, ARowIsQuantisedByItsOwnLargestValue) {
  const Rows rows(*GetParam(), 5, {127, 0.5F, 1.5F, -2.5F, -127});
  EXPECT_EQ(rows.scales[0], 1.0F);
  EXPECT_EQ(rows.signed_quants(*GetParam()), (std::vector<int>{127, 0, 2, -2, -127, 0, 0, 0}));
  const Rows zeros(*GetParam(), 5, {0, 0, -0.0F, 0, 0});
  EXPECT_EQ(zeros.scales[0], 0.0F);
  EXPECT_EQ(zeros.signed_quants(*GetParam()), std::vector<int>(8, 0));
}

TEST_P(Int8ProductTest, RowsOfEverySizeAreQuantisedAlike) {
  for (std::size_t size = 1; size <= 70; ++size) {
    const auto x = random_values(size, static_cast<unsigned>(size));
    const Rows rows(*GetParam(), size, x);
    Quantised expected(x);
    EXPECT_EQ(rows.scales[0], expected.scale) << size;
    expected.quants.resize(rows.quants.size(), 0);
    EXPECT_EQ(rows.signed_quants(*GetParam()), expected.quants) << size;
  }
}

// The same bits as the formula, and so as every other table.
TEST_P(Int8ProductTest, IsTheSumOfWholeNumbersForAnyShape) {
  for (const std::size_t in_size : {1U, 3U, 4U, 21U, 63U, 64U, 65U, 385U}) {
    for (const std::size_t out_size : {1U, 31U, 32U, 33U, 100U}) {
      const Packed packed(out_size, in_size, random_values(out_size * in_size, 1));
      std::vector<Quantised> weight;
      for (std::size_t column = 0; column < out_size; ++column) {
        weight.emplace_back(part_of(packed.weight, column * in_size, in_size));
      }
      for (const std::size_t row_count : {1U, 2U, 5U, 14U, 15U, 16U, 17U, 29U, 33U}) {
        SCOPED_TRACE(testing::Message() << row_count << " x " << in_size << " x " << out_size);
        const auto x = random_values(row_count * in_size, 2);
        const auto out = product(packed, x);
        for (std::size_t row = 0; row < row_count; ++row) {
          const Quantised inputs(part_of(x, row * in_size, in_size));
          for (std::size_t column = 0; column < out_size; ++column) {
            int sum = 0;
            for (std::size_t k = 0; k < in_size; ++k) {
              sum += inputs.quants[k] * weight[column].quants[k];
            }
            const float expected = std::fma(
                static_cast<float>(sum), inputs.scale * weight[column].scale, packed.bias[column]);
            ASSERT_EQ(out[row * out_size + column], expected) << row << ", " << column;
          }
        }
      }
    }
  }
}

TEST_P(Int8ProductTest, TheLargestProductsDoNotSaturate) {
  constexpr std::size_t kIn = 4096;
  for (const float sign : {1.0F, -1.0F}) {
    Packed packed(1, kIn, std::vector<float>(kIn, 127.0F));
    std::fill(packed.bias.begin(), packed.bias.end(), 0.0F);
    // Scales of 1: 4096 x 127 x 127, which float32 holds, as it is 2^12 x 16129.
    EXPECT_EQ(product(packed, std::vector<float>(kIn, sign * 127.0F))[0], sign * 66064384.0F);
  }
}

TEST_P(Int8ProductTest, AnyNumberOfRowsGivesARowTheSameBits) {
  constexpr std::size_t kRows = 40;
  constexpr std::size_t kIn = 129;
  constexpr std::size_t kOut = 100;
  const Packed packed(kOut, kIn, random_values(kOut * kIn, 5));
  const auto x = random_values(kRows * kIn, 6);
  const auto all = product(packed, x, Activation::Gelu);
  for (std::size_t begin = 0; begin < kRows; ++begin) {
    for (std::size_t count = 1; begin + count <= kRows; ++count) {
      const auto part = product(packed, part_of(x, begin * kIn, count * kIn), Activation::Gelu);
      ASSERT_TRUE(are_same_bits(part, part_of(all, begin * kOut, count * kOut)))
          << count << " rows from " << begin;
    }
  }
}

TEST_P(Int8ProductTest, PanelsOneByOneAreTheWhole) {
  constexpr std::size_t kIn = 50;
  constexpr std::size_t kOut = 100;
  constexpr std::size_t kRows = 17;
  const Packed packed(kOut, kIn, random_values(kOut * kIn, 5));
  const auto x = random_values(kRows * kIn, 6);
  const Rows rows(*GetParam(), kIn, x);
  std::vector<float> out(kRows * kOut, 7.0F);
  GetParam()->multiply(packed.matrix, 3, 4, rows.view(), Activation::Relu, out.data());
  for (std::size_t i = 0; i < out.size(); ++i) {
    ASSERT_TRUE(i % kOut >= 96 || out[i] == 7.0F) << i;
  }
  for (const std::size_t panel : {2U, 0U, 1U}) {
    GetParam()->multiply(packed.matrix, panel, panel + 1, rows.view(), Activation::Relu,
                         out.data());
  }
  EXPECT_TRUE(are_same_bits(out, product(packed, x, Activation::Relu)));
}

TEST_P(Int8ProductTest, ActivationsAreTheirFormulas) {
  // One input times one, no bias: each row has a scale of its own, so the sum is the value itself.
  Packed packed(1, 1, {1.0F});
  std::fill(packed.bias.begin(), packed.bias.end(), 0.0F);
  std::vector<float> x;
  for (int i = -1200; i <= 1200; ++i) x.push_back(static_cast<float>(i) / 100);
  for (const auto activation : {Activation::Gelu, Activation::GeluTanh, Activation::Relu}) {
    SCOPED_TRACE(static_cast<int>(activation));
    const auto out = product(packed, x, activation);
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double expected = formula(activation, x[i]);
      // Some roundings of float32; 4e-7 of erf times x / 2.
      ASSERT_NEAR(out[i], expected, std::abs(expected) * 2e-6 + 4e-6) << x[i];
    }
  }
}

TEST_P(Int8ProductTest, WhatIsNoNumberStaysNoneInItsRowOrOutput) {
  constexpr std::size_t kIn = 20;
  auto weight = random_values(33 * kIn, 1);
  const auto sound = product(Packed(33, kIn, weight), random_values(2 * kIn, 2));
  for (const float none : {kNone, std::numeric_limits<float>::infinity()}) {
    auto x = random_values(2 * kIn, 2);
    x[13] = none;
    const auto rows = product(Packed(33, kIn, weight), x);
    for (std::size_t i = 0; i < 33; ++i) {
      EXPECT_TRUE(std::isnan(rows[i])) << i;
      EXPECT_EQ(rows[33 + i], sound[33 + i]) << i;
    }
    auto broken = weight;
    broken[32 * kIn + 5] = none;
    const auto columns = product(Packed(33, kIn, broken), random_values(2 * kIn, 2));
    EXPECT_TRUE(std::isnan(columns[32]) && std::isnan(columns[65]));
    EXPECT_EQ(columns[31], sound[31]);
  }
}

// The activations of both are compiled for AVX-512, and the sums are exact.
TEST(Int8Amx, HasTheBitsOfVnni) {
  const auto available = int8_kernels_available();
  if (available.back() != &kInt8Amx) GTEST_SKIP() << "this process may not use AMX's tiles";
  for (const std::size_t in_size : {64U, 100U, 129U}) {
    const Packed packed(100, in_size, random_values(100 * in_size, 5));
    for (const std::size_t row_count : {1U, 16U, 31U, 70U}) {
      const auto x = random_values(row_count * in_size, 6);
      for (const auto activation : {Activation::Gelu, Activation::GeluTanh, Activation::Relu}) {
        std::vector<std::vector<float>> results;
        for (const auto* kernels : {&kInt8Avx512Vnni, &kInt8Amx}) {
          const Rows rows(*kernels, in_size, x);
          auto& out = results.emplace_back(row_count * 100, kNone);
          kernels->multiply(packed.matrix, 0, 4, rows.view(), activation, out.data());
        }
        EXPECT_TRUE(are_same_bits(results[0], results[1])) << row_count << " x " << in_size;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(InstructionSets, Int8ProductTest,
                         testing::ValuesIn(int8_kernels_available()), [](const auto& tested) {
                           std::string name(tested.param->name);
                           std::replace(name.begin(), name.end(), '+', '_');
                           return name;
                         });

}  // namespace
}  // namespace muster::engine
