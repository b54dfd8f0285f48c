// The float32 products of every instruction set that this CPU has.

#include "engine/ops/fp32_product.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "engine/ops/activation_fixture.h"
#include "engine/ops/kernels_by_cpu.h"

namespace muster::engine {
namespace {

struct NamedProduct {
  const char* name;
  Fp32Product product;
};

std::vector<NamedProduct> products_available() {
  std::vector<NamedProduct> all{{"portable", multiply_fp32_portable}};
  for (const auto* kernels : kernels_available()) {
    if (kernels == &kAvx2Kernels) all.push_back({"avx2", multiply_fp32_avx2});
  }
  return all;
}

class Fp32ProductTest : public testing::TestWithParam<NamedProduct> {};

std::vector<float> random_values(std::size_t count, unsigned seed) {
  std::mt19937 generator(seed);
  std::uniform_real_distribution<float> distribution(-2, 2);
  std::vector<float> values(count);
  for (auto& value : values) value = distribution(generator);
  return values;
}

// A weight [out, in] with its bias, packed.
struct Packed {
  std::vector<float> weight, bias, panels;
  Fp32Matrix matrix;

  Packed(std::size_t out_size, std::size_t in_size, std::vector<float> values)
      : weight(std::move(values)),
        bias(random_values(Fp32Matrix::padded_outputs(out_size), 3)),
        panels(Fp32Matrix::padded_outputs(out_size) * in_size) {
    pack_fp32_panels(weight.data(), out_size, in_size, panels.data());
    matrix = {panels.data(), bias.data(), in_size, out_size};
  }

  std::vector<float> times(Fp32Product product, const std::vector<float>& x,
                           std::optional<Activation> activation = std::nullopt) const {
    const auto row_count = x.size() / matrix.in_size;
    // What lies behind the last output stays as it is.
    std::vector<float> out(row_count * matrix.out_size + 1, 77);
    product(matrix, row_count, x.data(), activation, out.data());
    EXPECT_EQ(out.back(), 77);
    out.pop_back();
    return out;
  }
};

TEST(PackFp32Panels, OutputsStandSideBySideAndWhatIsMissingIsZero) {
  // Two outputs of three inputs: 1 2 3 and 4 5 6.
  const std::vector<float> weight{1, 2, 3, 4, 5, 6};
  std::vector<float> panels(16 * 3, -1);
  pack_fp32_panels(weight.data(), 2, 3, panels.data());
  for (std::size_t k = 0; k < 3; ++k) {
    EXPECT_EQ(panels[k * 16], static_cast<float>(k + 1));
    EXPECT_EQ(panels[k * 16 + 1], static_cast<float>(k + 4));
    EXPECT_EQ(panels[k * 16 + 2], 0);
    EXPECT_EQ(panels[k * 16 + 15], 0);
  }
}

TEST_P(Fp32ProductTest, IsTheFormulaForAnyShape) {
  for (const std::size_t in_size : {1U, 2U, 21U, 64U, 385U}) {
    for (const std::size_t out_size : {1U, 7U, 8U, 15U, 16U, 17U, 200U}) {
      const Packed packed(out_size, in_size, random_values(out_size * in_size, 1));
      for (const std::size_t row_count : {1U, 5U, 6U, 7U, 18U}) {
        SCOPED_TRACE(testing::Message() << row_count << " x " << in_size << " x " << out_size);
        const auto x = random_values(row_count * in_size, 2);
        const auto out = packed.times(GetParam().product, x);
        for (std::size_t i = 0; i < out.size(); ++i) {
          const auto row = i / out_size;
          const auto column = i % out_size;
          double expected = packed.bias[column];
          for (std::size_t k = 0; k < in_size; ++k) {
            expected +=
                static_cast<double>(x[row * in_size + k]) * packed.weight[column * in_size + k];
          }
          // float32 sums of up to 385 terms of 4.
          ASSERT_NEAR(out[i], expected, 2e-4) << i;
        }
      }
    }
  }
}

TEST_P(Fp32ProductTest, AnyNumberOfRowsGivesARowTheSameBits) {
  constexpr std::size_t kRows = 40;
  constexpr std::size_t kIn = 129;
  constexpr std::size_t kOut = 100;
  const Packed packed(kOut, kIn, random_values(kOut * kIn, 5));
  const auto x = random_values(kRows * kIn, 6);
  const auto all = packed.times(GetParam().product, x, Activation::Gelu);
  for (std::size_t begin = 0; begin < kRows; ++begin) {
    for (std::size_t count = 1; begin + count <= kRows; ++count) {
      const auto at = [](std::size_t row, std::size_t size) {
        return static_cast<std::ptrdiff_t>(row * size);
      };
      const auto part = packed.times(
          GetParam().product, {x.begin() + at(begin, kIn), x.begin() + at(begin + count, kIn)},
          Activation::Gelu);
      for (std::size_t i = 0; i < part.size(); ++i) {
        ASSERT_EQ(part[i], all[begin * kOut + i]) << count << " rows from " << begin;
      }
    }
  }
}

TEST_P(Fp32ProductTest, PanelsApartGiveAnOutputTheSameBits) {
  constexpr std::size_t kRows = 19;
  constexpr std::size_t kIn = 129;
  constexpr std::size_t kOut = 200;
  const Packed packed(kOut, kIn, random_values(kOut * kIn, 5));
  const auto x = random_values(kRows * kIn, 6);
  const auto all = packed.times(GetParam().product, x, Activation::Gelu);
  const auto panel_count = packed.matrix.panel_count();
  ASSERT_EQ(panel_count, 13U);
  for (std::size_t begin = 0; begin < panel_count; ++begin) {
    for (std::size_t end = begin + 1; end <= panel_count; ++end) {
      const std::size_t first = begin * Fp32Matrix::kColumns;
      const std::size_t behind = std::min(end * Fp32Matrix::kColumns, kOut);
      std::vector<float> part(kRows * kOut, 77);
      GetParam().product(packed.matrix.panel_range(begin, end), kRows, x.data(), Activation::Gelu,
                         part.data() + first);
      for (std::size_t i = 0; i < part.size(); ++i) {
        const auto column = i % kOut;
        const bool is_of_part = column >= first && column < behind;
        ASSERT_EQ(part[i], is_of_part ? all[i] : 77.0F) << "panels " << begin << " to " << end;
      }
    }
  }
}

TEST_P(Fp32ProductTest, ActivationsAreTheirFormulas) {
  // One input times one, no bias: the sum is the value itself.
  Packed packed(1, 1, {1.0F});
  packed.bias.assign(packed.bias.size(), 0);
  packed.matrix.bias = packed.bias.data();
  std::vector<float> x{-1e30F, -1e4F, -0.0F, 1e-30F, 1e4F, 1e30F};
  for (float value = -12; value <= 12; value += 0.01F) x.push_back(value);
  for (const auto activation : {Activation::Gelu, Activation::GeluTanh, Activation::Relu}) {
    SCOPED_TRACE(static_cast<int>(activation));
    const auto out = packed.times(GetParam().product, x, activation);
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double expected = formula(activation, x[i]);
      // 4e-7 of erf or of the power, times x / 2, and float32's rounding.
      ASSERT_NEAR(out[i], expected, std::abs(expected) * 1e-6 + 3e-6) << x[i];
    }
  }
}

TEST_P(Fp32ProductTest, WhatIsNoNumberStaysNone) {
  const Packed packed(1, 1, {1.0F});
  const std::vector<float> x{std::numeric_limits<float>::quiet_NaN()};
  EXPECT_TRUE(std::isnan(packed.times(GetParam().product, x)[0]));
  for (const auto activation : {Activation::Gelu, Activation::GeluTanh, Activation::Relu}) {
    EXPECT_TRUE(std::isnan(packed.times(GetParam().product, x, activation)[0]));
  }
}

INSTANTIATE_TEST_SUITE_P(Every, Fp32ProductTest, testing::ValuesIn(products_available()),
                         [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace muster::engine
