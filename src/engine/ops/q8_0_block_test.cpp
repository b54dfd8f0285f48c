#include "engine/ops/q8_0_block.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "engine/ops/float16.h"

namespace muster::engine {
namespace {

using Values = std::array<float, kBlockInputs>;

float scale_of(const Q8Block& block) {
  Float16 half;
  std::memcpy(&half, block.data(), sizeof half);
  return to_float(half);
}

int quant_of(const Q8Block& block, std::size_t index) {
  return static_cast<std::int8_t>(block[sizeof(Float16) + index]);
}

// 127 as the largest makes a scale of one.
TEST(Q8BlockTest, HalvesAreRoundedAwayFromZero) {
  Values values{};
  values[0] = -127;
  values[1] = 0.5F;
  values[2] = -0.5F;
  values[3] = 1.5F;
  values[4] = 2.5F;
  values[5] = -2.5F;
  values[6] = 0.49F;
  values[31] = 126.5F;
  const auto block = q8_0_block(values);
  EXPECT_EQ(scale_of(block), 1.0F);
  constexpr int kExpected[] = {-127, 1, -1, 2, 3, -3, 0, 0};
  for (std::size_t i = 0; i < std::size(kExpected); ++i) {
    EXPECT_EQ(quant_of(block, i), kExpected[i]) << i;
  }
  EXPECT_EQ(quant_of(block, 31), 127);
}

// The scale is 1 + 2^-12, whose nearest float16 is 1: 126.51 is 126.479 of the one and 126.51 of
// the other.
TEST(Q8BlockTest, QuantsAreByTheScaleBeforeItIsRounded) {
  Values values{};
  values[0] = 127 * (1 + 0x1p-12F);
  values[1] = 126.51F;
  const auto block = q8_0_block(values);
  EXPECT_EQ(scale_of(block), 1.0F);
  EXPECT_EQ(quant_of(block, 0), 127);
  EXPECT_EQ(quant_of(block, 1), 126);
}

TEST(Q8BlockTest, WhatIsTooSmallForAScaleIsNothing) {
  const Q8Block nothing{};
  EXPECT_EQ(q8_0_block(Values{}), nothing);
  Values values{};
  values[7] = 1e-9F;  // by 127: less than half of 2^-24, the smallest float16
  EXPECT_EQ(q8_0_block(values), nothing);
  values[7] = std::numeric_limits<float>::denorm_min();
  EXPECT_EQ(q8_0_block(values), nothing);
}

TEST(Q8BlockTest, WhatNoScaleHoldsIsNoNumber) {
  for (const float value :
       {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity(),
        127.0F * 65'536, std::numeric_limits<float>::max()}) {
    Values values{};
    values[3] = 1;
    values[20] = value;
    EXPECT_TRUE(std::isnan(scale_of(q8_0_block(values)))) << value;
  }
  Values largest{};
  largest[20] = -127.0F * kFloat16Max;
  EXPECT_EQ(scale_of(q8_0_block(largest)), kFloat16Max);
  EXPECT_EQ(quant_of(q8_0_block(largest), 20), -127);
}

}  // namespace
}  // namespace muster::engine
