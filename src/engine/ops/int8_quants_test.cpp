#include "engine/ops/int8_quants.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "engine/ops/panel_weight.h"

namespace muster::engine {
namespace {

constexpr std::size_t kBlock = kTransformedInputs;

struct Int8Group {
  float scale = 0;
  std::vector<std::int8_t> quants;
};

Int8Group quantized(const std::vector<float>& values) {
  Int8Group group{.quants = std::vector<std::int8_t>(values.size(), 77)};
  group.scale = int8_quants(values, group.quants.data());
  return group;
}

// Place k of a block by its definition.
double transformed(const float* block, std::size_t k) {
  double sum = 0;
  for (std::size_t j = 0; j < kBlock; ++j) {
    sum += (std::popcount(j & k) % 2 == 0 ? 1 : -1) * double{block[j]};
  }
  return sum / 8;
}

// One value is spread over its block alone: 8 d 127 at place 0 is 127 d everywhere, at place 5
// negative where an odd number of bits of 5 is set.
TEST(Int8QuantsTest, AValueIsSpreadOverItsBlock) {
  std::vector<float> values(2 * kBlock);
  values[5] = 8 * 127 * 0.25F;
  const auto group = quantized(values);
  EXPECT_EQ(group.scale, 0.25F);
  for (std::size_t k = 0; k < kBlock; ++k) {
    EXPECT_EQ(group.quants[k], std::popcount(k & 5U) % 2 == 0 ? 127 : -127) << k;
    EXPECT_EQ(group.quants[kBlock + k], 0) << k;
  }
}

// The largest of all blocks gives the scale; what is left is within half a step.
TEST(Int8QuantsTest, QuantsAreWithinHalfAStepOfTheTransform) {
  std::mt19937 random(3);
  std::normal_distribution<float> normal;
  for (const std::size_t blocks : {1U, 3U, 4U}) {
    std::vector<float> values(blocks * kBlock);
    for (auto& value : values) value = normal(random);
    const auto group = quantized(values);
    double most = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
      const double expected = transformed(values.data() + i / kBlock * kBlock, i % kBlock);
      most = std::max(most, std::abs(expected));
      ASSERT_NEAR(double{group.scale} * group.quants[i], expected, group.scale * 0.5001) << i;
    }
    EXPECT_NEAR(group.scale, most / 127, 1e-6 * most);
  }
}

// The transform of a transform is what it was; the numbers are exact in float32.
TEST(Int8QuantsTest, HalvesAreRoundedToEven) {
  std::vector<float> wanted(kBlock);
  const float halves[] = {127, 0.5F, 1.5F, 2.5F, -0.5F, -1.5F, -126.5F, 3.25F};
  std::copy(std::begin(halves), std::end(halves), wanted.begin());
  std::vector<float> values(kBlock);
  for (std::size_t k = 0; k < kBlock; ++k) {
    values[k] = static_cast<float>(transformed(wanted.data(), k));
  }
  const auto group = quantized(values);
  EXPECT_EQ(group.scale, 1.0F);
  constexpr int kExpected[] = {127, 0, 2, 2, 0, -2, -126, 3};
  for (std::size_t i = 0; i < std::size(kExpected); ++i) {
    EXPECT_EQ(group.quants[i], kExpected[i]) << i;
  }
}

TEST(Int8QuantsTest, WhatIsTooSmallForAScaleIsNothing) {
  for (const float value : {0.0F, 1e-39F, std::numeric_limits<float>::denorm_min()}) {
    std::vector<float> values(kBlock);
    values[7] = value;
    for (const int quant : quantized(values).quants) EXPECT_EQ(quant, 0) << value;
  }
}

TEST(Int8QuantsTest, AValueThatIsNotFiniteLeavesNoScale) {
  for (const float value :
       {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity(),
        std::numeric_limits<float>::max()}) {
    std::vector<float> values(2 * kBlock, 1.0F);
    values[3] = values[20] = value;
    const auto group = quantized(values);
    EXPECT_TRUE(std::isnan(group.scale)) << value;
    for (const int quant : group.quants) EXPECT_EQ(quant, 0) << value;
  }
}

}  // namespace
}  // namespace muster::engine
